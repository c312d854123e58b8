"""Cells of texts with correlated words: mean cosines from 0 to .95, repeated words, real texts."""
