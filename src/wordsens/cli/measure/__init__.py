"""`wordsens measure`."""
