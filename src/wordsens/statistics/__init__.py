"""Fits and intervals that several rooms use."""
