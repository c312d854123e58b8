"""Records to one page that a person reads: what was found, figures, texts, tables, and how it was made."""
