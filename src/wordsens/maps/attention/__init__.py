"""Random attention features: the map, its change when words move, its Jacobian and its
functionals."""
