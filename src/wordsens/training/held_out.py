"""What `tune` holds out of the training, and the judgement of a model on it, before and after."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from wordsens.errors import InputError
from wordsens.evaluation.check import KEEP, Check, CheckOptions, KindRow, evaluate
from wordsens.evaluation.similarities import readable, share_over, similarities, unit_vectors
from wordsens.models.black_box import Model
from wordsens.seeds import Seed, derive_seed
from wordsens.statistics.auc import IntervalEstimate
from wordsens.text.pairs import PARAPHRASE, Pair
from wordsens.training.triples import Triple

Progress = Callable[[str, float], None]
"""Called with what is being done, and the share of it that is done."""

_SHARE = 3
"""Every third domain is held out; where pairs have no domains, every third text."""

_COIN = 0.5


@dataclass(frozen=True)
class Split:
    """The pairs that are trained on, those that are held out, and the domains of the latter."""

    train: tuple[Pair, ...]
    held_out: tuple[Pair, ...]
    domains: tuple[str, ...]


def split_pairs(pairs: Sequence[Pair], *, seed: Seed) -> Split:
    """The pairs in two parts: every third domain, or where a pair has no domain every third text, is held out.

    Raises:
        InputError: a part lacks opposites or near-duplicates.
    """
    whole = len({pair.columns.get("domain") for pair in pairs}) > 1 and all("domain" in pair.columns for pair in pairs)
    keys = [str(pair.columns["domain"]) if whole else pair.first for pair in pairs]
    groups = sorted(set(keys))
    apart = set(random.Random(derive_seed(seed, "held out")).sample(groups, max(1, len(groups) // _SHARE)))
    held_out = tuple(pair for pair, key in zip(pairs, keys, strict=True) if key in apart)
    texts = {text for pair in held_out for text in (pair.first, pair.second)}
    train = tuple(pair for pair in pairs if texts.isdisjoint((pair.first, pair.second)))
    for part, name in ((train, "to train on"), (held_out, "to judge by")):
        if not any(pair.near for pair in part) or all(pair.same for pair in part):
            raise InputError(
                f"`pairs` leaves {len(part)} of {len(pairs)} pairs {name}, and each part needs opposites and "
                "near-duplicates: give more pairs, or none for the package's own"
            )
    return Split(train, held_out, tuple(sorted(apart)) if whole else ())


@dataclass(frozen=True)
class Judgement:
    """A model on what was held out.

    Attributes:
        check: of all pairs that were held out.
        new: the same, of the opposites none of whose changed words is one in a triple; None where there are none.
        recall: recall@1 of paraphrases among each other and the sentences of the texts.
    """

    check: Check
    new: Check | None
    recall: IntervalEstimate


class Judge:
    """Judges models on what was held out.

    Args:
        split: the pairs.
        triples: that are trained on.
        sentences: among which paraphrases are looked for.
        seed: of the intervals.

    Attributes:
        queries, among: of recall@1: how many texts are looked for, and among how many.
    """

    def __init__(self, split: Split, triples: Sequence[Triple], sentences: Sequence[str], seed: Seed):
        self._pairs, self._sentences = split.held_out, sentences
        self._options = CheckOptions.of(None, KEEP, (), None, seed)
        trained: set[str] = set().union(*(_changed_words(first, other) for first, _, other in triples))
        self._new = [pair.same or _changed_words(pair.first, pair.second).isdisjoint(trained) for pair in self._pairs]
        same = [pair for pair in self._pairs if pair.same]
        self._queries = [pair for pair in same if pair.kind == PARAPHRASE] or same
        self.queries, self.among = 2 * len(self._queries), len(self._queries) + len(sentences)

    def __call__(self, model: Model, name: str, progress: Progress) -> Judgement:
        values = similarities(model, self._pairs, progress=lambda done, total: progress(name, 0.5 * done / total))
        pairs, notes = readable(model, self._pairs)
        left = {id(pair) for pair in pairs}
        places = [at for at, pair in enumerate(self._pairs) if id(pair) in left]
        whole = evaluate(model, pairs, values[places], self._options, notes)
        places = [at for at in places if self._new[at]]
        pairs = [self._pairs[at] for at in places]
        new = None if all(pair.same for pair in pairs) else evaluate(model, pairs, values[places], self._options, ())
        recall = self._recall(model, lambda done, total: progress(name, 0.5 + 0.5 * done / total))
        return Judgement(whole, new, recall)

    def _recall(self, model: Model, progress: Callable[[int, int], None]) -> IntervalEstimate:
        """The share of paraphrases, each side in turn, whose nearest text is their own."""
        first, second = [pair.first for pair in self._queries], [pair.second for pair in self._queries]
        vectors = unit_vectors(model.encode, [*first, *second, *self._sentences], progress)
        plain = torch.stack([vectors[text] for text in self._sentences])
        sides = [torch.stack([vectors[text] for text in side]) for side in (first, second)]
        hits: list[bool] = []
        for queries, targets in (sides, sides[::-1]):
            cosines = queries @ torch.cat([targets, plain]).T
            partner = cosines.diagonal().clone()
            cosines.fill_diagonal_(-2)
            hits += (partner > cosines.amax(dim=1)).tolist()
        return share_over(np.array(hits, float), 0.5, np.full(2000, 0.5), seed=self._options.seed)


def _changed_words(first: str, second: str) -> set[str]:
    """The words that only one of the texts has, or that stand elsewhere in it."""
    return {word for side in Pair("", first, second, False).changed for word in side.lower().split()} - {"..."}


@dataclass(frozen=True)
class Tuned:
    """A tuned model, judged before and after.

    Attributes:
        model: the name of the model that was tuned.
        folder: of the tuned one.
        triples: that it was trained on.
        domains: that were held out; empty where the pairs have none, and every third text was.
        before, after: the judgements.
        queries, among: of recall@1: how many texts were looked for, and among how many.
        notes: what a reader should know of the data.
    """

    model: str
    folder: str
    triples: int
    domains: tuple[str, ...]
    before: Judgement
    after: Judgement
    queries: int
    among: int
    notes: tuple[str, ...]

    def rows(self) -> list[dict[str, Any]]:
        """The AUC of every kind, and recall@1, before and after, with 95 % intervals; `new` counts the opposites none
        of whose changed words is one in a triple."""
        rows = []
        for kind in self.before.check.kinds.names:
            old, now = self.before.check.kinds[kind], self.after.check.kinds[kind]
            fresh = [_row_of(judged.new, kind) for judged in (self.before, self.after)]
            new = {"new": fresh[0].pairs if fresh[0] else 0, "new_before": fresh[0] and fresh[0].auc,
                   "new_after": fresh[1] and fresh[1].auc}  # fmt: skip
            rows.append({"what": kind, "count": old.pairs, **_sides(_auc(old), _auc(now)), **new})
        recall = _sides(self.before.recall, self.after.recall)
        last = {"what": "recall@1", "count": self.queries, **recall, "new": 0, "new_before": None, "new_after": None}
        return [*rows, last]

    @property
    def reached(self) -> str:
        """What was reached, and what was not, in a few sentences."""
        kinds = self.after.check.kinds
        low = [row.kind for row in kinds if row.auc_low <= _COIN]
        better = [row.kind for row in kinds if row.auc_low > _COIN]
        old, now = (float(np.mean([row.auc for row in side.check.kinds])) for side in (self.before, self.after))
        said = [
            f"Mean AUC on held-out pairs: {old:.2f} before, {now:.2f} after; recall@1: {self.before.recall.value:.2f} "
            f"before, {self.after.recall.value:.2f} after."
        ]
        if better:
            said.append(f"It tells {', '.join(better)} from near-duplicates better than chance.")
        if low:
            remedy = "there use the guard (wordsens guard; check --guard counts what it gains)"
            said.append(f"Tuning reaches little for {', '.join(low)}: {remedy}.")
        return " ".join(said)

    def to_dict(self) -> dict[str, Any]:
        """The table and all around it, for JSON."""
        plain = {key: value for key, value in vars(self).items() if key not in ("before", "after")}
        return {**plain, "rows": self.rows(), "reached": self.reached}

    def __str__(self) -> str:
        sides = ("before", "after")
        lines = [f"{row['what']:<12} {'  '.join(interval(row, side) for side in sides)}" for row in self.rows()]
        return "\n".join([*lines, self.reached])


def interval(row: dict[str, Any], side: str) -> str:
    """A number of a row with its interval, "before" or "after"."""
    return f"{row[side]:.3f} [{row[f'{side}_low']:.2f}, {row[f'{side}_high']:.2f}]"


def _sides(before: IntervalEstimate, after: IntervalEstimate) -> dict[str, float]:
    cells = {}
    for name, side in (("before", before), ("after", after)):
        cells |= {name: side.value, f"{name}_low": side.low, f"{name}_high": side.high}
    return cells


def _auc(row: KindRow) -> IntervalEstimate:
    return IntervalEstimate(row.auc, row.auc_low, row.auc_high)


def _row_of(check: Check | None, kind: str) -> Any:
    """The row of the kind, where the check has one."""
    return check.kinds[kind] if check is not None and kind in check.kinds.names else None
