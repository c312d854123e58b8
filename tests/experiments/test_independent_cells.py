"""A generalization cell has the same value, bit for bit, whatever was measured before it in its process."""

import pytest

from wordsens.experiments.generalization import cell as generalization_cell
from wordsens.experiments.generalization.cell import KIND as GENERALIZATION
from wordsens.experiments.generalization.spec import GeneralizationCell

USUAL = {
    "n": 4,
    "d": 6,
    "texts": 8,
    "text": "gaussian",
    "labels": "linear",
    "held_out": 6,
    "starts": 2,
    "steps": 5,
    "generations": 0,
}


@pytest.mark.slow_cases("all-*", "0-raf")
@pytest.mark.parametrize("name", ["rf", "raf"])
@pytest.mark.parametrize("word", [0, "all"])
def test_order_does_not_matter(name, word):
    cells = [
        GeneralizationCell.parse({**USUAL, "map": name, "word": word, "objective": objective, "sample": sample})
        for sample in (2, 3)
        for objective in ("error", "frontier")
    ]

    def forget():
        generalization_cell._fitted.cache_clear()
        generalization_cell._new_text.cache_clear()

    forget()
    together = [GENERALIZATION.attempt(cell).value.hex() for cell in cells]
    alone = []
    for cell in reversed(cells):
        forget()
        alone.append(GENERALIZATION.attempt(cell).value.hex())
    assert together == alone[::-1]
