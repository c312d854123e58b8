"""Does a meaning that flips with one word show in a model's embeddings? A check of scored pairs,
and its gate."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from types import SimpleNamespace
from typing import Any

import numpy as np

from wordsens.display.view import View
from wordsens.errors import InputError, argument, require_choice
from wordsens.evaluation.pairs import (
    SCORE,
    Mask,
    Progress,
    ScoredPairs,
    choose_pairs,
    prompted,
    require_threshold,
    scored_by,
    similarity_name,
)
from wordsens.evaluation.requirement import (
    EVERY,
    LEVEL,
    Gated,
    Requirement,
    Unmet,
    auc_drops,
    numbers_of,
    read_baseline,
    write_baseline,
)
from wordsens.intervals import TOGETHER, auc_estimate, kept_threshold, share_over
from wordsens.models.load import load
from wordsens.models.model import COSINE
from wordsens.results import Estimate
from wordsens.seeds import Seed, derive_seed
from wordsens.text.pairs import LENGTHS, Pair, Pairs

KEEP = 0.9
"""The share of near-duplicates that the threshold keeps, unless one is given."""

SAME_VECTOR = 1e-12
"""The distance of a cosine from 1 up to which two vectors are equal."""

_WITH_INTERVALS = ("auc", "auc_far", "false_hits")
KIND_FIELDS = ("pairs", *(name + end for name in _WITH_INTERVALS for end in ("", "_low", "_high")))
FIELDS = (
    "threshold",
    *(name + end for name in ("recall", "false_hits") for end in ("", "_low", "_high")),
)
"""Numbers of a kind, and of the whole, that a requirement may name."""

GUARDED = "guarded_false_hits"
GUARDED_FIELDS = (GUARDED, "guarded_recall")
"""Those with the guard behind the threshold; the second of the whole alone."""


@dataclass(frozen=True, kw_only=True)
class KindRow:
    """One kind of opposite.

    Attributes:
        kind: its name.
        length: one of text.pairs.LENGTHS; "" for all lengths.
        pairs: how many opposites.
        auc: the chance that an opposite is less alike than a near-duplicate of that length, ties
            half; 1 is perfect, .5 is chance; None where there are none.
        auc_far: the same against paraphrases of few common words; None where there are none.
        false_hits: the share of opposites at or above the threshold.
    """

    kind: str
    length: str = ""
    pairs: int
    auc: Estimate | None
    auc_far: Estimate | None
    false_hits: Estimate

    def to_dict(self) -> dict[str, Any]:
        """The row as plain values, with the names that requirements use."""
        return numbers_of(vars(self), *_WITH_INTERVALS)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Check(Gated):
    """How a model tells opposites from near-duplicates of the same meaning.

    Attributes:
        scored: the pairs and their similarities, with what was left out or replaced.
        keep: the share of near-duplicates that the threshold was to keep; None where the threshold
            was given.
        threshold: the similarity at or above which two texts count as the same.
        recall: the share of near-duplicates at or above it.
        false_hits: that of all opposites.
        rows: one row per kind of opposite, the one with most false hits first.
        lengths: one row per kind and length.
        near_duplicates: by kind of near-duplicate, the share that is accepted.
        drops: by kind, its AUC before and after, where a baseline was given, and the joint p-value.
        requirements: as they were given.
        unmet: what fails: requirements, and significant drops.
        notes: what a reader should know about the pairs.
        seed: of the intervals.
    """

    scored: ScoredPairs
    keep: float | None
    threshold: float
    recall: Estimate
    false_hits: Estimate
    rows: tuple[KindRow, ...]
    lengths: tuple[KindRow, ...]
    near_duplicates: dict[str, Estimate]
    drops: dict[str, dict[str, float]]
    requirements: tuple[Requirement, ...]
    unmet: tuple[Unmet, ...]
    notes: tuple[str, ...]
    seed: Seed

    @property
    def model(self) -> str:
        """The name of the model."""
        return self.scored.models[0]

    @property
    def kinds(self) -> dict[str, SimpleNamespace]:
        """By kind of opposite its plain numbers, with the names that requirements use, such as
        `kinds["negation"].auc_low`; the one with most false hits first."""
        return {row.kind: SimpleNamespace(**row.to_dict()) for row in self.rows}

    def all_pairs(self) -> list[dict[str, Any]]:
        """Every pair with its similarity and, if asked for, the guard's verdict: first the
        opposites, from the most to the least similar; then the near-duplicates, from the least to
        the most similar."""
        return self._ordered

    @cached_property
    def _ordered(self) -> list[dict[str, Any]]:
        rows = []
        for place, pair in enumerate(self.scored.pairs):
            value = float(self.scored.values[place])
            row = {"kind": pair.kind, "same": pair.same, "similarity": value}
            row["hit"] = value >= self.threshold
            if self.scored.verdicts is not None:
                row["guard"] = self.scored.verdicts[place]
            row |= {"first": pair.first, "second": pair.second}
            row |= {"near": pair.near, "where": pair.where}
            row |= zip(("changed_first", "changed_second"), pair.changed, strict=True)
            rows.append(row)
        return sorted(
            rows, key=lambda row: (row["same"], row["similarity"] * (1 if row["same"] else -1))
        )

    def failing_pairs(self, most: int = 10, requirement: str | None = None) -> list[dict[str, Any]]:
        """The worst pairs behind the requirements that fail, or behind one of them: opposites that
        are hits and, where recall is too low, near-duplicates that are misses."""
        fields = {each.text: each.field for each in self.requirements}
        failing = [
            (each.kind, fields.get(each.requirement, "auc"))
            for each in self.unmet
            if requirement in (None, each.requirement)
        ]
        behind = [
            row
            for row in self.all_pairs()
            if any(_is_behind(row, kind, field) for kind, field in failing)
        ]
        opposites = [row for row in behind if not row["same"]][:most]
        return opposites + [row for row in behind if row["same"]][:most]

    def guarded(self) -> dict[str, Any]:
        """False hits and recall with `wordsens.guard` behind the threshold: what it calls different
        is no hit. `recall` of near-duplicates, `all_false_hits` of opposites, `false_hits` by
        kind."""
        hits = (self.scored.values >= self.threshold) & ~self.scored.different
        opposites = self.scored.opposites.items()
        return {
            "recall": float(hits[self.scored.near].mean()),
            "all_false_hits": float(hits[self.scored.opposite].mean()),
            "false_hits": {kind: float(hits[members].mean()) for kind, members in opposites},
        }

    def columns(self) -> dict[str, Any]:
        """One row per kind of opposite."""
        names = ("kind", "pairs", *_WITH_INTERVALS)
        return {name: [getattr(row, name) for row in self.rows] for name in names}

    def view(self, *, pairs: str = "worst", verbose: bool = False) -> View:
        """The headline, what fails with its pairs, then kinds, near-duplicates, lengths, changes
        since the baseline, and pairs with their changed words marked.

        Args:
            pairs: which pairs to show besides those behind a failure: "none", the "worst" of each
                kind, or "all".
            verbose: with every row of every table.
        """
        from wordsens.findings.check import view

        return view(self, pairs=pairs, verbose=verbose)

    def to_dict(self, *, all_pairs: bool = False) -> dict[str, Any]:
        """The figures, as the JSON document has them; with all pairs where asked."""
        whole = {name: getattr(self, name) for name in ("threshold", "recall", "false_hits")}
        near = self.near_duplicates.items()
        return {
            "passed": self.passed,
            "failures": list(self.failures),
            "answer": list(self.answer),
            **numbers_of(whole, "recall", "false_hits"),
            "kinds": [row.to_dict() for row in self.rows],
            "near_duplicates": [
                {"kind": kind, "pairs": share.n, **numbers_of({"recall": share}, "recall")}
                for kind, share in near
            ],
            "lengths": [row.to_dict() for row in self.lengths],
            "drops": self.drops,
            "failing_pairs": self.failing_pairs(),
            "notes": [*self.scored.changes, *self.notes],
            **({"pairs": self.all_pairs()} if all_pairs else {}),
        }

    def save_baseline(self, path: str | PathLike[str]) -> None:
        """Save the similarities for a later check's `baseline`.

        Raises:
            InputError: the file cannot be written, or the baseline would be vacuous: every kind is
                at the floor.
        """
        write_baseline(path, self.scored)


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
    guard: bool = False,
    allow_package_pairs: bool = False,
    seed: Seed = 0,
    progress: Progress = lambda done, total: None,
) -> Check:
    """Check if a meaning that flips with one word shows in the model's embeddings, kind by kind.

    Opposites (a not, enable for disable, who does what to whom, ...) are compared with
    near-duplicates of the same meaning (a contraction, a date in other digits, another order of the
    words, ...). A threshold that keeps 90 % of these lets some of the opposites through:
    `false_hits`. All numbers are measured on these pairs, with 95 % intervals over them
    (docs/check.md).

    Args:
        model: a name, a folder, a loaded model, or any function from a list of texts to an array
            (m, d); or a CrossEncoder, whose scores take the place of cosines.
        pairs: the package's own, or yours: a file, or rows (kind, first, second, same).
        kinds: only these kinds of opposites.
        threshold: the similarity at or above which two texts count as the same, such as that of
            your cache.
        keep: without one, the share of near-duplicates that it keeps.
        requirements: such as "negation.false_hits <= .2" of a kind, "all.auc >= .5" of every kind,
            "recall >= .9" and "false_hits <= .1" of all pairs; with `wordsens.guard` behind the
            threshold "guarded_false_hits" and "guarded_recall". Those that are not met are
            `failures`.
        baseline: a file of `save_baseline`; a significant drop of a kind's AUC since then is a
            failure too.
        prompt_names: of a SentenceTransformer: the prompt of all texts, or those of the first and
            the second ones.
        guard: whether every pair gets the verdict of `wordsens.guard`, in `all_pairs` and
            `failing_pairs`; a requirement on "guarded_..." asks for it too.
        allow_package_pairs: whether a requirement that rests on near-duplicates (recall, AUC, a
            threshold that they give) may be met by the package's, which stand in where your pairs
            hold none.
        seed: of the intervals.
        progress: called with (done, total), in texts or pairs.

    Raises:
        InputError: no such model or kind, a wrong row, a requirement that cannot be read, or a
            vacuous baseline.

    >>> def letters(texts):
    ...     return [[text.lower().count(letter) + 0.1 for letter in "abcdefghijklmnopqrstuvwxyz"] for text in texts]
    >>> result = check(letters, kinds=["role"], requirements=["role.false_hits <= .5"])
    >>> result.kinds["role"].false_hits, result.passed
    (1.0, False)
    """  # noqa: E501
    require_options(threshold, keep, seed)
    chosen, changes = choose_pairs(pairs, kinds)
    gate = read_requirements(requirements, chosen)
    earlier = None if baseline is None else read_baseline(baseline)
    loaded = load(model)
    if threshold is not None:
        require_threshold(threshold, similarity_name(loaded) == COSINE)
    scored = scored_by(
        [prompted(loaded, prompt_names)],
        chosen,
        changes,
        guard=guard or any(each.field in GUARDED_FIELDS for each in gate),
        progress=progress,
    )
    result = replace(check_scored(scored, threshold, keep, seed), requirements=gate)
    unmet = [*_unmet(result, allow_package_pairs)]
    if earlier is not None:
        drops, further = auc_drops(earlier, scored, seed=seed)
        result = replace(result, drops=drops, notes=(*result.notes, *further))
        unmet += _fallen(drops)
    return replace(result, unmet=tuple(unmet))


def require_options(threshold: int | float | None, keep: int | float, seed: Seed) -> None:
    """InputError for a threshold that is no number, a share that is none, or a wrong seed."""
    if isinstance(keep, bool) or not isinstance(keep, int | float) or not 0 < keep <= 1:
        raise InputError(f"{argument('keep')} (={keep!r}) must be a share from 0 to 1, such as 0.9")
    if threshold is not None:
        require_threshold(threshold, cosines=False)
    derive_seed(seed)


def read_requirements(texts: Sequence[str], pairs: Sequence[Pair]) -> tuple[Requirement, ...]:
    """The requirements that the texts state; InputError for a wrong one, or one on a kind that no
    pair has."""
    fields, whole = (*KIND_FIELDS, GUARDED), (*FIELDS, *GUARDED_FIELDS)
    requirements = Requirement.read_all(texts, fields, "negation.false_hits <= .2", whole)
    kinds = tuple(dict.fromkeys(pair.kind for pair in pairs if not pair.same))
    for requirement in requirements:
        if requirement.field not in ("pairs", "threshold") and not 0 <= requirement.bound <= 1:
            raise InputError(
                f"{argument('requirements')} (={requirement.text!r}) bounds a share, which is from "
                "0 to 1, such as .2"
            )
        if requirement.kind not in ("", EVERY):
            require_choice(f"the kind of {requirement.text!r}", requirement.kind, (*kinds, EVERY))
    return requirements


def check_scored(
    scored: ScoredPairs, threshold: float | None = None, keep: float = KEEP, seed: Seed = 0
) -> Check:
    """The check of the first model of scored pairs, without requirements. See `check`."""
    values, near = scored.values, scored.values[scored.near]
    used = float(kept_threshold(near, keep) if threshold is None else threshold)
    kept = (near, keep) if threshold is None else None

    lengths = np.array([pair.length for pair in scored.pairs])

    def row(kind: str, members: Mask, length: str = "") -> KindRow:
        of_length = (lengths == length) if length else np.ones(len(lengths), bool)
        opposite = values[members & of_length]
        near, far = values[scored.near & of_length], values[scored.far]
        hits = share_over(opposite, used, None if length else kept, seed=derive_seed(seed, kind))
        return KindRow(
            kind=kind,
            length=length,
            pairs=len(opposite),
            auc=auc_estimate(opposite, near) if len(near) else None,
            auc_far=auc_estimate(opposite, far) if len(far) and not length else None,
            false_hits=hits,
        )

    rows = [row(kind, members) for kind, members in scored.opposites.items()]
    by_length = [
        row(kind, members, length)
        for kind, members in scored.opposites.items()
        for length in LENGTHS
        if (lengths[members] == length).any()
    ]
    near_kinds = scored.near_kinds.items()
    return Check(
        scored=scored,
        keep=keep if threshold is None else None,
        threshold=used,
        recall=share_over(near, used),
        false_hits=share_over(values[scored.opposite], used, kept, seed=seed),
        rows=tuple(sorted(rows, key=lambda row: -row.false_hits.value)),
        lengths=tuple(by_length),
        near_duplicates={kind: share_over(values[members], used) for kind, members in near_kinds},
        drops={},
        requirements=(),
        unmet=(),
        notes=tuple(_notes(scored)),
        seed=seed,
    )


def _notes(scored: ScoredPairs) -> Iterator[str]:
    if scored.scores[0] not in (COSINE, SCORE):
        yield (
            "similarities, and the threshold, are the model's own (similarity_fn_name): the "
            f"{scored.scores[0]}, not the cosine"
        )
    equal = scored.values >= 1 - SAME_VECTOR
    for kind, members in scored.opposites.items() if scored.cosines else ():
        if count := int((members & equal).sum()):
            yield (
                f"{count} of {members.sum()} {kind} pairs have the very same vector for both "
                "texts: no use of these vectors can tell them apart"
            )


def _unmet(check: Check, allow_package_pairs: bool) -> Iterator[Unmet]:
    """The requirements that fail."""
    rows = {row.kind: row.to_dict() for row in check.rows}
    whole = {name: getattr(check, name) for name in ("threshold", "recall", "false_hits")}
    rows[""] = numbers_of(whole, "recall", "false_hits")
    if check.scored.verdicts is not None:
        behind = check.guarded()
        rows[""] |= {GUARDED: behind["all_false_hits"], "guarded_recall": behind["recall"]}
        for kind, share in behind["false_hits"].items():
            rows[kind][GUARDED] = share
    stands_in = check.scored.has_stand_ins and not allow_package_pairs
    for requirement in check.requirements:
        if stands_in and _rests_on_near(requirement.field, check):
            threshold = "" if check.keep is None else ", give a threshold"
            yield Unmet(
                "",
                requirement.text,
                f"{requirement.text}: it rests on near-duplicates (same = true), your pairs hold "
                f"none, and the package's cannot meet it; add such rows{threshold} or pass "
                "--allow-package-pairs",
            )
        else:
            yield from requirement.unmet(rows, number=dict.get, detail=_interval)


def _rests_on_near(field: str, check: Check) -> bool:
    """Whether near-duplicates decide the number: false hits only by the threshold they give."""
    if field == "pairs" or field.startswith("auc_far"):
        return False
    return "recall" in field or field.startswith("auc") or check.keep is not None


def _interval(row: Mapping[str, Any], field: str) -> str:
    low, high = (row.get(f"{field}_{end}") for end in ("low", "high"))
    return "" if low is None or high is None else f" (95 % interval {low:.3f} to {high:.3f})"


def _fallen(drops: dict[str, dict[str, float]]) -> Iterator[Unmet]:
    fallen = {kind: drop for kind, drop in drops.items() if drop["p"] <= LEVEL}
    for kind, drop in fallen.items():
        # Where a kind is named, that all of them together fell too says no more.
        if kind != TOGETHER or len(fallen) == 1:
            change = (
                f"from {drop['before']:.4f} to {drop['after']:.4f} since the baseline "
                f"(p = {drop['p']:.2g})"
            )
            yield Unmet(kind, not_dropped(kind), f"{kind}.auc has dropped {change}")


def not_dropped(kind: str) -> str:
    """The requirement that a baseline states of a kind."""
    return f"{kind}.auc has not dropped since the baseline"


def _is_behind(row: Mapping[str, Any], kind: str, field: str) -> bool:
    """Whether the pair of that row counts against a requirement on that kind and field."""
    hit = row["hit"] and not (field in GUARDED_FIELDS and row["guard"] == "different")
    if "recall" in field:
        return row["near"] and not hit
    if field == "threshold":
        return False
    return hit and not row["same"] and kind in ("", TOGETHER, row["kind"])
