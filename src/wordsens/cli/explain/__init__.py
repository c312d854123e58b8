"""`wordsens explain`: its options, its work, and what it prints."""
