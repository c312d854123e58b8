"""The theorems' rates: how S scales with the number of words."""

from dataclasses import dataclass

from wordsens.errors import require_choice


@dataclass(frozen=True)
class Rate:
    """S is of order n^exponent, up to constants that the theorem does not give.

    Attributes:
        exponent: of n.
        direction: "at most" for an upper bound of S (O), "at least" for a lower one (Omega).
        theorem: of the paper.
    """

    exponent: float
    direction: str
    theorem: str


_RATES = {
    "rf": Rate(-0.5, "at most", "Theorem 1"),
    "drf": Rate(-0.5, "at most", "Theorem 2, at a fixed depth"),
    "raf": Rate(0.0, "at least", "Theorem 3, d large compared with n up to logarithms"),
}


def rate(map_name: str) -> Rate:
    """The rate of S that the paper proves for random features (rf), deep ones (drf) or softmax attention (raf).

    >>> rate("rf").exponent
    -0.5
    """
    return _RATES[require_choice("map_name", map_name, _RATES)]
