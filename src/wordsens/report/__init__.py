"""Records to one page that a person reads: what was found, figures, texts, tables, and how it was
made."""

# The endings of a report's file, each its format.
FORMATS = ("html", "md")
