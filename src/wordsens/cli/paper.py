"""`wordsens paper`: the paper's experiments, from presets to figures and sentences. Loads no torch
before it runs."""

import re
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wordsens.cli.executor_options import PlaceOptions, Witnesses, fail_for, measure_sweep
from wordsens.cli.options import Device, EncoderName, Seed, option, takes
from wordsens.cli.terminal import notice, print_json, stdout
from wordsens.display.terminal import print_view
from wordsens.errors import InputError, require_choice, require_count, require_extra
from wordsens.search.plan import EFFORTS
from wordsens.sweeps import SCALES, STUDIES
from wordsens.version import __version__

if TYPE_CHECKING:
    from wordsens.sweeps.sweep import Sweep

FIGURES = tuple(name for name, (_, text) in STUDIES.items() if text)
OF_ALL = tuple(name for name in FIGURES if name != "control")
"""The figures of `all`: control, which trains networks, takes a minute more and is asked for by
name."""
AS_PUBLISHED = ("sensitivity", "generalization")
MEAN = "mean"
_OVERRIDE = re.compile(r"[\w.]+=")
LABELS = ("sentiment", "linear", "random")

_OF_TEXTS = {
    "text_column": "text",
    "label_column": None,
    "split": None,
    "limit": None,
    "labels": LABELS[0],
}
_OF_ATTENTION = {"layer": 1, "head": MEAN, "prompt": None, "answer": None}

_FIGURES_HELP = "; ".join(
    [f"{name}: {text}" for name, (_, text) in STUDIES.items() if text]
    + [
        "all: every figure, and the report. KEY=VALUE changes the cells: n=[10,20,50] d=192 "
        "map=raf."
    ]
)


_text, _attention = partial(option, panel="Text"), partial(option, panel="Of attention")


@dataclass(frozen=True, kw_only=True)
class PaperOptions(PlaceOptions):
    """The options of `wordsens paper`."""

    figures: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FIGURE]... [KEY=VALUE]...", help=_FIGURES_HELP, show_default=False
        ),
    ] = None
    scale: Annotated[
        str, option("quick: some minutes; laptop: hours at most; full: the paper's sizes.")
    ] = "quick"
    search: Annotated[
        str | None,
        option("What each search spends: quick, normal or thorough; default: what the scale says."),
    ] = None
    texts: Annotated[
        str | None,
        _text(
            "Real texts: a file, table, folder, or 'imdb' of the hub; default: the shipped reviews."
        ),
    ] = None
    text_column: Annotated[str, _text("Of --texts, with the text.")] = "text"
    label_column: Annotated[str | None, _text("Of --texts, with the label; default: label.")] = None
    split: Annotated[str | None, _text("Of --texts; default: its training texts.")] = None
    limit: Annotated[int | None, _text("At most this many texts of --texts.")] = None
    labels: Annotated[
        str,
        _text(
            "What is learned of --texts: sentiment (their labels), linear (the sign of a linear "
            "function) or random."
        ),
    ] = LABELS[0]
    out: Annotated[str, option("The folder for results and figures.")] = "paper"
    model: Annotated[
        str, option("Of attention and depth: minilm, a folder, or a name on the Hugging Face hub.")
    ] = "minilm"
    as_published: Annotated[
        bool,
        option(
            "Of sensitivity and generalization: also measure as the published code does ([CLS] or "
            "padding counted as words).",
            "--as-published",
        ),
    ] = False
    layer: Annotated[int, _attention("1 to the last, -1.")] = 1
    head: Annotated[str, _attention("0, 1, ..., or mean over the heads.")] = MEAN
    prompt: Annotated[
        list[str] | None,
        _attention("Given twice: prompts for a causal language model; default: a pair of our own."),
    ] = None
    answer: Annotated[
        list[str] | None,
        _attention(
            "Whose probability behind each prompt is shown; may be repeated; default: positive and "
            "negative."
        ),
    ] = None
    style: Annotated[
        str | None, option("A .mplstyle file for the figures, or a name that matplotlib knows.")
    ] = None
    encoder: EncoderName = "minilm"
    seed: Seed = 0
    device: Device = "cpu"
    witnesses: Witnesses = False
    verbose: Annotated[bool, option("Print every table.", "--verbose")] = False

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
                raise InputError(
                    f"`{name}` (={value!r}) is for the texts of --texts; name them, or drop it"
                )
        for name, usual in _OF_ATTENTION.items():
            if "attention" not in self.names and (value := getattr(self, name)) != usual:
                raise InputError(
                    f"`{name}` (={value!r}) is an option of attention; draw that, or drop it"
                )
        if self.model != "minilm" and not {"attention", "depth"} & set(self.names):
            raise InputError(
                f"`model` (={self.model!r}) is an option of attention and depth; draw these, or "
                "drop it"
            )
        if self.as_published and not set(AS_PUBLISHED) & set(self.names):
            raise InputError(
                f"`as_published` (=True) is an option of {' and '.join(AS_PUBLISHED)}; draw one of "
                "these, or drop it"
            )
        if self.prompt is not None and len(self.prompt) != 2:
            raise InputError(
                f"`prompt` is given {len(self.prompt)} times; give two prompts that differ in a "
                "word"
            )
        if self.head != MEAN and not self.head.isdecimal():
            raise InputError(f"`head` (={self.head!r}) must be 0, 1, ..., or mean")
        if len(self.pair) not in (0, 2):
            raise InputError(
                f"`attention` is followed by {len(self.pair)} texts ({', '.join(self.pair)}); give "
                "two texts in quotes "
                "that differ in a word, or none"
            )

    @property
    def names(self) -> list[str]:
        """The figures, each once."""
        named = [word for word in self._words if not _OVERRIDE.match(word)] or ["sensitivity"]
        for name in named:
            require_choice("figure", name, (*FIGURES, "all"))
        return list(
            dict.fromkeys(
                [*(OF_ALL if "all" in named else ()), *(name for name in named if name != "all")]
            )
        )

    @property
    def overrides(self) -> list[str]:
        """The KEY=VALUE among the arguments."""
        return [word for word in self._words if _OVERRIDE.match(word)]

    @property
    def pair(self) -> list[str]:
        """The texts behind `attention`; none for our own."""
        return list(self.figures or ())[len(self._words) :]

    @property
    def _words(self) -> list[str]:
        """The arguments without the texts behind `attention`."""
        words = list(self.figures or ())
        return words[: words.index("attention") + 1] if "attention" in words else words


@takes(PaperOptions, first=("scale", "texts", "out", "workers", "seed"))
def paper(options: PaperOptions) -> None:
    """The paper's experiments on real and Gaussian texts: records, figures and tables.

    Each finished cell is a row of OUT/results.sqlite. The same command resumes an interrupted run.

    Example: wordsens paper sensitivity --scale quick --out results
    """
    require_extra(
        "report,minilm",
        "an experiment",
        "matplotlib",
        "jinja2",
        "pydantic",
        "pyarrow",
        "pandas",
        "yaml",
    )
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
    """Measure the missing cells, write tables and figures, print the summary; of an interrupted
    run, what it has.

    Raises:
        WordsensError: a cell failed; after everything else is written.
    """
    from wordsens.plotting.records import save_figures
    from wordsens.sweeps.store import FILE, Store
    from wordsens.sweeps.sweep import summarize

    sweep, notices = _sweep(name, options)
    folder = Path(options.out)
    if not options.quiet:
        for line in notices:
            notice(line)
    try:
        records, tables = measure_sweep(sweep, folder, options, witnesses=options.witnesses)
    except KeyboardInterrupt:
        if not options.as_json and (folder / FILE).exists():
            keys = [cell.key() for cell in sweep.cells()]
            with Store(folder, read_only=True) as store:
                records = store.frame(keys)
            done = 0 if records.empty else list(records["status"]).count("done")
            if done:
                stdout().print(f"{done} of {len(keys)} cells are finished; of these:", style="bold")
                print_view(summarize(records).view(verbose=options.verbose), stdout())
        raise
    errors = list(records["error"][records["status"] == "failed"])
    if len(errors) == len(records):
        fail_for(errors, len(records))
    figures = save_figures(records, folder / "figures", options.style)
    summary = summarize(records)
    if not options.as_json:
        print_view(summary.view(verbose=options.verbose), stdout())
        stdout().print(f"results  {tables}\nfigures  {folder / 'figures'}", soft_wrap=True)
    fail_for(errors, len(records))
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


def _sweep(name: str, options: PaperOptions) -> "tuple[Sweep, list[str]]":
    """The sweep that the options ask for, and notices."""
    from wordsens.sweeps.sweep import Sweep, overridden, paper_sweep
    from wordsens.sweeps.texts import DatasetText, ShippedText

    if name == "attention":
        from wordsens.studies.attention import attention_grid

        head = None if options.head == MEAN else int(options.head)
        pair = (options.pair[0], options.pair[1]) if options.pair else None
        grid = attention_grid(
            options.model, options.device, pair, options.prompt, options.answer, options.layer, head
        )
        sweep, notices = (
            Sweep.parse({"name": "paper-attention", "experiment": name, "grids": [grid]}),
            [],
        )
    else:
        source = ShippedText(encoder=options.encoder)
        if options.texts is not None:
            keys = {
                key: getattr(options, key)
                for key in ("text_column", "label_column", "split", "limit", "encoder")
            }
            source = DatasetText.parse({"path": options.texts, **keys})
        labels = options.labels if options.texts is not None else None
        choices: dict[str, Any] = {"as_published": True} if options.as_published else {}
        choices = choices if name in AS_PUBLISHED else {}
        if name == "depth":
            choices = {"model": options.model}
        sweep, notices = paper_sweep(
            name,
            options.scale,
            source,
            seed=options.seed,
            labels=labels,
            search=options.search,
            **choices,
        )
    device = [] if options.device == "cpu" else [f"device={options.device}"]
    return overridden(sweep, [*options.overrides, *device]), notices
