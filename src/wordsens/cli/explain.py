"""`wordsens explain`: its options and its work."""

from dataclasses import dataclass
from typing import Annotated, Any

import typer

from wordsens.cli.model_choice import (
    CommandOptions,
    Html,
    MaxWords,
    ModelOptions,
    TextOptions,
    require_met,
    requirements_option,
    unset,
    write_page,
)
from wordsens.cli.options import takes
from wordsens.cli.terminal import reporting
from wordsens.errors import InputError, require_count

# Options of --texts alone.
_OF_TEXTS = ("labels", "words_per_text", "move_texts", "requirements")


@dataclass(frozen=True, kw_only=True)
class ExplainOptions(ModelOptions, TextOptions, CommandOptions):
    """The options of `wordsens explain`. With --encode or --endpoint there is no MODEL: the first
    argument is TEXT."""

    passages: Annotated[
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
            "--classes",
            help="The model is a classifier: explain the class of TEXT, or "
            "find the words that flip the labels of --texts.",
        ),
    ] = False
    target: Annotated[
        int | None, unset("Which class, from 0; default: the likeliest.", "--class")
    ] = None
    tries: Annotated[
        int | None,
        unset("Other words tried in the place of each; 0: none; default: 8, with --texts 4."),
    ] = None
    leaders: Annotated[
        int,
        typer.Option(
            help="Words of each text that are swapped and moved: those whose deletion changes the "
            "score most."
        ),
    ] = 16
    vectors: Annotated[
        bool, typer.Option(help="Also move these words as vectors, where the model has gradients.")
    ] = True
    labels: Annotated[
        list[str] | None, unset("A class's name, in the order of classes; repeat it.")
    ] = None
    words_per_text: Annotated[
        int | None, unset("Words of each of --texts that are measured; default: 12.")
    ] = None
    move_texts: Annotated[
        int | None, unset("How many of --texts have their words moved as vectors; default: 20.")
    ] = None
    requirements: Annotated[
        list[str] | None, requirements_option("'toxic.delete <= .1' or 'all.swap <= .3'")
    ] = None
    max_words: MaxWords = None
    html: Html = None

    def __post_init__(self) -> None:
        passages = list(self.passages or [])
        if self.model is not None and (self.encode is not None or self.endpoint is not None):
            passages.insert(0, self.model)
            object.__setattr__(self, "model", None)
        object.__setattr__(self, "passages", passages)
        ModelOptions.__post_init__(self)
        CommandOptions.__post_init__(self)
        of_texts = next((name for name in _OF_TEXTS if getattr(self, name)), "")
        several = self.texts is not None
        refusals = {
            "--texts goes with --classes, and without TEXT": (
                several and (passages or not self.classes)
            ),
            f"give one text or two, in quotes; got {len(passages)}": (
                not several and len(passages) not in (1, 2)
            ),
            f"--{of_texts.replace('_', '-')} goes with --classes --texts FILE": (
                not several and of_texts
            ),
            "--classes goes with a classifier, and one text or --texts FILE": (
                self.classes and (self.endpoint is not None or len(passages) == 2)
            ),
            "--on-error skip is of many texts, and explain has one or two": (
                self.on_error == "skip"
            ),
            "--class goes with --classes and TEXT; leave it out": (
                self.target is not None and not (passages and self.classes)
            ),
        }
        for message, applies in refusals.items():
            if applies:
                raise InputError(message)
        if several:
            self.require_texts()
        if self.max_words is not None:
            require_count("max_words", self.max_words, least=2)
        self.require_files("html")


@takes(ExplainOptions, first=("classes", "texts", "tries", "leaders", "html"))
def explain(options: ExplainOptions) -> None:
    """Find the words that carry the score of two texts, a class, or an embedding.

    For each word: the text without it, with another word in its place, and with its vector moved;
    and for two texts the words that keep them apart, and pairs of words that count for more, or
    less, together than alone. With --classes --texts FILE: the share of each label's texts that
    one word flips.

    Example: wordsens explain minilm "How do I enable it?" "How do I disable it?" --html
    explained.html
    """
    from wordsens.evaluation.classes import explain_classes
    from wordsens.evaluation.explain import explain
    from wordsens.evaluation.pairs import prompted
    from wordsens.models.classifier import as_classifier
    from wordsens.models.function import load_named
    from wordsens.text.whole_words import first_words

    given: dict[str, Any] = {
        name: getattr(options, name)
        for name in ("tries", "words_per_text", "move_texts", "requirements")
        if getattr(options, name) is not None
    }
    with reporting(1, "explaining", quiet=options.quiet) as report:
        given["progress"] = lambda done, total: report.update(done / total, now="")
        if options.classes:
            model = as_classifier(
                options.model if options.encode is None else load_named(options.encode),
                labels=options.labels,
                device=options.device,
                revision=options.revision,
            )
        else:
            model = prompted(options.load(), options.prompt_names or ())
        if options.texts is not None:
            documents = options.documents(max_words=options.max_words, quiet=options.quiet)
            texts = [document.text for document in documents]
            found = explain_classes(model, texts, seed=options.seed, **given)
        else:
            found = explain(
                model,
                *(
                    first_words(text, options.max_words or len(text))
                    for text in options.passages or ()
                ),
                target=options.target,
                leaders=options.leaders,
                vectors=options.vectors,
                **given,
            )
    if options.html is not None:
        title = f"Which words make the {found.score}? {found.model}"
        write_page(options.html, "explain", title, found.view())
    options.print("explain", {"seed": options.seed, **found.to_dict()}, found.view())
    require_met(getattr(found, "failures", ()))
