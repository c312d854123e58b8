"""The findings of a check in sentences that need no other reading."""

from collections.abc import Iterator, Sequence

import numpy as np

from wordsens.evaluation.kinds import KindRow, KindTable, Measured
from wordsens.text.pairs import Pair

COIN = 0.5
"""The AUC of a model that does not tell opposites from paraphrases at all."""

_NAMED = 3
"""Pairs that a sentence names."""

_SHORT = 12
"""Words of a text that is quickly read."""

_AROUND = 6
"""Words on either side of a change that a sentence shows."""


def answer(model: str, table: KindTable, measured: Measured, budget: float, threshold: float | None) -> Iterator[str]:
    """Sentences: which kinds show, the worst example, whether a threshold helps, and what the user's own does."""
    blind = [row for row in table if row.auc_high < COIN]
    seen = [row for row in table if row.auc_low > COIN]
    yield _verdict(model, table, blind, seen)
    if weak := [row for row in table if row.auc < COIN]:
        yield from _example(weak, measured)
    yield _threshold_told(table, budget)
    if threshold is not None:
        yield _own_threshold(table, measured, threshold)


def _verdict(model: str, table: KindTable, blind: Sequence[KindRow], seen: Sequence[KindRow]) -> str:
    if len(blind) == len(table):
        every = "this kind of opposite" if len(table) == 1 else f"all {len(table)} kinds of opposites"
        return f"{model} does not see flipped meanings: it puts {every} closer together than paraphrases."
    if len(seen) == len(table):
        return f"{model} sees flipped meanings: opposites lie farther apart than paraphrases, in every kind checked."
    parts = []
    if seen:
        parts.append(f"sees {_names(seen)} pairs")
    if blind:
        parts.append(f"does not see {_names(blind)} pairs (it puts them closer together than paraphrases)")
    unsure = [row for row in table if row not in blind and row not in seen]
    if unsure:
        parts.append(f"is no better than chance, or too few pairs tell, on {_names(unsure)} pairs")
    return f"{model} {'; '.join(parts)}."


def _example(weak: Sequence[KindRow], measured: Measured) -> Iterator[str]:
    """The plainest pair of those kinds, and how its kind fares."""
    rows = {row.kind: row for row in weak}
    members = np.logical_or.reduce([measured.opposites[kind] for kind in rows])
    at = int(max(np.flatnonzero(members), key=lambda place: _plainness(measured, int(place))))
    pair, value = measured.pairs[at], float(measured.values[at])
    row = rows[pair.kind]
    paraphrases = measured.values[measured.paraphrases]
    below = int((paraphrases < value).sum())
    if 2 * below > len(paraphrases):
        yield (
            f"It cannot tell {_exchange(pair)} in {_around(pair)}: the two texts are more alike ({value:.3f}) than "
            f"{below} of {len(paraphrases)} paraphrases are."
        )
    over = int((measured.values[measured.opposites[pair.kind]] > row.median_same).sum())
    yield (
        f"Of {row.pairs} {row.kind} pairs, {over} are more alike than the typical paraphrase "
        f"(median {row.median_opposite:.3f} against {row.median_same:.3f})."
    )


def _plainness(measured: Measured, at: int) -> tuple[bool, bool, float]:
    """Short texts first, then one word for another, then those most alike."""
    pair = measured.pairs[at]
    one_word = all(len(part.split()) == 1 for part in pair.changed)
    return len(pair.first.split()) <= _SHORT, one_word, float(measured.values[at])


def _exchange(pair: Pair) -> str:
    here, there = pair.changed
    if here and there:
        return f"'{here}' from '{there}'"
    return f"whether there is a '{here or there}'"


def _threshold_told(table: KindTable, budget: float) -> str:
    kept = [row for row in table if row.recall is not None]
    rule = f"lets at most {budget:.3g} of a kind's opposites through"
    if not kept:
        return f"No threshold separates them: any that {rule} keeps no paraphrase at all."
    told = ", ".join(f"{row.recall:.0%} for {row.kind} (from {row.threshold:.3f})" for row in kept)
    rest = (
        "" if len(kept) == len(table) else f"; none for the other {len(table) - len(kept)}: no threshold separates them"
    )
    return f"A threshold that {rule} keeps this share of paraphrases: {told}{rest}."


def _own_threshold(table: KindTable, measured: Measured, threshold: float) -> str:
    opposite = np.logical_or.reduce([measured.opposites[row.kind] for row in table])
    served = np.flatnonzero(opposite & (measured.values >= threshold))
    kept = int((measured.values[measured.paraphrases] >= threshold).sum())
    told = (
        f"At your threshold {threshold:g}, {len(served)} of {int(opposite.sum())} opposites would be served as if they "
        f"meant the same, and {kept} of {int(measured.paraphrases.sum())} paraphrases found"
    )
    worst = sorted(served, key=lambda at: -measured.values[at])[:_NAMED]
    if not worst:
        return told + "."
    named = "; ".join(f"{_swap(measured.pairs[at])} {measured.values[at]:.3f}" for at in worst)
    return f"{told}. The worst: {named}."


def _swap(pair: Pair) -> str:
    here, there = (part or "-" for part in pair.changed)
    return f"{pair.kind} '{here}' / '{there}' in {_around(pair)}"


def _names(rows: Sequence[KindRow]) -> str:
    return ", ".join(row.kind for row in rows)


def _around(pair: Pair) -> str:
    """The first text in quotes; of a long one, the words around its first difference from the second."""
    words, other = pair.first.split(), pair.second.split()
    if len(words) <= 2 * _AROUND:
        return repr(pair.first)
    place = next((at for at, (one, two) in enumerate(zip(words, other, strict=False)) if one != two), 0)
    start, stop = max(0, place - _AROUND), place + _AROUND
    before, behind = "... " * (start > 0), " ..." * (stop < len(words))
    return repr(f"{before}{' '.join(words[start:stop])}{behind}")
