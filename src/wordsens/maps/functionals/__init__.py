"""Linear functionals of features, evaluated when one word moves."""
