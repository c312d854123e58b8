"""Questions to embedding models: does a flipped meaning show, which words carry a score, what
differs between two."""
