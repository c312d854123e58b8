"""Options that several commands share."""

from typing import Annotated

import typer

Seed = Annotated[int, typer.Option(help="Fixes the weights, the texts drawn and the random starts.")]
Device = Annotated[str, typer.Option(help="Where to compute: cpu, cuda, ...")]
CellDevice = Annotated[
    str | None,
    typer.Option(help="Where to compute, whatever the spec says: cpu, cuda, ...", show_default=False),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout (docs/cli.md) and no table.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no notices.")]
EncoderName = Annotated[
    str,
    typer.Option(help="minilm, a folder with a model, or a name on the Hugging Face hub.", rich_help_panel="Text"),
]
Threads = Annotated[
    int, typer.Option(help="CPU threads. With 1 the numbers are the same on a machine with more cores.")
]
