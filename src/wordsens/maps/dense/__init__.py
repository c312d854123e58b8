"""Random features and deep random features: the maps, their change when a word moves, their functionals."""
