"""The result of a comparison, its findings in sentences, and its page."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from wordsens.display.content import Display, Interval, Section, Shade, Strong, Table, Words, level, minus
from wordsens.display.page import html_fragment
from wordsens.evaluation.difference import (
    ALL_KINDS,
    CHECK,
    NEAREST,
    NEIGHBOURS,
    RANK,
    RECALL,
    REMOVAL,
    WORD,
    Difference,
)
from wordsens.evaluation.neighbours import ChangedNeighbour
from wordsens.evaluation.texts import LEAST_TEXTS
from wordsens.evaluation.word_differences import EVERY
from wordsens.results import Result, ResultTable
from wordsens.seeds import Seed, derive_seed
from wordsens.statistics.auc import DRAWS

_COLUMNS = ("part", "name", "count", "first", "second", "difference", "low", "high", "p", "differs")

_NAMED = 3
"""Rows that a sentence names."""

_TEXT = 60
"""Letters of a text that a sentence shows."""

_PARTS = {CHECK: "flipped meanings", REMOVAL: "kinds of words", WORD: "single words", RANK: "words' ranks",
          NEIGHBOURS: "neighbours"}  # fmt: skip

_TITLES = {
    CHECK: "Flipped meanings: area under the curve, opposites against near-duplicates",
    REMOVAL: "Kinds of words: how far a text moves without one",
    RANK: "Words' ranks among the words of their text",
    WORD: "Single words: how far a text moves without it",
    NEIGHBOURS: "Neighbours: texts whose nearest is another, and the share of the nearest that is kept",
}

_ROWS = 12
"""Rows of a part that are shown at once: those that count first, then the largest differences."""

_CHANGED = 5
"""Texts with another first neighbour that are shown."""


@dataclass(frozen=True, kw_only=True)
class MatchedThreshold:
    """Thresholds at which two models keep the same share of near-duplicates.

    Attributes:
        first: the one of the first model, as given.
        second, second_low, second_high: of the second model, with its 95 % interval: paired bootstrap over the
            near-duplicates, of which each draw takes the share that the first model keeps.
        recall: the share of near-duplicates that both keep, that of the first model.
        false_hits_first, false_hits_second: the shares of opposites at or above either.
    """

    first: float
    second: float
    second_low: float
    second_high: float
    recall: float
    false_hits_first: float
    false_hits_second: float

    @classmethod
    def of(
        cls,
        threshold: float,
        values: tuple[np.ndarray, np.ndarray],
        near: np.ndarray,
        opposite: np.ndarray,
        *,
        seed: Seed,
    ) -> "MatchedThreshold":
        """The thresholds, from both models' similarities."""
        before, after = (each[near] for each in values)

        def matching(first: np.ndarray, second: np.ndarray) -> float:
            hits = int((first >= threshold).sum())
            return float(np.sort(second)[len(second) - hits]) if hits else float(np.nextafter(second.max(), np.inf))

        random = np.random.default_rng(derive_seed(seed, "matched threshold"))
        drawn = random.integers(len(before), size=(DRAWS, len(before)))
        draws = [matching(before[at], after[at]) for at in drawn]
        second, (low, high) = matching(before, after), np.quantile(draws, [0.025, 0.975], method="nearest")
        return cls(
            first=threshold, second=second, second_low=min(float(low), second), second_high=max(float(high), second),
            recall=float((before >= threshold).mean()),
            false_hits_first=float((values[0][opposite] >= threshold).mean()),
            false_hits_second=float((values[1][opposite] >= second).mean()),
        )  # fmt: skip

    @property
    def sentence(self) -> str:
        """What to do with a threshold after the change of models."""
        return (
            f"A threshold of {self.first:.4g} with the first model is {self.second:.4f} with the second (95 %: "
            f"{self.second_low:.4f} to {self.second_high:.4f}): both keep {self.recall:.0%} of near-duplicates, and "
            f"{self.false_hits_first:.0%} and {self.false_hits_second:.0%} of opposites pass."
        )


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Result):
    """The differences between two models, over pairs and over the user's own texts.

    Attributes:
        first, second: the models' names.
        identities: of their weights, or what stands for them.
        texts: how many were compared, each once.
        apart: the mean distance of a text's two vectors, both at length one; None where they have not one dimension.
        rows: the differences, of which those that `differs` are findings.
        changed: the texts with another first neighbour, the clearest first.
        matched: the thresholds that keep as many near-duplicates; None where none was given.
        tolerance: differences up to this do not count.
        failures: a sentence for every requirement that is not met.
        requirements: as they were asked.
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
    failures: tuple[str, ...]
    requirements: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """True where every requirement is met."""
        return not self.failures

    @property
    def differs(self) -> bool:
        """True where any row does."""
        return any(row.differs for row in self.rows)

    @cached_property
    def answer(self) -> tuple[str, ...]:
        """The findings in sentences, the overall answer first."""
        return tuple(findings(self))

    def __getitem__(self, key: str) -> Difference:
        """The row of that part and name, such as "check.negation"."""
        for row in self.rows:
            if row.key == key:
                return row
        raise KeyError(f"{key!r} is not a row of this comparison, such as {self.rows[0].key!r}")

    def result_table(self) -> ResultTable:
        """A row a difference, those that count first."""
        rows = sorted(self.rows, key=lambda row: not row.differs)
        columns = {name: [getattr(row, name) for row in rows] for name in _COLUMNS}
        failed = tuple(f"FAILED: {failure}" for failure in self.failures)
        return ResultTable(self.answer[0], columns, notes=(*self.answer[1:], *failed, *self.notes))

    def to_dict(self) -> dict[str, Any]:
        """Plain Python values, as the JSON document has them."""
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
            "matched": None if self.matched is None else asdict(self.matched),
            "tolerance": self.tolerance,
            "rows": [{**asdict(row), "differs": row.differs} for row in self.rows],
            "changed": [
                {**asdict(one), "words": [{**asdict(word), "apart": word.apart} for word in one.words]}
                for one in self.changed
            ],
            "notes": list(self.notes),
        }

    def __repr__(self) -> str:
        count = sum(row.differs for row in self.rows)
        return f"<Comparison of {self.first} and {self.second}: {count} of {len(self.rows)} rows differ>"

    def __str__(self) -> str:
        return "\n".join([*self.answer, *(f"FAILED: {failure}" for failure in self.failures)])

    def display(self) -> Display:
        """The findings, the rows of every part with their intervals, and the texts whose neighbours changed."""
        parts: list[Any] = [table for part in _TITLES if (table := _table(self, part)).rows]
        if parts:
            note = f"{self.first} first, {self.second} second. Coloured rows hold in a test of all rows together"
            parts[0] = replace(parts[0], note=f"{note}, beyond {self.tolerance:.3g}.")
        if self.changed:
            parts.append(_changed_texts(self))
        apart = "" if self.apart is None else f"A text's two vectors, at length one, lie {self.apart:.2g} apart (mean)."
        return Display(
            self.answer,
            tuple(parts),
            failures=self.failures,
            passed="All requirements are met." if self.requirements and self.passed else "",
            notes=tuple(filter(None, (apart, *self.notes))),
        )

    def _repr_html_(self) -> str:
        return html_fragment(self.display())


def findings(result: Comparison) -> Iterator[str]:
    """The overall answer first; nothing is said of a row whose interval includes the opposite, or no difference."""
    rows = [row for row in result.rows if row.differs]
    matched = [] if result.matched is None else [result.matched.sentence]
    if not rows:
        yield from _nothing(result)
        yield from matched
        return
    parts = [f"{shown} ({count})" for part, shown in _PARTS.items() if (count := sum(row.part == part for row in rows))]
    yield (
        f"{result.second} differs from {result.first} in {len(rows)} of {len(result.rows)} comparisons over "
        f"{result.texts} texts: {', '.join(parts)}."
    )
    yield from matched
    yield from _meanings(result, [row for row in rows if row.part == CHECK])
    yield from _words(result, rows)
    yield from _ranks(result, rows)
    yield from _neighbours(result, [row for row in rows if row.part == NEIGHBOURS])
    if same := [_PARTS[part] for part in _PARTS if _excluded(result.rows, part)]:
        yield f"No difference beyond {result.tolerance:.0%} in {', '.join(same)}."


def _excluded(rows: Sequence[Difference], part: str) -> bool:
    """True where the intervals of all rows of the part lie within the tolerance."""
    own = [row for row in rows if row.part == part]
    return bool(own) and all(row.excluded for row in own)


def _nothing(result: Comparison) -> Iterator[str]:
    if not result.rows:
        yield (
            f"Nothing could be compared between {result.first} and {result.second}: too few of the {result.texts} "
            f"texts have two words or more; give {LEAST_TEXTS} or more that have."
        )
        return
    undecided = sum(not row.excluded for row in result.rows)
    where = f"{len(result.rows)} comparisons over {result.texts} texts"
    if result.apart == 0:
        yield f"No difference between {result.first} and {result.second} in {where}: their vectors are the same."
    elif undecided:
        yield (
            f"No difference between {result.first} and {result.second} is certain in {where}; {undecided} of them "
            f"cannot exclude one beyond {result.tolerance:.0%}."
        )
    else:
        yield f"No difference between {result.first} and {result.second} beyond {result.tolerance:.0%} in {where}."
    main = [row for row in result.rows if row.name in (ALL_KINDS, EVERY, NEAREST)]
    if shown := [f"{_what(row)} {row.interval}" for row in main if row.low is not None]:
        yield f"Second less first: {'; '.join(shown)}."
    if unsure := [_what(row) for row in main if not row.excluded]:
        yield (
            f"Too few {'pairs or ' * (main[0].name == ALL_KINDS)}texts to exclude one beyond {result.tolerance:.0%} in "
            f"{', '.join(unsure)}: give more."
        )


def _what(row: Difference) -> str:
    names = {ALL_KINDS: "AUC of all kinds", EVERY: "change without a word", NEAREST: "texts with another neighbour"}
    return names[row.name]


def _meanings(result: Comparison, rows: Sequence[Difference]) -> Iterator[str]:
    kinds = [row for row in rows if row.name != ALL_KINDS] or rows
    for direction, verdict, advice in (
        (
            -1,
            "tells fewer opposites from near-duplicates",
            f"keep {result.first} where these matter, or add a reranker",
        ),
        (1, "tells more opposites from near-duplicates", "thresholds set before may now be too strict; set them anew"),
    ):
        some = sorted((row for row in kinds if row.difference * direction > 0), key=lambda row: -abs(row.difference))
        if some:
            shown = "; ".join(
                f"{row.name} AUC {row.first:.3f} -> {row.second:.3f}, {row.interval}, {row.count} pairs"
                for row in some[:_NAMED]
            )
            yield f"{result.second} {verdict}: {shown}{_more(some)}. To do: {advice}."


def _words(result: Comparison, rows: Sequence[Difference]) -> Iterator[str]:
    every = next((row for row in rows if row.part == REMOVAL and row.name == EVERY), None)
    if every is not None:
        yield (
            f"Without one word a text moves {_share(every)} in {result.second}: {every.second:.3f} of its length "
            f"against {every.first:.3f}, {every.interval}. To do: set thresholds on cosines anew, on your own texts."
        )
    kinds = [row for row in rows if row.part == REMOVAL and row.name != EVERY]
    # Where every word moves a text more, single words do too, and their ranks say the rest.
    single = [row for row in rows if row.part == WORD and (every is None or every.difference * row.difference < 0)]
    for title, some in (("By kind, place and length", kinds), ("Single words", single)):
        if some:
            first = sorted(some, key=lambda row: -abs(row.relative))
            shown = "; ".join(
                f"{_quoted(row)} {_share(row)}, {row.interval}, {row.count} texts" for row in first[:_NAMED]
            )
            yield f"{title} (a text without them moves): {shown}{_more(some)}."


def _ranks(result: Comparison, rows: Sequence[Difference]) -> Iterator[str]:
    ranks = sorted((row for row in rows if row.part == RANK), key=lambda row: -abs(row.difference))
    crossing = [row for row in ranks if row.crosses]
    for row in crossing[:_NAMED]:
        ignores, reacts = (result.first, result.second) if row.difference > 0 else (result.second, result.first)
        yield (
            f"{ignores} ignores '{row.name}' and {reacts} reacts to it: its rank among the words of its text goes from "
            f"{row.first:.2f} to {row.second:.2f}, {row.interval}, {row.count} texts. To do: try texts with and "
            "without it (wordsens explain)."
        )
    if others := [row for row in ranks if not row.crosses]:
        shown = "; ".join(
            f"'{row.name}' {row.first:.2f} -> {row.second:.2f}, {row.interval}, {row.count} texts"
            for row in others[:_NAMED]
        )
        yield f"Words that changed rank (0 the least of their text, 1 the most): {shown}{_more(others)}."


def _neighbours(result: Comparison, rows: Sequence[Difference]) -> Iterator[str]:
    shown = {row.name: row for row in rows}
    if (row := shown.get(NEAREST)) is not None:
        yield (
            f"{row.second:.1%} of {row.count} texts have another first neighbour ({row.first:.1%} between two calls of "
            f"one model; {row.interval}). To do: encode the whole corpus anew, and read the changed ones."
        )
    elif (row := shown.get(RECALL)) is not None:
        yield f"The recall of neighbours is {row.second:.3f} ({row.first:.3f} between two calls; {row.interval})."
    for one in result.changed:
        if rows and (sentence := _example(result, one)):
            yield sentence
            return


def _example(result: Comparison, one: ChangedNeighbour) -> str | None:
    """A changed text, with the word that turns the change back in one of the models; None where no single word does."""
    word = next((word for word in one.words if word.back or word.away), None)
    if word is None:
        return None
    turned = f"{result.second} has the old one nearer" if word.back else f"{result.first} has the new one nearer too"
    return (
        f"Such as {_short(one.text)}: its first neighbour was {_short(one.old_text)} and is {_short(one.new_text)}; "
        f"without '{word.word}' {turned} (one change)."
    )


def _share(row: Difference) -> str:
    """The difference as a share of the first number, in words."""
    return f"{abs(row.relative):.1%} {'more' if row.difference > 0 else 'less'}"


def _quoted(row: Difference) -> str:
    return f"'{row.name}'" if row.part == WORD else row.name


def _more(rows: Sequence[Difference]) -> str:
    return f"; and {len(rows) - _NAMED} more" if len(rows) > _NAMED else ""


def _short(text: str) -> str:
    plain = " ".join(text.split())
    return repr(plain if len(plain) <= _TEXT else plain[:_TEXT].rsplit(" ", 1)[0] + " ...")


def _table(result: Comparison, part: str) -> Table:
    """The rows of one part: those that count first, then the largest differences."""
    rows = [row for row in result.rows if row.part == part and row.low is not None]
    rows.sort(key=lambda row: (not row.differs, -abs(row.difference)))
    most = max((max(abs(row.low or 0), abs(row.high or 0)) for row in rows), default=0.0) or 1.0
    first, second = ("between two calls", "between the models") if part == NEIGHBOURS else ("first", "second")
    counts = "pairs" if part == CHECK else "texts"
    cells = tuple(
        (
            Strong(row.name, "rise" if row.difference > 0 else "fall") if row.differs else row.name,
            *(f"{row.first:.4f}", f"{row.second:.4f}", minus(f"{row.difference:+.4f}")),
            Interval(row.difference, row.low or 0.0, row.high or 0.0, most, row.differs),
            f"{row.count} {counts}",
        )
        for row in rows
    )
    headings = ("", first, second, "difference", "95 %", "of")
    shown = _ROWS if part in (RANK, WORD) else len(cells)
    return Table(_TITLES[part], headings, cells, most=shown)


def _changed_texts(result: Comparison) -> Section:
    """Each text with the words that the two models weigh differently, and its neighbour in either."""
    parts: list[Any] = []
    for one in result.changed[:_CHANGED]:
        shown = [f"'{word.word}' {word.first:+.3f} / {word.second:+.3f}" for word in one.words[:3]]
        parts += [
            Words("", _pieces(one)),
            f"{result.first}: was next to: {_cut(one.old_text)}",
            f"{result.second}: is next to: {_cut(one.new_text)}",
        ]
        parts += [minus(f"Without these words the old one leads by more or less: {', '.join(shown)}")] if shown else []
    about = (
        "Coloured: words that the two models weigh differently between the old and the new neighbour (removed one by "
        "one); underlined: without this one word the models agree again."
    )
    return Section("Texts with another first neighbour, the clearest first", tuple(parts), about)


def _pieces(one: ChangedNeighbour) -> tuple[Shade | str, ...]:
    most = max((abs(word.apart) for word in one.words), default=0.0)
    at, pieces = 0, []
    for word in sorted(one.words, key=lambda word: word.start):
        title = minus(f"{word.first:+.4f} and {word.second:+.4f}")
        share = abs(word.apart) / most if most else 0.0
        pieces += [
            one.text[at : word.start],
            Shade(word.word, level(share), title, falls=word.apart <= 0, decides=word.back or word.away),
        ]
        at = word.stop
    return (*pieces, one.text[at:])


def _cut(text: str, most: int = 240) -> str:
    plain = " ".join(text.split())
    return plain if len(plain) <= most else plain[:most].rsplit(" ", 1)[0] + " ..."
