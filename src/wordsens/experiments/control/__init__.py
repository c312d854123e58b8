"""Cells that train a small text network under control of its word sensitivity, and measure what came of it."""
