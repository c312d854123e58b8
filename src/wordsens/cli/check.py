"""`wordsens check`: its options, its work and its files."""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from wordsens.cli.model_choice import (
    GATE,
    CommandOptions,
    Html,
    Junit,
    ModelOptions,
    TextOptions,
    require_met,
    requirements_option,
    unset,
    write_junit,
    write_page,
)
from wordsens.cli.options import takes
from wordsens.cli.terminal import notice, reporting, stdout
from wordsens.display.markdown import markdown
from wordsens.display.terminal import LITTLE, MUCH
from wordsens.errors import InputError, require_count

if TYPE_CHECKING:
    from wordsens.evaluation.check import Check
    from wordsens.text.pairs import Pair

_PAIRS, _MORE = "Pairs", "Further answers"

_SHOWN = 8
"""Near misses of a kind that are printed; --write-pairs writes all."""


@dataclass(frozen=True, kw_only=True)
class CheckOptions(ModelOptions, TextOptions, CommandOptions):
    """The options of `wordsens check`; `texts` are those from which near misses are made."""

    pairs: Annotated[
        str | None,
        unset(
            "Your own pairs: CSV, TSV, JSON lines or Parquet with first, second, same (true or "
            "false), and kind if you like.",
            panel=_PAIRS,
        ),
    ] = None
    texts: Annotated[
        str | None,
        unset(
            "Make near misses (enable/disable, not, numbers, order) from these English texts.",
            "--texts",
            "--from",
            panel=_PAIRS,
        ),
    ] = None
    write_pairs: Annotated[
        str | None,
        unset("Write the pairs to this file, to read, correct and give to --pairs.", panel=_PAIRS),
    ] = None
    kinds: Annotated[
        list[str] | None,
        typer.Option(
            "--kind", help="Only this kind of opposite; may be repeated.", rich_help_panel=_PAIRS
        ),
    ] = None
    threshold: Annotated[
        float | None,
        unset("The cosine from which on two texts count as the same; default: the one of --keep."),
    ] = None
    keep: Annotated[
        float, typer.Option(help="The share of near-duplicates that the threshold keeps.")
    ] = 0.9
    all_pairs: Annotated[
        bool,
        typer.Option("--all-pairs", help="Print every pair, worst first.", rich_help_panel=_MORE),
    ] = False
    verbose: Annotated[
        bool,
        typer.Option(
            "--verbose",
            help="Every kind of near-duplicate, and every pair behind a failed requirement.",
            rich_help_panel=_MORE,
        ),
    ] = False
    csv_file: Annotated[
        str | None, unset("Write every pair with its cosine.", "--csv", panel=_MORE)
    ] = None
    html: Html = None
    guard: Annotated[
        bool,
        typer.Option(
            "--guard",
            help="Also the guard's verdict on every pair, and false hits and recall with it.",
            rich_help_panel=_MORE,
        ),
    ] = False
    requirements: Annotated[
        list[str] | None,
        requirements_option(
            "'negation.false_hits <= .2', 'all.auc >= .4', 'recall >= .9', of all opposites "
            "'false_hits <= .1', or "
            "with the guard 'guarded_false_hits <= .05'"
        ),
    ] = None
    baseline: Annotated[
        str | None,
        unset("Fail on a significant drop of an AUC since this file was saved.", panel=GATE),
    ] = None
    save_baseline: Annotated[
        str | None, unset("Save the similarities, for --baseline.", panel=GATE)
    ] = None
    allow_package_pairs: Annotated[
        bool,
        typer.Option(
            "--allow-package-pairs",
            help="Let the package's near-duplicates meet requirements that rest on some, where "
            "--pairs holds none.",
            rich_help_panel=GATE,
        ),
    ] = False
    junit: Junit = None
    markdown: Annotated[
        str | None, unset("Write the answer and the table as Markdown.", panel=GATE)
    ] = None

    def __post_init__(self) -> None:
        ModelOptions.__post_init__(self)
        CommandOptions.__post_init__(self)
        if self.pairs is not None and self.texts is not None:
            raise InputError(
                "--pairs and --texts exclude each other; write near misses with --write-pairs, and "
                "add yours"
            )
        if self.limit is not None:
            require_count("limit", self.limit)
        self.require_files("write_pairs", "save_baseline", "junit", "markdown", "csv_file", "html")


@takes(CheckOptions, first=("threshold", "texts", "pairs", "guard", "requirements"))
def check(options: CheckOptions) -> None:
    """Does a meaning that flips with one word show in a model's embeddings? A gate for CI: exit
    code 3 when it fails.

    Opposites (not, enable/disable, who did what to whom, amounts, order, names, may/must) are
    compared with near-duplicates of the same meaning. At a threshold that keeps 9 of 10 of these,
    the share of opposites that pass as the same is the number of false hits.

    Example: wordsens check minilm --threshold .92 --require 'entity.false_hits <= .6' --require
    'recall >= .6'
    """
    from wordsens.evaluation.check import check, read_requirements, require_options
    from wordsens.evaluation.pairs import choose_pairs
    from wordsens.text.pairs import write_pairs

    requirements = options.requirements or ()
    require_options(options.threshold, options.keep, options.seed)
    pairs = _pairs(options)
    chosen, _ = choose_pairs(pairs, options.kinds)
    if options.write_pairs is not None:
        written = chosen if options.texts is None else pairs or []
        write_pairs(written, options.write_pairs)
        if not options.quiet:
            where = f"{len(written)} pairs are in {options.write_pairs}"
            notice(f"{where}; read and correct them, then give it to --pairs")
    read_requirements(requirements, chosen)  # refused before a model is loaded
    model = options.load()
    with reporting(1, "of the pairs", quiet=options.quiet) as report:
        result = check(
            model,
            pairs,
            options.kinds,
            threshold=options.threshold,
            keep=options.keep,
            requirements=requirements,
            baseline=options.baseline,
            prompt_names=options.prompt_names or (),
            guard=options.guard,
            allow_package_pairs=options.allow_package_pairs,
            seed=options.seed,
            progress=lambda done, total: report.update(done / total, now=""),
        )
    _write(options, result)
    document = {
        "model": result.model,
        "identity": result.scored.identities[0],
        "keep": result.keep,
        "seed": options.seed,
        **result.to_dict(all_pairs=options.all_pairs),
        "guarded": None if result.scored.verdicts is None else result.guarded(),
    }
    pairs = "all" if options.all_pairs else "none"
    view = result.view(pairs=pairs, verbose=options.verbose)
    options.print("check", document, view, verbose=options.all_pairs)
    require_met(result.failures)


def _pairs(options: CheckOptions) -> "list[Pair] | None":
    """The pairs of a file, or near misses of texts, which are printed; None for the package's
    own."""
    from wordsens.evaluation.near_misses import near_misses
    from wordsens.text.pairs import read_pairs

    if options.texts is None:
        return (
            None if options.pairs is None else read_pairs(options.pairs, encoding=options.encoding)
        )
    pairs = near_misses(options.documents(quiet=options.quiet), seed=options.seed)
    if not options.as_json:
        print_near_misses(pairs)
    return pairs


def _write(options: CheckOptions, result: "Check") -> None:
    from wordsens.findings.check import cases

    if options.save_baseline is not None:
        result.save_baseline(options.save_baseline)
    if options.junit is not None:
        write_junit(options.junit, "check", result.model, cases(result))
    if options.markdown is not None:
        gated = bool(result.requirements or result.drops)
        verdict = (
            f"**wordsens check: {'passed' if result.passed else 'FAILED'}**\n\n" if gated else ""
        )
        text = verdict + markdown(result.view(pairs="none"))
        Path(options.markdown).expanduser().write_text(text, encoding="utf-8")
    if options.csv_file is not None:
        rows = result.all_pairs()
        with Path(options.csv_file).expanduser().open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    if options.html is not None:
        from wordsens.plotting.page import with_picture

        title = f"Does {result.model} tell opposites from near-duplicates?"
        view = with_picture(result.view(pairs="all", verbose=True), result.plot())
        write_page(options.html, "check", title, view)


def print_near_misses(pairs: "Sequence[Pair]") -> None:
    """The near misses of each kind: some of them, and how many there are."""
    console = stdout()
    for kind in dict.fromkeys(pair.kind for pair in pairs):
        of_kind = [pair for pair in pairs if pair.kind == kind]
        console.print(
            f"{kind}: {len(of_kind)} near miss{'es' * (len(of_kind) != 1)} made", style="bold"
        )
        for pair in of_kind[:_SHOWN]:
            first, second = (part or "-" for part in pair.changed)
            console.print(
                Text.assemble("  ", (first, LITTLE), " / ", (second, MUCH), f": {pair.second}")
            )
        if len(of_kind) > _SHOWN:
            console.print(
                f"  and {len(of_kind) - _SHOWN} more; --write-pairs FILE writes all of them"
            )
    console.print()
