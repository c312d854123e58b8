"""The options of `wordsens compare`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from wordsens.cli.model_choice import POOLS
from wordsens.cli.options import AsJson, Device, Quiet, Seed, Threads
from wordsens.errors import InputError, require_choice, require_count, require_positive

_TEXTS, _GATE, _EFFORT, _MODEL = "Texts", "Gate", "Effort", "Models"


@dataclass(frozen=True, kw_only=True)
class CompareRequest:
    """The options of `wordsens compare`."""

    models: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FIRST SECOND",
            help="Each a name or folder (a hub's name with @revision), module:function, or https://host/v1#model; the "
            "key of an endpoint in WORDSENS_API_KEY.",
            show_default=False,
        ),
    ] = None
    dataset: Annotated[
        str,
        typer.Option(help="Your texts: a file, Parquet or CSV table, folder, or 'shipped'.", rich_help_panel=_TEXTS),
    ]
    text_column: Annotated[
        str, typer.Option(help="The column of a table that holds the text.", rich_help_panel=_TEXTS)
    ] = "text"
    limit: Annotated[int | None, typer.Option(help="At most this many texts.", rich_help_panel=_TEXTS)] = None
    pairs: Annotated[
        str | None,
        typer.Option(
            help="Pairs of the check: a file of your own, or 'none'; default: the package's.",
            show_default=False,
            rich_help_panel=_TEXTS,
        ),
    ] = None
    encode: Annotated[
        list[str] | None,
        typer.Option(help="module:function in the place of a model.", show_default=False, rich_help_panel=_MODEL),
    ] = None
    pool: Annotated[
        str | None,
        typer.Option(
            help="own, mean, cls, last or max, of both; default: each model's own.",
            show_default=False,
            rich_help_panel=_MODEL,
        ),
    ] = None
    device: Device = "cpu"
    words_per_text: Annotated[
        int, typer.Option(help="Words removed from a text, one by one.", rich_help_panel=_EFFORT)
    ] = 8
    word_texts: Annotated[int, typer.Option(help="Texts that words are removed from.", rich_help_panel=_EFFORT)] = 300
    neighbours: Annotated[int, typer.Option(help="Neighbours of a text that count.", rich_help_panel=_EFFORT)] = 10
    tolerance: Annotated[
        float, typer.Option(help="Differences up to this share do not count.", rich_help_panel=_EFFORT)
    ] = 0.01
    requirements: Annotated[
        list[str] | None,
        typer.Option(
            "--require",
            help="Such as 'check.negation.difference >= -.02', 'neighbours.recall.second >= .9' or 'all.differs <= 0'; "
            "may be repeated. Exit code 3 when one fails.",
            rich_help_panel=_GATE,
        ),
    ] = None
    junit: Annotated[
        str | None,
        typer.Option(help="Write the requirements as JUnit XML.", show_default=False, rich_help_panel=_GATE),
    ] = None
    out: Annotated[
        str | None, typer.Option(help="Save the comparison, for ws.Comparison.load.", show_default=False)
    ] = None
    html: Annotated[str | None, typer.Option(help="Write the comparison as a page.", show_default=False)] = None
    seed: Seed = 0
    threads: Threads = 1
    as_json: AsJson = False
    quiet: Quiet = False

    def __post_init__(self) -> None:
        given = [*(self.models or []), *(self.encode or [])]
        object.__setattr__(self, "models", given)
        if len(given) != 2:
            raise InputError(f"give two models, FIRST and SECOND, or --encode for one of them; got {len(given)}")
        if self.pool is not None:
            require_choice("pool", self.pool, POOLS)
        for name in ("threads", "words_per_text", "word_texts", "neighbours"):
            require_count(name, getattr(self, name))
        if self.limit is not None:
            require_count("limit", self.limit)
        require_positive("tolerance", self.tolerance)
        for option in ("junit", "out", "html"):
            path = getattr(self, option)
            if path is not None and (not Path(path).expanduser().parent.is_dir() or Path(path).expanduser().is_dir()):
                raise InputError(f"`{option}` (={path!r}) must be a file in a folder that exists")
