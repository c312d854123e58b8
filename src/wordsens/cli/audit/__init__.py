"""`wordsens audit`."""
