"""Records to one page that a person reads: what was found, figures, texts, tables, and how it was
made."""

FORMATS = ("html", "md")
"""The endings of a report's file, each its format."""
