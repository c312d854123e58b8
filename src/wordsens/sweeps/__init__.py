"""Sweeps of cells: their keys, the store of records, the loop and its workers, and what an experiment is."""
