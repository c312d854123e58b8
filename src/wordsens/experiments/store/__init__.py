"""Records on disk: one Parquet shard a finished cell, named by the content of its spec."""
