"""`wordsens sweep`."""
