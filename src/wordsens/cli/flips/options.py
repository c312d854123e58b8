"""The options of `wordsens flips`."""

from dataclasses import dataclass
from typing import Annotated

import typer

from wordsens.cli.options import AsJson, Device, Quiet, Seed, Threads
from wordsens.errors import InputError, require_count


@dataclass(frozen=True, kw_only=True)
class FlipsRequest:
    """The options of `wordsens flips`."""

    model: Annotated[
        str | None,
        typer.Argument(metavar="[MODEL]", help="A name or folder of a classifier.", show_default=False),
    ] = None
    encode: Annotated[
        str | None,
        typer.Option(
            help="module:function, from a list of texts to an array (texts, classes); instead of MODEL.",
            show_default=False,
        ),
    ] = None
    labels: Annotated[
        list[str] | None, typer.Option(help="A class's name, in the order of classes; repeat it.", show_default=False)
    ] = None
    dataset: Annotated[str, typer.Option(help="Texts: a file, Parquet or CSV table, folder, or 'shipped'.")]
    text_column: Annotated[str, typer.Option(help="The column of a table that holds the text.")] = "text"
    limit: Annotated[int | None, typer.Option(help="At most this many texts.")] = 200
    words_per_text: Annotated[int, typer.Option(help="Words of a text that are measured.")] = 12
    tries: Annotated[int, typer.Option(help="Other words tried in the place of each; 0: none.")] = 4
    radius_texts: Annotated[int, typer.Option(help="Texts whose words are moved as vectors; 0: none.")] = 20
    device: Device = "cpu"
    seed: Seed = 0
    threads: Threads = 1
    as_json: AsJson = False
    quiet: Quiet = False

    def __post_init__(self) -> None:
        if (self.model is None) == (self.encode is None):
            raise InputError("give one model: MODEL, or --encode module:function")
        require_count("threads", self.threads)
        if self.limit is not None:
            require_count("limit", self.limit)
