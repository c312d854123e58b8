"""The options of `wordsens audit`."""

from dataclasses import dataclass
from typing import Annotated

import typer

from wordsens.cli.executor_options import PlaceOptions
from wordsens.cli.model_choice import ModelOptions
from wordsens.cli.options import Seed
from wordsens.errors import InputError, require_choice, require_count, require_positive

OUTPUTS = ("embedding", "probabilities")
WAYS = ("delete", "mask")
NO_PAIRS, SHIPPED_PAIRS = "none", "shipped"


@dataclass(frozen=True, kw_only=True)
class AuditOptions(PlaceOptions, ModelOptions):
    """The options of `wordsens audit`."""

    dataset: Annotated[
        str,
        typer.Option(
            help="Texts: a file, Parquet or CSV table, folder, 'shipped', or 'imdb' of the hub.", rich_help_panel="Text"
        ),
    ]
    text_column: Annotated[
        str | None,
        typer.Option(
            help="The column of a table that holds the text; default: text, or the only column with texts.",
            show_default=False,
            rich_help_panel="Text",
        ),
    ] = None
    limit: Annotated[int | None, typer.Option(help="At most this many texts.", rich_help_panel="Text")] = None
    max_words: Annotated[
        int, typer.Option(help="Tokens that a longer text keeps, special ones not counted.", rich_help_panel="Text")
    ] = 126
    output: Annotated[
        str, typer.Option(help="What is watched: embedding, or a classifier's probabilities.", rich_help_panel="Model")
    ] = "embedding"
    words_per_text: Annotated[
        int, typer.Option(help="Words measured in each text: its negations first, others at random.")
    ] = 4
    removal: Annotated[
        str, typer.Option(help="How a word is taken out: delete, or mask, which measures the mask token too.")
    ] = "delete"
    swaps: Annotated[
        bool, typer.Option("--swaps", help="Also try other words that a writer could have meant in its place.")
    ] = False
    pairs: Annotated[
        str,
        typer.Option(
            help="Pairs of sentences for the decay with length: none, shipped, or a file as of `check --pairs`."
        ),
    ] = "shipped"
    compare: Annotated[
        str | None,
        typer.Option(help="The --out of an earlier audit of the same texts: what changed.", show_default=False),
    ] = None
    threshold: Annotated[float, typer.Option(help="The cosine distance under which a changed word counts as lost.")] = (
        0.05
    )
    layer_texts: Annotated[int, typer.Option(help="Texts measured layer by layer and head by head; 0: none.")] = 1
    substitutions: Annotated[
        int,
        typer.Option(
            help="Texts measured with random words of the same kind in the place of their own: average, block and "
            "random sensitivity; 0: none."
        ),
    ] = 0
    out: Annotated[str, typer.Option(help="The folder for the records and the report.")] = "audit"
    seed: Seed = 0

    def __post_init__(self) -> None:
        PlaceOptions.__post_init__(self)
        ModelOptions.__post_init__(self)
        require_count("max_words", self.max_words, least=2)
        require_count("words_per_text", self.words_per_text)
        require_count("layer_texts", self.layer_texts, least=0)
        require_positive("threshold", self.threshold)
        require_choice("output", self.output, OUTPUTS)
        if self.limit is not None:
            require_count("limit", self.limit)
        require_count("substitutions", self.substitutions, least=0)
        require_choice("removal", self.removal, WAYS)
        if self.model is None and (self.output, self.removal) != (OUTPUTS[0], WAYS[0]):
            wrong = "--output probabilities" if self.output != OUTPUTS[0] else "--removal mask"
            raise InputError(f"{wrong} needs the model itself; a function or an endpoint gives vectors, and no more")
