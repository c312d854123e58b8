"""`wordsens flips`: its options and its work."""

from dataclasses import dataclass
from typing import Annotated

import typer

from wordsens.cli.model_choice import (
    CommandOptions,
    MaxWords,
    TextOptions,
    require_met,
    requirements_option,
    unset,
)
from wordsens.cli.options import Device, takes
from wordsens.errors import InputError, require_count


@dataclass(frozen=True, kw_only=True)
class FlipsOptions(TextOptions, CommandOptions):
    """The options of `wordsens flips`."""

    model: Annotated[
        str | None,
        typer.Argument(
            metavar="MODEL", help="A name or folder of a classifier.", show_default=False
        ),
    ] = None
    encode: Annotated[
        str | None,
        unset(
            "module:function, from a list of texts to an array (texts, classes); instead of MODEL."
        ),
    ] = None
    labels: Annotated[
        list[str] | None, unset("A class's name, in the order of classes; repeat it.")
    ] = None
    limit: Annotated[int | None, typer.Option(help="At most this many texts.")] = 200
    max_words: MaxWords = None
    words_per_text: Annotated[int, typer.Option(help="Words of a text that are measured.")] = 12
    tries: Annotated[int, typer.Option(help="Other words tried in the place of each; 0: none.")] = 4
    radius_texts: Annotated[
        int, typer.Option(help="Texts whose words are moved as vectors; 0: none.")
    ] = 20
    requirements: Annotated[
        list[str] | None, requirements_option("'toxic.removal <= .1' or 'all.swap <= .3'")
    ] = None
    device: Device = "cpu"

    def __post_init__(self) -> None:
        CommandOptions.__post_init__(self)
        if (self.model is None) == (self.encode is None):
            raise InputError("give one model: MODEL, or --encode module:function")
        self.require_texts()
        if self.max_words is not None:
            require_count("max_words", self.max_words)


@takes(FlipsOptions, first=("texts", "text_column", "limit", "labels", "requirements"))
def flips(options: FlipsOptions) -> None:
    """Find the words that flip a classifier's label, by class: for moderation, and any other
    classifier.

    For each word: the class without it, with another word in its place, and, for transformers, the
    smallest radius at which its vectors were seen to flip the label, an upper bound of the
    smallest.

    Example: wordsens flips ./toxicity-model --texts comments.csv --require 'toxic.removal <= .2'
    """
    from wordsens.evaluation.flips import label_flips
    from wordsens.models.classifier import as_classifier
    from wordsens.models.function import load_named

    documents = options.documents(max_words=options.max_words, quiet=options.quiet)
    model = options.model if options.encode is None else load_named(options.encode)
    flips = label_flips(
        as_classifier(model, labels=options.labels or None, device=options.device),
        [document.text for document in documents],
        words_per_text=options.words_per_text,
        tries=options.tries,
        radius_texts=options.radius_texts,
        requirements=options.requirements or (),
        seed=options.seed,
    )
    options.print("flips", {"seed": options.seed, **flips.to_dict()}, flips.view())
    require_met(flips.failures)
