"""What the records of S against n say: a table, and sentences whose intervals allow them."""

from collections.abc import Iterable, Sequence
from typing import Any

from wordsens.certificates.base import CERTIFIED
from wordsens.display.numbers import minus, number
from wordsens.display.view import Finding, Table
from wordsens.intervals import behaviour, difference, ends
from wordsens.maps.registry import map_title, plain_name
from wordsens.studies.sensitivity.series import Series, sensitivity_series
from wordsens.sweeps.experiment import (
    Summary,
    finding,
    text_title,
)
from wordsens.sweeps.measurement import GIVEN
from wordsens.sweeps.store import Record


def summarize(records: Sequence[Record]) -> Summary:
    """Exponents, bounds and predictions of each series; sentences about them."""
    series = sensitivity_series([record for record in records if record.text != GIVEN])
    keyed = any(one.varied for one in series)
    at = ("at",) if keyed else ()
    headings = ("map", "texts", *at, "d", "n", "exponent (95 % CI)", "S", "average", "upper/S")
    rows = tuple(_row(one, keyed=keyed) for one in series)
    note = (
        "S: attained at the last n, a lower bound; upper/S: median over n. Average: random Deltas "
        "in place of the "
        "worst, at the last n."
    )
    return Summary(
        (Table.of_rows("Word sensitivity S ~ n^exponent", headings, rows),),
        note,
        tuple(claims(series)),
    )


def _row(one: Series, *, keyed: bool) -> tuple[Any, ...]:
    first, last = one.points[0], one.points[-1]
    return (
        *(map_title(one.map), one.text, *((", ".join(one.varied),) if keyed else ()), one.d),
        f"{first.n}-{last.n}" if last.n > first.n else str(last.n),
        *(one.exponent, last.value.value, last.average, one.bracket_ratio),
    )


FITTED = "with the 95 % confidence interval of the fit"

SYNTHETIC = ("orthogonal", "correlated", "gaussian")
"""Kinds of text that no one wrote: real ones come first."""


def text_and_keys(series: Series) -> str:
    """The name of a series' texts, with the keys that tell it from others of its map."""
    return text_title(series.text) + (f" at {', '.join(series.varied)}" if series.varied else "")


def claims(series: Iterable[Series]) -> list[Finding]:
    """Attention beside a fully connected layer, each of them, ReLU against softmax attention, then
    the other maps."""
    groups: dict[tuple[Any, ...], list[Series]] = {}
    for one in series:
        groups.setdefault((one.map, one.d, one.varied), []).append(one)
    for group in groups.values():
        group.sort(key=lambda one: SYNTHETIC.index(one.text) if one.text in SYNTHETIC else -1)
    ordered = sorted(groups.values(), key=lambda group: -group[0].points[-1].value.value)
    flat = [one for group in ordered for one in group]
    main = [group for group in ordered if group[0].map in ("raf", "rf")]
    others = [group for group in ordered if group not in main]
    return [
        *_contrast(flat),
        *map(_about, main),
        *_relu_against_softmax(flat),
        *map(_about, others),
    ]


def _about(series: Sequence[Series]) -> Finding:
    """One map, on the first kind of text that it was measured on; the others in how it is known."""
    first = series[0]
    point, keys = first.points[-1], f" at {', '.join(first.varied)}" if first.varied else ""
    sentence = (
        f"One word moves {plain_name(first.map)}{keys} by {number(point.value.value)} times its "
        f"size, in {_length(first)}"
    )
    exponent, theory = first.exponent, first.theory_exponent
    if exponent is not None:
        sentence += f"; with length it {behaviour(exponent)}, exponent {exponent.value:.2f}"
        doubt = "" if first.in_range else ", not compared with measurements at all of these sizes"
        sentence += "" if theory is None else f" (theory at these lengths: {theory:.2f}{doubt})"
    others = "".join(f" On {_elsewhere(one)}." for one in series[1:])
    cells = [cell for one in series for cell in one.cells]
    return finding(
        f"{number(point.value.value)} times",
        minus(f"{sentence}."),
        _known(first) + others,
        point.value.value,
        cells,
        _kinds(first),
    )


def _elsewhere(series: Series) -> str:
    exponent = series.exponent
    value = f"{_length(series)}, d = {series.d}: {number(series.points[-1].value.value)}"
    return value if exponent is None else f"{value}, {behaviour(exponent)}, exponent {exponent}"


def _length(series: Series) -> str:
    return f"{text_title(series.text)} of {series.points[-1].n} words"


def _known(series: Series) -> str:
    """About the first kind of text; the others are in the tables."""
    point, exponent = series.points[-1], series.exponent
    count = point.value.n or 1
    draws = f"mean of {count} draws" if count > 1 else "one draw"
    words = (
        "every word searched"
        if series.all_words
        else f"{series.searched} words of each text searched"
    )
    known = f"On {text_title(series.text)}, d = {series.d}: attained, {draws}, {words}"
    if point.average is not None:
        known += f"; random Deltas move it by {number(point.average)} on average"
    if point.upper is not None:
        over = "" if series.all_words else " over these words"
        sure = "certified" if series.rigor == CERTIFIED else f"each {series.rigor}"
        known += f"; the upper bounds{over} have the mean {number(point.upper)} ({sure})"
    if point.predicted is not None:
        known += f"; predicted for {series.predicted_of}: {number(point.predicted)}"
        known += "" if point.in_range else " (not compared with measurements at such sizes)"
    if exponent is not None:
        known += f"; from {series.points[0].n} to {point.n} words exponent {exponent} {FITTED}"
    return f"{known}."


def _kinds(series: Series) -> tuple[str, ...]:
    point, exponent = series.points[-1], series.exponent
    there = {
        "attained": True,
        "certified": point.upper is not None and series.rigor == CERTIFIED,
        "predicted": point.predicted is not None,
        "95 % interval": exponent is not None,
    }
    return tuple(name for name, known in there.items() if known)


def _contrast(series: Sequence[Series]) -> list[Finding]:
    """Softmax attention against one fully connected layer, at the longest length that both have: on
    the first kind of text and d in full, on the others by the factor."""
    plain = [one for one in series if not one.varied]
    dense = {(one.text, one.d): one for one in plain if one.map == "rf"}
    pairs = []
    for attention in plain:
        other = dense.get((attention.text, attention.d)) if attention.map == "raf" else None
        at = {point.n: point for point in attention.points}
        common = (
            [(at[point.n], point) for point in other.points if point.n in at]
            if other is not None
            else []
        )
        pairs += [(attention, other, *common[-1])] if common else []
    elsewhere = "".join(
        f" On {text_title(attention.text)} of {more.n} words, d = {attention.d}: "
        f"{number(more.value.value / less.value.value)} times."
        for attention, _, more, less in pairs[1:]
    )
    for attention, other, more, less in pairs[:1]:
        far, near = more.value.value, less.value.value
        sentence = (
            f"One word moves attention {number(far / near)} times as far as a fully connected "
            f"layer: by {number(far)} against {number(near)} times the size of the output, in "
            f"{text_title(attention.text)} of {more.n} words."
        )
        known = f"Both attained, d = {attention.d}"
        kinds = ("attained",)
        if less.upper is not None and other.all_words and far > less.upper:
            sure = "certified" if other.rigor == CERTIFIED else f"each bound holds {other.rigor}"
            known += (
                f"; at least {number(far / less.upper)} times as far, whatever the "
                f"searches missed ({sure})"
            )
            kinds += ("certified",) if other.rigor == CERTIFIED else ()
        factor = far / near
        cells = (*attention.cells, *other.cells)
        return [
            finding(
                f"{number(factor)} times", sentence + elsewhere, f"{known}.", factor, cells, kinds
            )
        ]
    return []


def _relu_against_softmax(series: Sequence[Series]) -> list[Finding]:
    """The difference of the exponents on like texts."""
    softmax = {
        (one.text, one.d, one.varied): one.exponent
        for one in series
        if one.map == "raf" and one.exponent is not None
    }
    gaps, largest, number, cells = [], 0.0, "no faster", []
    for one in series:
        other = softmax.get((one.text, one.d, one.varied))
        if one.map != "relu-raf" or one.exponent is None or other is None:
            continue
        gap = difference(other, one.exponent)
        faster = ends(gap)[0] > 0
        how = f"faster by {gap} in the exponent" if faster else "no faster"
        gaps.append(f"{how} on {text_and_keys(one)} (d = {one.d})")
        if faster and gap.value > largest:
            number = str(gap)
        largest = max(largest, gap.value)
        cells += one.cells
    sentence = f"Against softmax attention, ReLU attention falls {'; '.join(gaps)}."
    known = "Exponents by least squares on logarithms, [95 % confidence interval]."
    return [finding(number, sentence, known, largest, cells)] if gaps else []
