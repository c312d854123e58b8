"""Where other people's loops meet wordsens: pytest, and sentence-transformers' trainer."""
