"""Pretrained transformers as feature maps: reading, the stack from any layer, pooling,
attention."""
