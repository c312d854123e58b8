"""Labelled texts to train on: one word decides, no single word does, or real texts."""
