"""Where other people's loops meet wordsens: pytest, sentence-transformers' trainer, MTEB."""
