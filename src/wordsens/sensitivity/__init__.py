"""Word sensitivity: of one word, several, whole words, several texts; swaps, removals, the
small-radius limit."""
