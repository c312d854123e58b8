"""Any embedding model as one thing: texts in, vectors out."""
