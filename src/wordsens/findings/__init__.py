"""Sentences and tables about results, one file a kind of result; a sentence with its number is a
`Finding`."""
