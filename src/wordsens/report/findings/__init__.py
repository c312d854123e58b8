"""Findings in sentences: each with its number, and how that number is known."""
