"""Upper bounds of word sensitivity: what no perturbation in the ball can exceed."""
