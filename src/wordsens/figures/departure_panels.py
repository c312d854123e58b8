"""The effect of each departure from the definition, as data: S beside the definition's, and Err against gamma."""

from collections.abc import Sequence

from wordsens.experiments.departures import DEFINED, PROTOCOLS, Measured, measured
from wordsens.experiments.experiment import estimate, ratio
from wordsens.experiments.store import Record
from wordsens.figures.panels import Curve, FigureData, Mark, Panel
from wordsens.figures.several_words_panels import mark
from wordsens.figures.styles import Style, series_styles
from wordsens.maps.registry import map_title

_LIMIT_STEPS = 40
_STYLES: dict[str, Style] = dict(zip(PROTOCOLS, series_styles([(name, None) for name in PROTOCOLS]), strict=True))


def departure_panels(records: Sequence[Record], *, title: str) -> FigureData | None:
    """S of each protocol over that of the definition, against n; a panel a map. None without any."""
    groups = measured(records)
    panels = []
    for name in dict.fromkeys(key[0] for key in groups):
        defined = groups.get((name, DEFINED))
        if defined is None or not defined.by_size:
            continue
        group = [
            one for (other, protocol), one in groups.items() if other == name and protocol != DEFINED and one.by_size
        ]
        sizes = list(defined.by_size)
        guide = ("as defined", ((sizes[0], 1.0), (sizes[-1], 1.0)))
        panels.append(Panel(map_title(name), tuple(_curve(one, defined) for one in group), (guide,)))
    if not panels:
        return None
    return FigureData(
        title=title,
        caption="Marks are means over draws of the ratio to S as defined of the same draw; bars are two standard "
        "errors.",
        x_label="words in the text",
        y_label="S / S as defined",
        panels=tuple(panels),
        logarithmic=(True, None),
        shared=False,
    )


def _curve(one: Measured, defined: Measured) -> Curve:
    ratios = {n: ratio(group, defined.by_size.get(n, ())) for n, group in one.by_size.items()}
    marks = tuple(mark(n, value) for n, value in ratios.items() if value is not None)
    return Curve(PROTOCOLS[one.protocol].title, _STYLES[one.protocol], marks, joined=True)


def departure_error_panels(records: Sequence[Record], *, title: str) -> FigureData | None:
    """Err of each protocol against its gamma, with (2 - gamma)²; a panel a map. None without any."""
    groups = {key: one for key, one in measured(records).items() if one.errors}
    if not groups:
        return None
    theorem = tuple((2 * at / _LIMIT_STEPS, (2 - 2 * at / _LIMIT_STEPS) ** 2) for at in range(_LIMIT_STEPS + 1))
    top = max(4.4, *(1.05 * (mark.high or mark.y) for one in groups.values() for mark in _place(one).marks))
    panels = [
        Panel(
            map_title(name),
            tuple(_place(one) for (other, _), one in groups.items() if other == name),
            (("(2 − γ)², below which random features do not come", theorem),),
            y_limits=(0.0, top),
        )
        for name in dict.fromkeys(key[0] for key in groups)
    ]
    return FigureData(
        title=title,
        caption="Marks are means over draws; bars are two standard errors of Err. As defined: the least error that was "
        "found with γ below 0.5.",
        x_label="γ: how well the model before told the two texts apart",
        y_label="error on the changed text",
        panels=tuple(panels),
        logarithmic=(None, None),
    )


def _place(one: Measured) -> Curve:
    err, gamma = estimate(one.errors), estimate(one.errors, "gamma")
    assert err is not None and gamma is not None, "measured errors have both"
    drawn = mark(gamma.mean, err)
    return Curve(
        PROTOCOLS[one.protocol].title,
        _STYLES[one.protocol],
        (Mark(drawn.x, drawn.y, drawn.low, drawn.high, (*drawn.told, f"γ = {gamma}")),),
    )
