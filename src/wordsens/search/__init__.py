"""Searches for the perturbation of one word that changes the features most."""
