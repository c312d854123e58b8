"""Upper bounds for attention layers; docs/proofs.md#attention-certificates states and proves them,
section by section.

bounds       the certificate: heads, words, the least of all bounds    "Statement", "Simple bounds"
text         one text: scores, geometry, rounding, row i               "Notation", "Rounding"
relaxation   the Lagrangian's bound at one z, for any multipliers      "Rows jointly"
multipliers  good multipliers, the bound over all z            "Optimisation", "Intervals of z"
first_order  small radii                                               "Small radii"
"""
