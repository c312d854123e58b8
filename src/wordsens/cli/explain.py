"""`wordsens explain`: its options, its work and what it prints."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from wordsens.cli.model_choice import ModelOptions
from wordsens.cli.options import AsJson, Quiet, Seed, Threads
from wordsens.cli.terminal import print_display, print_json
from wordsens.display.page import html_page
from wordsens.errors import InputError, require_count
from wordsens.version import __version__


@dataclass(frozen=True, kw_only=True)
class ExplainRequest(ModelOptions):
    """The options of `wordsens explain`. With --encode or --endpoint there is no MODEL: the first argument is TEXT."""

    texts: Annotated[
        list[str] | None,
        typer.Argument(metavar="TEXT [OTHER]", help="The text, and one that it is compared with.", show_default=False),
    ] = None
    classes: Annotated[
        bool, typer.Option("--classes", help="Explain the probability of a class: the model is a classifier.")
    ] = False
    target: Annotated[
        int | None, typer.Option("--class", help="Which class, from 0; default: the likeliest.", show_default=False)
    ] = None
    tries: Annotated[int, typer.Option(help="Other words tried in the place of each; 0: none.")] = 8
    vectors: Annotated[bool, typer.Option(help="Also move every word as a vector, where the model has gradients.")] = (
        True
    )
    max_words: Annotated[int | None, typer.Option(help="A longer text keeps its first words.", show_default=False)] = (
        None
    )
    html: Annotated[str | None, typer.Option(help="Write the explanation to an HTML file.", show_default=False)] = None
    seed: Seed = 0
    threads: Threads = 1
    as_json: AsJson = False
    quiet: Quiet = False

    def __post_init__(self) -> None:
        given = list(self.texts or [])
        if self.model is not None and (self.encode is not None or self.endpoint is not None):
            given.insert(0, self.model)
            object.__setattr__(self, "model", None)
        object.__setattr__(self, "texts", given)
        super().__post_init__()
        if len(given) not in (1, 2):
            raise InputError(f"give one text or two, in quotes; got {len(given)}")
        if self.classes and (self.model is None or len(given) == 2):
            raise InputError("--classes goes with the name or folder of a classifier and one text")
        if self.target is not None and not self.classes:
            raise InputError("--class goes with --classes; leave it out")
        require_count("tries", self.tries, least=0)
        require_count("threads", self.threads)
        if self.max_words is not None:
            require_count("max_words", self.max_words, least=2)
        folder = None if self.html is None else Path(self.html).expanduser()
        if folder is not None and (not folder.parent.is_dir() or folder.is_dir()):
            raise InputError(f"`html` (={self.html!r}) must be a file in a folder that exists")


def run_explain(request: ExplainRequest) -> None:
    """Explain the score and print it."""
    from wordsens.evaluation.explain import ExplainPlan, explain
    from wordsens.text.whole_words import first_words

    plan = ExplainPlan(tries=request.tries, vectors=request.vectors)
    texts = request.texts or []
    if request.max_words is not None:
        texts = [first_words(text, request.max_words) for text in texts]
    result = explain(_model(request), *texts, target=request.target, plan=plan, seed=request.seed)
    if request.html is not None:
        title = f"Which words make the {result.score}? {result.model}"
        page = html_page(result.display(), title=f"{title} · wordsens explain", heading=title, version=__version__)
        Path(request.html).expanduser().write_text(page, encoding="utf-8")
    if request.as_json:
        document = {"command": "explain", "version": __version__, "seed": request.seed, **result.to_dict()}
        print_json(document)
    else:
        print_display(result.display())


def _model(request: ExplainRequest) -> Any:
    if not request.classes:
        from wordsens.evaluation.check import prompted

        return prompted(request.load(), request.prompt_names or ())
    from wordsens.models.classifier import as_classifier

    return as_classifier(request.model, device=request.device, revision=request.revision)
