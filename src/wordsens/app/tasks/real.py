"""Step 5 of the story: a trained model, layer by layer and by the length of the text."""

from typing import Any

import torch

from wordsens.app.tasks.drawing import curve, drawn
from wordsens.app.tasks.measure import FIRST_LOOK
from wordsens.app.work.worker import Desk
from wordsens.figures.panels import FigureData, Panel, Point
from wordsens.maps.transformer.features import loaded_model
from wordsens.sensitivity.one_word import word_sensitivity

SIZES = (6, 12, 24, 48, 96)
WORDS = 3
"""Words of a text that are searched, spread over it."""


def real(desk: Desk, model: str, text: str) -> dict[str, Any]:
    """S of a trained model: of every layer on the text, and of the last layer on the text repeated and cut."""
    phi = loaded_model(model, torch.float32, "cpu")
    layers = phi.attention_layers
    steps, done = layers + len(SIZES), 0
    by_layer: list[Point] = []
    by_length: list[Point] = []
    rows = phi.embed([text])[0]
    for layer in range(1, layers + 1):
        by_layer.append((layer, _value(desk, phi.at(layer=layer), rows)))
        done += 1
        desk.tell({"share": done / steps, **_answer(model, by_layer, by_length)})
    long = " ".join([text] * (SIZES[-1] // max(1, len(text.split())) + 1))
    for size in SIZES:
        cut = phi.embed([" ".join(long.split()[:size])])[0]
        by_length.append((size, _value(desk, phi.at(layer=-1), cut)))
        done += 1
        desk.tell({"share": done / steps, **_answer(model, by_layer, by_length)})
    return _answer(model, by_layer, by_length)


def _value(desk: Desk, phi: Any, text: Any) -> float:
    n = len(text)
    words = sorted({round(1 + at * (n - 3) / max(1, WORDS - 1)) for at in range(WORDS)})  # not [CLS], nor [SEP]
    return word_sensitivity(phi, text, words, search=FIRST_LOOK, certificate=False, progress=desk.tick).value


def _answer(model: str, by_layer: list[Point], by_length: list[Point]) -> dict[str, Any]:
    told = f"The farthest movement of {WORDS} words found by a short search: more may be possible."
    layers = FigureData(
        title=f"{model}, layer by layer",
        caption=told,
        x_label="layer",
        y_label="word sensitivity S",
        panels=(Panel("", (curve(model, "model", by_layer),)),),
        logarithmic=(None, None),
    )
    guide = (("1/√n", tuple((n, n**-0.5) for n in SIZES)),)
    sizes = FigureData(
        title=f"{model}, its last layer, on longer texts",
        caption=f"The text repeated and cut. {told} Dotted: 1/√n, the fall of a fully connected layer.",
        x_label="words in the text",
        y_label="word sensitivity S",
        panels=(Panel("", (curve(model, "model", by_length),), guides=guide),),
        logarithmic=(True, True),
    )
    return {"layers": drawn(layers), "lengths": drawn(sizes) if by_length else None}
