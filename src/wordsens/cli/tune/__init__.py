"""`wordsens tune`."""
