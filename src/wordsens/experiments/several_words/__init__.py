"""Cells of several words that move at once."""
