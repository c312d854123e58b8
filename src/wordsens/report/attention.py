"""The attention of pairs of texts as tables whose cells are coloured: the first, the second, and the difference."""

from collections.abc import Sequence
from dataclasses import dataclass

from wordsens.experiments.attention.summary import AttentionSummary, summarise_attention
from wordsens.report.load import Run
from wordsens.report.texts import LEVELS

ROWS = 40
"""So many rows of a matrix are shown."""

PAIRS = 12
"""So many pairs are shown."""


@dataclass(frozen=True)
class Matrix:
    """One matrix.

    Attributes:
        title: above it.
        names: of the rows and columns, and whether the texts differ there.
        cells: (as it is shown, shade), row by row.
    """

    title: str
    names: tuple[tuple[str, bool], ...]
    cells: tuple[tuple[tuple[str, int], ...], ...]


@dataclass(frozen=True)
class ShownPair:
    """A pair of texts: a heading, whose it is, its matrices, and what is not shown."""

    title: str
    run: str
    matrices: tuple[Matrix, ...]
    note: str


def attention_pairs(runs: Sequence[Run]) -> list[ShownPair]:
    """The pairs of every run, at most PAIRS."""
    found = [
        (run.name, one)
        for run in runs
        for part in run.parts
        if part.kind.name == "attention"
        for one in summarise_attention(part.done)
    ]
    return [_shown(name, one) for name, one in found[:PAIRS]]


def _shown(run: str, pair: AttentionSummary) -> ShownPair:
    first, second = pair.weights
    difference = [[b - a for a, b in zip(*rows, strict=True)] for rows in zip(first, second, strict=True)]
    heads = "mean over the heads" if pair.head is None else f"head {pair.head}"
    top = max(max(map(max, first)), max(map(max, second)))
    rows = len(first)
    return ShownPair(
        f"{pair.model}, layer {pair.layer}, {heads}",
        run,
        (
            _matrix(pair.first, pair.tokens[0], first, top, pair),
            _matrix(pair.second, pair.tokens[1], second, top, pair),
            _matrix("The second less the first", pair.names, difference, _largest(difference), pair, signed=True),
        ),
        f"The first {ROWS} of {rows} rows." if rows > ROWS else "",
    )


def _matrix(
    title: str,
    names: Sequence[str],
    weights: Sequence[Sequence[float]],
    top: float,
    pair: AttentionSummary,
    *,
    signed: bool = False,
) -> Matrix:
    def cell(value: float) -> tuple[str, int]:
        shown = f"{value:+.2f}" if signed and abs(value) >= 0.005 else f"{abs(value):.2f}"
        shown = shown.replace("-", "\N{MINUS SIGN}")
        return shown.replace("0.", ".", 1), min(LEVELS - 1, int(abs(value) / (top or 1.0) * LEVELS))

    return Matrix(
        title,
        tuple((name.lstrip("Ġ▁") or "␣", at in pair.changed) for at, name in enumerate(names[:ROWS])),
        tuple(tuple(cell(value) for value in row[:ROWS]) for row in weights[:ROWS]),
    )


def _largest(rows: Sequence[Sequence[float]]) -> float:
    return max(abs(value) for row in rows for value in row)
