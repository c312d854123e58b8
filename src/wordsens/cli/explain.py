"""`wordsens explain`: its options and its work."""

from dataclasses import dataclass
from typing import Annotated, Any

import typer

import wordsens as ws
from wordsens.cli.command import (
    Answer,
    CommandRun,
    Html,
    Seed,
    Threads,
    command,
    cpu_threads,
    option,
    requirements_option,
    unmet,
)
from wordsens.cli.groups import MaxWords, ModelOptions, TextOptions, Texts, shortened, write_page
from wordsens.errors import InputError


@dataclass(frozen=True, kw_only=True)
class ModelAndPassages(ModelOptions):
    """A model and one or two texts. With --encode or --endpoint there is no MODEL: the first
    argument is TEXT."""

    passages: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TEXT [OTHER]",
            help="The text, and one that it is compared with.",
            show_default=False,
        ),
    ] = None

    def __post_init__(self) -> None:
        passages = list(self.passages or [])
        if self.model is not None and (self.encode is not None or self.endpoint is not None):
            passages.insert(0, self.model)
            object.__setattr__(self, "model", None)
        object.__setattr__(self, "passages", passages)
        super().__post_init__()


@command("explain", first=("classes", "texts", "tries", "leaders", "html"))
def explain(
    chosen: ModelAndPassages,
    texts: Texts = None,
    *,
    reading: TextOptions,
    classes: Annotated[
        bool,
        option(
            "The model is a classifier: explain the class of TEXT, or find the words that flip the "
            "labels of --texts.",
            "--classes",
        ),
    ] = False,
    target: Annotated[
        int | None, option("Which class, from 0; default: the likeliest.", "--class")
    ] = None,
    tries: Annotated[
        int | None,
        option("Replacements tried for each word; 0: none; default: 8, or 4 with --texts."),
    ] = None,
    leaders: Annotated[
        int,
        option(
            "Number of words per text that are also replaced and moved: those whose deletion "
            "changes the score most."
        ),
    ] = 16,
    vectors: Annotated[
        bool, option("Also move the vectors of the words of --leaders, if the model has gradients.")
    ] = True,
    labels: Annotated[
        list[str] | None,
        option("Name of a class. Give the option once per class, in the order of the classes."),
    ] = None,
    words_per_text: Annotated[
        int | None, option("Number of words measured in each text of --texts; default: 12.")
    ] = None,
    move_texts: Annotated[
        int | None, option("Number of --texts whose words' vectors are moved; default: 20.")
    ] = None,
    requirements: Annotated[
        list[str] | None, requirements_option("'toxic.delete <= .1' or 'all.swap <= .3'")
    ] = None,
    max_words: MaxWords = None,
    html: Html = None,
    seed: Seed = 0,
    threads: Threads = 1,
    run: CommandRun,
) -> Answer:
    """Find the words that determine the similarity of two texts, the predicted class of a text, or
    its embedding.

    For each word it gives how much the similarity, the class probability or the embedding changes
    when the word is deleted, when it is replaced, and when its vector moves. For two texts it also
    gives the words that separate them, and pairs of words whose joint deletion changes the
    similarity by more, or less, than the sum of the two single deletions. With --classes --texts
    FILE it gives, for each label, the share of its texts whose class changes when a single word is
    changed.

    Example: wordsens explain minilm "How do I enable it?" "How do I disable it?" --html
    explained.html
    """
    passages = chosen.passages or []
    of_texts = {
        "labels": labels,
        "words-per-text": words_per_text,
        "move-texts": move_texts,
        "require": requirements,
    }
    stray = [name for name, value in of_texts.items() if value and texts is None]
    refusals = {
        "--texts goes with --classes, and without TEXT": texts and (passages or not classes),
        f"give one text or two, in quotes; got {len(passages)}": (
            texts is None and len(passages) not in (1, 2)
        ),
        f"--{''.join(stray[:1])} goes with --classes --texts FILE": stray,
        "--classes goes with a classifier, and one text or --texts FILE": (
            classes and (chosen.endpoint is not None or len(passages) == 2)
        ),
        "--on-error skip is of many texts, and explain has one or two": chosen.on_error == "skip",
        "--class goes with --classes and TEXT; leave it out": (
            target is not None and not (passages and classes)
        ),
    }
    for message, applies in refusals.items():
        if applies:
            raise InputError(message)
    from wordsens.evaluation.pairs import prompted
    from wordsens.models.classifier import as_classifier
    from wordsens.models.function import load_named
    from wordsens.text.whole_words import first_words

    counts = {"tries": tries, "words_per_text": words_per_text, "move_texts": move_texts}
    options: dict[str, Any] = {name: count for name, count in counts.items() if count is not None}
    documents = [] if texts is None else shortened(reading.read(texts, run.notice), max_words)
    with cpu_threads(threads), run.progress("explaining") as options["progress"]:
        if classes:
            model: Any = as_classifier(
                chosen.model if chosen.encode is None else load_named(chosen.encode),
                labels=labels,
                device=chosen.device,
                revision=chosen.revision,
            )
        else:
            model = prompted(chosen.load(), chosen.prompt_names or ())
        if texts is not None:
            contents = [document.text for document in documents]
            found = ws.explain_classes(
                model, contents, requirements=requirements or (), seed=seed, **options
            )
        else:
            read = [first_words(text, max_words or len(text)) for text in passages]
            found = ws.explain(
                model, *read, target=target, leaders=leaders, vectors=vectors, **options
            )
    view = found.view()
    write_page(html, "explain", f"Which words make the {found.score}? {found.model}", view)
    document = {"seed": seed, **found.to_dict()}
    return Answer(document=document, view=view, error=unmet(getattr(found, "failures", ())))
