"""`wordsens paper`."""
