"""The findings of a check in sentences that need no other reading."""

from collections.abc import Iterator, Sequence

import numpy as np

from wordsens.evaluation.kinds import KindRow, KindTable, Measured
from wordsens.text.pairs import LENGTHS, Pair

COIN = 0.5
"""The AUC of a model that does not tell opposites from paraphrases at all."""

_NAMED = 3
"""Pairs that a sentence names."""

_MOST_SHOWN = 110
"""Characters of a text that a sentence shows."""


def answer(
    model: str, table: KindTable, measured: Measured, budget: float, threshold: float | None
) -> Iterator[str]:
    """Sentences: which kinds show, the worst example, whether a threshold helps, and what the user's own does."""
    blind = [row for row in table if row.auc_high < COIN]
    seen = [row for row in table if row.auc_low > COIN]
    yield _verdict(model, table, blind, seen)
    if blind:
        yield from _example(min(blind, key=lambda row: row.auc), measured)
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
        parts.append(f"sees {_names(seen)}")
    if blind:
        parts.append(f"does not see {_names(blind)} (it puts these opposites closer together than paraphrases)")
    unsure = [row for row in table if row not in blind and row not in seen]
    if unsure:
        parts.append(f"is no better than chance, or too few pairs tell, on {_names(unsure)}")
    return f"{model} {'; '.join(parts)}."


def _example(row: KindRow, measured: Measured) -> Iterator[str]:
    members = measured.opposites[row.kind]
    at = max(np.flatnonzero(members), key=lambda place: _vividness(measured, int(place)))
    pair, value = measured.pairs[at], float(measured.values[at])
    paraphrases = measured.values[measured.paraphrases]
    below = int((paraphrases < value).sum())
    here, there = pair.changed
    told = f"It cannot tell '{here}' from '{there}'" if here and there else "It cannot tell these two apart"
    yield (
        f"{told} in {_short(pair.first)!r} / {_short(pair.second)!r}: at {value:.3f} the two are more alike than {below} of "
        f"{len(paraphrases)} paraphrases are."
    )
    over = int((measured.values[members] > row.median_same).sum())
    yield f"So are {over} of {row.pairs} {row.kind} pairs more alike than the typical paraphrase ({row.median_same:.3f})."


def _vividness(measured: Measured, at: int) -> tuple[int, float]:
    """Short texts first, then those most alike."""
    return -LENGTHS.index(measured.pairs[at].length), float(measured.values[at])


def _threshold_told(table: KindTable, budget: float) -> str:
    kept = [row for row in table if row.recall is not None]
    rule = f"lets at most {budget:.3g} of a kind's opposites through"
    if not kept:
        return f"No threshold separates them: any that {rule} keeps no paraphrase at all."
    told = ", ".join(f"{row.recall:.0%} for {row.kind} (from {row.threshold:.3f})" for row in kept)
    rest = "" if len(kept) == len(table) else f"; none for the other {len(table) - len(kept)}: no threshold separates them"
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
    here, there = pair.changed
    return f"{pair.kind} '{here}' / '{there}' in {_short(pair.first)!r}"


def _names(rows: Sequence[KindRow]) -> str:
    return ", ".join(row.kind for row in rows)


def _short(text: str) -> str:
    return text if len(text) <= _MOST_SHOWN else text[: _MOST_SHOWN - 3] + "..."
