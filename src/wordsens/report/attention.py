"""The attention of pairs of texts as tables whose cells are coloured: the first, the second, and the difference."""

from collections.abc import Sequence
from dataclasses import dataclass

from wordsens.maps.attention_pair import AttentionPair
from wordsens.report.texts import LEVELS

ROWS = 40
"""So many rows of a matrix are shown."""


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


def weight_matrices(pair: AttentionPair, titles: Sequence[str], *, changed: Sequence[int] = ()) -> tuple[Matrix, ...]:
    """The matrices of a pair under these titles, the first two alone where the texts have different lengths.

    `changed`: rows that are marked beside those whose tokens differ.
    """
    weights = pair.weights[0].tolist(), pair.weights[1].tolist()
    marked = sorted({*pair.changed, *changed})
    first, second = pair.tokens
    if pair.difference is None:
        top = max(map(_largest, weights))
        return tuple(
            _matrix(title, names, rows, top, marked)
            for title, names, rows in zip(titles, pair.tokens, weights, strict=False)
        )
    names = tuple(one if one == other else f"{one}/{other}" for one, other in zip(first, second, strict=True))
    return _matrices(weights, titles, (first, second, names), marked)


def _matrices(
    weights: Sequence[Sequence[Sequence[float]]],
    titles: Sequence[str],
    names: Sequence[Sequence[str]],
    changed: Sequence[int],
) -> tuple[Matrix, ...]:
    """Two matrices of one size, and the second less the first."""
    first, second = weights
    difference = [[b - a for a, b in zip(*rows, strict=True)] for rows in zip(first, second, strict=True)]
    top = max(_largest(first), _largest(second))
    return (
        _matrix(titles[0], names[0], first, top, changed),
        _matrix(titles[1], names[1], second, top, changed),
        _matrix(titles[2], names[2], difference, _largest(difference), changed, signed=True),
    )


def _matrix(
    title: str,
    names: Sequence[str],
    weights: Sequence[Sequence[float]],
    top: float,
    changed: Sequence[int],
    *,
    signed: bool = False,
) -> Matrix:
    def cell(value: float) -> tuple[str, int]:
        shown = f"{value:+.2f}" if signed and abs(value) >= 0.005 else f"{abs(value):.2f}"
        shown = shown.replace("-", "\N{MINUS SIGN}")
        return shown.replace("0.", ".", 1), min(LEVELS - 1, int(abs(value) / (top or 1.0) * LEVELS))

    return Matrix(
        title,
        tuple((name.lstrip("Ġ▁") or "␣", at in changed) for at, name in enumerate(names[:ROWS])),
        tuple(tuple(cell(value) for value in row[:ROWS]) for row in weights[:ROWS]),
    )


def _largest(rows: Sequence[Sequence[float]]) -> float:
    return max(abs(value) for row in rows for value in row)
