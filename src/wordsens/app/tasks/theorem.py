"""Step 3 of the story: the change that the proof of Theorem 3 builds, on a sentence."""

from typing import Any

import torch

from wordsens.app.tasks.drawing import curve, drawn
from wordsens.app.tasks.strength import MOST_WORDS
from wordsens.app.work.worker import Desk
from wordsens.errors import InputError
from wordsens.figures.panels import FigureData, Panel
from wordsens.maps.attention.features import RandomAttentionFeatures
from wordsens.sensitivity.theorem_witness import theorem_witness
from wordsens.text.embedding import embed

SHARES = tuple(at / 20 for at in range(21))


def theorem(desk: Desk, text: str, word: str) -> dict[str, Any]:
    """The construction at that word.

    Raises:
        InputError: the text does not have it.
    """
    X = embed([text], max_words=MOST_WORDS)[0]
    tokens = [X.word(at) for at in range(len(X))]
    if word not in tokens:
        raise InputError(f"“{word}” is not a word of your sentence, of which these are read: {' '.join(tokens)}")
    at = tokens.index(word)
    phi = RandomAttentionFeatures(X.rows.shape[1], seed=0)
    found = theorem_witness(phi, X, at)
    desk.tick()
    reached = []
    for share in SHARES:
        moved = X.rows.clone()
        moved[at] += share * found.perturbation
        reached.append(phi.attention(moved)[:, at])
    table = torch.stack(reached)
    others = [row for row in range(len(X)) if row != at]
    lines = tuple(tuple(zip(SHARES, table[:, row].tolist(), strict=True)) for row in others)
    mean = curve("their mean", "raf", list(zip(SHARES, table[:, others].mean(dim=1).tolist(), strict=True)))
    figure = FigureData(
        title=f"Other words turn to “{tokens[at]}”",
        caption="The share of its attention that each other word gives it (faint), and their mean, as the word "
        "goes along "
        "the direction that the theorem builds.",
        x_label="share of the change",
        y_label="attention to the word",
        panels=(Panel("", (type(mean)(**{**vars(mean), "faint": lines}),), y_limits=(0.0, 1.02)),),
        logarithmic=(None, None),
    )
    rows = [
        [tokens[row], float(found.attention_before[row]), float(found.attention_after[row])] for row in range(len(X))
    ]
    return {
        "figure": drawn(figure),
        "rows": rows,
        "word": tokens[at],
        "tokens": tokens,
        "mass": found.mass,
        "value": found.value,
        "opposite": found.opposite_value,
        "guarantee": found.guarantee,
    }
