"""`wordsens compare`: its options, its work, and what it prints."""
