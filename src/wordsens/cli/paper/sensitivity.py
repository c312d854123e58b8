"""`wordsens paper sensitivity`: S against n, its figures and its table of exponents."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from wordsens.certificates.contract import CERTIFIED
from wordsens.cli.paper.run import Experiment, save_figure, source_of
from wordsens.cli.terminal import stdout, table
from wordsens.experiments.sensitivity.findings import NOT_COMPARED, exponent_text, findings, text_title
from wordsens.experiments.sensitivity.preset import paper_sensitivity
from wordsens.experiments.sensitivity.record import SensitivityRecord
from wordsens.experiments.sensitivity.summary import Series, summarise
from wordsens.figures import sensitivity
from wordsens.figures.styles import MOST_SERIES
from wordsens.maps.registry import base_name, map_entry, map_title

_FIGURES = {"rf": "Random features", "drf": "Deep random features", "raf": "Random attention features"}


def write_figures(records: Sequence[SensitivityRecord], folder: Path, style: str | None) -> list[Path]:
    """RF, DRF and attention, and all of them on the same axes without bounds and predictions.

    Where these are too many series, each map has its largest d on the common axes, for each kind of text.
    """
    shown = {name: [record for record in records if _figure_of(record.map) == name] for name in _FIGURES}
    drawn = {name: sensitivity(own, title=_FIGURES[name], style=style) for name, own in shown.items() if own}
    if len(drawn) > 1:
        plain = [replace(record, upper=None, rigor=None, predicted=None) for own in shown.values() for record in own]
        if len({(record.map, record.d) for record in plain}) > MOST_SERIES:
            plain = _at_largest_d(plain)
        drawn["sensitivity"] = sensitivity(plain, title="Word sensitivity", style=style)
    return [path for name, figure in drawn.items() for path in save_figure(figure, folder, name)]


def _at_largest_d(records: Sequence[SensitivityRecord]) -> list[SensitivityRecord]:
    largest: dict[tuple[str, str], int] = {}
    for record in records:
        key = (record.map, record.text)
        largest[key] = max(record.d, largest.get(key, 0))
    return [record for record in records if record.d == largest[record.map, record.text]]


def _figure_of(recorded: str) -> str:
    name = base_name(recorded)
    return "raf" if map_entry(name).family == "attention" else name


def show_exponents(series: Sequence[Series]) -> None:
    """The exponents, sentences about them, and the bounds and predictions beside the attained values."""
    console = stdout()
    keyed = any(one.varied for one in series)
    keys = [("at", "left")] if keyed else []
    made = table(
        ("map", "left"),
        ("text", "left"),
        *keys,
        ("d", "right"),
        ("n", "right"),
        ("draws", "right"),
        ("exponent", "right"),
        ("S at\nfirst n", "right"),
        ("S at\nlast n", "right"),
    )
    bracketed = table(
        ("map", "left"),
        ("text", "left"),
        *keys,
        ("d", "right"),
        ("upper / S", "right"),
        ("predicted /\nmeasured", "right"),
    )
    for one in series:
        first, last = one.points[0], one.points[-1]
        name = (map_title(one.map), text_title(one.text), *([", ".join(one.varied)] if keyed else []))
        made.add_row(
            *name,
            str(one.d),
            f"{first.n}-{last.n}",
            str(min(point.draws for point in one.points)),
            exponent_text(one.fit),
            f"{first.mean:.3f}",
            f"{last.mean:.3f}",
        )
        predicted = _ratio(one.prediction_ratio) + ("" if one.prediction_ratio is None or one.in_range else "*")
        bracketed.add_row(*name, str(one.d), _ratio(one.bracket_ratio), predicted)
    console.print("Word sensitivity against the number of words: S ~ n^exponent", style="bold")
    console.print(made)
    console.print()
    for sentence in findings(series):
        console.print(sentence)
    console.print()
    console.print("Bounds and predictions beside the attained values", style="bold")
    console.print(bracketed)
    console.print()
    console.print(_search_note(series))
    for sentence in _bound_notes(series):
        console.print(sentence)


def _ratio(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _bound_notes(series: Sequence[Series]) -> list[str]:
    """Sentences about the rigor of the upper bounds and the subject of the predictions."""
    by_rigor: dict[str, dict[str, None]] = {}
    for one in series:
        if one.rigor is not None:
            by_rigor.setdefault(one.rigor, {})[map_title(one.map)] = None
    notes = []
    if by_rigor:
        listed = "; ".join(f"{', '.join(names)}: {rigor}" for rigor, names in by_rigor.items())
        cell = " (each cell's; m cells: m times)" if set(by_rigor) - {CERTIFIED} else ""
        notes.append(f"Upper bounds, which no perturbation exceeds; {listed}{cell}. upper / S: the median over n.")
    predicted = [one for one in series if one.prediction_ratio is not None]
    if predicted:
        by_kind: dict[str, dict[str, None]] = {}
        for one in predicted:
            by_kind.setdefault(one.predicted_of or "", {})[map_title(one.map)] = None
        listed = "; ".join(f"of {of} for {', '.join(names)}" for of, names in by_kind.items())
        notes.append(
            f"Predictions, which are no bounds: {listed}. Each beside what it is of: S, or the median word's value. "
            "predicted / measured: the median over n."
        )
        if not all(one.in_range for one in predicted):
            notes.append(f"* {NOT_COMPARED}.")
    return notes


def _search_note(series: Sequence[Series]) -> str:
    sampled = sorted({map_title(one.map) for one in series if not one.all_words})
    whole = sorted({map_title(one.map) for one in series if one.all_words and not one.raced})
    raced = sorted({map_title(one.map) for one in series if one.all_words and one.raced})
    notes = ["Every S is attained by a perturbation that was found: a lower bound of the sup."]
    if whole:
        notes.append(f"All words searched: {'; '.join(whole)}.")
    if raced:
        notes.append(f"All words searched briefly, the leading ones to the end: {'; '.join(raced)}.")
    if sampled:
        notes.append(f"A random sample of each text's words searched: {'; '.join(sampled)}.")
    return " ".join(notes)


EXPERIMENT = Experiment(
    name="sensitivity",
    spec="sweep.yaml",
    preset=lambda options: paper_sensitivity(
        options.scale, source_of(options), seed=options.seed, search=options.search
    ),
    draw=lambda *given: write_figures(*given),
    summarise=summarise,
    findings=findings,
    show=show_exponents,
)
