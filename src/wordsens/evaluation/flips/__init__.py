"""Words that flip a classifier's label."""
