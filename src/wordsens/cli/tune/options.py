"""The options of `wordsens tune`."""

from dataclasses import dataclass
from typing import Annotated

import typer

from wordsens.cli.model_choice import POOLS
from wordsens.cli.options import AsJson, Quiet, Seed
from wordsens.errors import InputError, require_choice, require_count

_MATERIAL, _JUDGED, _ADAPTER = "Pairs and texts", "Kept apart", "Adapter"


@dataclass(frozen=True, kw_only=True)
class TuneRequest:
    """The options of `wordsens tune`."""

    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL", help="minilm, a folder, or a name on the Hugging Face hub.", show_default=False
        ),
    ]
    out: Annotated[str, typer.Option(help="The folder of the tuned model, new or empty.")]
    pairs: Annotated[
        str | None,
        typer.Option(
            help="Your own pairs: CSV, TSV, JSON lines or Parquet with kind, first, second, same, and domain.",
            show_default=False,
            rich_help_panel=_MATERIAL,
        ),
    ] = None
    texts: Annotated[
        str | None,
        typer.Option(
            help="Plain texts of the kind that you embed: a file, table or folder; default: the package's reviews.",
            show_default=False,
            rich_help_panel=_MATERIAL,
        ),
    ] = None
    text_column: Annotated[
        str, typer.Option(help="The column of --texts that holds the text.", rich_help_panel=_MATERIAL)
    ] = "text"
    limit: Annotated[
        int | None, typer.Option(help="At most this many texts of --texts.", rich_help_panel=_MATERIAL)
    ] = None
    held_out: Annotated[
        list[str] | None,
        typer.Option(
            "--hold-out",
            help="A domain that is not trained on; may be repeated. Default: every third, at random.",
            rich_help_panel=_JUDGED,
        ),
    ] = None
    held_out_kinds: Annotated[
        list[str] | None,
        typer.Option(
            "--hold-out-kind",
            help="A kind of opposite that is not trained on; may be repeated. Default: entity, modality.",
            rich_help_panel=_JUDGED,
        ),
    ] = None
    adapter: Annotated[str, typer.Option(help="parity, layers, low-rank or linear.", rich_help_panel=_ADAPTER)] = (
        "parity"
    )
    waves: Annotated[
        int | None,
        typer.Option(help="Coordinates that parity adds; default: 4800.", show_default=False, rich_help_panel=_ADAPTER),
    ] = None
    share: Annotated[
        float | None,
        typer.Option(
            help="Of the embedding's squared length for parity; default: .46.",
            show_default=False,
            rich_help_panel=_ADAPTER,
        ),
    ] = None
    depth: Annotated[
        int | None,
        typer.Option(help="Layers that are trained, from the last.", show_default=False, rich_help_panel=_ADAPTER),
    ] = None
    rank: Annotated[
        int | None, typer.Option(help="Of low-rank parts.", show_default=False, rich_help_panel=_ADAPTER)
    ] = None
    steps: Annotated[int | None, typer.Option(help="Of training.", show_default=False, rich_help_panel=_ADAPTER)] = None
    revision: Annotated[
        str | None, typer.Option(help="Branch, tag or commit of a name on the hub.", show_default=False)
    ] = None
    pool: Annotated[
        str | None,
        typer.Option(help="own, mean, cls, last or max; default: the model's own.", show_default=False),
    ] = None
    threads: Annotated[int, typer.Option(help="CPU threads.")] = 2
    seed: Seed = 0
    as_json: AsJson = False
    quiet: Quiet = False

    def __post_init__(self) -> None:
        for name in ("threads", "limit", "depth", "rank", "steps"):
            if getattr(self, name) is not None:
                require_count(name, getattr(self, name))
        require_choice("adapter", self.adapter, ("parity", "layers", "low-rank", "linear"))
        if self.pool is not None:
            require_choice("pool", self.pool, POOLS)
        for name, adapters in _GOES_WITH.items():
            if getattr(self, name) is not None and self.adapter not in adapters:
                raise InputError(f"--{name} goes with --adapter {' and '.join(adapters)}; leave it out")


_GOES_WITH = {
    "waves": ("parity",),
    "share": ("parity",),
    "rank": ("low-rank",),
    "depth": ("layers", "low-rank"),
    "steps": ("layers", "low-rank", "linear"),
}
