"""Experiments: sweeps of cells that are measured here or on a cluster, kept in one database, and summarized."""
