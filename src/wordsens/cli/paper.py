"""`wordsens paper`: the paper's experiments, from presets to figures and sentences. Loads no torch before it runs."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wordsens.cli.executor_options import PlaceOptions, Witnesses, fail_for, measure_sweep
from wordsens.cli.options import Device, EncoderName, Seed
from wordsens.cli.terminal import notice, print_json, stdout, table
from wordsens.errors import InputError, require_choice, require_count
from wordsens.search.plan import EFFORTS
from wordsens.version import __version__

if TYPE_CHECKING:
    from wordsens.display.content import Table
    from wordsens.sweeps.experiment import Summary
    from wordsens.sweeps.sweep import Sweep

SCALES = ("quick", "laptop", "full")
FIGURES = (
    "sensitivity", "generalization", "attention", "departures", "correlations", "several-words", "similarity",
    "control",
)  # fmt: skip
OF_ALL = FIGURES[:-1]
"""The figures of `all`: those that train networks take a minute more, and are asked for by name."""
MEAN = "mean"
LABELS = ("sentiment", "linear", "random")

_OF_TEXTS = {"text_column": "text", "label_column": None, "split": None, "limit": None, "labels": LABELS[0]}
_OF_ATTENTION = {"model": "minilm", "layer": 1, "head": MEAN, "prompt": None, "answer": None}
_LEFT = ("map", "texts", "at", "protocol", "task", "control", "weights", "row", "training", "n", "95 % CI")
"""Columns of words; the others are numbers."""


_FIGURES_HELP = (
    "sensitivity: S against n for random, deep random and attention features (the default). "
    "generalization: does a model that just learned a text notice one changed word? "
    "attention [FIRST SECOND]: the attention of two texts that differ in a word. "
    "departures: as published against as defined, switch by switch. "
    "correlations: S against the words' mean cosine. "
    "several-words: from how many words on a map notices. "
    "similarity: is a flipped meaning less alike than a synonym? "
    "control: small networks trained with their sensitivity held up or down (not part of all). "
    "all: every figure, and the report. "
    "KEY=VALUE changes the cells: n=[10,20,50] d=192 map=raf."
)


def _option(text: str, panel: str | None = None, *, default: bool = False) -> Any:
    return typer.Option(help=text, show_default=default, rich_help_panel=panel)


def _of_texts(text: str, *, default: bool = False) -> Any:
    return _option(text, "Text", default=default)


def _of_attention(text: str, *, default: bool = False) -> Any:
    return _option(text, "Of attention", default=default)


@dataclass(frozen=True, kw_only=True)
class PaperOptions(PlaceOptions):
    """The options of `wordsens paper`."""

    figures: Annotated[
        list[str] | None,
        typer.Argument(metavar="[FIGURE]... [KEY=VALUE]...", help=_FIGURES_HELP, show_default=False),
    ] = None
    scale: Annotated[
        str, _option("quick: some minutes; laptop: hours at most; full: the paper's sizes.", default=True)
    ] = "quick"
    search: Annotated[
        str | None, _option("What each search spends: quick, normal or thorough; default: what the scale says.")
    ] = None
    texts: Annotated[
        str | None, _of_texts("Real texts: a file, table, folder, or 'imdb' of the hub; default: the shipped reviews.")
    ] = None
    text_column: Annotated[str, _of_texts("Of --texts, with the text.", default=True)] = "text"
    label_column: Annotated[str | None, _of_texts("Of --texts, with the label; default: label.")] = None
    split: Annotated[str | None, _of_texts("Of --texts; default: its training texts.")] = None
    limit: Annotated[int | None, _of_texts("At most this many texts of --texts.")] = None
    labels: Annotated[
        str,
        _of_texts(
            "What is learned of --texts: sentiment (their labels), linear (the sign of a linear function) or random.",
            default=True,
        ),
    ] = LABELS[0]
    out: Annotated[str, _option("The folder for results and figures.", default=True)] = "paper"
    model: Annotated[str, _of_attention("minilm, a folder, or a name on the Hugging Face hub.", default=True)] = (
        "minilm"
    )
    layer: Annotated[int, _of_attention("1 to the last, -1.", default=True)] = 1
    head: Annotated[str, _of_attention("0, 1, ..., or mean over the heads.", default=True)] = MEAN
    prompt: Annotated[
        list[str] | None,
        _of_attention("Given twice: prompts for a causal language model; default: a pair of our own."),
    ] = None
    answer: Annotated[
        list[str] | None,
        _of_attention(
            "Whose probability behind each prompt is shown; may be repeated; default: positive and negative."
        ),
    ] = None
    style: Annotated[str | None, _option("A .mplstyle file for the figures, or a name that matplotlib knows.")] = None
    encoder: EncoderName = "minilm"
    seed: Seed = 0
    device: Device = "cpu"
    witnesses: Witnesses = False
    verbose: Annotated[bool, typer.Option("--verbose", help="Print every table and sentence.")] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        require_choice("scale", self.scale, SCALES)
        require_choice("labels", self.labels, LABELS)
        if self.search is not None:
            require_choice("search", self.search, EFFORTS)
        if self.limit is not None:
            require_count("limit", self.limit)
        for name, usual in _OF_TEXTS.items():
            if self.texts is None and (value := getattr(self, name)) != usual:
                raise InputError(f"`{name}` (={value!r}) is for the texts of --texts; name them, or drop it")
        for name, usual in _OF_ATTENTION.items():
            if "attention" not in self.names and (value := getattr(self, name)) != usual:
                raise InputError(f"`{name}` (={value!r}) is an option of attention; draw that, or drop it")
        if self.prompt is not None and len(self.prompt) != 2:
            raise InputError(f"`prompt` is given {len(self.prompt)} times; give two prompts that differ in a word")
        if self.head != MEAN and not self.head.isdecimal():
            raise InputError(f"`head` (={self.head!r}) must be 0, 1, ..., or mean")
        if len(self.pair) not in (0, 2):
            raise InputError(
                f"`attention` is followed by {len(self.pair)} texts ({', '.join(self.pair)}); give two texts in quotes "
                "that differ in a word, or none"
            )

    @property
    def names(self) -> list[str]:
        """The figures, each once."""
        named = [one for one in self._before_pair if not _is_override(one)] or ["sensitivity"]
        for one in named:
            require_choice("figure", one, (*FIGURES, "all"))
        return list(dict.fromkeys([*(OF_ALL if "all" in named else ()), *(one for one in named if one != "all")]))

    @property
    def overrides(self) -> list[str]:
        """The KEY=VALUE among the arguments."""
        return [one for one in self._before_pair if _is_override(one)]

    @property
    def pair(self) -> list[str]:
        """The texts behind `attention`; none for our own."""
        given = list(self.figures or ())
        return given[given.index("attention") + 1 :] if "attention" in given else []

    @property
    def _before_pair(self) -> list[str]:
        given = list(self.figures or ())
        return given[: len(given) - len(self.pair)]


def _is_override(argument: str) -> bool:
    return re.match(r"[\w.]+=", argument) is not None


def run_paper(options: PaperOptions) -> None:
    """Every one of the experiments that is asked for, one after another; of all of them, the report too.

    Raises:
        WordsensError: a cell failed; after everything else of its experiment is written.
    """
    from wordsens.plotting.style import in_style

    with in_style(options.style):
        pass  # a style that is not there is refused before anything is measured
    parts = [_run(name, options) for name in options.names]
    report = None
    if "all" in (options.figures or ()):
        from wordsens.report.write import write_report

        report = str(write_report([options.out], Path(options.out) / "report.html"))
    if options.as_json:
        several = {"command": "paper", "version": __version__, "parts": parts, "report": report}
        print_json(parts[0] if len(parts) == 1 else several)
    elif report is not None:
        stdout().print(f"report   {report}", soft_wrap=True)


def _run(name: str, options: PaperOptions) -> dict[str, Any]:
    """Measure the missing cells, write tables and figures, print the summary; of an interrupted run, what it has."""
    from wordsens.plotting.records import save_figures
    from wordsens.sweeps.store import FILE
    from wordsens.sweeps.sweep import summarize

    sweep, notices = _sweep(name, options)
    if not options.quiet:
        for line in notices:
            notice(line)
    try:
        records, tables = measure_sweep(sweep, options.out, options, witnesses=options.witnesses)
    except KeyboardInterrupt:
        if not options.as_json and (Path(options.out) / FILE).exists():
            _print_partial(sweep, options)
        raise
    done = [record for record in records if record.done]
    failed = [record for record in records if not record.done]
    if not done:
        fail_for(failed, len(records))
    figures = save_figures(done, Path(options.out) / "figures", options.style)
    summary = summarize(done)
    if not options.as_json:
        print_summary(summary, verbose=options.verbose)
        stdout().print(f"results  {tables}\nfigures  {Path(options.out) / 'figures'}", soft_wrap=True)
    fail_for(failed, len(records))
    return {
        "command": f"paper {name}",
        "version": __version__,
        "scale": options.scale,
        "seed": options.seed,
        "cells": len(records),
        **summary.to_dict(),
        "records": str(tables),
        "figures": [str(path) for path in figures],
    }


def _print_partial(sweep: "Sweep", options: PaperOptions) -> None:
    """What the finished cells of an interrupted run say."""
    from wordsens.sweeps.store import Store
    from wordsens.sweeps.sweep import summarize

    keys = [cell.key() for cell in sweep.cells()]
    with Store(options.out, read_only=True) as store:
        done = [record for record in store.records(keys) if record.done]
    if done:
        stdout().print(f"{len(done)} of {len(keys)} cells are finished; of these:", style="bold")
        print_summary(summarize(done), verbose=options.verbose)


def _sweep(name: str, options: PaperOptions) -> "tuple[Sweep, list[str]]":
    """The sweep that the options ask for, and notices."""
    from wordsens.sweeps.sweep import Sweep, overridden, paper_sweep
    from wordsens.sweeps.texts import DatasetText, ReviewsText

    if name == "attention":
        from wordsens.studies.attention import attention_grid

        head = None if options.head == MEAN else int(options.head)
        pair = (options.pair[0], options.pair[1]) if options.pair else None
        grid = attention_grid(options.model, options.device, pair, options.prompt, options.answer, options.layer, head)
        sweep, notices = Sweep.parse({"name": "paper-attention", "experiment": name, "grids": [grid]}), []
    else:
        source = ReviewsText(encoder=options.encoder)
        if options.texts is not None:
            keys = {key: getattr(options, key) for key in ("text_column", "label_column", "split", "limit", "encoder")}
            source = DatasetText.parse({"path": options.texts, **keys})
        labels = options.labels if options.texts is not None else None
        sweep, notices = paper_sweep(
            name, options.scale, source, seed=options.seed, labels=labels, search=options.search
        )
    device = [] if options.device == "cpu" else [f"device={options.device}"]
    return overridden(sweep, [*options.overrides, *device]), notices


def print_summary(summary: "Summary", *, verbose: bool = False) -> None:
    """The answer, one table and what its numbers mean; with `verbose` every sentence, table and note."""
    console = stdout()
    for finding in summary.findings[: None if verbose else summary.leading]:
        console.print(finding.sentence, style=None if verbose else "bold")
    if not summary.findings:
        console.print(
            "Too few draws for an interval: no difference is claimed. A larger --scale has more.", style="bold"
        )
    for part in summary.tables[: None if verbose else 1]:
        console.print()
        _print_table(part)
    console.print()
    console.print(f"{summary.note} {summary.details}".strip() if verbose else summary.note)


def _print_table(part: "Table") -> None:
    from wordsens.sweeps.experiment import compact

    console, part = stdout(), compact(part)
    console.print(part.title, style="bold")
    shown = table(*((heading, "left" if heading in _LEFT else "right") for heading in part.headings))
    for column in shown.columns:
        column.no_wrap = column.justify == "right"  # words wrap, numbers do not
    for row in part.rows:
        shown.add_row(*map(_shown, row))
    console.print(shown)


def _shown(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.3g}" if isinstance(value, float) else str(value)
