"""Auditing a model on a user's own texts: which words move it, which it ignores, how that fades
with length."""
