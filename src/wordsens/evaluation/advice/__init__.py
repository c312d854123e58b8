"""Advice on how long a passage may be before one word no longer moves its embedding."""
