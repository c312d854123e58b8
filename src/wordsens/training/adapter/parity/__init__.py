"""The adapter "parity": a sign of every text that each turning word changes, joined to its embedding."""
