"""What `tune` holds out of the training, and the judgement of a model on it, before and after."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from wordsens.display.numbers import Estimate
from wordsens.display.view import View
from wordsens.errors import InputError
from wordsens.evaluation.check import Check, evaluate
from wordsens.evaluation.similarities import readable, similarities, unit_vectors
from wordsens.intervals import share_estimate
from wordsens.models.model import Model
from wordsens.results import Result
from wordsens.seeds import Seed, derive_seed
from wordsens.text.pairs import Pair
from wordsens.training.triples import Triple

Progress = Callable[[str, float], None]
"""Called with what is being done, and the share of it that is done."""

_SHARE = 3
"""Every third domain is held out; where pairs have no domains, every third text."""


def split_pairs(
    pairs: Sequence[Pair], *, seed: Seed
) -> tuple[list[Pair], list[Pair], tuple[str, ...]]:
    """The pairs that are trained on, those that are held out, and the domains of the latter.

    Every third domain, or where a pair has no domain every third text, is held out.

    Raises:
        InputError: a part lacks opposites or near-duplicates.
    """
    by_domain = len({pair.columns.get("domain") for pair in pairs}) > 1
    by_domain = by_domain and all("domain" in pair.columns for pair in pairs)
    keys = [str(pair.columns["domain"]) if by_domain else pair.first for pair in pairs]
    groups = sorted(set(keys))
    chance = random.Random(derive_seed(seed, "held out"))
    apart = set(chance.sample(groups, max(1, len(groups) // _SHARE)))
    held_out = [pair for pair, key in zip(pairs, keys, strict=True) if key in apart]
    texts = {text for pair in held_out for text in (pair.first, pair.second)}
    train = [pair for pair in pairs if texts.isdisjoint((pair.first, pair.second))]
    for part, name in ((train, "to train on"), (held_out, "to judge by")):
        if not any(pair.near for pair in part) or all(pair.same for pair in part):
            raise InputError(
                f"`pairs` leaves {len(part)} of {len(pairs)} pairs {name}, and each part needs "
                "opposites and "
                "near-duplicates: give more pairs, or none for the package's own"
            )
    return train, held_out, tuple(sorted(apart)) if by_domain else ()


@dataclass(frozen=True)
class HeldOutScores:
    """A model on what was held out.

    Attributes:
        check: of all pairs that were held out.
        new: the same, of the opposites none of whose changed words is one in a triple; None where
            there are none.
        recall: recall@1 of paraphrases among each other and the sentences of the texts.
    """

    check: Check
    new: Check | None
    recall: Estimate


class HeldOutJudge:
    """Judges models on what was held out.

    Args:
        held_out: the pairs.
        triples: that are trained on.
        sentences: among which paraphrases are looked for.
        seed: of the intervals.

    Attributes:
        queries, among: of recall@1: how many texts are looked for, and among how many.
    """

    def __init__(
        self,
        held_out: Sequence[Pair],
        triples: Sequence[Triple],
        sentences: Sequence[str],
        seed: Seed,
    ):
        self._pairs, self._sentences, self._seed = held_out, sentences, seed
        trained: set[str] = set().union(
            *(_changed_words(first, other) for first, _, other in triples)
        )
        self._new = {
            pair
            for pair in held_out
            if pair.same or _changed_words(pair.first, pair.second).isdisjoint(trained)
        }
        same = [pair for pair in held_out if pair.same]
        self._queries = [pair for pair in same if not pair.near] or same
        self.queries, self.among = 2 * len(self._queries), len(self._queries) + len(sentences)

    def __call__(self, model: Model, name: str, progress: Progress) -> HeldOutScores:
        pairs, changes = readable(model, self._pairs)
        values = similarities(
            model, pairs, progress=lambda done, total: progress(name, 0.5 * done / total)
        )
        whole = evaluate(model, pairs, values, seed=self._seed, changes=changes)
        places = [place for place, pair in enumerate(pairs) if pair in self._new]
        fresh = [pairs[place] for place in places]
        only_same = all(pair.same for pair in fresh)
        new = None if only_same else evaluate(model, fresh, values[places], seed=self._seed)
        recall = self._recall(model, lambda done, total: progress(name, 0.5 + 0.5 * done / total))
        return HeldOutScores(whole, new, recall)

    def _recall(self, model: Model, progress: Callable[[int, int], None]) -> Estimate:
        """The share of paraphrases, each side in turn, whose nearest text is their own."""
        first, second = (
            [pair.first for pair in self._queries],
            [pair.second for pair in self._queries],
        )
        vectors = unit_vectors(model.encode, [*first, *second, *self._sentences], progress)
        others = torch.stack([vectors[text] for text in self._sentences])
        sides = [torch.stack([vectors[text] for text in side]) for side in (first, second)]
        hits: list[bool] = []
        for queries, targets in (sides, sides[::-1]):
            cosines = queries @ torch.cat([targets, others]).T
            partner = cosines.diagonal().clone()
            cosines.fill_diagonal_(-2)
            hits += (partner > cosines.amax(dim=1)).tolist()
        return share_estimate(sum(hits), len(hits))


def _changed_words(first: str, second: str) -> set[str]:
    """The words that only one of the texts has, or that stand elsewhere in it."""
    return {
        word for side in Pair("", first, second, False).changed for word in side.lower().split()
    } - {"..."}


@dataclass(frozen=True, eq=False, repr=False)
class Tuned(Result):
    """A tuned model, judged before and after.

    Attributes:
        model: the name of the model that was tuned.
        folder: of the tuned one.
        triples: that it was trained on at most: all, or as many as its steps hold.
        domains: that were held out; empty where the pairs have none, and every third text was.
        before, after: the scores.
        queries, among: of recall@1: how many texts were looked for, and among how many.
        notes: what a reader should know of the data.
    """

    model: str
    folder: str
    triples: int
    domains: tuple[str, ...]
    before: HeldOutScores
    after: HeldOutScores
    queries: int
    among: int
    notes: tuple[str, ...]

    def rows(self) -> list[dict[str, Any]]:
        """The AUC of every kind, and recall@1, before and after, with 95 % intervals; `new` counts
        the opposites none of whose changed words is one in a triple."""
        rows: list[dict[str, Any]] = []
        sides = {"before": self.before, "after": self.after}
        for kind, first in self.before.check.kinds.items():
            row: dict[str, Any] = {"what": kind, "count": first.pairs}
            new: dict[str, Any] = {"new": 0}
            for side, scores in sides.items():
                every, fresh = scores.check.kinds[kind], scores.new and scores.new.kinds.get(kind)
                row |= {
                    side: every.auc,
                    f"{side}_low": every.auc_low,
                    f"{side}_high": every.auc_high,
                }
                new |= {
                    "new": fresh.pairs if fresh else new["new"],
                    f"new_{side}": fresh and fresh.auc,
                }
            rows.append(row | new)
        recall: dict[str, Any] = {"what": "recall@1", "count": self.queries}
        for side, scores in sides.items():
            recall |= {
                side: scores.recall.value,
                f"{side}_low": scores.recall.low,
                f"{side}_high": scores.recall.high,
            }
        return [*rows, recall | {"new": 0, "new_before": None, "new_after": None}]

    @property
    def reached(self) -> str:
        """What was reached, and what was not, in a few sentences."""
        from wordsens.findings.tune import answer

        return " ".join(answer(self))

    @property
    def headline(self) -> str:
        """Where the tuned model is."""
        return f"The tuned model is in {self.folder}; trained on up to {self.triples} triples."

    def columns(self) -> dict[str, Any]:
        """One row per kind of opposite and one of recall@1, as `rows` has them."""
        rows = self.rows()
        names = dict.fromkeys(name for row in rows for name in row)
        return {name: [row.get(name) for row in rows] for name in names}

    def to_dict(self) -> dict[str, Any]:
        """The table and all around it, for JSON."""
        plain = {key: value for key, value in vars(self).items() if key not in ("before", "after")}
        return {**plain, "rows": self.rows(), "reached": self.reached}

    def view(self) -> View:
        """Where the model is, the table, and last what was reached."""
        from wordsens.findings.tune import view

        return view(self)
