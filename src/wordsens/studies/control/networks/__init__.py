"""Small text networks: fully connected on the flattened text, and layers of attention."""
