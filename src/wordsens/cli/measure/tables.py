"""What `wordsens measure` says: the answer in a sentence, one table, two lines of notes; --verbose for the rest."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from rich.table import Table
from rich.text import Text

from wordsens.certificates.base import CERTIFIED
from wordsens.cli.terminal import shade, stdout, table
from wordsens.display.content import colour_share
from wordsens.findings.sensitivity import answer
from wordsens.maps.registry import map_title
from wordsens.sensitivity.result import Sensitivity
from wordsens.text.matrix import TextMatrix
from wordsens.theory import Condition, Prediction

SHOWN_WORDS = 40
"""Longer texts show this many words, the most sensitive ones, unless all are wanted."""


@dataclass(frozen=True)
class RealSwaps:
    """For each searched word, the relative change by the best real word in its place, and that word."""

    values: tuple[float, ...]
    names: tuple[str, ...]


@dataclass(frozen=True)
class Comparison:
    """Theory and real words to compare a measurement with.

    Attributes:
        predicted: of S, where there is a prediction.
        conditions: of the theorem about the map.
        small_radius: the limit of S / radius as the radius shrinks, a number a searched word; None unless asked for.
        swaps: the best real word in the place of each searched word; None unless asked for.
    """

    predicted: Prediction | None
    conditions: tuple[Condition, ...]
    small_radius: tuple[float, ...] | None = None
    swaps: RealSwaps | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain Python values: a part of an entry of `results`."""
        return {
            "predicted": None if self.predicted is None else self.predicted.value,
            "predicted_of": None if self.predicted is None else self.predicted.of,
            "predicted_in_range": None if self.predicted is None else self.predicted.in_range,
            "conditions": [str(condition) for condition in self.conditions],
            "small_radius": None if self.small_radius is None else list(self.small_radius),
            "swap": None if self.swaps is None else list(self.swaps.values),
            "swapped_for": None if self.swaps is None else list(self.swaps.names),
        }


@dataclass(frozen=True)
class Measured:
    """One text with what every map gave on it."""

    text: TextMatrix
    results: tuple[Sensitivity, ...]
    seconds: tuple[float, ...]
    comparisons: tuple[Comparison, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain Python values: one entry of `texts` in the JSON document."""
        return {
            "source": self.text.source,
            "label": self.text.label,
            "n": len(self.text),
            "d": self.text.rows.shape[1],
            "tokens": list(self.text.tokens or ()),
            "results": [
                {**result.to_dict(), **comparison.to_dict(), "seconds": seconds}
                for result, seconds, comparison in zip(self.results, self.seconds, self.comparisons, strict=True)
            ],
        }


def print_one(measured: Measured, *, all_words: bool, verbose: bool, conditions: bool = False) -> None:
    """One text: the answer, a table of words and maps, notes; the theorems' conditions, if wanted."""
    console = stdout()
    console.print(answer(measured.results), style="bold", highlight=False, markup=False)
    console.print()
    words, left_out = _word_table(measured, all_words=all_words, verbose=verbose)
    console.print(words)
    console.print()
    if left_out:
        console.print(f"... and {left_out} less sensitive words; --all-words shows them.")
    for line in _notes([measured], verbose=verbose):
        console.print(line, highlight=False, markup=False)
    if conditions:
        for result, comparison in zip(measured.results, measured.comparisons, strict=True):
            console.print()
            console.print(f"Conditions of the theorem about {map_title(result.map_name)}", style="bold")
            for condition in comparison.conditions:
                console.print(str(condition), markup=False, highlight=False)


def print_many(measured: Sequence[Measured], *, verbose: bool) -> None:
    """Several texts: one row a text and map."""
    console = stdout()
    built = table(("text", "left"), ("n", "right"), ("map", "left"), ("S", "right"), ("word", "left"))
    bounded = any(result.upper is not None for one in measured for result in one.results)
    if bounded:
        built.add_column("at most", justify="right")
    for one in measured:
        for at, result in enumerate(one.results):
            row = [
                one.text.source if at == 0 else "",
                str(len(one.text)) if at == 0 else "",
                map_title(result.map_name),
            ]
            row += [_number(result.value), f"{result.word} {result.token}"]
            built.add_row(*map(Text, [*row, *([_number(result.upper)] if bounded else [])]))
    console.print(f"The most that one word can move {len(measured)} texts", style="bold")
    console.print()
    console.print(built)
    console.print()
    for line in _notes(measured, verbose=verbose):
        console.print(line, highlight=False, markup=False)


def _word_table(measured: Measured, *, all_words: bool, verbose: bool) -> tuple[Table, int]:
    """The searched words in reading order, and below them each map's S; and how many words are left out."""
    results, comparisons = measured.results, measured.comparisons
    searched = sorted({word for result in results for word in result.words.tolist()})
    shown = searched if all_words or len(searched) <= SHOWN_WORDS else _most_sensitive(results)
    headings: list[tuple[str, str]] = [("", "right"), ("word", "left")]
    for result, comparison in zip(results, comparisons, strict=True):
        headings.append((map_title(result.map_name), "right"))
        if verbose and result.upper_per_word is not None:
            headings.append(("at most", "right"))
        if comparison.swaps is not None:
            headings.append(("real word", "left"))
    built = table(*headings)
    for word in shown:
        cells = [Text(str(word)), Text(measured.text.word(word))]
        for result, comparison in zip(results, comparisons, strict=True):
            at = (result.words == word).nonzero()
            cells += _cells(result, None if len(at) == 0 else int(at[0]), comparison.swaps, verbose=verbose)
        built.add_row(*cells)
    for name, values in _summary_rows(measured, verbose=verbose).items():
        cells = [Text(""), Text(name, style="bold")]
        for result, comparison, value in zip(results, comparisons, values, strict=True):
            beside = (verbose and result.upper_per_word is not None) + (comparison.swaps is not None)
            cells += [Text(value, style="bold" if name == "S" else ""), *[Text("")] * beside]
        built.add_row(*cells)
    return built, len(searched) - len(shown)


def _summary_rows(measured: Measured, *, verbose: bool) -> dict[str, list[str]]:
    """Of each map: S, its upper bound, its prediction, and what it cost."""
    results, comparisons = measured.results, measured.comparisons
    rows = {
        "S": [_number(result.value) for result in results],
        "S at most": [_number(result.upper) for result in results],
        "predicted": [_predicted(comparison.predicted) for comparison in comparisons],
        "S/radius at 0": [_number(max(comparison.small_radius or (), default=None)) for comparison in comparisons],
    }
    if verbose:
        rows["evaluations"] = [str(result.evaluations) for result in results]
        rows["seconds"] = [f"{seconds:.2f}" for seconds in measured.seconds]
    return {name: values for name, values in rows.items() if any(values)}


def _most_sensitive(results: Sequence[Sensitivity]) -> list[int]:
    """SHOWN_WORDS words: the first of each map's ranking, then the second of each, ..., in reading order."""
    rankings = [result.words[result.per_word.argsort(descending=True)].tolist() for result in results]
    by_rank = [word for rank in zip_longest(*rankings) for word in rank if word is not None]
    return sorted(list(dict.fromkeys(by_rank))[:SHOWN_WORDS])


def _cells(result: Sensitivity, at: int | None, swaps: RealSwaps | None, *, verbose: bool) -> list[Text]:
    """The cells of one word under one map, coloured on one scale from 0; empty where it was not searched."""
    bounds = result.upper_per_word if verbose else None
    if at is None:
        return [Text("")] * (1 + (bounds is not None) + (swaps is not None))
    value = float(result.per_word[at])
    colour = shade(colour_share(value), [0.0, 1.0])
    cells = [Text(_number(value), style=f"bold {colour}".strip() if int(result.words[at]) == result.word else colour)]
    if bounds is not None:
        cells.append(Text(_number(float(bounds[at]))))
    if swaps is not None:
        cells.append(Text(f"{_number(swaps.values[at])} {swaps.names[at]}"))
    return cells


def _notes(measured: Sequence[Measured], *, verbose: bool) -> list[str]:
    """Two lines at most; all there is to know with `verbose`."""
    results = [result for one in measured for result in one.results]
    radii = [float(radius) for result in results for radius in result.radius]
    low, high = min(radii), max(radii)
    size = f"{high:.3g}" if high - low <= 1e-9 * high else f"{low:.3g} to {high:.3g}"
    bounded = " 'At most' is certified." if all(result.rigor in (None, CERTIFIED) for result in results) else ""
    bounded = bounded if any(result.upper is not None for result in results) else ""
    notes = [
        f"S is how far the features move, over their length, when a word's vector moves by at most {size}. It is "
        f"attained: a lower bound.{bounded}"
    ]
    warnings = _warnings(measured)
    if verbose:
        return notes + warnings + _details(measured)
    if len(warnings) > 1:
        return [*notes, f"{warnings[0]} (--verbose: {len(warnings) - 1} more)"]
    return notes + warnings


def _warnings(measured: Sequence[Measured]) -> list[str]:
    """What a reader of the numbers has to know, the most important first."""
    results = [result for one in measured for result in one.results]
    lines = []
    for one in measured:
        for result in one.results:
            if len(result.words) < len(one.text):
                name = map_title(result.map_name)
                lines.append(f"{name}: {len(result.words)} of {len(one.text)} words were searched.")
    weaker = {map_title(r.map_name): r.rigor for r in results if r.rigor not in (None, CERTIFIED)}
    if weaker:
        lines.append("'At most' holds " + "; ".join(f"for {name} {rigor}" for name, rigor in weaker.items()) + ".")
    lines += dict.fromkeys(note for result in results for note in result.notes)
    if running := sum(int((~result.converged).sum()) for result in results):
        total = sum(len(result.words) for result in results)
        lines.append(
            f"{running} of {total} searches (a word under a map) did not end at a peak: --steps may give more."
        )
    return lines


def _details(measured: Sequence[Measured]) -> list[str]:
    """What the rows and columns mean."""
    pairs = [pair for one in measured for pair in zip(one.results, one.comparisons, strict=True)]
    predicted = {map_title(result.map_name): c.predicted for result, c in pairs if c.predicted is not None}
    lines = []
    if predicted and len(measured) == 1:
        listed = ", ".join(f"{prediction.of} for {name}" for name, prediction in predicted.items())
        lines.append(f"Predicted numbers are theory's, and no bounds: {listed}.")
        outside = {name: ", ".join(prediction.outside) for name, prediction in predicted.items() if prediction.outside}
        if outside:
            listed = "; ".join(f"{name} at {sizes}" for name, sizes in outside.items())
            lines.append(f"~ marks predictions at sizes that were not compared with measurements: {listed}.")
    if any(comparison.small_radius is not None for _, comparison in pairs):
        lines.append(
            "S/radius at 0 is its limit as the radius shrinks, the largest over the words: the Jacobian's largest "
            "singular value over the features' norm. It is left out where matrices are not built."
        )
    if any(comparison.swaps is not None for _, comparison in pairs):
        lines.append(
            "Real word: how far the features move when the word of the vocabulary that moves them most stands in its "
            "place. It is left out where matrices are not built."
        )
    return lines


def _predicted(prediction: Prediction | None) -> str:
    """The number, with a ~ where it was not compared with measurements at such sizes."""
    return "" if prediction is None else f"{'' if prediction.in_range else '~'}{_number(prediction.value)}"


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.3f}" if value == 0 or abs(value) >= 0.01 else f"{value:.2e}"
