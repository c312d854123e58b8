"""Sensitivity cells: one text, one map."""
