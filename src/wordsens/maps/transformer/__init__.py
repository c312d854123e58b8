"""Pretrained transformers as feature maps: at any layer, head or pooling, and their attention by
itself."""
