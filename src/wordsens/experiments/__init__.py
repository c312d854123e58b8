"""Experiments: a typed spec, independent cells, one record each in a Parquet store."""
