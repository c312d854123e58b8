"""`wordsens report`."""
