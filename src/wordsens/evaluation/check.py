"""Does a meaning that flips with one word show in a model's embeddings? The check, and its result."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from os import PathLike
from typing import Any

import numpy as np
from jaxtyping import Float

from wordsens.errors import InputError, require_choice
from wordsens.evaluation.answer import answer
from wordsens.evaluation.baseline import LEVEL, Baseline, write_baseline
from wordsens.evaluation.kinds import ControlRow, KindTable, LengthRow, Measured, require_both_sides
from wordsens.evaluation.requirement import Requirement
from wordsens.evaluation.similarities import similarities
from wordsens.models.black_box import Model
from wordsens.models.load import as_model, as_pair_model, is_pair_model
from wordsens.models.pairs import PairModel
from wordsens.results import Look, Shown
from wordsens.seeds import Seed, derive_seed
from wordsens.statistics.operating_point import trials_for
from wordsens.statistics.paired_drop import TOGETHER, Drop
from wordsens.text.pairs import Pair, Pairs, read_pairs


@dataclass(frozen=True)
class Cutoff:
    """The cosine from which on two texts count as the same.

    Attributes:
        budget: the share of opposites of a kind that it may let through, from which it follows.
        threshold: one of your own beside it, whose share of opposites and of paraphrases are counted.
    """

    budget: int | float = 0.01
    threshold: int | float | None = None


@dataclass(frozen=True)
class CheckOptions:
    """Options of a check, beside its model and pairs.

    Attributes:
        budget: the share of opposites that a threshold may let through, 0 to 1 (without 1).
        requirements: each as "negation.auc >= .5".
        baseline: the file of an earlier check, or what it holds.
        seed: of the bootstrap.
        threshold: the user's own.
    """

    budget: float = 0.01
    requirements: tuple[Requirement, ...] = ()
    baseline: Baseline | None = None
    seed: Seed = 0
    threshold: float | None = None

    @classmethod
    def of(
        cls,
        budget: int | float,
        requirements: Sequence[str],
        baseline: str | PathLike[str] | Baseline | None,
        seed: Seed,
        threshold: int | float | None = None,
    ) -> "CheckOptions":
        """The options as a user writes them. InputError for a budget, requirement or baseline that is wrong."""
        if isinstance(budget, bool) or not isinstance(budget, (int, float)) or not 0 <= budget < 1:
            raise InputError(f"`budget` (={budget!r}) must be a share from 0 to 1, such as 0.01")
        if threshold is not None and (isinstance(threshold, bool) or not np.isfinite(threshold)):
            raise InputError(f"`threshold` (={threshold!r}) must be a finite number, such as 0.92")
        if isinstance(requirements, str):
            requirements = [requirements]
        derive_seed(seed)
        read = baseline if baseline is None or isinstance(baseline, Baseline) else Baseline.read(baseline)
        return cls(float(budget), tuple(map(Requirement.read, requirements)), read, seed, threshold)


@dataclass(frozen=True, repr=False)
class Check(Shown):
    """The result of a check: figures of how a model tells opposites from paraphrases.

    Attributes:
        model: its name.
        identity: of its weights, or what stands for them.
        measured: the pairs and their similarities.
        options: what was asked.
        kinds: one KindRow a kind of opposite, a sequence that also takes a kind's name.
        lengths: one row a kind and length.
        controls: the paraphrases and the one-word synonyms.
        drops: how each kind's AUC has changed since the baseline, and that of all together; empty without one.
        failures: a sentence for every requirement that is not met.
        notes: what a reader should know of the pairs.
    """

    model: str
    identity: str
    measured: Measured
    options: CheckOptions
    kinds: KindTable
    lengths: tuple[LengthRow, ...]
    controls: tuple[ControlRow, ...]
    drops: dict[str, Drop]
    failures: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """True where every requirement is met."""
        return not self.failures

    @cached_property
    def answer(self) -> tuple[str, ...]:
        """The findings in sentences."""
        return tuple(answer(self.model, self.kinds, self.measured, self.options.budget, self.options.threshold))

    def look(self) -> Look:
        """A row a kind of opposite; `save_baseline` is what keeps a check."""
        rows = [asdict(row) for row in self.kinds]
        failed = tuple(f"FAILED: {failure}" for failure in self.failures)
        return Look(self.answer[0], {name: [row[name] for row in rows] for name in rows[0]}, notes=failed)

    def to_dict(self) -> dict[str, Any]:
        """Everything but the pairs, as the JSON document has it."""
        return {
            "passed": self.passed,
            "failures": list(self.failures),
            "answer": list(self.answer),
            "kinds": [asdict(row) for row in self.kinds],
            "lengths": [asdict(row) for row in self.lengths],
            "controls": [asdict(row) for row in self.controls],
            "drops": {kind: asdict(drop) for kind, drop in self.drops.items()},
            "notes": list(self.notes),
        }

    def save_baseline(self, path: str | PathLike[str]) -> None:
        """Keep the similarities for a later check's `baseline`."""
        write_baseline(path, self.measured, model=self.model, identity=self.identity)

    def __repr__(self) -> str:
        told = "passed" if self.passed else "failed"
        return f"<Check of {self.model}, {told}: {', '.join(f'{row.kind}.auc {row.auc:.3f}' for row in self.kinds)}>"

    def __str__(self) -> str:
        return "\n".join([*self.answer, *(f"FAILED: {failure}" for failure in self.failures)])


def check(
    model: Any,
    pairs: Pairs | None = None,
    kinds: Sequence[str] | None = None,
    budget: int | float | Cutoff = 0.01,
    requirements: Sequence[str] = (),
    baseline: str | PathLike[str] | None = None,
    seed: Seed = 0,
) -> Check:
    """Check if a meaning that flips with one word shows in the model's embeddings, kind by kind.

    Opposites (a not, enable for disable, who does what to whom, ...) are compared with paraphrases of few common words.
    A model that sees meaning gives opposites the smaller cosine: AUC 1. All numbers are attained on these pairs, with
    bootstrap intervals over them (docs/check.md).

    Args:
        model: a name, a folder, a loaded model, or any function from a list of texts to an array (m, d); or a
            CrossEncoder, whose scores take the place of cosines.
        pairs: the package's own, or yours: a file, or rows (kind, first, second, same).
        kinds: only these kinds of opposites.
        budget: the share of opposites of a kind that a threshold may let through; or a Cutoff, which also has a
            threshold of your own, for `false_hits` and `hits`.
        requirements: such as "negation.auc >= .5" or "all.recall >= .2"; those that are not met are `failures`.
        baseline: a file of `save_baseline`; a significant drop of a kind's AUC since then is a failure too.
        seed: of the bootstrap.

    Raises:
        InputError: no such model or kind, a wrong row, or a requirement that cannot be read.

    >>> def letters(texts):
    ...     return [[text.lower().count(letter) + 0.1 for letter in "abcdefghijklmnopqrstuvwxyz"] for text in texts]
    >>> result = check(letters, kinds=["role"], requirements=["role.auc >= .5"])
    >>> result.kinds["role"].auc, result.passed
    (0.0, False)
    """
    cutoff = budget if isinstance(budget, Cutoff) else Cutoff(budget)
    options = CheckOptions.of(cutoff.budget, requirements, baseline, seed, cutoff.threshold)
    chosen, notes = choose_pairs(pairs, kinds)
    require_askable(options, chosen)
    asked = as_pair_model(model) if is_pair_model(model) else as_model(model)
    return evaluate(asked, chosen, similarities(asked, chosen), options, notes)


def choose_pairs(pairs: Pairs | None, kinds: Sequence[str] | None) -> tuple[list[Pair], list[str]]:
    """The pairs of a check, each once, and notes: opposites of the kinds, and everything that means the same.

    Where no pair means the same, the package's own paraphrases and synonyms of the same lengths are added.
    """
    read = read_pairs(pairs)
    chosen = list(dict.fromkeys(read))
    notes = [] if len(chosen) == len(read) else [f"{len(read) - len(chosen)} pairs repeat another and count once"]
    if kinds is not None:
        offered = list(dict.fromkeys(pair.kind for pair in chosen if not pair.same))
        for kind in [kinds] if isinstance(kinds, str) else kinds:
            require_choice("kinds", kind, offered)
        chosen = [pair for pair in chosen if pair.same or pair.kind in kinds]
    if not any(pair.same for pair in chosen):
        lengths = {pair.length for pair in chosen}
        chosen += [pair for pair in read_pairs() if pair.same and pair.length in lengths]
        notes.append("your pairs hold no paraphrases (same=true): the package's own, in English, stand in for them")
    require_both_sides(chosen)
    return chosen, notes


def require_askable(options: CheckOptions, pairs: Sequence[Pair]) -> None:
    """InputError where a requirement is on a kind that the pairs do not have, before a model is loaded."""
    kinds = tuple(dict.fromkeys(pair.kind for pair in pairs if not pair.same))
    for requirement in options.requirements:
        requirement.require_askable(kinds, own_threshold=options.threshold is not None)


def evaluate(
    model: Model | PairModel,
    pairs: Sequence[Pair],
    values: Float[np.ndarray, " pairs"],
    options: CheckOptions,
    notes: Sequence[str],
) -> Check:
    """The check of a model from the similarities that it gave the pairs."""
    measured = Measured(pairs, values, cosines=not isinstance(model, PairModel))
    table = measured.kind_rows(budget=options.budget, threshold=options.threshold, seed=options.seed)
    drops, further = ({}, []) if options.baseline is None else options.baseline.drops(measured, seed=options.seed)
    failures = [told for requirement in options.requirements for told in requirement.failures(table)]
    fallen = {kind: drop for kind, drop in drops.items() if drop.p <= LEVEL}
    failures += [
        f"{kind}.auc has dropped from {drop.before:.4f} to {drop.after:.4f} since the baseline (p = {drop.p:.2g})"
        for kind, drop in fallen.items()
        # Where a kind is named, that all of them together fell too says no more.
        if kind != TOGETHER or len(fallen) == 1
    ]
    return Check(
        model=model.name,
        identity=model.identity(),
        measured=measured,
        options=options,
        kinds=table,
        lengths=tuple(measured.length_rows(seed=options.seed)),
        controls=tuple(measured.control_rows()),
        drops=drops,
        failures=tuple(failures),
        notes=(*notes, *further, *_same_vectors(table), *_too_few(table, options.budget)),
    )


def _same_vectors(table: KindTable) -> list[str]:
    return [
        f"{row.indistinct} of {row.pairs} {row.kind} pairs have the very same vector for both texts: no use of these "
        "vectors can tell them apart (is the change beyond what the model reads?)"
        for row in table
        if row.indistinct
    ]


def _too_few(table: KindTable, budget: float) -> list[str]:
    """A note where a kind has too few pairs to show that its false hits stay under the budget."""
    few = [row for row in table if row.threshold is not None and row.false_hits_at_most > budget]
    if not few or budget == 0:
        return []
    worst = max(few, key=lambda row: row.false_hits_at_most)
    return [
        f"a threshold is known no better than its pairs are many: for {worst.kind}, {worst.pairs} pairs show at most "
        f"{worst.false_hits_at_most:.1%} of false hits; {budget:.3g} takes {trials_for(budget)} pairs without one"
    ]
