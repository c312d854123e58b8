"""The options of `wordsens check`."""

from dataclasses import dataclass
from typing import Annotated

import typer

from wordsens.cli.model_choice import ModelOptions
from wordsens.cli.options import AsJson, Quiet, Seed, Threads
from wordsens.errors import InputError, require_count

_PAIRS, _GATE, _MORE = "Pairs", "Gate", "Further answers"


@dataclass(frozen=True, kw_only=True)
class CheckRequest(ModelOptions):
    """The options of `wordsens check`; `texts` is that of --from."""

    pairs: Annotated[
        str | None,
        typer.Option(
            help="Your own pairs: CSV, TSV, JSON lines or Parquet with kind, first, second, same.",
            show_default=False,
            rich_help_panel=_PAIRS,
        ),
    ] = None
    texts: Annotated[
        str | None,
        typer.Option(
            "--from",
            help="Make near misses (enable/disable, not, numbers, order) from these English texts: a file, table or "
            "folder.",
            show_default=False,
            rich_help_panel=_PAIRS,
        ),
    ] = None
    text_column: Annotated[
        str, typer.Option(help="The column of --from that holds the text.", rich_help_panel=_PAIRS)
    ] = "text"
    limit: Annotated[int | None, typer.Option(help="At most this many texts of --from.", rich_help_panel=_PAIRS)] = None
    write_pairs: Annotated[
        str | None,
        typer.Option(
            help="Write the pairs to this file, to read, mend and give to --pairs.",
            show_default=False,
            rich_help_panel=_PAIRS,
        ),
    ] = None
    kinds: Annotated[
        list[str] | None,
        typer.Option("--kind", help="Only this kind of opposite; may be repeated.", rich_help_panel=_PAIRS),
    ] = None
    budget: Annotated[
        float, typer.Option(help="The share of opposites that a threshold may let through, of each kind.")
    ] = 0.01
    threshold: Annotated[
        float | None,
        typer.Option(
            help="Your own threshold on the cosine: how many opposites pass it.",
            show_default=False,
            rich_help_panel=_MORE,
        ),
    ] = None
    layers: Annotated[
        bool,
        typer.Option("--layers", help="Also compare layer by layer, before and after pooling.", rich_help_panel=_MORE),
    ] = False
    requirements: Annotated[
        list[str] | None,
        typer.Option(
            "--require",
            help="Such as 'negation.auc >= .5' or 'all.recall >= .2'; may be repeated. Exit code 3 when one fails.",
            rich_help_panel=_GATE,
        ),
    ] = None
    baseline: Annotated[
        str | None,
        typer.Option(
            help="Fail on a significant drop of an AUC since this file was saved.",
            show_default=False,
            rich_help_panel=_GATE,
        ),
    ] = None
    save_baseline: Annotated[
        str | None,
        typer.Option(help="Save what was measured, for --baseline.", show_default=False, rich_help_panel=_GATE),
    ] = None
    junit: Annotated[
        str | None,
        typer.Option(help="Write the requirements as JUnit XML.", show_default=False, rich_help_panel=_GATE),
    ] = None
    markdown: Annotated[
        str | None,
        typer.Option(help="Write the answer and the table as Markdown.", show_default=False, rich_help_panel=_GATE),
    ] = None
    seed: Seed = 0
    threads: Threads = 1
    as_json: AsJson = False
    quiet: Quiet = False

    def __post_init__(self) -> None:
        super().__post_init__()
        require_count("threads", self.threads)
        if self.pairs is not None and self.texts is not None:
            raise InputError(
                "--pairs and --from exclude each other; write near misses with --write-pairs, and add yours"
            )
        if self.limit is not None:
            require_count("limit", self.limit)
