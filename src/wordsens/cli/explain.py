"""`wordsens explain`: its options and its work."""

from dataclasses import dataclass
from typing import Annotated, Any

import typer

from wordsens.cli.model_choice import (
    CommandOptions,
    Html,
    MaxWords,
    ModelOptions,
    unset,
    write_page,
)
from wordsens.cli.options import takes
from wordsens.cli.terminal import reporting
from wordsens.errors import InputError, require_count


@dataclass(frozen=True, kw_only=True)
class ExplainOptions(ModelOptions, CommandOptions):
    """The options of `wordsens explain`. With --encode or --endpoint there is no MODEL: the first
    argument is TEXT."""

    texts: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TEXT [OTHER]",
            help="The text, and one that it is compared with.",
            show_default=False,
        ),
    ] = None
    classes: Annotated[
        bool,
        typer.Option(
            "--classes", help="Explain the probability of a class: the model is a classifier."
        ),
    ] = False
    target: Annotated[
        int | None, unset("Which class, from 0; default: the likeliest.", "--class")
    ] = None
    tries: Annotated[int, typer.Option(help="Other words tried in the place of each; 0: none.")] = 8
    leaders: Annotated[
        int,
        typer.Option(
            help="Words of each text that are exchanged and moved as vectors: those whose removal "
            "moves the score most."
        ),
    ] = 16
    vectors: Annotated[
        bool, typer.Option(help="Also move these words as vectors, where the model has gradients.")
    ] = True
    max_words: MaxWords = None
    html: Html = None

    def __post_init__(self) -> None:
        texts = list(self.texts or [])
        if self.model is not None and (self.encode is not None or self.endpoint is not None):
            texts.insert(0, self.model)
            object.__setattr__(self, "model", None)
        object.__setattr__(self, "texts", texts)
        ModelOptions.__post_init__(self)
        CommandOptions.__post_init__(self)
        if len(texts) not in (1, 2):
            raise InputError(f"give one text or two, in quotes; got {len(texts)}")
        if self.classes and (self.model is None or len(texts) == 2):
            raise InputError("--classes goes with the name or folder of a classifier and one text")
        if self.on_error == "skip":
            raise InputError("--on-error skip is of many texts, and explain has one or two")
        if self.target is not None and not self.classes:
            raise InputError("--class goes with --classes; leave it out")
        require_count("tries", self.tries, least=0)
        require_count("leaders", self.leaders)
        if self.max_words is not None:
            require_count("max_words", self.max_words, least=2)
        self.require_files("html")


@takes(ExplainOptions, first=("classes", "target", "tries", "leaders", "html"))
def explain(options: ExplainOptions) -> None:
    """Find the words that carry the score of two texts, a class, or an embedding.

    For each word: the text without it, with another word in its place, and with its vector moved;
    and for two texts the words that keep them apart, and pairs of words that count for more, or
    less, together than alone.

    Example: wordsens explain minilm "How do I enable it?" "How do I disable it?" --html
    explained.html
    """
    from wordsens.evaluation.explain import explain
    from wordsens.evaluation.pairs import prompted
    from wordsens.models.classifier import as_classifier
    from wordsens.text.whole_words import first_words

    texts = options.texts or []
    if options.max_words is not None:
        texts = [first_words(text, options.max_words) for text in texts]
    model: Any
    with reporting(1, "explaining", quiet=options.quiet) as report:
        if options.classes:
            model = as_classifier(options.model, device=options.device, revision=options.revision)
        else:
            model = prompted(options.load(), options.prompt_names or ())
        explained = explain(
            model,
            *texts,
            target=options.target,
            tries=options.tries,
            leaders=options.leaders,
            vectors=options.vectors,
            seed=options.seed,
            progress=lambda done, total: report.update(done / total, now=""),
        )
    if options.html is not None:
        title = f"Which words make the {explained.score}? {explained.model}"
        write_page(options.html, "explain", title, explained.view())
    options.print("explain", {"seed": options.seed, **explained.to_dict()}, explained.view())
