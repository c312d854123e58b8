"""`wordsens check`."""
