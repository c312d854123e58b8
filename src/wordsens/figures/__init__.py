"""Figures of records, drawn with matplotlib; no input or output."""
