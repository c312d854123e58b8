"""Step 2 of the story: how far one word moves the output as the text grows longer."""

from typing import Any

from wordsens.app.tasks.drawing import curve, drawn
from wordsens.app.tasks.strength import NAMES
from wordsens.app.work.worker import Desk
from wordsens.figures.panels import FigureData, Panel
from wordsens.maps.registry import build_map
from wordsens.sensitivity.one_word import word_sensitivity
from wordsens.text.synthetic import gaussian_text

SIZES = (5, 10, 20, 40, 80, 120, 160, 200)
DIMENSION = 96
WORDS = 4
"""Words of each text that are searched: enough for the trend, and a point a second."""

Known = dict[str, list[list[int | float]]]


def lengths(desk: Desk, most: int, known: Known) -> dict[str, Any]:
    """S against n up to `most` words; `known` holds the points that were measured before."""
    points: Known = {name: [list(point) for point in known.get(name, [])] for name in NAMES}
    sizes = [n for n in SIZES if n <= most]
    missing = [(n, name) for n in sizes for name in NAMES if not any(point[0] == n for point in points[name])]
    for done, (n, name) in enumerate(missing):
        X = gaussian_text(n, DIMENSION, seed=n)
        phi = build_map(name, n, DIMENSION, seed=0)
        found = word_sensitivity(phi, X, range(min(n, WORDS)), search="quick", certificate=False, progress=desk.tick)
        points[name] = sorted([*points[name], [n, found.value]])
        desk.tell({"share": (done + 1) / len(missing), **_answer(points, most)})
    return _answer(points, most)


def _answer(points: Known, most: int) -> dict[str, Any]:
    shown = {name: [(n, value) for n, value in own if n <= most] for name, own in points.items()}
    top = max(most, SIZES[1])
    figure = FigureData(
        title="One word against a longer and longer text",
        caption=f"The farthest movement found among the first {WORDS} words of a random text of n words, d = "
        f"{DIMENSION}. "
        "Dotted: 1/√n.",
        x_label="words in the text",
        y_label="word sensitivity S",
        panels=(
            Panel(
                "",
                tuple(curve(NAMES[of], of, own) for of, own in shown.items()),
                guides=(("1/√n", tuple((n, n**-0.5) for n in SIZES if n <= top)),),
            ),
        ),
        logarithmic=(True, True),
    )
    return {"figure": drawn(figure), "points": points}
