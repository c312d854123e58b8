"""`wordsens calibrate`: its options and its work."""

from dataclasses import dataclass
from typing import Annotated

import typer

from wordsens.cli.model_choice import Html, ModelOptions, OutputOptions, unset, write_page
from wordsens.cli.options import takes
from wordsens.cli.terminal import reporting
from wordsens.errors import InputError, RequirementError, require_choice


@dataclass(frozen=True, kw_only=True)
class CalibrateOptions(ModelOptions, OutputOptions):
    """The options of `wordsens calibrate`."""

    pairs: Annotated[
        str | None,
        unset(
            "Your pairs: CSV, TSV, JSON lines or Parquet with first, second, same (true or "
            "false), and kind if you like; default: the package's."
        ),
    ] = None
    encoding: Annotated[str, typer.Option(help="Of a CSV or JSON lines file.")] = "utf-8"
    budget: Annotated[
        float, typer.Option(help="The share of opposites that may pass as the same.")
    ] = 0.02
    confidence: Annotated[float, typer.Option(help="With which the budget holds.")] = 0.95
    guard: Annotated[
        bool, typer.Option("--guard", help="A pair that the guard calls different does not pass.")
    ] = False
    distance: Annotated[
        str | None,
        unset(
            "Also the threshold as the distance of a vector store: l2 (squared, 2 - 2c) or cosine "
            "(1 - c)."
        ),
    ] = None
    html: Html = None

    def __post_init__(self) -> None:
        ModelOptions.__post_init__(self)
        OutputOptions.__post_init__(self)
        if self.distance is not None:
            require_choice("distance", self.distance, ("l2", "cosine"))
        self.require_files("html")


@takes(CalibrateOptions, first=("pairs", "budget", "guard", "distance", "html"))
def calibrate(options: CalibrateOptions) -> None:
    """Find the threshold that keeps a budget of false hits, and what it costs. Exit code 3 where
    there is none.

    The smallest similarity from which on, at 95 % confidence, at most the budget of opposites
    (enable/disable, another amount, ...) pass as the same, for pairs that are drawn like yours; and
    the share of near-duplicates that it keeps.

    Example: wordsens calibrate minilm --pairs pairs.csv --budget .02 --guard --distance cosine
    """
    from wordsens.evaluation.calibrate import calibrate
    from wordsens.text.pairs import read_pairs

    pairs = None if options.pairs is None else read_pairs(options.pairs, encoding=options.encoding)
    model = options.load()
    with reporting(1, "of the pairs", quiet=options.quiet) as report:
        result = calibrate(
            model,
            pairs,
            options.budget,
            confidence=options.confidence,
            guard=options.guard,
            prompt_names=options.prompt_names or (),
            progress=lambda done, total: report.update(done / total, now=""),
        )
    if options.distance is not None and not result.scored.cosines:
        raise InputError(
            f"{result.model} gives no cosines, and its threshold is no distance; leave --distance "
            "out"
        )
    view = result.view(options.distance or "")
    if options.html is not None:
        from wordsens.plotting.page import with_picture

        title = f"A threshold of {result.model} for a budget of false hits"
        write_page(options.html, "calibrate", title, with_picture(view, result.plot()))
    document = {"model": result.model, "identity": result.scored.identities[0], **result.to_dict()}
    options.print("calibrate", document, view)
    if result.threshold is None:
        raise RequirementError(result.answer[0])
