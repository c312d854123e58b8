"""Upper bounds for random features and deep random features (docs/theory/certificates-dense.md)."""
