"""A comparison as HTML: the answer, a table with a bar for each interval, and the texts with another neighbour."""

from collections.abc import Sequence
from html import escape

from wordsens.evaluation.compare.compared import Compared
from wordsens.evaluation.compare.difference import CHECK, NEIGHBOURS, RANK, REMOVAL, WORD, Difference
from wordsens.evaluation.compare.neighbours import ChangedNeighbour

MORE, LESS, QUIET = "#b3540b", "#1f6f9f", "#9aa0a6"
"""Colours of a difference that counts, up and down, and of one that does not."""

_TITLES = {
    CHECK: "Flipped meanings: area under the curve, opposites against paraphrases",
    REMOVAL: "Kinds of words: how far a text moves without one",
    RANK: "Words' ranks among the words of their text",
    WORD: "Single words: how far a text moves without it",
    NEIGHBOURS: "Neighbours: texts whose nearest is another, and the share of the nearest that is kept",
}
_ROWS = 12
"""Rows of a part that are shown at once: those that count first, then the largest differences."""

_WIDTH = 220
"""Pixels of the drawing of intervals."""

_STYLE = (
    "font-family:system-ui,sans-serif;color:#202124;max-width:62em;line-height:1.5",
    "border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:.92em",
)


def page(found: Compared, answer: Sequence[str]) -> str:
    """The comparison as one HTML element, without scripts."""
    head, *others = answer
    said = "".join(f"<li>{escape(sentence)}</li>" for sentence in others)
    failed = "".join(f'<p style="color:#b42318"><b>FAILED:</b> {escape(one)}</p>' for one in found.failures)
    tables = "".join(_table(found, part, title) for part, title in _TITLES.items())
    notes = "".join(f'<p style="color:#5f6368">{escape(note)}</p>' for note in found.notes)
    legend = (
        f'<p style="color:#5f6368">Bars: second less first with its 95 % interval, over pairs or texts. '
        f'<b style="color:{MORE}">More</b> and <b style="color:{LESS}">less</b> count: they hold in a test of all rows '
        f"together, beyond {found.tolerance:.3g}; grey ones do not.</p>"
    )
    return (
        f'<div style="{_STYLE[0]}"><p style="font-size:1.15em"><b>{escape(head)}</b></p><ul>{said}</ul>{failed}{legend}'
        f"{tables}{_changed(found)}{notes}</div>"
    )


def _table(found: Compared, part: str, title: str) -> str:
    rows = [row for row in found.rows if row.part == part and row.low is not None]
    if not rows:
        return ""
    rows.sort(key=lambda row: (not row.differs, -abs(row.difference)))
    most = max(max(abs(row.low or 0), abs(row.high or 0)) for row in rows[:_ROWS]) or 1.0
    lines = "".join(_line(row, most) for row in rows[:_ROWS])
    more = f'<p style="color:#5f6368">and {len(rows) - _ROWS} more</p>' if len(rows) > _ROWS else ""
    first, second = ("between two calls", "between the models") if part == NEIGHBOURS else (found.first, found.second)
    heads = ("", escape(first), escape(second), "difference", "95 %", "", "of")
    head = "".join(
        f'<th style="text-align:{_side(at)};padding:2px 9px;white-space:nowrap">{name}</th>'
        for at, name in enumerate(heads)
    )
    return f'<h3>{escape(title)}</h3><table style="{_STYLE[1]}"><tr>{head}</tr>{lines}</table>{more}'


def _side(at: int) -> str:
    return "left" if at in (0, 5) else "right"


def _line(row: Difference, most: float) -> str:
    counts = "pairs" if row.part == CHECK else "texts"
    cells = (
        f"<b>{escape(row.name)}</b>" if row.differs else escape(row.name), f"{row.first:.3f}", f"{row.second:.3f}",
        f"{row.difference:+.3f}", f"{row.low:+.3f} to {row.high:+.3f}", _bar(row, most), f"{row.count} {counts}",
    )  # fmt: skip
    return (
        "<tr>"
        + "".join(
            f'<td style="text-align:{_side(at)};padding:2px 9px;white-space:nowrap">{cell}</td>'
            for at, cell in enumerate(cells)
        )
        + "</tr>"
    )


def _bar(row: Difference, most: float) -> str:
    """The interval and the difference on a common scale, 0 in the middle."""
    colour = QUIET if not row.differs else MORE if row.difference > 0 else LESS
    low, middle, high = (
        _WIDTH / 2 * (1 + value / most * 0.96) for value in (row.low or 0, row.difference, row.high or 0)
    )
    return (
        f'<svg width="{_WIDTH}" height="16" role="img" aria-label="{row.difference:+.3f}">'
        f'<line x1="{_WIDTH / 2}" x2="{_WIDTH / 2}" y1="0" y2="16" stroke="#dadce0"/>'
        f'<line x1="{low:.1f}" x2="{high:.1f}" y1="8" y2="8" stroke="{colour}" stroke-width="3"/>'
        f'<circle cx="{middle:.1f}" cy="8" r="4" fill="{colour}"/></svg>'
    )


def _changed(found: Compared) -> str:
    shown: Sequence[ChangedNeighbour] = found.changed[:_ROWS]
    if not shown:
        return ""
    blocks = "".join(
        f'<div style="border-left:3px solid #dadce0;padding:2px 12px;margin:12px 0"><p>{_coloured(one)}</p>'
        f'<p style="color:#5f6368;margin:4px 0">{escape(found.first)}: {escape(_cut(one.old_text))}<br>'
        f"{escape(found.second)}: {escape(_cut(one.new_text))}</p></div>"
        for one in shown
    )
    return (
        "<h3>Texts with another first neighbour, the clearest first</h3>"
        '<p style="color:#5f6368">Below each text its neighbour in either model. Shaded: words that the two models '
        "weigh differently between the old and the new neighbour (removed one by one); underlined: without this one "
        f"word the models agree again.</p>{blocks}"
    )


def _coloured(one: ChangedNeighbour) -> str:
    most = max((abs(word.apart) for word in one.words), default=0.0)
    at, parts = 0, []
    for word in sorted(one.words, key=lambda word: word.start):
        strength = round(0.6 * 255 * abs(word.apart) / most) if most else 0
        line = "text-decoration:underline;" * (word.back or word.away)
        style = f"background:{MORE if word.apart > 0 else LESS}{strength:02x};border-radius:3px;{line}"
        title = f"{word.first:+.4f} and {word.second:+.4f}"
        parts += [
            escape(one.text[at : word.start]),
            f'<span style="{style}" title="{title}">{escape(word.word)}</span>',
        ]
        at = word.stop
    return "".join([*parts, escape(one.text[at:])])


def _cut(text: str, most: int = 240) -> str:
    return text if len(text) <= most else text[:most].rsplit(" ", 1)[0] + " ..."
