"""Upper bounds of word sensitivity: what no perturbation in the ball can exceed."""

EFFORTS = ("normal", "thorough")
"""The names of what a certificate may spend."""
