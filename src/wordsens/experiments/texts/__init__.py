"""The texts of cells: shipped, generated, or read from a dataset."""
