"""The table of exponents that `wordsens paper sensitivity` ends with."""

from collections.abc import Sequence
from pathlib import Path

from wordsens.certificates.contract import CERTIFIED
from wordsens.cli.terminal import stdout, table
from wordsens.experiments.map_choice import map_title
from wordsens.experiments.summary import Series
from wordsens.experiments.wording import exponent_text, findings, text_title


def print_summary(series: Sequence[Series], folder: Path) -> None:
    """The exponents, what was found in words, and where everything lies."""
    console = stdout()
    made = table(
        ("map", "left"),
        ("text", "left"),
        ("d", "right"),
        ("n", "right"),
        ("draws", "right"),
        ("exponent", "right"),
        ("S at\nfirst n", "right"),
        ("S at\nlast n", "right"),
    )
    bracketed = table(("map", "left"), ("text", "left"), ("upper / S", "right"), ("predicted / S", "right"))
    for one in series:
        first, last = one.points[0], one.points[-1]
        made.add_row(
            map_title(one.map),
            text_title(one.text),
            str(one.d),
            f"{first.n}-{last.n}",
            str(min(point.draws for point in one.points)),
            exponent_text(one.fit),
            f"{first.mean:.3f}",
            f"{last.mean:.3f}",
        )
        ratios = (_ratio(one.bracket_ratio), _ratio(one.prediction_ratio))
        bracketed.add_row(map_title(one.map), text_title(one.text), *ratios)
    console.print("Word sensitivity against the number of words: S ~ n^exponent", style="bold")
    console.print(made)
    console.print()
    for sentence in findings(series):
        console.print(sentence)
    console.print()
    console.print("Bounds and predictions beside the attained values", style="bold")
    console.print(bracketed)
    console.print()
    console.print(_search_note(series))
    for sentence in _bound_notes(series):
        console.print(sentence)
    console.print()
    console.print(f"records  {folder / 'sensitivity.parquet'}", soft_wrap=True)
    console.print(f"figures  {folder / 'figures'}", soft_wrap=True)


def _ratio(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _bound_notes(series: Sequence[Series]) -> list[str]:
    """What stands behind the upper bounds and the predictions."""
    by_rigor: dict[str, dict[str, None]] = {}
    for one in series:
        if one.rigor is not None:
            by_rigor.setdefault(one.rigor, {})[map_title(one.map)] = None
    notes = []
    if by_rigor:
        told = "; ".join(f"{', '.join(names)}: {rigor}" for rigor, names in by_rigor.items())
        cell = " (each cell's; m cells: m times)" if set(by_rigor) - {CERTIFIED} else ""
        notes.append(f"Upper bounds, which no perturbation exceeds; {told}{cell}. upper / S: the median over n.")
    if any(one.prediction_ratio is not None for one in series):
        notes.append(
            "Predictions, which are no bounds: of the largest searched word for RF and DRF, of a typical word for "
            "softmax attention. predicted / S: the median over n."
        )
    return notes


def _search_note(series: Sequence[Series]) -> str:
    sampled = sorted({map_title(one.map) for one in series if not one.all_words})
    whole = sorted({map_title(one.map) for one in series if one.all_words})
    notes = ["Every S is attained by a perturbation that was found: a lower bound of the sup."]
    if whole:
        notes.append(f"All words searched: {'; '.join(whole)}.")
    if sampled:
        notes.append(f"A random sample of each text's words searched: {'; '.join(sampled)}.")
    return " ".join(notes)
