"""Two models on the same pairs and texts: what differs, and whether it counts."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import normalize

from wordsens.display.numbers import plural
from wordsens.display.view import View
from wordsens.errors import InputError, argument, require_choice, require_count, require_positive
from wordsens.evaluation.carry import matched_threshold
from wordsens.evaluation.check import KEEP
from wordsens.evaluation.pairs import (
    Mask,
    ScoredPairs,
    choose_pairs,
    require_threshold,
    scored_by,
    similarity_name,
)
from wordsens.evaluation.requirement import EVERY, LEVEL, Gated, Requirement, Unmet, numbers_of
from wordsens.evaluation.texts import LEAST_TEXTS, encoded, readable_texts
from wordsens.evaluation.word_effects import word_effects
from wordsens.intervals import (
    TOGETHER,
    auc,
    auc_changes,
    difference,
    kept_threshold,
    mean_changes,
    share_estimate,
)
from wordsens.models.embedding import Texts
from wordsens.models.load import load
from wordsens.models.model import COSINE, SIMILARITIES, Model
from wordsens.results import Estimate
from wordsens.seeds import Seed, derive_seed
from wordsens.text.english import KINDS
from wordsens.text.pairs import Pair, Pairs
from wordsens.text.whole_words import TAKEN_APART, takes_apart

NO_PAIRS = "none"
"""In the place of pairs: no pairs are compared."""

CHECK, FALSE_HITS, RECALL, REMOVAL, NEIGHBOURS = PARTS = (
    "check",
    "false_hits",
    "recall",
    "removal",
    "neighbours",
)
ALL_KINDS, EVERY_WORD, NEAREST = "all kinds", "every word", "nearest"

# Tests that are joint each: the AUCs of all kinds, and the removals of all kinds of words.
_FAMILIES = 2

FIELDS = ("first", "second", "difference", "low", "high", "p", "differs", "count")
"""The fields that a requirement may name."""

_EXAMPLE = "neighbours.nearest.second <= .05"

# A neighbour that is nearer by less than this is a tie.
_TIE = 1e-4

# Texts whose cosines with all others are held at once.
_BLOCK = 512


@dataclass(frozen=True, kw_only=True)
class Difference:
    """One number of both models, on the same pairs or texts.

    Attributes:
        part: "check" (AUC of opposites against near-duplicates), "false_hits" and "recall" (shares
            at or above each model's threshold), "removal" (mean relative change without a word) or
            "neighbours".
        name: of a kind of pair or word; "all kinds"; "nearest".
        count: how many pairs or texts.
        first, second: the numbers. Of neighbours: 0, and the share of texts whose nearest text is
            another in the second model.
        change: second - first with its 95 % interval. Its p is the joint chance, over all rows of
            the part, of such a change where none is beyond the margin; None where no test is made.
        margin: changes up to this size do not count.
    """

    part: str
    name: str
    count: int
    first: float
    second: float
    change: Estimate
    margin: float

    @property
    def key(self) -> str:
        """part.name, as requirements have it."""
        return f"{self.part}.{self.name}"

    @property
    def differs(self) -> bool:
        """True where the interval lies beyond the margin, and so does the test of all rows of the
        part together."""
        low, high, p = self.change.low, self.change.high, self.change.p
        if low is None or high is None or p is None or p > LEVEL:
            return False
        return low > self.margin or high < -self.margin

    @property
    def excluded(self) -> bool:
        """True where the interval lies within the margin: there is no difference that counts."""
        low, high = self.change.low, self.change.high
        return low is not None and high is not None and -self.margin <= low <= high <= self.margin

    def to_dict(self) -> dict[str, Any]:
        """The row as plain values, with the names that requirements use."""
        change = {"difference": self.change.value, "low": self.change.low, "high": self.change.high}
        row = {name: getattr(self, name) for name in ("part", "name", "count", "first", "second")}
        return {**row, **change, "p": self.change.p, "differs": self.differs}


@dataclass(frozen=True, kw_only=True)
class ChangedNeighbour:
    """A text whose nearest other text is another in the second model.

    Attributes:
        text, old, new: the text, and its nearest text in the first and in the second model.
        first: the margin cos(text, old) - cos(text, new) in the first model.
        second: the same in the second model, negative.
    """

    text: str
    old: str
    new: str
    first: float
    second: float


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Comparison(Gated):
    """What differs between two models on the same texts and pairs.

    Attributes:
        first, second: the models' names.
        identities: of their weights; "unknown" where they cannot be read.
        texts: how many were compared.
        apart: the mean distance between the two models' vectors of a text, scaled to length one;
            None if their dimensions differ.
        threshold: of the first model; None without pairs.
        second_threshold: that of the second model which accepts as many near-duplicates, with its
            95 % interval: a paired bootstrap over the near-duplicates.
        rows: every difference.
        changed: the texts whose nearest text changed, the clearest first.
        requirements: as they were given.
        unmet: those that fail.
        changes: which texts and pairs were left out or replaced; the first line of the answer says
            so.
        notes: what a reader should know about the texts and pairs.
    """

    first: str
    second: str
    identities: tuple[str, str]
    texts: int
    apart: float | None
    threshold: float | None
    second_threshold: Estimate | None
    rows: tuple[Difference, ...]
    changed: tuple[ChangedNeighbour, ...]
    requirements: tuple[str, ...]
    unmet: tuple[Unmet, ...]
    changes: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def differs(self) -> bool:
        """True if any row differs."""
        return any(row.differs for row in self.rows)

    def __getitem__(self, key: str) -> Difference:
        """The row of that part and name, such as "check.negation"."""
        for row in self.rows:
            if row.key == key:
                return row
        raise KeyError(f"{key!r} is not a row of this comparison, such as {self.rows[0].key!r}")

    def view(self) -> View:
        """The sentences, the rows of every part, and the texts whose nearest text changed."""
        from wordsens.findings.compare import view

        return view(self)

    def columns(self) -> dict[str, Any]:
        """One row per difference."""
        rows = [row.to_dict() for row in self.rows]
        names = ("part", "name", *FIELDS)
        return {name: [row[name] for row in rows] for name in names}

    def to_dict(self) -> dict[str, Any]:
        """Plain Python values, as the JSON document has them."""
        plain = {name: getattr(self, name) for name in ("first", "second", "differs", "passed")}
        return {
            **plain,
            "identities": list(self.identities),
            "failures": list(self.failures),
            "answer": list(self.answer),
            "texts": self.texts,
            "apart": self.apart,
            "threshold": self.threshold,
            **numbers_of({"second_threshold": self.second_threshold}, "second_threshold"),
            "rows": [row.to_dict() for row in self.rows],
            "changed": [vars(changed) for changed in self.changed],
            "notes": [*self.changes, *self.notes],
        }


def compare(
    first: Any,
    second: Any,
    texts: Texts,
    pairs: Pairs | None = None,
    seed: Seed = 0,
    *,
    threshold: float | None = None,
    requirements: Sequence[str] = (),
    words_per_text: int = 8,
    word_texts: int = 300,
    tolerance: float = 0.01,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Comparison:
    """Compare two models, or one before and after a change, on the same texts and pairs.

    On the pairs: the AUC of `check`, and false hits and recall by kind, at a threshold of the first
    model and at the one of the second that accepts as many near-duplicates. On the texts: how far
    deleting a word moves the output, by kind of word, and the texts whose nearest text changes.
    AUCs and removals are tested: a row `differs` where its 95 % interval lies beyond the tolerance
    and a test of all rows of the part together says so. Models that do not differ in truth have
    such a row in at most 5 % of comparisons. All numbers are measured on these texts
    (docs/compare.md).

    Args:
        first, second: whatever `as_model` or `as_pair_model` takes. For models that score pairs,
            only the pairs are compared.
        texts: the user's own, or Documents; six at least.
        pairs: as of `check`; "none" for no pairs.
        seed: of the words and the tests.
        threshold: the similarity at or above which two texts count as the same with the first
            model; None for the one that accepts nine of ten near-duplicates.
        requirements: such as "check.negation.difference >= -.02", "false_hits.all kinds.second <=
            .2", "neighbours.nearest.second <= .05" or "all.differs <= 0".
        words_per_text: words that are deleted from a text one by one: negations first, others at
            random.
        word_texts: the most texts that words are deleted from, spread evenly over all.
        tolerance: changes up to this do not count: of AUCs the number itself, of removals a share
            of their mean.
        progress: called with (done, total).

    Raises:
        InputError: no such model, too few texts, a wrong pair, or a requirement that cannot be read
            or does not apply.

    >>> def letters(texts):
    ...     return [[text.lower().count(letter) + 0.1 for letter in "abcdefghijklmnopqrstuvwxyz"] for text in texts]
    >>> texts = [f"The {thing} is {state}." for thing in ("door", "lift", "road") for state in ("open", "not open")]
    >>> compare(letters, letters, texts, pairs="none").differs
    False
    """  # noqa: E501
    require_count("words_per_text", words_per_text)
    require_count("word_texts", word_texts)
    require_positive("tolerance", tolerance)
    derive_seed(seed)
    none = isinstance(pairs, str) and pairs == NO_PAIRS
    chosen, changes = ([], []) if none else choose_pairs(pairs)
    gate = read_requirements(requirements, chosen)
    models = load(first), load(second)
    readers = [model for model in models if isinstance(model, Model)]
    readable, left_out = readable_texts(texts, readers)
    changes = [*left_out, *changes]
    if threshold is not None:
        require_threshold(threshold, similarity_name(models[0]) == COSINE)
    rows: list[Difference] = []
    notes: list[str] = []
    second_threshold, apart, changed = None, None, []
    if chosen:
        scored = scored_by(models, chosen, progress=_part_of(progress, 0, 40))
        changes += scored.changes
        near = scored.similarities[:, scored.near]
        threshold = float(kept_threshold(near[0], KEEP)) if threshold is None else threshold
        second_threshold = matched_threshold(threshold, *near, seed=seed)
        rows += _auc_rows(scored, tolerance, seed)
        rows += _share_rows(scored, (threshold, second_threshold.value), tolerance)
    if len(readers) == 2:
        units = [normalize(encoded(model.encode, readable), dim=1) for model in readers]
        if units[0].shape == units[1].shape:
            apart = float((units[0] - units[1]).norm(dim=1).mean())
        changed = changed_neighbours(readable, *units)
        count, share = len(readable), len(changed) / len(readable)
        rows.append(
            Difference(
                part=NEIGHBOURS,
                name=NEAREST,
                count=count,
                first=0.0,
                second=share,
                change=Estimate(share, n=count),
                margin=tolerance,
            )
        )
        step = math.ceil(len(readable) / word_texts)
        some = readable[::step]
        removals, lost = _removal_rows(readers, some, words_per_text, tolerance, seed, progress)
        rows += removals
        changes += lost
        if step > 1:
            notes.append(f"words were deleted from {len(some)} of {len(readable)} texts")
        notes += [TAKEN_APART] * any(map(takes_apart, some))
        notes += [
            f"{model.name} compares by the {SIMILARITIES[model.similarity]} (similarity_fn_name), "
            "and so do its pairs; neighbours and distances are by cosines all the same"
            for model in readers
            if model.similarity != COSINE
        ]
    elif not rows:
        raise InputError(
            f"{argument('pairs')} (='none') leaves nothing to compare: a model of pairs has no "
            "vectors of texts"
        )
    else:
        notes.append(
            "a model that scores pairs gives texts no vectors: words and neighbours were not "
            "compared"
        )
    progress(100, 100)
    names = [model.name for model in models]
    return Comparison(
        first=names[0],
        second=names[1] if names[1] != names[0] else f"{names[1]} (second)",
        identities=(models[0].identity(), models[1].identity()),
        texts=len(readable),
        apart=apart,
        threshold=threshold if second_threshold else None,
        second_threshold=second_threshold,
        rows=tuple(rows),
        changed=tuple(changed),
        requirements=tuple(requirement.text for requirement in gate),
        unmet=tuple(_unmet(gate, rows)),
        changes=tuple(changes),
        notes=tuple(dict.fromkeys(notes)),
    )


def _part_of(
    progress: Callable[[int, int], None], start: int, stop: int
) -> Callable[[int, int], None]:
    """Progress of a stage, from `start` to `stop` percent."""
    return lambda done, total: progress(start + (stop - start) * done // max(1, total), 100)


def read_requirements(
    texts: Sequence[str], pairs: Sequence[Pair] | None = None
) -> tuple[Requirement, ...]:
    """Bounds on rows, such as "check.negation.difference >= -.02" or "all.differs <= 0".

    Raises:
        InputError: a wrong one; with the pairs, one on a row that their comparison cannot have.
    """
    requirements = Requirement.read_all(texts, FIELDS, _EXAMPLE)
    opposites = {pair.kind for pair in pairs or () if not pair.same}
    near = {pair.kind for pair in pairs or () if pair.near}
    offered = {CHECK: opposites, FALSE_HITS: opposites, RECALL: near}
    for requirement in requirements:
        part, _, name = requirement.kind.partition(".")
        if requirement.kind == EVERY:
            continue
        require_choice(f"the part of {requirement.text!r}", part, (*PARTS, EVERY))
        if part not in offered:
            rows = [NEAREST] if part == NEIGHBOURS else [EVERY_WORD, *KINDS]
        else:
            rows = [name] if pairs is None else sorted(offered[part])
            rows += [ALL_KINDS] * (part != CHECK or len(rows) > 1)
        require_choice(f"the row of {requirement.text!r}", name, (*filter(None, rows), EVERY))
    return requirements


def _unmet(requirements: Sequence[Requirement], rows: Sequence[Difference]) -> Iterator[Unmet]:
    """Every row that does not meet a requirement on it, on its part, or on all; and every
    requirement without a row."""
    for requirement in requirements:
        named = {
            row.key: row.to_dict()
            for row in rows
            if requirement.kind in (EVERY, row.key, f"{row.part}.{EVERY}")
        }
        yield from replace(requirement, kind=EVERY).unmet(
            named,
            number=dict.get,
            missing="there is no such row; it may have too few texts",
        )


def _auc_rows(scored: ScoredPairs, tolerance: float, seed: Seed) -> list[Difference]:
    """The AUC of every kind of opposite against near-duplicates, tested together."""
    before, after = scored.similarities
    near, opposites = scored.near, scored.opposites
    sides = {kind: (before[members], after[members]) for kind, members in opposites.items()}
    rows = []
    for kind, change in auc_changes(sides, (before[near], after[near]), seed=seed).items():
        members = opposites.get(kind, scored.opposite)
        count = int(members.sum())
        enough = min(count, int(near.sum())) >= LEAST_TEXTS
        row = Difference(
            part=CHECK,
            name=ALL_KINDS if kind == TOGETHER else kind,
            count=count,
            first=auc(before[members], before[near]),
            second=auc(after[members], after[near]),
            change=_shared(change) if enough else Estimate(change.value),
            margin=tolerance,
        )
        rows.append(row)
    return rows


def _shared(change: Estimate) -> Estimate:
    """The change with its p-value among all families of tests."""
    return replace(change, p=min(1.0, _FAMILIES * (1.0 if change.p is None else change.p)))


def _share_rows(
    scored: ScoredPairs, thresholds: tuple[float, float], tolerance: float
) -> list[Difference]:
    """False hits of opposites and recall of near-duplicates by kind, at each model's threshold; the
    change is the share that only the second accepts minus the share that only the first does."""
    hits = scored.similarities >= np.array(thresholds)[:, None]
    parts: dict[str, dict[str, Mask]] = {
        FALSE_HITS: {**scored.opposites, ALL_KINDS: scored.opposite},
        RECALL: {**scored.near_kinds, ALL_KINDS: scored.near},
    }
    rows = []
    for part, groups in parts.items():
        for name, members in groups.items():
            first, second = hits[:, members]
            gained, lost = (
                (hit & ~other).sum() for hit, other in ((second, first), (first, second))
            )
            shares = (share_estimate(int(pairs), len(first)) for pairs in (gained, lost))
            row = Difference(
                part=part,
                name=name,
                count=len(first),
                first=float(first.mean()),
                second=float(second.mean()),
                change=difference(*shares),
                margin=tolerance,
            )
            rows.append(row)
    return rows


def changed_neighbours(
    texts: Sequence[str], first: Float[Tensor, "texts d"], second: Float[Tensor, "texts e"]
) -> list[ChangedNeighbour]:
    """The texts whose nearest other text by cosine is another in the second model, those with the
    largest margins first.

    Args:
        texts: the texts.
        first, second: their vectors in either model, at length one.
    """
    changed = []
    for start in range(0, len(texts), _BLOCK):
        cosines = [units[start : start + _BLOCK] @ units.T for units in (first, second)]
        rows = torch.arange(len(cosines[0]))
        for block in cosines:  # no text is its own neighbour
            block[rows, rows + start] = -torch.inf
        old, new = (block.argmax(dim=1) for block in cosines)
        margins = [block[rows, old] - block[rows, new] for block in cosines]
        # Nearer by less than this is a tie.
        differs = (margins[0] > _TIE) | (margins[1] < -_TIE)
        for row in map(int, differs.nonzero().flatten()):
            changed.append(
                ChangedNeighbour(
                    text=texts[start + row],
                    old=texts[int(old[row])],
                    new=texts[int(new[row])],
                    first=float(margins[0][row]),
                    second=float(margins[1][row]),
                )
            )
    return sorted(changed, key=lambda each: -min(each.first, -each.second))


def _removal_rows(
    models: Sequence[Model],
    texts: Sequence[str],
    words_per_text: int,
    tolerance: float,
    seed: Seed,
    progress: Callable[[int, int], None],
) -> tuple[list[Difference], list[str]]:
    """The mean relative change without a word, by kind of word: the mean over texts of the text's
    own mean, tested together, signs left out; and what was not measured."""
    cut = []
    for text in texts:
        starts, stops = zip(*(model.read_span(text) for model in models), strict=True)
        cut.append(text[max(starts) : min(stops)].strip())
    lost = []
    if unread := sum(part != text.strip() for part, text in zip(cut, texts, strict=True)):
        lost.append(
            f"{plural(unread, 'text')} longer than what both models read: the words past that were "
            "not deleted, and their changes are unknown"
        )
    tables = []
    for model, start in zip(models, (40, 70), strict=True):
        stage = _part_of(progress, start, start + 30)
        try:
            found = word_effects(
                model, cut, words_per_text=words_per_text, seed=seed, progress=stage
            )
        except InputError as error:
            return [], [*lost, f"no word was deleted: {error}"]
        for _, reason in found.left_out[:1]:
            count = plural(len(found.left_out), "text")
            lost.append(f"{model.name}: no word was deleted from {count} (the first: {reason})")
        lettered = [any(map(str.isalnum, effect.word)) for effect in found.effects]
        table = found.table()[lettered]
        table["text"] = [found.texts[number] for number in table["text"]]
        tables.append(table[["text", "start", "kind", "change"]])
    both = tables[0].merge(tables[1], on=["text", "start", "kind"], suffixes=("_first", "_second"))
    groups = {EVERY_WORD: both, **dict(list(both.groupby("kind")))}
    means = {
        name: group.groupby("text")[["change_first", "change_second"]].mean()
        for name, group in groups.items()
    }
    means = {name: mean for name, mean in means.items() if len(mean) >= LEAST_TEXTS}
    if not means:
        return [], lost
    differences = [
        (mean["change_second"] - mean["change_first"]).reindex(cut) for mean in means.values()
    ]
    margins = [tolerance * float(mean.to_numpy().mean()) for mean in means.values()]
    tests = mean_changes(np.stack(differences), np.array(margins), [None] * len(margins), seed=seed)
    rows = [
        Difference(
            part=REMOVAL,
            name=name,
            count=len(mean),
            first=float(mean["change_first"].mean()),
            second=float(mean["change_second"].mean()),
            change=_shared(test),
            margin=margin,
        )
        for (name, mean), test, margin in zip(means.items(), tests, margins, strict=True)
    ]
    return rows, lost
