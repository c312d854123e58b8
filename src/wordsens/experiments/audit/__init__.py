"""Audit cells: one text, one model."""
