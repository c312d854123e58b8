"""`wordsens paper`: the paper's experiments, from presets to figures and sentences. Loads no torch
before it runs."""

import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import wordsens as ws
from wordsens.cli.cells import Place, failure, measure_sweep
from wordsens.cli.command import Answer, CommandRun, Device, EncoderName, Seed, command, option
from wordsens.cli.terminal import stdout
from wordsens.display.terminal import print_view
from wordsens.errors import InputError, argument, require_choice, require_count, require_extra
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
SYNTHETIC = "synthetic"

_FIGURES_HELP = "; ".join(
    [f"{name}: {text}" for name, (_, text) in STUDIES.items() if text]
    + [
        "all: every figure, and the report. KEY=VALUE changes the cells: n=[10,20,50] d=192 "
        "map=raf."
    ]
)
_text, _attention = partial(option, panel="Text"), partial(option, panel="For attention")


@command("paper", first=("scale", "texts", "out", "workers", "seed"))
def paper(
    figures: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FIGURE]... [KEY=VALUE]...", help=_FIGURES_HELP, show_default=False
        ),
    ] = None,
    *,
    scale: Annotated[
        str,
        option(
            "quick: minutes; laptop: hours at most; full: the paper's sizes.",
            rule=partial(require_choice, choices=SCALES),
        ),
    ] = "quick",
    search: Annotated[
        str | None,
        option(
            "Search effort: quick, normal or thorough; default: depends on --scale.",
            rule=partial(require_choice, choices=EFFORTS),
        ),
    ] = None,
    texts: Annotated[
        str | None,
        _text(
            "Real texts: a file, table, folder, or 'imdb' from the hub; default: the shipped "
            "reviews."
        ),
    ] = None,
    text_column: Annotated[str, _text("Column of --texts that holds the text.")] = "text",
    label_column: Annotated[
        str | None, _text("Column of --texts that holds the label; default: label.")
    ] = None,
    split: Annotated[str | None, _text("Split of --texts; default: its training texts.")] = None,
    limit: Annotated[
        int | None, _text("Use at most this many texts of --texts.", rule=require_count)
    ] = None,
    labels: Annotated[
        str,
        _text(
            "Labels to learn: sentiment (those of --texts), linear (the sign of a linear "
            "function) or random.",
            rule=partial(require_choice, choices=LABELS),
        ),
    ] = LABELS[0],
    out: Annotated[str, option("The folder for results and figures.")] = "paper",
    model: Annotated[
        str,
        option(
            "Model for attention and depth: minilm, a folder, or a name on the Hugging Face hub."
        ),
    ] = "minilm",
    task: Annotated[
        str,
        option(
            "For control: synthetic (one word decides, majority), or sentiment (the labels of "
            "--texts)."
        ),
    ] = SYNTHETIC,
    as_published: Annotated[
        bool,
        option(
            "For sensitivity and generalization: also measure as the published code does ([CLS] "
            "or padding counted as words).",
            "--as-published",
        ),
    ] = False,
    words_changed: Annotated[
        int | None,
        option(
            "For generalization: instead change 1, 2, 4, ... words at once, at most this many.",
            rule=require_count,
        ),
    ] = None,
    layer: Annotated[
        int, _attention("Layer whose attention is shown, counted from 1; -1 is the last layer.")
    ] = 1,
    head: Annotated[
        str,
        _attention(
            "Head whose attention is shown, counted from 0, or mean: the average over all heads."
        ),
    ] = MEAN,
    prompt: Annotated[
        list[str] | None,
        _attention(
            "Prompt for a causal language model; give the option twice. Default: the package's "
            "pair."
        ),
    ] = None,
    answer: Annotated[
        list[str] | None,
        _attention(
            "Word whose probability after each prompt is shown; may be repeated; default: "
            "positive and negative."
        ),
    ] = None,
    style: Annotated[
        str | None, option("A .mplstyle file for the figures, or a name that matplotlib knows.")
    ] = None,
    encoder: EncoderName = "minilm",
    seed: Seed = 0,
    device: Device = "cpu",
    verbose: Annotated[bool, option("Print every table.", "--verbose")] = False,
    place: Place,
    run: CommandRun,
) -> Answer:
    """The paper's experiments on real and Gaussian texts: records, figures and tables.

    Each finished measurement (a cell of the grid) is one row of OUT/results.sqlite. The same
    command resumes an interrupted run.

    Example: wordsens paper sensitivity --scale quick --out results
    """
    words, pair = _split(figures or [])
    overrides = [word for word in words if _OVERRIDE.match(word)]
    names = _names([word for word in words if word not in overrides] or ["sensitivity"])
    published = " and ".join(AS_PUBLISHED)
    owners = {
        "--texts": texts is not None,
        "attention": "attention" in names,
        "attention and depth": bool({"attention", "depth"} & set(names)),
        "control": "control" in names,
        "generalization": "generalization" in names,
        published: "sensitivity" in names or ("generalization" in names and words_changed is None),
    }
    for name, value, usual, owner in (
        ("text_column", text_column, "text", "--texts"),
        ("label_column", label_column, None, "--texts"),
        ("split", split, None, "--texts"),
        ("limit", limit, None, "--texts"),
        ("labels", labels, LABELS[0], "--texts"),
        ("layer", layer, 1, "attention"),
        ("head", head, MEAN, "attention"),
        ("prompt", prompt, None, "attention"),
        ("answer", answer, None, "attention"),
        ("model", model, "minilm", "attention and depth"),
        ("task", task, SYNTHETIC, "control"),
        ("words_changed", words_changed, None, "generalization"),
        ("as_published", as_published, False, published),
    ):
        if value != usual and not owners[owner]:
            raise InputError(
                f"{argument(name)} (={value!r}) goes with {owner}; add that, or drop it"
            )
    if prompt is not None and len(prompt) != 2:
        raise InputError(
            f"--prompt is given twice, for two prompts that differ in a word; got {len(prompt)}"
        )
    if head != MEAN and not head.isdecimal():
        raise InputError(f"--head (={head!r}) must be 0, 1, ..., or mean")
    if len(pair) not in (0, 2):
        raise InputError(
            "attention takes two texts in quotes that differ in a word, or none; got "
            f"{len(pair)}: {', '.join(pair)}"
        )
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
    from wordsens.sweeps.sweep import Sweep, overridden, paper_sweep
    from wordsens.sweeps.texts import DatasetText, ShippedText

    with in_style(style):
        pass  # a style that is not there is refused before anything is measured
    if device != "cpu":
        overrides.append(f"device={device}")
    parts = []
    for name in names:
        notices = list[str]()
        if name == "attention":
            from wordsens.studies.attention import attention_grid

            of_head = None if head == MEAN else int(head)
            texts_of_pair = (pair[0], pair[1]) if pair else None
            grid = attention_grid(model, device, texts_of_pair, prompt, answer, layer, of_head)
            sweep = Sweep.parse({"name": "paper-attention", "experiment": name, "grids": [grid]})
        else:
            source: Any = ShippedText(encoder=encoder)
            if texts is not None:
                keys = {"path": texts, "limit": limit, "split": split, "encoder": encoder}
                keys |= {"text_column": text_column, "label_column": label_column}
                source = DatasetText.parse(keys)
            study = name
            choices: dict[str, Any] = {"depth": {"model": model}, "control": {"task": task}}.get(
                name, {}
            )
            if name == "generalization" and words_changed is not None:
                study, choices = "generalization-words", {"words_changed": words_changed}
            elif as_published and name in AS_PUBLISHED:
                choices["as_published"] = True
            sweep, notices = paper_sweep(
                study,
                scale,
                source,
                seed=seed,
                labels=None if texts is None else labels,
                search=search,
                **choices,
            )
        for line in notices:
            run.notice(line)
        sweep = overridden(sweep, overrides)
        part = _measured(sweep, Path(out), style, verbose=verbose, place=place, run=run)
        head_of_part = {"command": f"paper {name}", "version": __version__, "scale": scale}
        parts.append(head_of_part | {"seed": seed, **part})
    if "all" not in words:
        return Answer(document=parts[0] if len(parts) == 1 else {"parts": parts, "report": None})
    report = ws.write_report([out], Path(out) / "report.html")
    return Answer(document={"parts": parts, "report": str(report)}, lines=[f"report   {report}"])


def _split(figures: Sequence[str]) -> tuple[list[str], list[str]]:
    """The arguments, and the texts behind `attention`; none for our own."""
    words = list(figures)
    stop = words.index("attention") + 1 if "attention" in words else len(words)
    return words[:stop], words[stop:]


def _names(named: Sequence[str]) -> list[str]:
    """The figures, each once."""
    for name in named:
        require_choice("figure", name, (*FIGURES, "all"))
    every = OF_ALL if "all" in named else ()
    return list(dict.fromkeys([*every, *(name for name in named if name != "all")]))


def _measured(
    sweep: "Sweep", folder: Path, style: str | None, *, verbose: bool, place: Place, run: CommandRun
) -> dict[str, Any]:
    """Measure the missing cells, write tables and figures, print the summary.

    Raises:
        WordsensError: a cell failed; after everything else is written.
    """
    from wordsens.plotting.records import save_figures
    from wordsens.sweeps.sweep import summarize

    records, tables = measure_sweep(sweep, folder, place, run)
    errors = list(records["error"][records["status"] == "failed"])
    error = failure(errors, len(records))
    if error is not None and len(errors) == len(records):
        raise error
    figures = save_figures(records, folder / "figures", style)
    summary = summarize(records)
    if not run.as_json:
        print_view(summary.view(verbose=verbose), stdout())
        stdout().print(f"results  {tables}\nfigures  {folder / 'figures'}", soft_wrap=True)
    if error is not None:
        raise error
    return {
        "cells": len(records),
        **summary.to_dict(),
        "records": str(tables),
        "figures": [str(path) for path in figures],
    }
