"""An audit as data: what each measured word does to its text, by the text's length and by the word's kind."""

from collections.abc import Iterable

from wordsens.experiments.audit import audited
from wordsens.experiments.store import Record
from wordsens.figures.panels import MARKS, Curve, FigureData, Mark, Panel
from wordsens.figures.styles import STYLES
from wordsens.text.english import KINDS, kind_of

_MEASURES = {
    "removal": "taken out",
    "sensitivity": "moved as far as it can be",
    "swap": "swapped for the best real word",
}


def audit_panels(records: Iterable[Record], *, title: str) -> FigureData | None:
    """The relative change of the output against the text's tokens, a mark a measured word; None without any."""
    texts = [audited(record) for record in records if record.done]
    words = [(text.tokens, word) for text in texts for word in text.measured]
    measures = [name for name in _MEASURES if any(getattr(word, name) > 0 for _, word in words)]
    most = MARKS // max(1, len(measures))
    shown = words[:most]
    panels = []
    for name in measures:
        curves = []
        for kind, style in zip(KINDS, STYLES, strict=False):
            marks = tuple(
                Mark(tokens, value, told=(f"“{word.word}”", *_swap(word.swapped_for, name)))
                for tokens, word in shown
                if kind_of(word.word) == kind and (value := getattr(word, name)) > 0
            )
            if marks:
                curves.append(Curve(kind, (*style, False), marks))
        panels.append(Panel(f"A word is {_MEASURES[name]}", tuple(curves)))
    if not panels:
        return None
    return FigureData(
        title=title,
        caption="Each mark is a word: how far the output moves, relative to its size.",
        x_label="tokens in the text",
        y_label="change of the output",
        panels=tuple(panels),
        shared=False,
        left_out=f"{len(words) - most:,} of {len(words):,} words are not drawn." if len(words) > most else "",
    )


def _swap(swapped_for: str, measure: str) -> tuple[str, ...]:
    return (f"swapped for “{swapped_for}”",) if measure == "swap" and swapped_for else ()
