"""Feature maps: fully connected random features, random attention, pretrained transformers."""
