"""Comparing two models on the same texts: the differences, and those that count."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from wordsens.display.numbers import plural
from wordsens.display.view import View
from wordsens.errors import InputError, require_count, require_positive
from wordsens.evaluation.difference import (
    ALL_KINDS,
    CHECK,
    FAMILIES,
    Difference,
    read_requirements,
    require_rows,
    unmet,
)
from wordsens.evaluation.neighbours import ChangedNeighbour, neighbour_differences, with_words
from wordsens.evaluation.requirement import Gated, Unmet
from wordsens.evaluation.similarities import (
    CHUNK,
    PairSimilarities,
    choose_pairs,
    gives_cosines,
    readable,
    require_threshold,
    similarities,
)
from wordsens.evaluation.texts import LEAST_TEXTS, ChosenWords, choose_words, common_span
from wordsens.evaluation.word_differences import ModelAnswers, encodings, word_differences
from wordsens.intervals import DRAWS, TOGETHER, auc, auc_changes
from wordsens.models.load import load
from wordsens.models.model import SIMILARITIES, Model
from wordsens.models.pairs import PairModel
from wordsens.results import Result
from wordsens.seeds import Seed, derive_seed
from wordsens.text.document import Document
from wordsens.text.pairs import Pair, Pairs
from wordsens.text.whole_words import TAKEN_APART, takes_apart

NO_PAIRS = "none"
"""In the place of pairs: no check."""

_EXPLAINED = 5
"""Texts with another first neighbour whose words are looked at."""

Models = tuple[Model | PairModel, Model | PairModel]


@dataclass(frozen=True, kw_only=True)
class MatchedThreshold:
    """Thresholds at which two models keep the same share of near-duplicates.

    Attributes:
        first: the one of the first model, as given.
        second, second_low, second_high: of the second model, with its 95 % interval: paired
            bootstrap over the near-duplicates, of which each draw takes the share that the first
            model keeps.
        recall, recall_second: the shares of near-duplicates that either keeps; they differ only
            where near-duplicates of the second model have one similarity.
        false_hits_first, false_hits_second: the shares of opposites at or above either.
    """

    first: float
    second: float
    second_low: float
    second_high: float
    recall: float
    recall_second: float
    false_hits_first: float
    false_hits_second: float

    @classmethod
    def of(
        cls, threshold: float, measured: PairSimilarities, second: np.ndarray, *, seed: Seed
    ) -> "MatchedThreshold":
        """The thresholds, from the first model's similarities of pairs, and the second's."""
        before, after = measured.values[measured.near], second[measured.near]

        def matching(first: np.ndarray, second: np.ndarray) -> float:
            hits = int((first >= threshold).sum())
            return (
                float(np.sort(second)[len(second) - hits])
                if hits
                else float(np.nextafter(second.max(), np.inf))
            )

        random = np.random.default_rng(derive_seed(seed, "matched threshold"))
        drawn = random.integers(len(before), size=(DRAWS, len(before)))
        draws = [matching(before[members], after[members]) for members in drawn]
        value, (low, high) = (
            matching(before, after),
            np.quantile(draws, [0.025, 0.975], method="nearest"),
        )
        return cls(
            first=threshold,
            second=value,
            second_low=min(float(low), value),
            second_high=max(float(high), value),
            recall=float((before >= threshold).mean()),
            recall_second=float((after >= value).mean()),
            false_hits_first=float((measured.values[measured.opposite] >= threshold).mean()),
            false_hits_second=float((second[measured.opposite] >= value).mean()),
        )


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Comparison(Gated, Result):
    """What differs between two models on the same texts and pairs.

    Attributes:
        first, second: the models' names.
        identities: of their weights; "unknown" where they cannot be read.
        texts: how many were compared.
        apart: the mean distance of a text's two vectors, at length one; None where they have not
            one dimension.
        rows: every difference; those that `differs` are findings.
        changed: the texts with another first neighbour, the clearest first.
        matched: the thresholds that keep as many near-duplicates; None where none was given.
        tolerance: differences up to this do not count.
        requirements: as they were asked.
        unmet: those that fail.
        changes: which texts and pairs were left out or replaced; the first line of the answer says
            so.
        notes: what a reader should know of texts and pairs.
    """

    first: str
    second: str
    identities: tuple[str, str]
    texts: int
    apart: float | None
    rows: tuple[Difference, ...]
    changed: tuple[ChangedNeighbour, ...]
    matched: MatchedThreshold | None
    tolerance: float
    requirements: tuple[str, ...]
    unmet: tuple[Unmet, ...]
    changes: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def differs(self) -> bool:
        """True where any row does."""
        return any(row.differs for row in self.rows)

    def __getitem__(self, key: str) -> Difference:
        """The row of that part and name, such as "check.negation"."""
        for row in self.rows:
            if row.key == key:
                return row
        raise KeyError(f"{key!r} is not a row of this comparison, such as {self.rows[0].key!r}")

    @property
    def answer(self) -> tuple[str, ...]:
        """The comparison in sentences, the headline first."""
        from wordsens.findings.compare import answer

        return answer(self)

    @property
    def headline(self) -> str:
        """How many comparisons differ, or that none does."""
        return self.answer[0]

    def view(self) -> View:
        """The sentences, the rows of every part, and the texts whose neighbours changed."""
        from wordsens.findings.compare import view

        return view(self)

    def columns(self) -> dict[str, Any]:
        """A row a difference, those that count first."""
        names = (
            "part",
            "name",
            "count",
            "first",
            "second",
            "difference",
            "low",
            "high",
            "p",
            "differs",
        )
        rows = sorted(self.rows, key=lambda row: not row.differs)
        return {name: [getattr(row, name) for row in rows] for name in names}

    def to_dict(self) -> dict[str, Any]:
        """Plain Python values, as the JSON document has them."""
        rows = [{**asdict(row), "differs": row.differs} for row in self.rows]
        words = [
            [{**asdict(word), "apart": word.apart} for word in changed.words]
            for changed in self.changed
        ]
        changed = [
            {**asdict(each), "words": its} for each, its in zip(self.changed, words, strict=True)
        ]
        return {
            "first": self.first,
            "second": self.second,
            "identities": list(self.identities),
            "passed": self.passed,
            "failures": list(self.failures),
            "differs": self.differs,
            "answer": list(self.answer),
            "texts": self.texts,
            "apart": self.apart,
            "matched": self.matched and asdict(self.matched),
            "tolerance": self.tolerance,
            "rows": rows,
            "changed": changed,
            "notes": [*self.changes, *self.notes],
        }

    def __repr__(self) -> str:
        count = sum(row.differs for row in self.rows)
        return (
            f"<Comparison of {self.first} and {self.second}: {count} of {len(self.rows)} rows "
            "differ>"
        )


def compare(
    first: Any,
    second: Any,
    texts: Sequence[str | Document],
    pairs: Pairs | None = None,
    seed: Seed = 0,
    *,
    requirements: Sequence[str] = (),
    words_per_text: int = 8,
    word_texts: int = 300,
    neighbours: int = 10,
    tolerance: float = 0.01,
    threshold: float | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Comparison:
    """Compare two models, or one before and after a change, on the same texts and pairs.

    Three parts, each paired: how well flipped meanings show (the areas under the curve of `check`);
    how far an embedding moves without a word, by category, by word, and a word's rank in its text;
    and each text's neighbours among the others, with the words that decide where the first one
    changed. A difference counts where its 95 % interval, over pairs or texts, lies beyond the
    tolerance and a test of all rows together says so: of two models that can be exchanged at most 5
    % of comparisons find any (for neighbours measured, not proved). All numbers are measured on
    these texts; a removal is one change (docs/compare.md).

    Args:
        first, second: whatever `as_model` or `as_pair_model` takes. Of models that score pairs, the
            check alone.
        texts: the user's own, or Documents; six at least.
        pairs: of the check, as there; "none" for no check.
        seed: of the words, the texts drawn, and the tests.
        requirements: such as "check.negation.difference >= -.02", "neighbours.nearest.second <=
            .05" or "all.differs <= 0".
        words_per_text: words that are removed from a text one by one: negations first, others at
            random.
        word_texts: texts that words are removed from, at random where there are more; all texts
            have neighbours.
        neighbours: neighbours of a text whose recall is measured.
        tolerance: differences up to this do not count: of areas under the curve, ranks and shares
            of texts the number itself, of removals a share of their mean.
        threshold: a cosine from which on two texts count as the same with the first model; the one
            of the second that keeps as many near-duplicates is given beside it.
        progress: called with texts encoded, and how many there are.

    Raises:
        InputError: no such model, too few texts, a wrong pair, or a requirement that cannot be read
            or asked.

    >>> def letters(texts):
    ...     return [[text.lower().count(letter) + 0.1 for letter in "abcdefghijklmnopqrstuvwxyz"] for text in texts]
    >>> texts = [f"The {thing} is {state}." for thing in ("door", "lift", "road") for state in ("open", "not open")]
    >>> compare(letters, letters, texts, pairs="none").differs
    False
    """  # noqa: E501
    require_count("words_per_text", words_per_text)
    require_count("word_texts", word_texts)
    require_count("neighbours", neighbours)
    require_positive("tolerance", tolerance)
    derive_seed(seed)
    gate = read_requirements(requirements)
    sources, changes = _texts(texts)
    notes: list[str] = []
    compared, pair_changes = (
        ([], []) if isinstance(pairs, str) and pairs == NO_PAIRS else choose_pairs(pairs)
    )
    models: Models = load(first), load(second)
    if threshold is not None:
        require_threshold(threshold, gives_cosines(models[0]))
    readers = [model for model in models if isinstance(model, Model)]
    sources = _readable(sources, readers, changes)
    chosen = _chosen(list(sources), readers, words_per_text, word_texts, seed, notes)
    for model in models:
        compared, unread = readable(model, compared)
        pair_changes += [change for change in unread if change not in pair_changes]
    changes += pair_changes
    require_rows(
        gate, [pair.kind for pair in compared if not pair.same], [text for _, text in chosen]
    )

    vectors = len(readers) == 2
    done, total = 0, 2 * len({text for pair in compared for text in (pair.first, pair.second)})
    total += 2 * encodings(list(sources), chosen) if vectors else 0

    def count(more: int) -> None:
        nonlocal done
        done = min(total, done + more)
        progress(done, total)

    rows, matched = (
        _checked(models, compared, tolerance, threshold, seed, notes, count)
        if compared
        else ([], None)
    )
    changed, apart = [], None
    if vectors:
        if not chosen:
            raise InputError(
                "`texts` holds none of two words or more that both models read; a removal takes "
                "one away"
            )
        notes += [
            f"{model.name} compares by the {SIMILARITIES[model.similarity]} (similarity_fn_name): "
            "so does the check of "
            "its pairs; neighbours and distances are by cosines all the same"
            for model in readers
            if not gives_cosines(model)
        ]
        answers = [ModelAnswers.of(reader, list(sources), chosen, count) for reader in readers]
        rows += word_differences(
            [text for _, text in chosen], *answers, tolerance=tolerance, seed=seed
        )
        near, changed = neighbour_differences(
            list(sources), *answers, most=neighbours, tolerance=tolerance, seed=seed
        )
        rows += near
        changed[:_EXPLAINED] = [
            with_words(neighbour, readers, answers) for neighbour in changed[:_EXPLAINED]
        ]
        units = [each.units for each in answers]
        apart = (
            float((units[0] - units[1]).norm(dim=1).mean())
            if units[0].shape == units[1].shape
            else None
        )
    elif not rows:
        raise InputError(
            "`pairs` (='none') leaves nothing to compare: a model of pairs has the check alone"
        )
    else:
        notes.append(
            "a model that scores pairs gives texts no vectors: words and neighbours were not "
            "compared"
        )
    names = [model.name for model in models]
    return Comparison(
        first=names[0],
        second=names[1] if names[1] != names[0] else f"{names[1]} (second)",
        identities=(models[0].identity(), models[1].identity()),
        texts=len(sources),
        apart=apart,
        rows=tuple(rows),
        changed=tuple(changed),
        matched=matched,
        tolerance=tolerance,
        requirements=tuple(requirement.text for requirement in gate),
        unmet=tuple(unmet(gate, rows)),
        changes=tuple(changes),
        notes=tuple(notes),
    )


def _texts(texts: Sequence[str | Document]) -> tuple[dict[str, str], list[str]]:
    """The texts, each once, with where it comes from; and what was left out."""
    if isinstance(texts, str | Document):
        raise InputError(
            f"`texts` (={str(texts)[:40]!r}) must be a list of texts; put it into a list"
        )
    sources: dict[str, str] = {}
    for each in texts:
        text, source = (each.text, each.source) if isinstance(each, Document) else (each, "")
        if not isinstance(text, str):
            raise InputError(f"`texts` must be a list of strings or Documents; got {text!r}")
        if text.strip():
            sources.setdefault(text, source or f"text {len(sources)}")
    left_out = len(texts) - len(sources)
    empty = "left out, empty or equal to another"
    changes = [f"{plural(left_out, 'text')} {empty}"] if left_out else []
    if len(sources) < LEAST_TEXTS:
        raise InputError(
            f"`texts` holds {len(sources)} different texts; give {LEAST_TEXTS} or more, for "
            "intervals over texts"
        )
    return sources, changes


def _readable(
    sources: dict[str, str], readers: Sequence[Model], changes: list[str]
) -> dict[str, str]:
    """Without the texts that one of the models refuses, such as one of emoji alone, which are
    counted among the changes."""
    refusals = [model.refusals(list(sources)) for model in readers]
    reasons = {text: reason for refused in refusals for text, reason in refused.items()}
    if not reasons:
        return sources
    readable_texts = {text: source for text, source in sources.items() if text not in reasons}
    if len(readable_texts) < LEAST_TEXTS:
        raise InputError(
            f"`texts` holds {len(readable_texts)} texts that both models read; give "
            f"{LEAST_TEXTS} or more"
        )
    first = next(text for text in sources if text in reasons)
    changes.append(
        f"{plural(len(reasons), 'text')} left out that a model cannot read (the first, "
        f"{sources[first]}: {reasons[first]})"
    )
    return readable_texts


def _chosen(
    texts: Sequence[str],
    readers: Sequence[Model],
    words: int,
    most: int,
    seed: Seed,
    notes: list[str],
) -> list[tuple[int, ChosenWords]]:
    """The texts that words are removed from, with their numbers; words that a model does not read
    are left out."""
    drawn = list(range(len(texts)))
    if len(texts) > most:
        random = np.random.default_rng(derive_seed(seed, "compared texts"))
        drawn = sorted(random.choice(len(texts), most, replace=False).tolist())
        notes.append(f"words were removed from {most} of the {len(texts)} texts, drawn at random")
    if any(takes_apart(texts[at]) for at in drawn):
        notes.append(TAKEN_APART)
    chosen = []
    for at in drawn:
        span = common_span(
            [(0, len(texts[at])), *(model.read_span(texts[at]) for model in readers)]
        )
        chosen.append((at, choose_words(texts[at], words, seed, span)))
    if short := sum(text.length < 2 for _, text in chosen):
        notes.append(f"{short} texts have fewer than two words, and none was removed from them")
    if unread := [text for _, text in chosen if text.unread]:
        notes.append(
            f"{sum(text.unread for text in unread)} words of {len(unread)} texts are past what one "
            "of the models "
            "reads: none of them was removed, and their change is unknown; the first text is "
            f"{unread[0].text[:40]!r}..."
        )
    return [(at, text) for at, text in chosen if text.length > 1 and text.words]


def _checked(
    models: Models,
    pairs: Sequence[Pair],
    tolerance: float,
    threshold: float | None,
    seed: Seed,
    notes: list[str],
    count: Callable[[int], None],
) -> tuple[list[Difference], MatchedThreshold | None]:
    """The differences in the check's areas under the curve, and the thresholds that keep as many
    near-duplicates."""
    before, after = (
        similarities(model, pairs, progress=lambda done, total: count(CHUNK)) for model in models
    )
    measured = PairSimilarities(tuple(pairs), before, cosines=all(map(gives_cosines, models)))
    sides = {
        kind: (before[members], after[members]) for kind, members in measured.opposites.items()
    }
    near = before[measured.near], after[measured.near]
    rows = []
    for kind, change in auc_changes(sides, near, seed=seed).items():
        members = measured.opposites.get(kind, measured.opposite)
        opposites = int(members.sum())
        enough = min(opposites, int(measured.near.sum())) >= LEAST_TEXTS
        row = Difference(
            part=CHECK,
            name=ALL_KINDS if kind == TOGETHER else kind,
            count=opposites,
            first=auc(before[members], near[0]),
            second=auc(after[members], near[1]),
            difference=change.value,
            low=change.low if enough else None,
            high=change.high if enough else None,
            margin=tolerance,
            p=min(1.0, FAMILIES * (1.0 if change.p is None else change.p)),
        )
        rows.append(row)
    if few := [row.name for row in rows if row.low is None]:
        notes.append(
            f"fewer than {LEAST_TEXTS} pairs, or near-duplicates, have no interval and no verdict: "
            f"{', '.join(few)}"
        )
    return rows, None if threshold is None else MatchedThreshold.of(
        threshold, measured, after, seed=seed
    )
