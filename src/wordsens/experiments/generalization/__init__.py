"""Generalization cells: one fit, one text that differs in a word."""
