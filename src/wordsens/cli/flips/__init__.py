"""`wordsens flips`: its options, its work, and what it prints."""
