"""Questions to an embedding model: does a flipped meaning show, and since when does it not."""
