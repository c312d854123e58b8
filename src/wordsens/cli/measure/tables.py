"""The tables of `wordsens measure`."""

from collections.abc import Sequence
from itertools import zip_longest

from rich.table import Table
from rich.text import Text

from wordsens.certificates.base import CERTIFIED
from wordsens.cli.measure.outcome import Measured, RealSwaps
from wordsens.cli.terminal import shade, stdout, table
from wordsens.maps.registry import map_title
from wordsens.sensitivity.result import Sensitivity
from wordsens.theory import Prediction

SHOWN_WORDS = 40
"""Longer texts show this many words, the most sensitive ones, unless every word is asked for."""


def print_one(measured: Measured, *, all_words: bool, conditions: bool = False) -> None:
    """One text: tables of the maps and of the words, what the numbers mean; the theorems' conditions, if asked."""
    console = stdout()
    n, d = measured.text.rows.shape
    console.print(f"{n} words, d = {d}", style="bold")
    console.print()
    console.print("Maps", style="bold")
    console.print(_map_table(measured))
    console.print()
    words, left_out = _word_table(measured, all_words=all_words)
    console.print("S of each word (* the largest)", style="bold")
    console.print(words)
    if left_out:
        console.print(f"... and {left_out} less sensitive words; --all-words shows them.")
    console.print()
    for result in measured.results:
        if len(result.words) < n:
            console.print(f"{map_title(result.map_name)}: {len(result.words)} of {n} words searched.")
    console.print(_explanation([measured]))
    if conditions:
        for result, comparison in zip(measured.results, measured.comparisons, strict=True):
            console.print()
            console.print(f"Conditions of the theorem about {map_title(result.map_name)}", style="bold")
            for condition in comparison.conditions:
                console.print(str(condition), markup=False, highlight=False)


def print_many(measured: Sequence[Measured]) -> None:
    """Several texts: one row a text and map."""
    console = stdout()
    made = table(
        ("text", "left"),
        ("n", "right"),
        ("map", "left"),
        ("S", "right"),
        ("at word", "right"),
        ("token", "left"),
    )
    bracketed = any(result.upper is not None for one in measured for result in one.results)
    if bracketed:
        made.add_column("upper", justify="right")
    for one in measured:
        for at, result in enumerate(one.results):
            source = one.text.source if at == 0 else ""
            row = [
                source,
                str(len(one.text)) if at == 0 else "",
                map_title(result.map_name),
                f"{result.value:.4f}",
            ]
            row += [str(result.word), _token(result), *([_number(result.upper)] if bracketed else [])]
            made.add_row(*map(Text, row))
    console.print("Word sensitivity of each text", style="bold")
    console.print(made)
    console.print()
    console.print(_explanation(measured))


def _map_table(measured: Measured) -> Table:
    bracketed = any(result.upper is not None for result in measured.results)
    predicted = any(comparison.predicted is not None for comparison in measured.comparisons)
    limited = any(comparison.small_radius is not None for comparison in measured.comparisons)
    made = table(
        ("map", "left"),
        ("S", "right"),
        *([("upper", "right")] if bracketed else []),
        *([("predicted", "right")] if predicted else []),
        *([("S/radius at 0", "right")] if limited else []),
        ("at word", "right"),
        ("token", "left"),
        ("evaluations", "right"),
        ("seconds", "right"),
    )
    for result, seconds, comparison in zip(measured.results, measured.seconds, measured.comparisons, strict=True):
        row = [
            map_title(result.map_name),
            f"{result.value:.4f}",
            *([_number(result.upper)] if bracketed else []),
            *([_predicted(comparison.predicted)] if predicted else []),
            *([_number(max(comparison.small_radius or (), default=None))] if limited else []),
        ]
        row += [str(result.word), _token(result), str(result.evaluations), f"{seconds:.2f}"]
        made.add_row(*map(Text, row))
    return made


def _word_table(measured: Measured, *, all_words: bool) -> tuple[Table, int]:
    """The searched words in reading order, the largest value of each map marked; and how many are left out."""
    results = measured.results
    searched = sorted({word for result in results for word in result.words.tolist()})
    shown = searched if all_words or len(searched) <= SHOWN_WORDS else _most_sensitive(results)
    headings: list[tuple[str, str]] = [("word", "right"), ("token", "left")]
    for result, comparison in zip(results, measured.comparisons, strict=True):
        headings.append((map_title(result.map_name), "right"))
        if result.upper_per_word is not None:
            headings.append(("upper", "right"))
        if comparison.swaps is not None:
            headings.append(("real word", "left"))
    made = table(*headings)
    for word in shown:
        cells = [Text(str(word)), Text.assemble((measured.text.word(word), _shade_of(results, word)))]
        for result, comparison in zip(results, measured.comparisons, strict=True):
            at = (result.words == word).nonzero()
            cells += _cells(result, None if len(at) == 0 else int(at[0]), comparison.swaps)
        made.add_row(*cells)
    return made, len(searched) - len(shown)


def _most_sensitive(results: Sequence[Sensitivity]) -> list[int]:
    """SHOWN_WORDS words: the first of each map's ranking, then the second of each, ..., in reading order."""
    rankings = [result.words[result.per_word.argsort(descending=True)].tolist() for result in results]
    by_rank = [word for rank in zip_longest(*rankings) for word in rank if word is not None]
    return sorted(list(dict.fromkeys(by_rank))[:SHOWN_WORDS])


def _shade_of(results: Sequence[Sensitivity], word: int) -> str:
    """The colour of a word: that of its value under the first map that searched it."""
    for result in results:
        if len(at := (result.words == word).nonzero()):
            return shade(float(result.per_word[int(at[0])]), result.per_word.tolist())
    return ""


def _cells(result: Sensitivity, at: int | None, swaps: RealSwaps | None) -> list[Text]:
    """The cells of the word table for one word under one map; empty where the map did not search it."""
    bracketed = result.upper_per_word is not None
    if at is None:
        return [Text("")] * (1 + bracketed + (swaps is not None))
    largest = int(result.words[at]) == result.word
    value = f"{float(result.per_word[at]):.4f}{'*' if largest else ' '}"
    own = shade(float(result.per_word[at]), result.per_word.tolist())
    cells = [Text.assemble((value, f"bold {own}".strip() if largest else own))]
    if result.upper_per_word is not None:
        cells.append(Text(_number(float(result.upper_per_word[at]))))
    if swaps is not None:
        cells.append(Text(f"{_number(swaps.values[at])} {swaps.names[at]}"))
    return cells


def _explanation(measured: Sequence[Measured]) -> str:
    results = [result for one in measured for result in one.results]
    radii = [float(radius) for result in results for radius in result.radius]
    low, high = min(radii), max(radii)
    size = f"{high:.4g}" if high - low <= 1e-9 * high else f"between {low:.4g} and {high:.4g}"
    lines = [
        "S is how far the features move, relative to their norm, when one word's vector may move by "
        f"‖Delta‖ <= {size}. Each number is attained by a perturbation that was found: a lower bound of the sup.",
    ]
    rigors = {map_title(result.map_name): result.rigor for result in results if result.rigor is not None}
    if rigors:
        weaker = [f"for {name} {rigor}" for name, rigor in rigors.items() if rigor != CERTIFIED]
        surely = "certified" if len(weaker) < len(rigors) else "bounds"
        besides = f" (they hold {', '.join(weaker)})" if weaker else ""
        lines.append(f"The upper numbers are {surely}: no perturbation in the ball goes beyond them{besides}.")
    predictions = {
        map_title(result.map_name): comparison.predicted.of
        for one in measured
        for result, comparison in zip(one.results, one.comparisons, strict=True)
        if comparison.predicted is not None
    }
    if predictions and len(measured) == 1:
        listed = ", ".join(f"{of} for {name}" for name, of in predictions.items())
        lines.append(f"The predicted numbers are theory's, and no bounds: {listed}.")
    outside = {
        map_title(result.map_name): ", ".join(comparison.predicted.outside)
        for one in measured
        for result, comparison in zip(one.results, one.comparisons, strict=True)
        if comparison.predicted is not None and comparison.predicted.outside
    }
    if outside and len(measured) == 1:
        listed = "; ".join(f"{name} at {sizes}" for name, sizes in outside.items())
        lines.append(f"~ marks predictions at sizes at which they were not compared with measurements: {listed}.")
    if any(comparison.small_radius is not None for one in measured for comparison in one.comparisons):
        lines.append(
            "S/radius at 0 is its limit as the radius shrinks, the largest over the words: the Jacobian's largest "
            "singular value, relative to the features' norm. It is left out where matrices are not built."
        )
    if any(comparison.swaps is not None for one in measured for comparison in one.comparisons):
        lines.append(
            "real word: how far the features move when the word is swapped for the one of the vocabulary that moves "
            "them most. It is left out where matrices are not built."
        )
    running = sum(int((~result.converged).sum()) for result in results)
    if running:
        total = sum(len(result.words) for result in results)
        lines.append(
            f"For {running} of {total} words the search did not end at a peak: more steps (--steps) may find more."
        )
    return "\n".join(lines)


def _token(result: Sensitivity) -> str:
    return result.tokens[int((result.words == result.word).nonzero()[0])]


def _predicted(prediction: Prediction | None) -> str:
    """The number, with a ~ where it was not compared with measurements at such sizes."""
    return "" if prediction is None else f"{'' if prediction.in_range else '~'}{prediction.value:.4f}"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"
