"""Upper bounds for random features and deep random features (docs/proofs.md#dense-certificates)."""
