"""Dry runs: cells that only take time, to try a cluster with."""
