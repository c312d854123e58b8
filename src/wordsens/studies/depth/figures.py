"""The depth study's figures: S by layer of random transformers, of a trained model, and by the
words around a word."""

from collections.abc import Sequence
from typing import Any

from wordsens.plotting.axes import Panel, grid
from wordsens.plotting.records import curves_of
from wordsens.plotting.style import styles_of
from wordsens.studies.depth.summary import in_context, texts_of
from wordsens.sweeps.experiment import grouped
from wordsens.sweeps.store import Record


def depth_figures(records: Sequence[Record]) -> dict[str, Any]:
    """`depth`: random architectures; `depth-average`: their average case; `depth-model`;
    `depth-context`."""
    plain = [record for record in records if not in_context(record)]
    random = [record for record in plain if record.model is None]
    trained = [record for record in plain if record.model is not None]
    around = [record for record in records if in_context(record)]
    return {
        "depth": _by_layer(
            "One word over the layers of random transformers", random, "value", "sensitivity S"
        ),
        "depth-average": _by_layer(
            "A random move of one word over the layers", random, "average", "average change"
        ),
        "depth-model": _of_model(trained),
        "depth-context": _by_context(around),
    }


def _by_layer(title: str, records: Sequence[Record], column: str, label: str) -> Any:
    drawn = []
    for (texts, n), part in grouped(records, texts_of, "n").items():
        curves = curves_of(part, "series", "at_layer", column)
        drawn.append(Panel(f"{texts.capitalize()}, {n} words", curves))
    # A layer of attention alone is RAF, and has its colour.
    maps = {one.series: "raf" if one.series == "attention alone" else None for one in records}
    return grid(title, drawn, styles_of(maps), ("layer", label), log="y")


def _of_model(records: Sequence[Record]) -> Any:
    """S and removal of the trained model, S of its random twin, a panel a kind and length of
    text."""
    drawn, names = [], []
    for (texts, n), part in grouped(records, texts_of, "n").items():
        trained = [record for record in part if not record.random_weights]
        curves = {
            f"S, {name}": points for name, points in curves_of(part, "series", "at_layer").items()
        }
        curves |= {
            f"removal, {n}": points
            for n, points in curves_of(trained, "series", "at_layer", "removal").items()
        }
        names += curves
        drawn.append(Panel(f"{texts.capitalize()}, {n} rows", curves))
    labels = ("layer", "change over the features' norm")
    return grid(
        "One word over the layers of a trained model",
        drawn,
        styles_of(names),
        labels,
        log="y",
    )


def _by_context(records: Sequence[Record]) -> Any:
    drawn = []
    for place, title in (("front", "Words in front"), ("behind", "Words behind")):
        other = "behind" if place == "front" else "front"
        part = [record for record in records if not getattr(record, other)]
        drawn.append(Panel(title, curves_of(part, "series", place)))
    styles = styles_of(record.series for record in records)
    return grid("S of a word by the words around it", drawn, styles, ("words", "sensitivity S"))
