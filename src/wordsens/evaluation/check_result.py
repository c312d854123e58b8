"""The result of a check: how a model tells opposites from near-duplicates of the same meaning."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from os import PathLike
from typing import Any

import numpy as np

from wordsens.display.numbers import (
    Estimate,
    as_sentences,
    column,
    decimals,
    number,
    percent,
    plural,
)
from wordsens.display.view import Chart, Marked, Table, View
from wordsens.errors import InputError
from wordsens.evaluation.calibrate import shortest_between
from wordsens.evaluation.guard import guard as judge
from wordsens.evaluation.guard.judge import CHANGES
from wordsens.evaluation.layers import LayerRow, layer_table
from wordsens.evaluation.requirement import (
    Baseline,
    Gated,
    Requirement,
    Unmet,
    on_the_floor,
    vacuous,
)
from wordsens.evaluation.similarities import PairSimilarities
from wordsens.intervals import share_estimate
from wordsens.seeds import Seed
from wordsens.text.pairs import Pair

CHANCE = 0.5
"""The AUC of chance."""

_AROUND = 6
"""Words on either side of a change that a sentence shows."""

_FAILING, _NEAR = 5, 6
"""Pairs behind a requirement that fails, and kinds of near-duplicates, that are shown at once."""

KIND_FIELDS = (
    "pairs",
    "auc",
    "auc_low",
    "auc_high",
    "auc_far",
    "auc_far_low",
    "auc_far_high",
    "false_hits",
    "false_hits_low",
    "false_hits_high",
)
FIELDS = (
    "threshold",
    "recall",
    "recall_low",
    "recall_high",
    "false_hits",
    "false_hits_low",
    "false_hits_high",
)
"""Numbers of a kind, and of the whole, that a requirement may name."""

GUARDED = "guarded_false_hits"
GUARDED_FIELDS = (GUARDED, "guarded_recall")
"""Those with the guard behind the threshold; the latter of the whole alone."""


@dataclass(frozen=True, kw_only=True)
class KindRow:
    """One kind of opposite; similarities are cosines, or the scores of a model that scores pairs.

    Attributes:
        kind: its name.
        pairs: how many opposites.
        auc: the chance that an opposite is less alike than a near-duplicate, ties half; 1 is
            perfect, .5 a coin.
        auc_far: likewise against paraphrases of few common words; None where there are none.
        false_hits: the share of opposites at or above the threshold.
        auc_low, auc_high, ...: 95 % intervals.
    """

    kind: str
    pairs: int
    auc: float
    auc_low: float
    auc_high: float
    auc_far: float | None
    auc_far_low: float | None
    auc_far_high: float | None
    false_hits: float
    false_hits_low: float
    false_hits_high: float


@dataclass(frozen=True, kw_only=True)
class LengthRow:
    """One kind at one length: its AUC against near-duplicates of that length, and its share at or
    above the threshold; the first is None where there are none."""

    kind: str
    length: str
    pairs: int
    auc: float | None
    false_hits: float


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Check(Gated):
    """The result of a check: how a model tells opposites from near-duplicates of the same meaning.

    Attributes:
        model: its name.
        identity: of its weights; "unknown" where they cannot be read.
        measured: the pairs and their similarities.
        keep: the share of near-duplicates that the threshold was to keep; None where the threshold
            was given.
        threshold: the similarity from which on two texts count as the same.
        recall, recall_low, recall_high: the share of near-duplicates at or above it, with its 95 %
            interval.
        false_hits, false_hits_low, false_hits_high: that of all opposites.
        kinds: by kind of opposite, its row; the one with most false hits first.
        near_duplicates: by kind of near-duplicate, the share that is accepted.
        lengths: one row a kind and length.
        drops: how each kind's AUC has changed since the baseline, and that of all together; empty
            without one.
        requirements: as they were asked.
        unmet: what fails: requirements, and significant drops.
        changes: which pairs were left out or replaced; the first line of the answer says so.
        notes: what a reader should know of the pairs.
        verdicts: of the guard on every pair, where they were asked for.
        seed: of the intervals.
    """

    model: str
    identity: str
    measured: PairSimilarities
    keep: float | None
    threshold: float
    recall: float
    recall_low: float
    recall_high: float
    false_hits: float
    false_hits_low: float
    false_hits_high: float
    kinds: dict[str, KindRow]
    near_duplicates: dict[str, Estimate]
    lengths: tuple[LengthRow, ...]
    drops: dict[str, dict[str, float]]
    requirements: tuple[Requirement, ...]
    unmet: tuple[Unmet, ...]
    changes: tuple[str, ...]
    notes: tuple[str, ...]
    verdicts: tuple[str, ...] | None
    seed: Seed

    def all_pairs(self) -> list[dict[str, Any]]:
        """Every pair with its similarity, and the guard's verdict where it was asked for: opposites
        first, the most alike first; then those that mean the same, the least alike first."""
        return [self._row(place) for place in self._order()]

    def failing_pairs(self, most: int = 10, requirement: str | None = None) -> list[dict[str, Any]]:
        """The worst pairs behind the requirements that fail, or behind one of them: opposites that
        are hits, and near-duplicates that are none where too few are kept."""
        fields = {each.text: each.field for each in self.requirements}
        opposites: list[int] = []
        missed: list[int] = []
        for unmet in self.unmet:
            if requirement not in (None, unmet.requirement):
                continue
            field = fields.get(unmet.requirement, "auc")
            hits = self._hits(guarded=field in GUARDED_FIELDS)
            if "recall" in field:
                missed += np.flatnonzero(self.measured.near & ~hits).tolist()
            elif unmet.kind:
                members = self.measured.opposites.get(unmet.kind, self.measured.opposite)
                opposites += np.flatnonzero(members & hits).tolist()
            elif field != "threshold":
                opposites += np.flatnonzero(self.measured.opposite & hits).tolist()
        order = self._order()
        behind = [
            [place for place in order if place in places][:most]
            for places in (set(opposites), set(missed))
        ]
        return [self._row(place) for places in behind for place in places]

    def guarded(self) -> dict[str, Any]:
        """False hits and recall with `wordsens.guard` behind the threshold: what it calls different
        is no hit. `recall` of near-duplicates, `all_false_hits` of opposites, `false_hits` by
        kind."""
        measured, hits = self.measured, self._hits(guarded=True)
        shares = {kind: float(hits[members].mean()) for kind, members in measured.opposites.items()}
        return {
            "recall": float(hits[measured.near].mean()),
            "all_false_hits": float(hits[measured.opposite].mean()),
            "false_hits": shares,
        }

    def _hits(self, *, guarded: bool) -> np.ndarray:
        """Which pairs count as the same."""
        hits = self.measured.values >= self.threshold
        if guarded:
            verdicts = self.verdicts or verdicts_of(self.measured.pairs)
            hits &= np.array(verdicts) != "different"
        return hits

    def _order(self) -> list[int]:
        """The places of all pairs, in the order of `all_pairs`."""
        pairs, values = self.measured.pairs, self.measured.values
        return sorted(
            range(len(pairs)),
            key=lambda place: (pairs[place].same, values[place] * (1 if pairs[place].same else -1)),
        )

    def _row(self, place: int) -> dict[str, Any]:
        pair, value = self.measured.pairs[place], float(self.measured.values[place])
        row = {"kind": pair.kind, "same": pair.same, "similarity": value}
        row |= {"hit": value >= self.threshold}
        row |= {} if self.verdicts is None else {"guard": self.verdicts[place]}
        row |= {"first": pair.first, "second": pair.second}
        row |= {"near": pair.near, "where": pair.where}
        return row | dict(zip(("changed_first", "changed_second"), pair.changed, strict=True))

    def columns(self) -> dict[str, Any]:
        """One row per kind of opposite."""
        return {
            name: [getattr(row, name) for row in self.kinds.values()]
            for name in ("kind", *KIND_FIELDS)
        }

    @property
    def headline(self) -> str:
        """The share of near-duplicates and of opposites that the threshold accepts, which pairs
        were left out or replaced, and the worst kind."""
        measured = self.measured
        whose = "the package's " if measured.has_stand_ins else ""
        recall, false_hits = (
            column([_estimate(self, name)], "%")[0] for name in ("recall", "false_hits")
        )
        sentence = (
            f"At threshold {self._threshold()}, {self.model} accepts {recall} of "
            f"{whose}{plural(int(measured.near.sum()), 'near-duplicate')} and, wrongly, "
            f"{false_hits} of {plural(int(measured.opposite.sum()), 'opposite')}."
        )
        if self.changes:
            sentence += f" {as_sentences(*self.changes)}"
        worst = next(iter(self.kinds.values()))
        if worst.false_hits > 0:
            sentence += (
                f" Worst kind: {worst.kind}, {percent(worst.false_hits)} of {worst.pairs}, such as "
                f"{self._example(worst)}."
            )
        return sentence

    def view(
        self,
        layers: Sequence[LayerRow] = (),
        *,
        pairs: str = "worst",
        verbose: bool = False,
    ) -> View:
        """The headline, what fails with its pairs, then kinds, near-duplicates, lengths, layers,
        changes since the baseline, and pairs with their changed words marked.

        Args:
            layers: layer by layer.
            pairs: "none" of those that fail nothing, the "worst" of each kind, or "all".
            verbose: with every row of every table.
        """
        failing = self.failing_pairs(len(self.measured.pairs))
        tables = [
            self._pairs_table(
                f"{name} behind the requirements that fail, worst first",
                [row for row in failing if row["same"] is same],
                most=len(failing) if verbose else _FAILING,
            )
            for name, same in (("Opposites", False), ("Near-duplicates", True))
        ]
        tables += [self._kinds_table(), self._near_table(verbose), self._length_table()]
        tables += [layer_table(layers), self._drop_table()]
        if pairs != "none":
            rows = [self._row(self._plainest(kind)) for kind in self.kinds]
            tables.append(self._pairs_table("The plainest opposite of each kind", rows))
        if pairs == "all":
            title = (
                "Every pair: opposites, the most alike first; then the same meaning, the least "
                "alike first"
            )
            tables.append(self._pairs_table(title, self.all_pairs(), folded=True))
        gated = bool(self.requirements or self.drops)
        return View(
            self.headline,
            tuple(table for table in tables if len(table)),
            failures=self.failures,
            passed="All requirements are met." if gated and self.passed else "",
            notes=self.notes,
            chart=self._chart(),
        )

    def _chart(self) -> Chart:
        """The share of each group of pairs that a threshold accepts."""
        values = self.measured.values
        thresholds = np.linspace(float(np.quantile(values, 0.01)), float(values.max()), 200)
        groups = {
            "near-duplicates (same meaning)": values[self.measured.near],
            "opposites": values[self.measured.opposite],
        }
        columns: dict[str, list[Any]] = {"threshold": [], "accepted": [], "pairs": []}
        for name, members in groups.items():
            columns["threshold"] += thresholds.tolist()
            columns["accepted"] += [float((members >= edge).mean()) for edge in thresholds]
            columns["pairs"] += [name] * len(thresholds)
        score = "cosine" if self.measured.cosines else "score"
        options = {
            "x": "threshold",
            "y": "accepted",
            "colour": "pairs",
            "limits": (0, None),
            "guides": {f"threshold {self._threshold()}": [(self.threshold, None)]},
            "labels": {
                "threshold": f"threshold on the {score} of the two texts",
                "accepted": "share of the pairs accepted as the same",
            },
            "caption": "Each curve: the share of the pairs accepted at a threshold. Accepted "
            "opposites are false hits.",
        }
        return Chart("lines", columns, options)

    def _kinds_table(self) -> Table:
        rows = list(self.kinds.values())
        columns: dict[str, Any] = {
            "kind": [row.kind for row in rows],
            "pairs": [row.pairs for row in rows],
            "false hits": [_estimate(row, "false_hits") for row in rows],
        }
        guarded = None if self.verdicts is None else self.guarded()
        if guarded is not None:
            columns["with guard"] = [guarded["false_hits"][row.kind] for row in rows]
        columns["above chance"] = [_above_chance(row) for row in rows]
        columns["AUC"] = [_estimate(row, "auc") for row in rows]
        if any(row.auc_far is not None for row in rows):
            columns["AUC far"] = [row.auc_far for row in rows]
        note = (
            "False hits: opposites at or above the threshold, which mean something else by one "
            f"change, such as {CHANGES}. AUC: the chance that an opposite is less alike than a "
            "near-duplicate; 1 is perfect, 0.5 no better than a coin, and below it opposites are "
            "more alike; far: the same against paraphrases that share few words. Above chance: "
            'whether the interval of the AUC says so; "unsure" where there are too few pairs. '
            "Brackets: 95 % confidence intervals."
        )
        if guarded is not None:
            note += (
                f" Threshold and guard together accept {percent(guarded['recall'])} of the "
                "near-duplicates."
            )
        units = {"false hits": "%", "with guard": "%"}
        return Table("", columns, units=units, note=note, most=len(rows))

    def _near_table(self, verbose: bool) -> Table:
        """Recall by kind, the lowest first."""
        rows = sorted(self.near_duplicates.items(), key=lambda row: row[1].value)
        columns = {
            "kind": [kind for kind, _ in rows],
            "pairs": [share.n for _, share in rows],
            "accepted": [share for _, share in rows],
        }
        most = len(rows) if verbose else _NEAR
        return Table("Near-duplicates by kind", columns, units={"accepted": "%"}, most=most)

    def _length_table(self) -> Table:
        """False hits by length; no row where all pairs are of one."""
        lengths = list(dict.fromkeys(row.length for row in self.lengths))
        shares = {
            (row.kind, row.length): share_estimate(round(row.false_hits * row.pairs), row.pairs)
            for row in self.lengths
        }
        kinds = list(self.kinds) if len(lengths) > 1 else []
        columns = {"kind": kinds} | {
            length: [shares.get((kind, length)) for kind in kinds] for length in lengths
        }
        units = dict.fromkeys(lengths, "%")
        return Table("False hits by length of the texts", columns, units=units, most=len(kinds))

    def _drop_table(self) -> Table:
        names = ("before", "after", "p")
        columns = {name: [drop[name] for drop in self.drops.values()] for name in names}
        return Table("AUC since the baseline", {"kind": list(self.drops)} | columns)

    def _pairs_table(
        self, title: str, rows: Sequence[dict[str, Any]], most: int = 0, *, folded: bool = False
    ) -> Table:
        """Pairs with their changed words marked; of long texts what stands around the change."""
        score = "cosine" if self.measured.cosines else "score"
        columns: dict[str, Any] = {
            score: [row["similarity"] for row in rows],
            "accepted": [row["hit"] for row in rows],
        }
        if self.verdicts is not None:
            columns["guard"] = [row["guard"] for row in rows]
        columns["kind"] = [row["kind"] for row in rows]
        for name, other in (("first", "second"), ("second", "first")):
            columns[name] = [
                Marked(around(row[name], row[other]), tuple(row[f"changed_{name}"].split(" ... ")))
                for row in rows
            ]
        return Table(title, columns, most=most or len(rows), folded=folded)

    def _plainest(self, kind: str) -> int:
        """The place of the plainest opposite of the kind: a hit if there is one, short texts first,
        then the most alike."""
        measured = self.measured

        def plainness(place: int) -> tuple[bool, int, float]:
            value = measured.values[place]
            return value >= self.threshold, -len(measured.pairs[place].first.split()) // 12, value

        return max(np.flatnonzero(measured.opposites[kind]).tolist(), key=plainness)

    def _example(self, row: KindRow) -> str:
        place = self._plainest(row.kind)
        pair = self.measured.pairs[place]
        first, second = (part or "-" for part in pair.changed)
        words, others = first.split(" ... "), second.split(" ... ")
        change = (
            f"'{words[0]}' and '{words[1]}' exchanged"
            if words == others[::-1] != others
            else f"'{first}' / '{second}'"
        )
        text = around(pair.first, pair.second)
        return f"{change} in {text!r} ({number(float(self.measured.values[place]))})"

    def _threshold(self) -> str:
        """The threshold in as few decimals as let the same pairs pass; a given one as it was
        given."""
        if self.keep is None:
            return decimals(self.threshold)
        below = self.measured.values[self.measured.values < self.threshold]
        above = float(below.max()) if len(below) else self.threshold - 1
        return decimals(shortest_between(above, self.threshold))

    def to_dict(self, *, all_pairs: bool = False) -> dict[str, Any]:
        """The figures, as the JSON document has them; with all pairs where asked."""
        return {
            "passed": self.passed,
            "failures": list(self.failures),
            "answer": [self.headline],
            **{name: getattr(self, name) for name in FIELDS},
            "kinds": [asdict(row) for row in self.kinds.values()],
            "near_duplicates": [
                {"kind": kind, "pairs": share.n, "recall": share.value}
                | {"recall_low": share.low, "recall_high": share.high}
                for kind, share in self.near_duplicates.items()
            ],
            "lengths": [asdict(row) for row in self.lengths],
            "drops": self.drops,
            "failing_pairs": self.failing_pairs(),
            "notes": [*self.changes, *self.notes],
            **({"pairs": self.all_pairs()} if all_pairs else {}),
        }

    def save_baseline(self, path: str | PathLike[str]) -> None:
        """Save the similarities for a later check's `baseline`.

        Raises:
            InputError: the file cannot be written, or the baseline would be vacuous: every kind is
                at the floor.
        """
        measured = self.measured
        values = {kind: measured.values[members] for kind, members in measured.opposites.items()}
        if len(on_the_floor(values, measured.values[measured.near])) == len(values):
            raise InputError(vacuous(values))
        Baseline.of(measured, model=self.model, identity=self.identity).write(path)

    def __repr__(self) -> str:
        state = "passed" if self.passed else "failed"
        kinds = ", ".join(
            f"{row.kind}.false_hits {row.false_hits:.3f}" for row in self.kinds.values()
        )
        return f"<Check of {self.model}, {state}: {kinds}>"


def _estimate(row: Any, name: str) -> Estimate:
    return Estimate(getattr(row, name), getattr(row, f"{name}_low"), getattr(row, f"{name}_high"))


def _above_chance(row: KindRow) -> str:
    """Whether opposites of the kind are less alike than near-duplicates more often than by
    chance."""
    if row.auc_low > CHANCE:
        return "yes"
    return "no, worse" if row.auc_high < CHANCE else "unsure"


def verdicts_of(pairs: Sequence[Pair]) -> tuple[str, ...]:
    """What `wordsens.guard` says of every pair."""
    return tuple(judge(pair.first, pair.second).verdict for pair in pairs)


def not_dropped(kind: str) -> str:
    """The requirement that a baseline states of a kind."""
    return f"{kind}.auc has not dropped since the baseline"


def around(text: str, other: str) -> str:
    """The text; of a long one, the words around its first difference from the other."""
    words = text.split()
    if len(words) <= 2 * _AROUND:
        return text
    differing = (
        place
        for place, (word, counterpart) in enumerate(zip(words, other.split(), strict=False))
        if word != counterpart
    )
    place = next(differing, 0)
    start, stop = max(0, place - _AROUND), place + _AROUND
    return f"{'... ' * (start > 0)}{' '.join(words[start:stop])}{' ...' * (stop < len(words))}"


def pair_line(row: Mapping[str, Any]) -> str:
    """A row of `Check.all_pairs` in one line."""
    first, second = around(row["first"], row["second"]), around(row["second"], row["first"])
    judged = f" (guard: {row['guard']})" if "guard" in row else ""
    return f"{row['similarity']:.3f} {row['kind']}{judged}: {first!r} / {second!r}"


def cases(check: Check) -> dict[str, list[str]]:
    """Every requirement, and every kind that was compared with a baseline, with what fails it and
    the pairs behind."""
    names = [
        *(requirement.text for requirement in check.requirements),
        *map(not_dropped, check.drops),
    ]
    failures: dict[str, list[str]] = {}
    for name in names:
        sentences = [each.sentence for each in check.unmet if each.requirement == name]
        rows = check.failing_pairs(requirement=name)
        failures[name] = [*sentences, *map(pair_line, rows)]
    return failures
