"""The library's values and bounds attacked by maps, gradients and a search of its own."""
