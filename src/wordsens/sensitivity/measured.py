"""Texts measured under several maps, with theory and real words beside them: the answer of
`wordsens measure`."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from statistics import median
from typing import Any

from wordsens.certificates.base import CERTIFIED
from wordsens.display.numbers import number
from wordsens.display.view import Table, View
from wordsens.maps.registry import MAPS, base_name, map_title
from wordsens.results import Result
from wordsens.sensitivity.profile import SensitivityProfile
from wordsens.sensitivity.result import Sensitivity
from wordsens.text.matrix import TextMatrix
from wordsens.theory import Condition, Prediction

# Longer texts show this many words, the most sensitive ones, unless all are wanted.
SHOWN_WORDS = 40


@dataclass(frozen=True)
class MeasuredMap:
    """A text's sensitivity under one map, with theory and real words to compare it with.

    Attributes:
        predicted: of S, where there is a prediction.
        conditions: of the theorem about the map.
        small_radius: the limit of S / radius as the radius shrinks, one number per searched word;
            None unless requested.
        swaps: the best real words in the place of each searched word, as (relative changes, words);
            likewise.
        profile: all measures; likewise.
    """

    text: TextMatrix
    result: Sensitivity
    seconds: float
    predicted: Prediction | None
    conditions: tuple[Condition, ...]
    small_radius: tuple[float, ...] | None = None
    swaps: tuple[tuple[float, ...], tuple[str, ...]] | None = None
    profile: SensitivityProfile | None = None

    @property
    def title(self) -> str:
        """The name of the map."""
        return map_title(self.result.map_name)

    def to_dict(self) -> dict[str, Any]:
        """Plain Python values: an entry of `results` in the JSON document."""
        return {
            **self.result.to_dict(),
            "predicted": None if self.predicted is None else self.predicted.value,
            "predicted_of": None if self.predicted is None else self.predicted.of,
            "predicted_in_range": None if self.predicted is None else self.predicted.in_range,
            "conditions": [str(condition) for condition in self.conditions],
            "small_radius": None if self.small_radius is None else list(self.small_radius),
            "swap": None if self.swaps is None else list(self.swaps[0]),
            "swapped_for": None if self.swaps is None else list(self.swaps[1]),
            "profile": None if self.profile is None else self.profile.to_dict(),
            "seconds": self.seconds,
        }

    def columns(self, words: Sequence[int], *, bounds: bool = False) -> dict[str, list[Any]]:
        """One row per word, empty where it was not searched; with the upper bounds if wanted."""
        searched, upper = self.result.words.tolist(), self.result.upper_per_word
        columns: dict[str, Sequence[Any]] = {self.title: self.result.per_word.tolist()}
        if bounds and upper is not None:
            columns[f"{self.title} at most"] = upper.tolist()
        if self.swaps is not None:
            swaps = zip(*self.swaps, strict=True)
            columns[f"{self.title} real word"] = [
                f"{number(change)} {new}" for change, new in swaps
            ]
        of_words = {
            name: dict(zip(searched, cells, strict=True)) for name, cells in columns.items()
        }
        return {name: [cells.get(word) for word in words] for name, cells in of_words.items()}


@dataclass(frozen=True, eq=False, repr=False)
class MeasuredText(Result):
    """One text under several maps.

    Attributes:
        maps: one entry per map; all have the same text.
    """

    maps: tuple[MeasuredMap, ...]

    @property
    def text(self) -> TextMatrix:
        """The text."""
        return self.maps[0].text

    @property
    def headline(self) -> str:
        """How far one word can move each map, and attention beside a fully connected layer."""
        values = [(each.result.map_name, each.result.value) for each in self.maps]
        if (sentence := contrast([values])) is not None:
            return sentence
        token = self.maps[0].result.token
        word = f"; the most sensitive word is {token!r}" if len(self.maps) == 1 else ""
        return f"One word can move {_listed(values, by='by ')} times its size{word}."

    def columns(self) -> dict[str, Any]:
        """One row per searched word, one column per map."""
        return self._columns(self._searched())

    def to_dict(self) -> dict[str, Any]:
        """Plain Python values: an entry of `texts` in the JSON document."""
        return {
            "source": self.text.source,
            "label": self.text.label,
            "n": len(self.text),
            "d": self.text.rows.shape[1],
            "tokens": list(self.text.tokens or ()),
            "results": [each.to_dict() for each in self.maps],
        }

    def view(
        self, *, all_words: bool = False, verbose: bool = False, conditions: bool = False
    ) -> View:
        """The headline, one row per map, one row per word, and notes; all measures where they were
        requested, and the theorems' conditions."""
        profiles = [each.profile.view() for each in self.maps if each.profile is not None]
        theorems = [
            View(f"Conditions of the theorem about {each.title}", tuple(map(str, each.conditions)))
            for each in self.maps
            if conditions
        ]
        words = self._word_table(all_words, verbose)
        return View(
            self.headline,
            (_map_table(self.maps, verbose), words, *profiles, *theorems),
            notes=_notes(self.maps, verbose),
            chart=self.maps[0].result.view().chart,
        )

    def _searched(self) -> list[int]:
        return sorted({word for each in self.maps for word in each.result.words.tolist()})

    def _columns(self, words: Sequence[int], *, bounds: bool = False) -> dict[str, list[Any]]:
        columns = {"row": list(words), "word": list(map(self.text.word, words))}
        for each in self.maps:
            columns |= each.columns(words, bounds=bounds)
        return columns

    def _word_table(self, all_words: bool, verbose: bool) -> Table:
        """The searched words in reading order; of a long text the most sensitive ones."""
        words, note = self._searched(), ""
        if not all_words and len(words) > SHOWN_WORDS:
            left_out = len(words) - SHOWN_WORDS
            note = f"{left_out} less sensitive words are left out; --all-words shows them."
            # The first of each map's ranking, then the second of each, ...
            rankings = [
                each.result.words[each.result.per_word.argsort(descending=True)].tolist()
                for each in self.maps
            ]
            by_rank = [word for rank in zip_longest(*rankings) for word in rank if word is not None]
            words = sorted(list(dict.fromkeys(by_rank))[:SHOWN_WORDS])
        columns = self._columns(words, bounds=verbose)
        coloured = tuple(each.title for each in self.maps)
        return Table("S of each word", columns, note=note, most=len(words), coloured=coloured)


def texts_view(texts: Sequence[MeasuredText], *, verbose: bool = False) -> View:
    """Several texts: one row per text and map."""
    values = [[(each.result.map_name, each.result.value) for each in text.maps] for text in texts]
    headline = contrast(values) or f"The sensitivity of {len(texts)} texts to one word."
    measured = [each for text in texts for each in text.maps]
    table = _map_table(measured, verbose, by_text=True)
    return View(headline, (table,), notes=_notes(measured, verbose))


def _map_table(measured: Sequence[MeasuredMap], verbose: bool, *, by_text: bool = False) -> Table:
    """One row per map, or per text and map: S with its bound, prediction and cost."""
    columns: dict[str, list[Any]] = {
        "text": [each.text.source for each in measured if by_text],
        "n": [len(each.text) for each in measured if by_text],
        "map": [each.title for each in measured],
        "S": [each.result.value for each in measured],
        "at most": [each.result.upper for each in measured],
        "predicted": list(map(_predicted, measured)),
        "word": [f"{each.result.word} " * by_text + each.result.token for each in measured],
        "S/radius at 0": [max(each.small_radius or (), default=None) for each in measured],
        "evaluations": [each.result.evaluations for each in measured if verbose],
        "seconds": [each.seconds for each in measured if verbose],
    }
    known = {name: cells for name, cells in columns.items() if set(cells) - {None}}
    coloured = ("S",) if by_text else ()
    return Table("", known, note=_meaning(measured), most=len(measured), coloured=coloured)


def contrast(texts: Sequence[Sequence[tuple[str, float]]]) -> str | None:
    """Attention beside a fully connected layer, from maps and their S on each text; None where a
    text lacks one.

    >>> contrast([[("rf", 0.3), ("raf", 3.6)]])[:84]
    'With random weights, one word can move attention 12 times as far as a fully connecte'
    """
    ratios = []
    for values in texts:
        known = [(base_name(name), value) for name, value in reversed(values)]
        families = {MAPS[base].family: value for base, value in known if base in MAPS}
        if "attention" not in families or not families.get("dense", 0.0) > 0:
            return None
        ratios.append(families["attention"] / families["dense"])
    where = f": {_listed(texts[0])} times its size."
    if len(texts) > 1:
        range_ = f"from {_short(min(ratios))} to {_short(max(ratios))} times"
        where = f" in the median of {len(texts)} texts ({range_})."
    return (
        f"With random weights, one word can move attention {_short(median(ratios))} times as far "
        f"as a fully connected layer{where}"
    )


def _listed(values: Sequence[tuple[str, float]], by: str = "") -> str:
    each = [f"{map_title(name)} {by}{_short(value)}" for name, value in values]
    return each[0] if len(each) == 1 else f"{', '.join(each[:-1])} and {each[-1]}"


def _short(value: float) -> str:
    """The number to two digits.

    >>> _short(2.8076), _short(0.0812), _short(12.4)
    ('2.8', '0.081', '12')
    """
    return f"{value:.0f}" if value >= 10 else f"{value:.2g}"


def _predicted(measured: MeasuredMap) -> str | None:
    """The prediction, with ~ at sizes at which none was compared with measurements."""
    prediction = measured.predicted
    return prediction and "~" * (not prediction.in_range) + number(prediction.value)


def _meaning(measured: Sequence[MeasuredMap]) -> str:
    """What the columns are, and how the numbers are known."""
    results = [each.result for each in measured]
    radii = [float(radius) for result in results for radius in result.radius]
    sizes = dict.fromkeys(f"{radius:.3g}" for radius in (min(radii), max(radii)))
    certified = {result.rigor for result in results if result.upper is not None} == {CERTIFIED}
    sentences = {
        "S: the largest change of the output found when one word's vector moves by at most "
        f"{' to '.join(sizes)}, divided by the output's size; a lower bound.": True,
        "At most: a certified upper bound.": certified,
        "Predicted: theory for large d, not a bound.": any(each.predicted for each in measured),
        "S/radius at 0: the limit as the radius shrinks.": any(
            each.small_radius for each in measured
        ),
        "Real word: the replacement from the vocabulary that changes the output most.": any(
            each.swaps for each in measured
        ),
    }
    return " ".join(sentence for sentence, said in sentences.items() if said)


def _notes(measured: Sequence[MeasuredMap], verbose: bool) -> tuple[str, ...]:
    """What a reader of the numbers has to know, the most important first: two lines, or with
    `verbose` all."""
    results = [each.result for each in measured]
    notes = [
        f"{each.title}: {len(each.result.words)} of {len(each.text)} words were searched."
        for each in measured
        if len(each.result.words) < len(each.text)
    ]
    notes += dict.fromkeys(
        f"{each.title}: the upper bound holds {each.result.rigor}."
        for each in measured
        if each.result.rigor not in (None, CERTIFIED)
    )
    notes += dict.fromkeys(note for result in results for note in result.notes)
    outside = dict.fromkeys(
        f"{each.title} at {', '.join(each.predicted.outside)}"
        for each in measured
        if each.predicted is not None and each.predicted.outside
    )
    if outside:
        notes.append(f"Predictions marked ~ are untested at these sizes: {'; '.join(outside)}.")
    if running := sum(int((~result.converged).sum()) for result in results):
        total = sum(len(result.words) for result in results)
        notes.append(
            f"{running} of the {total} searches (one per word and map) had not converged"
            f"{_remedy(results[0].search)}."
        )
    if verbose:
        notes += dict.fromkeys(
            f"{each.title}: predicted is {each.predicted.of}."
            for each in measured
            if each.predicted is not None
        )
    elif len(notes) > 2:
        notes[1:] = [f"{notes[1]} (--verbose: {len(notes) - 2} more)"]
    return tuple(notes)


def _remedy(search: str) -> str:
    """What finds larger values where a search has not converged; nothing is known to after a
    thorough one."""
    if "steps=" in search:
        return "; more --steps may find larger values"
    return "" if search.startswith("thorough") else "; a wider --search may find larger values"
