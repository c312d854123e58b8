"""The figures of each experiment, by the names that `Experiment.figures` gives."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from wordsens.experiments.attention import attention_summary
from wordsens.experiments.experiment import text_title
from wordsens.experiments.generalization import FRONTIER
from wordsens.experiments.store import Record
from wordsens.experiments.sweep import finished_of_one
from wordsens.figures.attention_pairs import attention, prompts
from wordsens.figures.control_panels import CONTROL_FIGURES
from wordsens.figures.correlation_panels import correlation_panels
from wordsens.figures.departure_panels import departure_error_panels, departure_panels
from wordsens.figures.one_word_error import frontier, generalization
from wordsens.figures.scaling import sensitivity
from wordsens.figures.several_words_panels import several_words_panels
from wordsens.figures.similarity_panels import SIMILARITY_FIGURES
from wordsens.figures.still import still_figure
from wordsens.figures.style_file import StyleFile, in_style
from wordsens.figures.styles import MOST_SERIES
from wordsens.maps.registry import base_name, map_entry

Figures = dict[str, Any]
"""By the name of the file."""


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
    return {name: one for figure in experiment.figures for name, one in _FIGURES[figure](done, style).items()}


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
    shown = {name: [record for record in records if _family(record.map) == name] for name in _FAMILIES}
    drawn = {name: sensitivity(own, title=_FAMILIES[name], style=style) for name, own in shown.items() if own}
    if len(drawn) > 1:
        plain = [one.replace(upper=None, rigor=None, predicted=None) for own in shown.values() for one in own]
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
    drawn = {}
    for text in dict.fromkeys(record.text for record in records):
        own = [record for record in records if record.text == text]
        name = text_title(text)
        if any(record.objective != FRONTIER for record in own):
            title = f"Error on the changed text: {name}"
            drawn[f"generalization-error-{text}"] = generalization(own, title=title, style=style)
        if any(record.objective == FRONTIER for record in own):
            title = rf"Least error under a limit on $\gamma$: {name}"
            drawn[f"generalization-frontier-{text}"] = frontier(own, title=title, style=style)
    return drawn


def _attention(records: Sequence[Record], style: StyleFile) -> Figures:
    """Figure 1; of a causal language model also the answers to two prompts."""
    drawn = {}
    for one in map(attention_summary, records):
        drawn["attention"] = attention(one.pair, style=style)
        if one.prompts is not None:
            drawn["prompts"] = prompts(one.prompts, style=style)
    return drawn


def _panels(file: str, make: Callable[[Sequence[Record]], Any], records: Sequence[Record], style: StyleFile) -> Figures:
    data = make(records)
    if data is None:
        return {}
    with in_style(style):
        return {file: still_figure(data)}


_PANELS: dict[str, Callable[[Sequence[Record]], Any]] = {
    "departures": partial(departure_panels, title="What each departure does to S"),
    "departures-error": partial(departure_error_panels, title="What each departure does to the error"),
    "correlations": partial(correlation_panels, title="Word sensitivity against the words' mean cosine"),
    "several-words": partial(several_words_panels, title="Sensitivity to several words at once"),
    **SIMILARITY_FIGURES,
    **CONTROL_FIGURES,
}
_FIGURES: dict[str, Callable[[Sequence[Record], StyleFile], Figures]] = {
    "sensitivity": _sensitivity,
    "generalization": _generalization,
    "attention": _attention,
    **{name: partial(_panels, name, make) for name, make in _PANELS.items()},
}
