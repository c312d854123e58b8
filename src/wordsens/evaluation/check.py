"""Does a meaning that flips with one word show in a model's embeddings? The check, its figures and its findings."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from os import PathLike
from typing import Any, overload

import numpy as np
from jaxtyping import Float

from wordsens.display.content import Display, Marked, Strong, Table
from wordsens.display.page import html_fragment
from wordsens.errors import InputError, require_choice
from wordsens.evaluation.guard import guard
from wordsens.evaluation.layers import LayerRow
from wordsens.evaluation.requirement import (
    EVERY,
    LEVEL,
    Baseline,
    Requirement,
    on_the_floor,
    vacuous,
    write_baseline,
)
from wordsens.evaluation.similarities import (
    Measured,
    gives_cosines,
    kept_threshold,
    readable,
    require_both_sides,
    share_over,
    similarities,
    similarity_notes,
    threshold_draws,
)
from wordsens.models.black_box import Model
from wordsens.models.load import load
from wordsens.models.pairs import PairModel
from wordsens.results import ResultTable, Shown
from wordsens.seeds import Seed, derive_seed
from wordsens.statistics.auc import auc_interval
from wordsens.statistics.paired import TOGETHER, Drop
from wordsens.text.pairs import LENGTHS, Pair, Pairs, read_pairs
from wordsens.text.shipped_data import near_duplicates

KEEP = 0.9
"""The share of near-duplicates that the threshold keeps, unless one is given."""

KIND_FIELDS = (
    "pairs", "auc", "auc_low", "auc_high", "auc_far", "auc_far_low", "auc_far_high", "false_hits", "false_hits_low",
    "false_hits_high",
)  # fmt: skip
FIELDS = ("threshold", "recall", "recall_low", "recall_high")
"""Numbers of a kind, and of the whole, that a requirement may name."""

COIN = 0.5
_EXAMPLE = "negation.false_hits <= .2"
_AROUND = 6
"""Words on either side of a change that a sentence shows."""

_FAILING = 5
"""Pairs behind a requirement that fails that are shown at once."""


@dataclass(frozen=True, kw_only=True)
class KindRow:
    """One kind of opposite; similarities are cosines, or the scores of a model that scores pairs.

    Attributes:
        kind: its name.
        pairs: how many opposites.
        auc: the chance that an opposite is less alike than a near-duplicate, ties half; 1 is perfect, .5 a coin.
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
    """One kind at one length: its AUC against near-duplicates of that length, and its share at or above the threshold;
    the first is None where there are none."""

    kind: str
    length: str
    pairs: int
    auc: float | None
    false_hits: float


class KindTable(Sequence[KindRow]):
    """The rows of a check, one a kind; `table["negation"]` is the row of that kind."""

    def __init__(self, rows: Sequence[KindRow]):
        self._rows = tuple(rows)

    @overload
    def __getitem__(self, key: int | str) -> KindRow: ...
    @overload
    def __getitem__(self, key: slice) -> "KindTable": ...
    def __getitem__(self, key: int | str | slice) -> "KindRow | KindTable":
        if isinstance(key, slice):
            return KindTable(self._rows[key])
        if isinstance(key, int):
            return self._rows[key]
        for row in self._rows:
            if row.kind == key:
                return row
        raise KeyError(f"{key!r} is not a kind of this check; it has {', '.join(self.names)}")

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[KindRow]:
        return iter(self._rows)

    def __repr__(self) -> str:
        return f"KindTable({list(self._rows)!r})"

    @property
    def names(self) -> tuple[str, ...]:
        """The kinds."""
        return tuple(row.kind for row in self._rows)


@dataclass(frozen=True)
class CheckOptions:
    """Options of a check, beside its model and pairs.

    Attributes:
        threshold: the similarity from which on two texts count as the same; None: the largest that keeps `keep`.
        keep: the share of near-duplicates that the threshold keeps.
        requirements: each as "negation.false_hits <= .2" or "recall >= .9".
        baseline: an earlier check.
        seed: of the intervals.
    """

    threshold: float | None = None
    keep: float = KEEP
    requirements: tuple[Requirement, ...] = ()
    baseline: Baseline | None = None
    seed: Seed = 0

    @classmethod
    def of(
        cls,
        threshold: int | float | None,
        keep: int | float,
        requirements: Sequence[str],
        baseline: str | PathLike[str] | Baseline | None,
        seed: Seed,
    ) -> "CheckOptions":
        """The options as a user writes them. InputError for one that is wrong."""
        if isinstance(keep, bool) or not isinstance(keep, int | float) or not 0 < keep <= 1:
            raise InputError(f"`keep` (={keep!r}) must be a share from 0 to 1, such as 0.9")
        if threshold is not None and (isinstance(threshold, bool) or not np.isfinite(threshold)):
            raise InputError(f"`threshold` (={threshold!r}) must be a finite number, such as 0.92")
        derive_seed(seed)
        listed = [requirements] if isinstance(requirements, str) else requirements
        read = tuple(Requirement.read(one, KIND_FIELDS, _EXAMPLE, FIELDS) for one in listed)
        for one in read:
            if one.field not in ("pairs", "threshold") and not 0 <= one.bound <= 1:
                raise InputError(f"`requirements` (={one.text!r}) bounds a share, which is from 0 to 1, such as .2")
        saved = baseline if baseline is None or isinstance(baseline, Baseline) else Baseline.read(baseline)
        return cls(None if threshold is None else float(threshold), float(keep), read, saved, seed)

    def require_kinds(self, pairs: Sequence[Pair]) -> None:
        """InputError where a requirement is on a kind that the pairs do not have, before a model is loaded."""
        kinds = tuple(dict.fromkeys(pair.kind for pair in pairs if not pair.same))
        for one in self.requirements:
            if one.kind not in ("", EVERY):
                require_choice(f"the kind of {one.text!r}", one.kind, (*kinds, EVERY))


@dataclass(frozen=True)
class Guarded:
    """What the model and the guard do together.

    Attributes:
        recall: the share of near-duplicates at or above the threshold that the guard does not call different.
        false_hits: by kind, that of opposites.
    """

    recall: float
    false_hits: dict[str, float]


@dataclass(frozen=True, repr=False)
class Check(Shown):
    """The result of a check: how a model tells opposites from near-duplicates of the same meaning.

    Attributes:
        model: its name.
        identity: of its weights; "unknown" where they cannot be read.
        measured: the pairs and their similarities.
        options: as given.
        threshold: the similarity from which on two texts count as the same.
        recall, recall_low, recall_high: the share of near-duplicates at or above it, with its 95 % interval.
        kinds: one KindRow a kind of opposite, a sequence that also takes a kind's name.
        lengths: one row a kind and length.
        drops: how each kind's AUC has changed since the baseline, and that of all together; empty without one.
        failures: a sentence for every requirement that is not met.
        notes: what a reader should know of the pairs.
    """

    model: str
    identity: str
    measured: Measured
    options: CheckOptions
    threshold: float
    recall: float
    recall_low: float
    recall_high: float
    kinds: KindTable
    lengths: tuple[LengthRow, ...]
    drops: dict[str, Drop]
    failures: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """True where every requirement is met."""
        return not self.failures

    @cached_property
    def answer(self) -> tuple[str, ...]:
        """The findings in sentences, that of the threshold first."""
        return tuple(_answer(self))

    def all_pairs(self) -> list[dict[str, Any]]:
        """Every pair with its similarity: opposites first, the most alike first; then those that mean the same, the
        least alike first."""
        values = self.measured.values
        order = sorted(
            range(len(values)),
            key=lambda at: (self.measured.pairs[at].same, values[at] if self.measured.pairs[at].same else -values[at]),
        )
        rows = []
        for at in order:
            pair = self.measured.pairs[at]
            here, there = pair.changed
            rows.append(
                {
                    "kind": pair.kind, "same": pair.same, "similarity": float(values[at]),
                    "hit": bool(values[at] >= self.threshold), "first": pair.first, "second": pair.second,
                    "changed_first": here, "changed_second": there,
                }
            )  # fmt: skip
        return rows

    def failing_pairs(self, most: int = 10) -> list[dict[str, Any]]:
        """The worst pairs behind the requirements that fail: opposites above the threshold, and near-duplicates below
        it where too few are kept."""
        failed = {failure.split(" ")[0] for failure in self.failures}
        kinds = {name.rpartition(".")[0] for name in failed} | {kind for kind in self.drops if f"{kind}.auc" in failed}
        if TOGETHER in kinds:
            kinds |= {*self.kinds.names}
        wrong = [row for row in self.all_pairs() if not row["same"] and row["hit"] and row["kind"] in kinds][:most]
        if any(name.startswith("recall") for name in failed):
            near = [pair.near for pair in self.measured.pairs]
            texts = {(p.first, p.second) for p, one in zip(self.measured.pairs, near, strict=True) if one}
            lost = (row for row in self.all_pairs() if (row["first"], row["second"]) in texts and not row["hit"])
            wrong += [row for _, row in zip(range(most), lost, strict=False)]
        return wrong

    def guarded(self) -> Guarded:
        """False hits and recall with `wordsens.guard` behind the threshold: what it calls different is no hit."""
        measured = self.measured
        hits = np.array(
            [
                value >= self.threshold and guard(pair.first, pair.second).verdict != "different"
                for pair, value in zip(measured.pairs, measured.values, strict=True)
            ]
        )
        false_hits = {kind: float(hits[members].mean()) for kind, members in measured.opposites.items()}
        return Guarded(float(hits[measured.near].mean()), false_hits)

    def result_table(self) -> ResultTable:
        """A row a kind of opposite; `save_baseline` saves a check."""
        rows = [asdict(row) for row in self.kinds]
        failed = tuple(f"FAILED: {failure}" for failure in self.failures)
        return ResultTable(self.answer[0], {name: [row[name] for row in rows] for name in rows[0]}, notes=failed)

    def to_dict(self, *, all_pairs: bool = False) -> dict[str, Any]:
        """The figures, as the JSON document has them; with all pairs where asked."""
        return {
            "passed": self.passed,
            "failures": list(self.failures),
            "answer": list(self.answer),
            "threshold": self.threshold,
            "recall": self.recall,
            "recall_low": self.recall_low,
            "recall_high": self.recall_high,
            "kinds": [asdict(row) for row in self.kinds],
            "lengths": [asdict(row) for row in self.lengths],
            "drops": {kind: asdict(drop) for kind, drop in self.drops.items()},
            "failing_pairs": self.failing_pairs(),
            "notes": list(self.notes),
            **({"pairs": self.all_pairs()} if all_pairs else {}),
        }

    def save_baseline(self, path: str | PathLike[str]) -> None:
        """Save the similarities for a later check's `baseline`.

        Raises:
            InputError: the file cannot be written, or the baseline would be vacuous: every kind is at the floor.
        """
        measured = self.measured
        values = {kind: measured.values[members] for kind, members in measured.opposites.items()}
        if len(on_the_floor(values, measured.values[measured.near], seed=self.options.seed)) == len(values):
            raise InputError(vacuous(values))
        write_baseline(path, measured, model=self.model, identity=self.identity)

    def __repr__(self) -> str:
        state = "passed" if self.passed else "failed"
        return f"<Check of {self.model}, {state}: {', '.join(f'{row.kind}.auc {row.auc:.3f}' for row in self.kinds)}>"

    def __str__(self) -> str:
        return "\n".join([*self.answer, *(f"FAILED: {failure}" for failure in self.failures)])

    def display(
        self, guarded: Guarded | None = None, layers: Sequence[LayerRow] = (), *, pairs: str = "worst"
    ) -> Display:
        """The answer, what fails with its pairs, then kinds, lengths, layers, changes and every pair, changed words
        marked. `guarded`: with the guard behind the threshold; `layers`: layer by layer; `pairs`: "none" of those that
        fail nothing, the "worst" of each kind, or "all"."""
        failed = self.failing_pairs(len(self.measured.pairs))
        columns = ("cosine" if self.measured.cosines else "score", *_PAIR_COLUMNS)
        title = "Pairs behind the requirements that fail, worst first"
        gated = bool(self.options.requirements or self.drops)
        tables = [
            Table(title, columns, tuple(map(_pair_row, failed)), most=_FAILING),
            _kinds_table(self, guarded),
            _lengths_table(self),
            _layers_table(layers),
            _drops_table(self.drops),
        ]
        if pairs != "none":
            worst = {row["kind"]: row for row in reversed(self.all_pairs()) if not row["same"]}
            rows = tuple(_pair_row(worst[kind]) for kind in self.kinds.names)
            tables.append(Table("The closest opposites of each kind", columns, rows, most=len(rows)))
        if pairs == "all":
            title = "Every pair: opposites from the most alike, then the same meaning from the least alike"
            rows = tuple(map(_pair_row, self.all_pairs()))
            tables.append(Table(title, columns, rows, most=len(rows), folded=True))
        return Display(
            self.answer,
            tuple(one for one in tables if one is not None and one.rows),
            failures=self.failures,
            passed="All requirements are met." if gated and self.passed else "",
            notes=self.notes,
        )

    def _repr_html_(self) -> str:
        return html_fragment(self.display())


def check(
    model: Any,
    pairs: Pairs | None = None,
    kinds: Sequence[str] | None = None,
    *,
    threshold: int | float | None = None,
    keep: int | float = KEEP,
    requirements: Sequence[str] = (),
    baseline: str | PathLike[str] | None = None,
    prompt_names: Sequence[str] = (),
    seed: Seed = 0,
) -> Check:
    """Check if a meaning that flips with one word shows in the model's embeddings, kind by kind.

    Opposites (a not, enable for disable, who does what to whom, ...) are compared with near-duplicates of the same
    meaning (a contraction, a date in other digits, another order of the words, ...). A threshold that keeps 90 % of
    these lets some of the opposites through: `false_hits`. All numbers are attained on these pairs, with 95 % intervals
    over them (docs/check.md).

    Args:
        model: a name, a folder, a loaded model, or any function from a list of texts to an array (m, d); or a
            CrossEncoder, whose scores take the place of cosines.
        pairs: the package's own, or yours: a file, or rows (kind, first, second, same).
        kinds: only these kinds of opposites.
        threshold: the similarity from which on two texts count as the same, such as that of your cache.
        keep: without one, the share of near-duplicates that it keeps.
        requirements: such as "negation.false_hits <= .2", "all.auc >= .5" or "recall >= .9"; those that are not met are
            `failures`.
        baseline: a file of `save_baseline`; a significant drop of a kind's AUC since then is a failure too.
        prompt_names: of a SentenceTransformer: the prompt of all texts, or those of the first and the second ones.
        seed: of the intervals.

    Raises:
        InputError: no such model or kind, a wrong row, a requirement that cannot be read, or a vacuous baseline.

    >>> def letters(texts):
    ...     return [[text.lower().count(letter) + 0.1 for letter in "abcdefghijklmnopqrstuvwxyz"] for text in texts]
    >>> result = check(letters, kinds=["role"], requirements=["role.false_hits <= .5"])
    >>> result.kinds["role"].false_hits, result.passed
    (1.0, False)
    """
    options = CheckOptions.of(threshold, keep, requirements, baseline, seed)
    chosen, notes = choose_pairs(pairs, kinds)
    options.require_kinds(chosen)
    loaded = load(model)
    require_cosine(options.threshold, loaded)
    sides = prompted(loaded, prompt_names)
    read, unread = readable(sides, chosen)
    return evaluate(sides, read, similarities(sides, read), options, [*notes, *unread])


def prompted(model: Model | PairModel, prompt_names: Sequence[str]) -> Model | PairModel | tuple[Model, Model]:
    """The model, with its prompt of one name; or two, with the prompts of the first and of the second texts."""
    names = [prompt_names] if isinstance(prompt_names, str) else list(prompt_names)
    if not names:
        return model
    if isinstance(model, PairModel) or len(names) > 2:
        raise InputError(f"`prompt_names` (={names!r}) must be one or two names of a model of texts")
    sides = [model.prompted(name) for name in names]
    return sides[0] if len(sides) == 1 else (sides[0], sides[1])


def require_cosine(threshold: float | None, model: Model | PairModel) -> None:
    """InputError for a threshold that no cosine reaches; scores of pairs and dot products have any size."""
    if threshold is not None and abs(threshold) > 1 and gives_cosines(model):
        raise InputError(f"`threshold` (={threshold:g}) must be a cosine, from -1 to 1, such as 0.92")


def choose_pairs(pairs: Pairs | None, kinds: Sequence[str] | None) -> tuple[list[Pair], list[str]]:
    """The pairs of a check, each once, and notes: opposites of the kinds, and everything that means the same.

    The package's own near-duplicates are added to its own pairs, and where yours hold none.
    """
    read = read_pairs(pairs)
    chosen = list(dict.fromkeys(read))
    notes = [] if len(chosen) == len(read) else [f"{len(read) - len(chosen)} pairs repeat another and count once"]
    if kinds is not None:
        offered = list(dict.fromkeys(pair.kind for pair in chosen if not pair.same))
        for kind in [kinds] if isinstance(kinds, str) else kinds:
            require_choice("kinds", kind, offered)
        chosen = [pair for pair in chosen if pair.same or pair.kind in kinds]
    if pairs is None or not any(pair.near for pair in chosen):
        chosen += read_pairs(near_duplicates())
    if pairs is not None and not any(pair.near for pair in read):
        notes.append(
            "your pairs hold no near-duplicates (same=true, of another kind than paraphrase): the package's own, in "
            "English, stand in for them"
        )
    require_both_sides(chosen)
    return chosen, notes


def evaluate(
    model: Model | PairModel | tuple[Model, Model],
    pairs: Sequence[Pair],
    values: Float[np.ndarray, " pairs"],
    options: CheckOptions,
    notes: Sequence[str],
) -> Check:
    """The check of a model from the similarities that it gave the pairs."""
    named = model[0] if isinstance(model, tuple) else model
    measured = Measured(pairs, values, cosines=gives_cosines(model))
    near = values[measured.near]
    if not len(near):
        raise InputError("`pairs` holds no near-duplicate that the model reads; give shorter texts")
    if options.threshold is None:
        threshold = kept_threshold(near, options.keep)
        draws = threshold_draws(near, options.keep, seed=options.seed)
    else:
        threshold = options.threshold
        draws = np.full(2000, threshold)
    recall = share_over(near, threshold, np.full_like(draws, threshold), seed=options.seed)
    table = KindTable([_kind_row(measured, kind, threshold, draws, options.seed) for kind in measured.opposites])
    drops, further = ({}, []) if options.baseline is None else options.baseline.drops(measured, seed=options.seed)
    whole = {"threshold": threshold, "recall": recall.value, "recall_low": recall.low, "recall_high": recall.high}
    failures = [*(one for each in options.requirements for one in failures_of(each, table, whole)), *_fallen(drops)]
    same = [
        f"{count} of {table[kind].pairs} {kind} pairs have the very same vector for both texts: no use of these "
        "vectors can tell them apart"
        for kind, count in measured.indistinct.items()
        if count
    ]
    return Check(
        named.name, named.identity(), measured, options, **whole, kinds=table,
        lengths=tuple(_lengths(measured, threshold)), drops=drops, failures=tuple(failures),
        notes=(*similarity_notes(model), *notes, *further, *same),
    )  # fmt: skip


def _kind_row(measured: Measured, kind: str, threshold: float, draws: np.ndarray, seed: Seed) -> KindRow:
    values, stream = measured.values, derive_seed(seed, kind)
    opposite = values[measured.opposites[kind]]
    near = auc_interval(opposite, values[measured.near], seed=stream)
    far = auc_interval(opposite, values[measured.far], seed=stream) if measured.far.any() else None
    hits = share_over(opposite, threshold, draws, seed=stream)
    return KindRow(
        kind=kind, pairs=len(opposite), auc=near.value, auc_low=near.low, auc_high=near.high,
        auc_far=far and far.value, auc_far_low=far and far.low, auc_far_high=far and far.high,
        false_hits=hits.value, false_hits_low=hits.low, false_hits_high=hits.high,
    )  # fmt: skip


def _lengths(measured: Measured, threshold: float) -> Iterator[LengthRow]:
    for kind, members in measured.opposites.items():
        for length in LENGTHS:
            here = measured.lengths == length
            opposite, near = measured.values[members & here], measured.values[measured.near & here]
            if len(opposite):
                auc = (
                    float(((opposite[:, None] < near) + 0.5 * (opposite[:, None] == near)).mean())
                    if len(near)
                    else None
                )
                hits = float((opposite >= threshold).mean())
                yield LengthRow(kind=kind, length=length, pairs=len(opposite), auc=auc, false_hits=hits)


def failures_of(one: Requirement, table: KindTable, whole: Mapping[str, float]) -> list[str]:
    """A sentence for every kind, or for the whole, that does not meet the requirement."""
    if not one.kind:
        value = whole[one.field]
        return [] if one.met(value) else [one.failure(one.field, value)]
    failures = []
    for row in table if one.kind == EVERY else [table[one.kind]]:
        value = getattr(row, one.field)
        if not one.met(value):
            ends = [getattr(row, f"{one.field}_{end}", None) for end in ("low", "high")]
            interval = "" if None in ends else f" (95 % interval {ends[0]:.3f} to {ends[1]:.3f})"
            failures.append(one.failure(f"{row.kind}.{one.field}", value, interval))
    return failures


def _fallen(drops: Mapping[str, Drop]) -> list[str]:
    fallen = {kind: drop for kind, drop in drops.items() if drop.p <= LEVEL}
    return [
        f"{kind}.auc has dropped from {drop.before:.4f} to {drop.after:.4f} since the baseline (p = {drop.p:.2g})"
        for kind, drop in fallen.items()
        # Where a kind is named, that all of them together fell too says no more.
        if kind != TOGETHER or len(fallen) == 1
    ]


def _answer(result: Check) -> Iterator[str]:
    measured = result.measured
    opposite = np.logical_or.reduce(list(measured.opposites.values()))
    hits = int((measured.values[opposite] >= result.threshold).sum())
    start = "At your threshold" if result.options.threshold is not None else "At the threshold"
    sentence = (
        f"{start} {_short(result.threshold)}, which keeps {_share(result.recall, int(measured.near.sum()))} "
        f"near-duplicates, {_share(hits / int(opposite.sum()), int(opposite.sum()))} opposites pass as the same."
    )
    worst = max(result.kinds, key=lambda row: row.false_hits)
    if worst.false_hits > 0:
        sentence += (
            f" Worst: {worst.kind} ({_share(worst.false_hits, worst.pairs)}), such as {_example(result, worst)}."
        )
    yield sentence
    apart = [row.kind for row in result.kinds if row.auc_low > COIN]
    blind = [row.kind for row in result.kinds if row.auc_high < COIN]
    unsure = [row.kind for row in result.kinds if row.kind not in (*apart, *blind)]
    parts = [
        f"{how} {', '.join(kinds)}"
        for how, kinds in (
            ("tells these opposites from near-duplicates better than chance:", apart),
            ("is no better than chance, as far as these pairs tell:", unsure),
            ("puts these closer together than near-duplicates:", blind),
        )
        if kinds
    ]
    yield f"{result.model} {'; '.join(parts)}."


def _example(result: Check, worst: KindRow) -> str:
    """The plainest opposite above the threshold: short texts first, then the most alike."""
    measured = result.measured
    places = np.flatnonzero(measured.opposites[worst.kind] & (measured.values >= result.threshold))
    at = max(places, key=lambda at: (-len(measured.pairs[at].first.split()) // 12, measured.values[at]))
    pair = measured.pairs[at]
    here, there = (part or "-" for part in pair.changed)
    return f"'{here}' / '{there}' in {around(pair.first, pair.second)!r} ({measured.values[at]:.3f})"


def _short(value: float) -> str:
    return f"{value:.3f}".rstrip("0").removeprefix("0").rstrip(".") or "0"


def _share(share: float, count: int) -> str:
    """A share in words: of 10 where that is exact enough, of 100, or of all where they are fewer."""
    if count < 100:
        return f"{round(share * count)} of {count}"
    tenths = share * 10
    if abs(tenths - round(tenths)) < 0.05 and 0 < round(tenths) < 10:
        return f"{round(tenths)} of 10"
    return f"{round(share * 100)} of 100" if 0 < round(share * 100) < 100 else f"{round(share * count)} of {count}"


def around(text: str, other: str) -> str:
    """The text; of a long one, the words around its first difference from the other."""
    words = text.split()
    if len(words) <= 2 * _AROUND:
        return text
    place = next((at for at, (one, two) in enumerate(zip(words, other.split(), strict=False)) if one != two), 0)
    start, stop = max(0, place - _AROUND), place + _AROUND
    before, behind = "... " * (start > 0), " ..." * (stop < len(words))
    return f"{before}{' '.join(words[start:stop])}{behind}"


_PAIR_COLUMNS = ("", "kind", "first", "second")


def _pair_row(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """A pair with its changed words marked; of long texts what stands around the change."""
    first, second = around(row["first"], row["second"]), around(row["second"], row["first"])
    marked = [
        Marked(text, tuple(row[name].split(" ... ")))
        for text, name in ((first, "changed_first"), (second, "changed_second"))
    ]
    hit = "" if row["same"] or not row["hit"] else "hit"
    return (f"{row['similarity']:.3f}", hit, row["kind"], *marked)


def _kinds_table(result: Check, guarded: Guarded | None) -> Table:
    far = any(row.auc_far is not None for row in result.kinds)
    rows = []
    for row in result.kinds:
        auc = f"{row.auc:.3f}"
        cells: list[Any] = [row.kind, row.pairs, Strong(auc, "rise") if row.auc < COIN else auc]
        cells += [f"[{row.auc_low:.2f}, {row.auc_high:.2f}]", f"{row.false_hits:.0%}"]
        cells += [f"[{row.false_hits_low:.0%}, {row.false_hits_high:.0%}]"]
        cells += [None if row.auc_far is None else f"{row.auc_far:.3f}"] if far else []
        cells += [f"{guarded.false_hits[row.kind]:.0%}"] if guarded else []
        rows.append(tuple(cells))
    near = int(result.measured.near.sum())
    note = (
        f"Threshold {result.threshold:.4f}: {result.recall:.0%} of {near} near-duplicates of the same meaning reach it "
        f"[{result.recall_low:.0%}, {result.recall_high:.0%}]. false hits: the opposites that do. AUC: the chance that "
        "an opposite is less alike than a near-duplicate; 1 perfect, .5 a coin, 0 always more alike"
        f"{'; far: than a paraphrase of few common words' * far}. Brackets: 95 %."
    )
    if guarded:
        note += f" With the guard {guarded.recall:.0%} of the near-duplicates and these opposites are hits."
    headings = ["kind", "pairs", "AUC", "[95 %]", "false hits", "[95 %]"]
    headings += ["AUC far"] * far + ["with guard"] * (guarded is not None)
    return Table("", tuple(headings), tuple(rows), note, len(rows))


def _lengths_table(result: Check) -> Table | None:
    lengths = list(dict.fromkeys(row.length for row in result.lengths))
    if len(lengths) < 2:
        return None
    shares = {(row.kind, row.length): f"{row.false_hits:.0%} of {row.pairs}" for row in result.lengths}
    rows = tuple((kind, *(shares.get((kind, length)) for length in lengths)) for kind in result.kinds.names)
    return Table("False hits by length", ("kind", *lengths), rows, most=len(rows))


def _layers_table(layers: Sequence[LayerRow]) -> Table:
    rows = tuple(
        (
            *(row.kind, row.layer, f"{row.auc:.3f}", None if row.auc_synonym is None else f"{row.auc_synonym:.2f}"),
            *(f"{row.rows:.3f}", f"{row.pooled:.3f}", f"{row.kept:.0%}"),
        )
        for row in sorted(layers, key=lambda row: (row.kind, row.layer))
    )
    return Table(
        "By layer: AUC, and how far an opposite's farthest token and its pooled vector are moved",
        ("kind", "layer", "AUC", "synonym", "token", "pooled", "kept"),
        rows,
        "token: the median cosine distance of the token that finds its like least in the other text; pooled: of the "
        "two pooled vectors; kept: their ratio, what pooling leaves of the difference.",
        len(rows),
    )


def _drops_table(drops: Mapping[str, Drop]) -> Table:
    rows = tuple((kind, f"{one.before:.4f}", f"{one.after:.4f}", f"{one.p:.2g}") for kind, one in drops.items())
    return Table("Since the baseline", ("kind", "before", "now", "p of the drop"), rows, most=len(rows))
