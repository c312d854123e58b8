"""`wordsens flips`: its options, its work and what it prints."""

from dataclasses import dataclass
from typing import Annotated

import typer

from wordsens.cli.model_choice import TextOptions
from wordsens.cli.options import AsJson, Device, Quiet, Seed, Threads
from wordsens.cli.terminal import print_display, print_json, printing
from wordsens.errors import InputError, RequirementError, require_count
from wordsens.version import __version__


@dataclass(frozen=True, kw_only=True)
class FlipsRequest(TextOptions):
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
    limit: Annotated[int | None, typer.Option(help="At most this many texts.")] = 200
    max_words: Annotated[int | None, typer.Option(help="A longer text keeps its first words.", show_default=False)] = (
        None
    )
    words_per_text: Annotated[int, typer.Option(help="Words of a text that are measured.")] = 12
    tries: Annotated[int, typer.Option(help="Other words tried in the place of each; 0: none.")] = 4
    radius_texts: Annotated[int, typer.Option(help="Texts whose words are moved as vectors; 0: none.")] = 20
    requirements: Annotated[
        list[str] | None,
        typer.Option(
            "--require",
            help="Such as 'toxic.removal <= .1' or 'all.swap <= .3'; may be repeated. Exit code 3 when one fails.",
        ),
    ] = None
    device: Device = "cpu"
    seed: Seed = 0
    threads: Threads = 1
    as_json: AsJson = False
    quiet: Quiet = False

    def __post_init__(self) -> None:
        if (self.model is None) == (self.encode is None):
            raise InputError("give one model: MODEL, or --encode module:function")
        require_count("threads", self.threads)
        self.require_texts()
        if self.max_words is not None:
            require_count("max_words", self.max_words)


def run_flips(request: FlipsRequest) -> None:
    """Find the flips and print them."""
    from wordsens.evaluation.flips import FlipPlan, label_flips
    from wordsens.models.black_box import load_named
    from wordsens.models.classifier import as_classifier

    documents = request.documents(max_words=request.max_words, quiet=request.quiet)
    plan = FlipPlan(words_per_text=request.words_per_text, tries=request.tries, radius_texts=request.radius_texts)
    given = request.model if request.encode is None else load_named(request.encode)
    model = as_classifier(given, labels=request.labels or None, device=request.device)
    texts = [document.text for document in documents]
    result = label_flips(model, texts, plan=plan, requirements=request.requirements or (), seed=request.seed)
    with printing():
        if request.as_json:
            print_json({"command": "flips", "version": __version__, "seed": request.seed, **result.to_dict()})
        else:
            print_display(result.display())
    if not result.passed:
        raise RequirementError(f"requirements are not met: {'; '.join(result.failures)}")
