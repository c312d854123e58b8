"""The columns of a table on a screen: how wide each is, and which stand below the others."""

from collections.abc import Sequence

from rich.cells import cell_len


def columns_on_screen(
    columns: Sequence[Sequence[str]], numbers: Sequence[bool], *, screen: int, gap: int
) -> list[dict[int, int]]:
    """The parts of a table, one below the other: of each its columns with their widths.

    No width breaks a word, nor an entry of a column of numbers, unless it is longer than half the
    screen. Every part begins with the columns that name a row: those up to the first that holds no
    numbers. What is left of the screen goes to the columns that would be wider, those that miss
    least first.

    Args:
        columns: the heading of each column, then its entries.
        numbers: which of them hold numbers.
        screen: the width of the screen.
        gap: between two columns.

    >>> columns = [["word", "film"], ["at most", "0.4 of 2"], ["such as", "an old film"]]
    >>> columns_on_screen(columns, [False, True, False], screen=17, gap=1)
    [{0: 4, 1: 8}, {0: 4, 2: 11}]
    """
    least, natural = [], []
    for (heading, *cells), number in zip(columns, numbers, strict=True):
        pieces = [*heading.split(), *(cells if number else " ".join(cells).split())]
        least.append(min(screen // 2, max(map(cell_len, pieces), default=0)))
        natural.append(max(map(cell_len, [heading, *cells])))
    naming = list(range((numbers.index(False) if False in numbers else 0) + 1))
    parts = [[*naming]]
    for place in range(len(naming), len(columns)):
        if (
            sum(least[other] + gap for other in parts[-1]) + least[place] > screen
            and parts[-1] != naming
        ):
            parts.append([*naming])
        parts[-1].append(place)
    return [
        _filled({place: (least[place], natural[place]) for place in part}, screen, gap)
        for part in parts
    ]


def _filled(widths: dict[int, tuple[int, int]], screen: int, gap: int) -> dict[int, int]:
    """Between the least and the natural width of each column, so that the screen is used."""
    chosen = {place: least for place, (least, _) in widths.items()}
    spare = max(0, screen - sum(chosen.values()) - gap * (len(chosen) - 1))
    missing = {place: max(0, natural - least) for place, (least, natural) in widths.items()}
    for served, place in enumerate(sorted(missing, key=missing.__getitem__)):
        more = min(missing[place], spare // (len(missing) - served))
        chosen[place] += more
        spare -= more
    return chosen
