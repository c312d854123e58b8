"""The fixtures of `small`."""

from tests.training.adapter.small import pairs, short, texts, tiny

__all__ = ["pairs", "short", "texts", "tiny"]
