"""Sweeps: axes, files, presets by name, and the cells that they spell out."""
