"""Sentences about word sensitivities: how far a word moves each map, and whether longer texts protect it."""

from collections.abc import Iterable, Sequence

from wordsens.certificates.contract import CERTIFIED as PROVED
from wordsens.experiments.sensitivity.findings import text_title
from wordsens.experiments.sensitivity.record import SensitivityRecord
from wordsens.experiments.sensitivity.summary import Series, summarise
from wordsens.maps.registry import base_name, map_title
from wordsens.report.findings.finding import ATTAINED, CERTIFIED, INTERVAL, PREDICTED, Finding, times
from wordsens.statistics.trend import BOOTSTRAP, Trend

_PLAIN = {
    "rf": "one fully connected random layer",
    "drf": "{depth} fully connected random layers",
    "raf": "random attention",
    "relu-raf": "random attention with ReLU scores",
}
SYNTHETIC = ("orthogonal", "correlated", "gaussian")
"""Kinds of text that no one wrote: real ones come first."""


def plain_name(recorded: str) -> str:
    """A map for a reader who has not met its short name, with that name behind.

    >>> plain_name("raf"), plain_name("drf4")
    ('random attention (RAF, softmax)', '4 fully connected random layers (DRF, L = 4)')
    """
    base = base_name(recorded)
    short = map_title(recorded).replace(" (softmax)", ", softmax")
    if base not in _PLAIN:
        return short
    return f"{_PLAIN[base].format(depth=recorded.removeprefix(base))} ({short})"


def sensitivity_findings(records: Iterable[SensitivityRecord]) -> list[Finding]:
    """Attention beside a fully connected layer; then a sentence for each map, the most sensitive first."""
    groups: dict[tuple[object, ...], list[Series]] = {}
    for one in summarise(records):
        groups.setdefault((one.map, one.d, one.varied), []).append(one)
    for own in groups.values():
        own.sort(key=lambda one: SYNTHETIC.index(one.text) if one.text in SYNTHETIC else -1)
    ordered = sorted(groups.values(), key=lambda own: -own[0].points[-1].mean)
    return [*_contrasts([one for own in ordered for one in own]), *map(_about, ordered)]


def _about(series: Sequence[Series]) -> Finding:
    """One map on each kind of text that it was measured on."""
    first, laws = series[0], [Trend.of(one.fit, one.interval) for one in series]
    last = first.points[-1]
    keys = f" at {', '.join(first.varied)}" if first.varied else ""
    told = [f"{times(one.points[-1].mean)} in {_length(one)}" for one in series[1:]]
    sentence = (
        f"One word moves {plain_name(first.map)}{keys} by {times(last.mean)} times the size of its output in "
        f"{_length(first)}{''.join(f', {one}' for one in told)}."
    )
    if laws[0] is not None:
        sentence += f" From {first.points[0].n} to {last.n} words it {laws[0].behaviour}: {laws[0].told}"
        sentence += "".join(
            f"; on {text_title(one.text)} {law.told}"
            if law.behaviour == laws[0].behaviour
            else f"; on {text_title(one.text)} it {law.behaviour}: {law.told}"
            for one, law in zip(series[1:], laws[1:], strict=True)
            if law is not None
        )
        sentence += "."
    return Finding(f"{times(last.mean)}×", sentence, _known(first, laws[0]), _surety(first, laws[0]))


def _length(series: Series) -> str:
    return f"{text_title(series.text)} of {series.points[-1].n} words"


def _known(series: Series, law: Trend | None) -> str:
    """About the first kind of text; the others are in the tables."""
    point = series.points[-1]
    draws = f"mean of {point.draws} draws" if point.draws > 1 else "one draw"
    words = "every word searched" if series.all_words else f"{series.searched} words of each text searched"
    known = f"On {text_title(series.text)}, d = {series.d}: attained, {draws}, {words}"
    if point.upper is not None:
        over = "" if series.all_words else " over these words"
        sure = "certified" if series.rigor == PROVED else f"each {series.rigor}"
        known += f"; the upper bounds{over} have the mean {times(point.upper)} ({sure})"
    if point.predicted is not None:
        known += f"; predicted for {series.predicted_of}: {times(point.predicted)}"
        known += "" if point.in_range else " (not compared with measurements at such sizes)"
    if law is not None:
        known += f"; exponent: {law.how}"
    return known + "."


def _surety(series: Series, law: Trend | None) -> tuple[str, ...]:
    point = series.points[-1]
    there = {
        ATTAINED: True,
        CERTIFIED: point.upper is not None and series.rigor == PROVED,
        PREDICTED: point.predicted is not None,
        INTERVAL: law is not None and law.how == BOOTSTRAP,
    }
    return tuple(name for name, known in there.items() if known)


def _contrasts(series: Sequence[Series]) -> list[Finding]:
    """Softmax attention against one fully connected layer, at the longest length that both have."""
    plain = [one for one in series if not one.varied]
    for attention in (one for one in plain if one.map == "raf"):
        for dense in (one for one in plain if one.map == "rf" and one.text == attention.text):
            if (finding := _contrast(attention, dense)) is not None:
                return [finding]
    return []


def _contrast(attention: Series, dense: Series) -> Finding | None:
    both = {point.n: point for point in attention.points}
    common = [(both[point.n], point) for point in dense.points if point.n in both]
    if not common or common[-1][0].mean <= common[-1][1].mean:
        return None
    more, less = common[-1]
    sentence = (
        f"One word moves attention {times(more.mean / less.mean)} times as far as a fully connected layer: by "
        f"{times(more.mean)} against {times(less.mean)} times the size of the output, in {text_title(attention.text)} "
        f"of {more.n} words."
    )
    known = f"Both attained, d = {attention.d}" + ("" if attention.d == dense.d else f" against {dense.d}")
    surety = (ATTAINED,)
    if less.upper is not None and dense.all_words and more.mean > less.upper:
        sure = "certified" if dense.rigor == PROVED else f"each bound holds {dense.rigor}"
        known += (
            f"; whatever the searches missed, the mean over these draws is at least {times(more.mean / less.upper)} "
            f"times as far ({sure})"
        )
        surety = (ATTAINED, CERTIFIED) if dense.rigor == PROVED else surety
    return Finding(f"{times(more.mean / less.mean)}×", sentence, known + ".", surety)
