"""Attention cells: one pair of texts, one layer of one model."""
