"""The figures of each experiment. What draws one is imported where it is drawn."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from wordsens.experiments.experiment import text_title
from wordsens.experiments.store import Record
from wordsens.experiments.sweep import finished_of_one
from wordsens.figures.panels import FigureData
from wordsens.figures.still import still_figure
from wordsens.figures.style_file import StyleFile, in_style
from wordsens.figures.styles import MOST_SERIES
from wordsens.maps.registry import base_name, map_entry

Figures = dict[str, Any]
"""By the name of the file."""

Data = dict[str, FigureData | None]
"""Likewise, not drawn yet; None where the records allow no such figure."""


def of_experiment(records: Any, *, style: StyleFile = None) -> Figures:
    """The figures of the experiment whose records these are, by the names of the files that `wordsens paper` writes.

    Args:
        records: a DataFrame of `read_records`, or records; failed ones are left out.
        style: a .mplstyle file in place of ours, or a name that matplotlib knows.

    Raises:
        InputError: no record is finished, or they are of several experiments.

    >>> of_experiment(ws.read_records("out"))["sensitivity"]  # doctest: +SKIP
    """
    experiment, done = finished_of_one(records)
    if experiment.name in _DRAWN:
        return _DRAWN[experiment.name](done, style)
    data = _AS_DATA[experiment.name](done) if experiment.name in _AS_DATA else {}
    with in_style(style):
        return {name: still_figure(data) for name, data in data.items() if data is not None}


_FAMILIES = {"rf": "Random features", "drf": "Deep random features", "raf": "Random attention features"}


def save_figures(records: Sequence[Record], folder: Path, style: StyleFile) -> list[Path]:
    """Write the figures of an experiment's records as PDF, SVG and PNG, and give their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for file, figure in of_experiment(records, style=style).items():
        for suffix in ("pdf", "svg", "png"):
            paths.append(folder / f"{file}.{suffix}")
            figure.savefig(paths[-1])
    return paths


def _sensitivity(records: Sequence[Record], style: StyleFile) -> Figures:
    """RF, DRF and attention, and all of them on the same axes without bounds and predictions.

    Where these are too many series, each map has its largest d on the common axes, for each kind of text.
    """
    from wordsens.figures.scaling import sensitivity

    shown = {name: [record for record in records if _family(record.map) == name] for name in _FAMILIES}
    drawn = {name: sensitivity(group, title=_FAMILIES[name], style=style) for name, group in shown.items() if group}
    if len(drawn) > 1:
        plain = [one.replace(upper=None, rigor=None, predicted=None) for group in shown.values() for one in group]
        if len({(record.map, record.d) for record in plain}) > MOST_SERIES:
            largest: dict[tuple[str, str], int] = {}
            for record in plain:
                largest[record.map, record.text] = max(record.d, largest.get((record.map, record.text), 0))
            plain = [record for record in plain if record.d == largest[record.map, record.text]]
        drawn["sensitivity"] = sensitivity(plain, title="Word sensitivity", style=style)
    return drawn


def _family(recorded: str) -> str:
    name = base_name(recorded)
    return "raf" if map_entry(name).family == "attention" else name


def _generalization(records: Sequence[Record], style: StyleFile) -> Figures:
    """For each kind of text: Err against gamma, and the frontier."""
    from wordsens.experiments.generalization import FRONTIER
    from wordsens.figures.one_word_error import frontier, generalization

    drawn = {}
    for text in dict.fromkeys(record.text for record in records):
        group = [record for record in records if record.text == text]
        name = text_title(text)
        if any(record.objective != FRONTIER for record in group):
            title = f"Error on the changed text: {name}"
            drawn[f"generalization-error-{text}"] = generalization(group, title=title, style=style)
        if any(record.objective == FRONTIER for record in group):
            title = rf"Least error under a limit on $\gamma$: {name}"
            drawn[f"generalization-frontier-{text}"] = frontier(group, title=title, style=style)
    return drawn


def _attention(records: Sequence[Record], style: StyleFile) -> Figures:
    """Figure 1; of a causal language model also the answers to two prompts."""
    from wordsens.experiments.attention import attention_summary
    from wordsens.figures.attention_pairs import attention, prompts

    drawn = {}
    for one in map(attention_summary, records):
        drawn["attention"] = attention(one.pair, style=style)
        if one.prompts is not None:
            drawn["prompts"] = prompts(one.prompts, style=style)
    return drawn


def _departures(records: Sequence[Record]) -> Data:
    from wordsens.figures.departure_panels import departure_error_panels, departure_panels

    return {
        "departures": departure_panels(records, title="What each departure does to S"),
        "departures-error": departure_error_panels(records, title="What each departure does to the error"),
    }


def _correlations(records: Sequence[Record]) -> Data:
    from wordsens.figures.correlation_panels import correlation_panels

    title = "Word sensitivity against the words' mean cosine"
    return {"correlations": correlation_panels(records, title=title)}


def _several_words(records: Sequence[Record]) -> Data:
    from wordsens.figures.several_words_panels import several_words_panels

    return {"several-words": several_words_panels(records, title="Sensitivity to several words at once")}


def _similarity(records: Sequence[Record]) -> Data:
    from wordsens.figures.similarity_panels import SIMILARITY_FIGURES

    return {name: make(records) for name, make in SIMILARITY_FIGURES.items()}


def _control(records: Sequence[Record]) -> Data:
    from wordsens.figures.control_panels import CONTROL_FIGURES

    return {name: make(records) for name, make in CONTROL_FIGURES.items()}


_DRAWN: dict[str, Callable[[Sequence[Record], StyleFile], Figures]] = {
    "sensitivity": _sensitivity,
    "generalization": _generalization,
    "attention": _attention,
}
_AS_DATA: dict[str, Callable[[Sequence[Record]], Data]] = {
    "departures": _departures,
    "correlations": _correlations,
    "several-words": _several_words,
    "similarity": _similarity,
    "control": _control,
}
