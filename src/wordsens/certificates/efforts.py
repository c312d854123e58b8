"""The names of what a certificate may spend."""

EFFORTS = ("normal", "thorough")
