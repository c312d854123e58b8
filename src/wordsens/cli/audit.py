"""The options of `wordsens audit`."""

from dataclasses import dataclass
from typing import Annotated

import typer

from wordsens.cli.executor_options import PlaceOptions
from wordsens.cli.model_choice import ModelOptions, TextOptions
from wordsens.cli.options import Seed
from wordsens.errors import InputError, require_choice, require_count

OUTPUTS = ("embedding", "probabilities")
WAYS = ("delete", "mask")
NO_PAIRS, SHIPPED_PAIRS = "none", "shipped"


@dataclass(frozen=True, kw_only=True)
class AuditOptions(PlaceOptions, ModelOptions, TextOptions):
    """The options of `wordsens audit`."""

    max_words: Annotated[
        int, typer.Option(help="Tokens that a longer text keeps, special ones not counted.", rich_help_panel="Texts")
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
    ] = "none"
    compare: Annotated[
        str | None,
        typer.Option(help="The --out of an earlier audit of the same texts: what changed.", show_default=False),
    ] = None
    threshold: Annotated[
        float, typer.Option(help="The cosine from which on two texts count as the same, so that a change is lost.")
    ] = 0.95
    sensitivity_texts: Annotated[
        int, typer.Option(help="Texts whose words are moved as vectors, the first ones, which takes most of the time.")
    ] = 10
    layer_texts: Annotated[int, typer.Option(help="Texts measured layer by layer and head by head; 0: none.")] = 1
    substitutions: Annotated[
        int,
        typer.Option(
            help="Texts measured with random words of the same kind in the place of their own: average, block and "
            "random sensitivity; 0: none."
        ),
    ] = 0
    requirements: Annotated[
        list[str] | None,
        typer.Option(
            "--require",
            help="Such as 'negation.removal >= .05' or 'all.removal <= .5'; may be repeated. Exit code 3 when one "
            "fails.",
        ),
    ] = None
    resume: Annotated[
        bool,
        typer.Option(
            "--resume", help="Go on with an audit of a function or endpoint, which is the same one: nothing tells."
        ),
    ] = False
    out: Annotated[str, typer.Option(help="The folder for the records and the report.")] = "audit"
    seed: Seed = 0

    def __post_init__(self) -> None:
        PlaceOptions.__post_init__(self)
        ModelOptions.__post_init__(self)
        require_count("max_words", self.max_words, least=2)
        require_count("words_per_text", self.words_per_text)
        require_count("layer_texts", self.layer_texts, least=0)
        require_count("sensitivity_texts", self.sensitivity_texts, least=0)
        if not -1 < self.threshold < 1:
            raise InputError(f"`threshold` (={self.threshold!r}) must be a cosine between -1 and 1, such as 0.95")
        require_choice("output", self.output, OUTPUTS)
        self.require_texts()
        require_count("substitutions", self.substitutions, least=0)
        require_choice("removal", self.removal, WAYS)
        if self.model is None and (self.output, self.removal) != (OUTPUTS[0], WAYS[0]):
            wrong = "--output probabilities" if self.output != OUTPUTS[0] else "--removal mask"
            raise InputError(f"{wrong} needs the model itself; a function or an endpoint gives vectors, and no more")
