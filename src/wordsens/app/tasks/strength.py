"""Step 1 of the story: one word of a sentence moves, farther and farther, under attention and under a dense layer."""

from typing import Any

import torch

from wordsens.app.tasks.drawing import curve, drawn
from wordsens.app.work.worker import Desk
from wordsens.figures.panels import FigureData, Panel
from wordsens.maps.base import FeatureMap
from wordsens.maps.registry import build_map
from wordsens.sensitivity.one_word import attained, word_sensitivity
from wordsens.text.embedding import embed

SHARES = tuple(at / 20 for at in range(21))

NAMES = {"raf": "attention", "rf": "fully connected layer"}

MOST_WORDS = 20
"""Of the sentence: a dense layer of that size has a matrix of half a gigabyte."""


def strength(desk: Desk, text: str) -> dict[str, Any]:
    """The output's change when the word that attention is most sensitive to goes a share of its strongest "
    "change."""
    X = embed([text], max_words=MOST_WORDS)[0]
    word, values = None, {}
    for name in NAMES:
        phi: FeatureMap = build_map(name, *X.rows.shape, seed=0)
        found = word_sensitivity(
            phi, X, None if word is None else [word], search="quick", certificate=False, progress=desk.tick
        )
        word = found.word if word is None else word
        delta = found.perturbations[found.words.tolist().index(word)]
        moved = torch.stack([share * delta for share in SHARES]).unsqueeze(1)
        values[name] = attained(phi, phi.accept(X.rows), torch.full((len(SHARES), 1), word), moved).tolist()
    assert word is not None
    figure = FigureData(
        title=f"“{X.word(word)}” moves, and the output follows",
        caption="How far the whole output moves, over its own size, when the word’s vector goes that share of its "
        "strongest change; measured at 21 places.",
        x_label="share of the change",
        y_label="movement of the output",
        panels=(
            Panel("", tuple(curve(NAMES[of], of, list(zip(SHARES, own, strict=True))) for of, own in values.items())),
        ),
        logarithmic=(None, None),
    )
    return {"figure": drawn(figure), "values": values, "word": X.word(word), "words": len(X)}
