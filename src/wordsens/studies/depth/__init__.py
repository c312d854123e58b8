"""Word sensitivity over the layers of random and trained transformers."""
