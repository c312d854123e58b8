"""Upper bounds for attention layers (docs/theory/certificates-attention.md)."""
