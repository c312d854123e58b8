"""The words that a measurement searches where nobody names them."""

import torch

from wordsens.maps.contract import FeatureMap
from wordsens.seeds import Seed, generator

ON_DEMAND_WORDS = 16
"""Words of a text that rf searches by default where its matrix is not built; drf: so many over its depth."""


def on_demand(phi: FeatureMap) -> bool:
    """True where the map's matrices are sampled on demand, and each query is remembered."""
    return getattr(phi, "gaussian", None) == "lazy"


def sampled_words(phi: FeatureMap, n: int, seed: Seed, count: int | None = None) -> list[int] | None:
    """A random sample of `count` of n words, ascending; None for all.

    By default all, but of a map whose matrices are sampled on demand ON_DEMAND_WORDS: it remembers every query, so all
    words of a long text would not fit.
    """
    if count is None and on_demand(phi):
        count = max(2, ON_DEMAND_WORDS // getattr(phi, "depth", 1))
    if count is None or count >= n:
        return None
    return sorted(torch.randperm(n, generator=generator(seed, "sample"))[:count].tolist())
