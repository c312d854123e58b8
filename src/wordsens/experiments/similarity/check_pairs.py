"""The pairs of `check` of one length."""

import random
from functools import cache

from wordsens.seeds import derive_seed
from wordsens.text.pairs import Pair, read_pairs


@cache
def shipped_pairs(length: str) -> tuple[Pair, ...]:
    """Every shipped pair of that length, in their order."""
    return tuple(pair for pair in read_pairs() if pair.length == length)


def some_pairs(length: str, count: int, seed: int) -> tuple[Pair, ...]:
    """At most `count` of each kind, at random by the seed."""
    chance = random.Random(derive_seed(seed, "pairs", length))
    held = shipped_pairs(length)
    taken: list[Pair] = []
    for kind in dict.fromkeys(pair.kind for pair in held):
        own = [pair for pair in held if pair.kind == kind]
        taken += chance.sample(own, min(count, len(own)))
    return tuple(taken)
