"""Running cells: here, in worker processes, or on a Dask cluster."""
