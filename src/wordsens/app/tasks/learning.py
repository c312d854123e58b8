"""Step 4 of the story: a model learns a text, one word flips its meaning, and the model may or may not notice."""

from typing import Any

from wordsens.app.tasks.drawing import curve, drawn
from wordsens.app.tasks.strength import NAMES
from wordsens.app.work.worker import Desk
from wordsens.figures.panels import FigureData, Panel
from wordsens.generalization.frontier import one_word_frontier
from wordsens.maps.registry import build_map
from wordsens.text.synthetic import gaussian_text

WORDS, DIMENSION, TEXTS = 15, 128, 30
GAMMAS = (0.1, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75)


def learning(desk: Desk, seed: int) -> dict[str, Any]:
    """The least error that one changed word can reach, for each limit on gamma, of a dense layer and of attention."""
    texts = [gaussian_text(WORDS, DIMENSION, seed=seed * 1000 + at) for at in range(1, TEXTS + 1)]
    labels = [1, -1] * (TEXTS // 2)
    new = gaussian_text(WORDS, DIMENSION, seed=seed * 1000)
    errors: dict[str, list[float]] = {}
    for done, name in enumerate(("rf", "raf")):
        phi = build_map(name, WORDS, DIMENSION, seed=seed)
        errors[name] = one_word_frontier(phi, texts, labels, new, 1, gammas=GAMMAS, search="quick").errors.tolist()
        desk.tell({"share": (done + 1) / 2, **_answer(errors)})
    return _answer(errors)


def _answer(errors: dict[str, list[float]]) -> dict[str, Any]:
    figure = FigureData(
        title="The least error on the changed text",
        caption=f"Models of {TEXTS} random texts of {WORDS} words, then one more. Each mark is the least squared "
        "error found "
        "when one word of it changes and the model before makes at most γ of that. Dotted: (2 − γ)², "
        "below which the theorems keep a fully connected layer’s error from falling as texts grow long; in texts as "
        "short as these it can lie a little below.",
        x_label="γ, what the model before makes of the change",
        y_label="squared error",
        panels=(
            Panel(
                "",
                tuple(curve(NAMES[of], of, list(zip(GAMMAS, own, strict=True))) for of, own in errors.items()),
                guides=(("(2 − γ)²", tuple((at / 20, (2 - at / 20) ** 2) for at in range(41))),),
            ),
        ),
        logarithmic=(None, None),
    )
    return {"figure": drawn(figure), "gammas": list(GAMMAS), "errors": errors}
