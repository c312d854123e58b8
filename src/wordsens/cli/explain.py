"""`wordsens explain`: its options, its work and what it prints."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from wordsens.cli.model_choice import ModelOptions
from wordsens.cli.options import AsJson, Quiet, Seed, Threads
from wordsens.cli.terminal import print_json, stdout, table
from wordsens.errors import InputError, require_count
from wordsens.version import __version__

if TYPE_CHECKING:
    from wordsens.evaluation.explanation import Explanation

_FAINT = 0.1
"""The share of the largest removal under which a word is not coloured."""

_STRONG = 0.5
"""The share from which on it is bold."""


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
    found = explain(_model(request), *texts, target=request.target, plan=plan, seed=request.seed)
    if request.html is not None:
        Path(request.html).expanduser().write_text(_page(found), encoding="utf-8")
    if request.as_json:
        document = {"command": "explain", "version": __version__, "seed": request.seed, **found.to_dict()}
        print_json(document)
    else:
        _print(found)


def _model(request: ExplainRequest) -> Any:
    if not request.classes:
        from wordsens.evaluation.check import prompted

        return prompted(request.load(), request.prompt_names or ())
    from wordsens.models.classifier import as_classifier

    return as_classifier(request.model, device=request.device, revision=request.revision)


def _print(found: "Explanation") -> None:
    console = stdout()
    first, *others = found.sentences()
    console.print(Text(first, style="bold"))
    for line in others:
        console.print(Text(line))
    console.print()
    for side in range(len(found.texts)):
        console.print(_coloured(found, side))
    console.print(Text("Green: the score rises without the word; red: it falls; bold: most.", style="dim"))
    console.print()
    _words(found)
    _pairs(found)


def _coloured(found: "Explanation", side: int) -> Text:
    from wordsens.evaluation.explanation import FALL, RISE

    shown = Text(found.texts[side])
    for word in found.words:
        shade = found.shade(word)
        if word.side == side and abs(shade) >= _FAINT:
            bold = "bold " * (abs(shade) >= _STRONG)
            shown.stylize(f"{bold}{RISE if shade > 0 else FALL}", word.start, word.stop)
    return shown


def _words(found: "Explanation") -> None:
    columns = {"removed": "removal", "best swap": "swap", "down": "lowers", "up": "raises", "bound": "upper"}
    columns |= {"both removed": "apart"}
    kept = {head: name for head, name in columns.items() if any(getattr(w, name) is not None for w in found.words)}
    shown = table(("text", "right"), ("word", "left"), *((head, "right") for head in kept), ("", "left"))
    for word in found.words:
        numbers = (getattr(word, name) for name in kept.values())
        named = [f"for {word.swapped_for}"] * (word.swapped_for is not None)
        named += [f"with {word.counterpart}"] * (word.counterpart is not None)
        shown.add_row(
            str(word.side + 1),
            Text(word.word),
            *("" if n is None else f"{n:+.4f}" for n in numbers),
            Text(", ".join(named)),
        )
    console = stdout()
    console.print(shown)
    told = {
        "removed": "removed: the change without the word, one change.",
        "best swap": f"best swap: the farthest of {max(w.tried for w in found.words)} words that could stand there.",
        "down": "down, up: the farthest found by moving the word's vectors by up to their length; attained, no bound.",
        "bound": "bound: certified.",
        "both removed": "both removed: the largest rise without this word and one of the other text, one change each.",
    }
    console.print(" ".join(sentence for head, sentence in told.items() if head in kept))


def _pairs(found: "Explanation") -> None:
    if not found.pairs:
        return
    shown = table(("first", "left"), ("second", "left"), ("both", "right"), ("sum", "right"), ("difference", "right"))
    for pair in found.pairs:
        difference = pair.together - pair.alone
        shown.add_row(
            Text(pair.first), Text(pair.second), f"{pair.together:+.4f}", f"{pair.alone:+.4f}", f"{difference:+.4f}"
        )
    console = stdout()
    console.print()
    console.print("Pairs of words whose removal together differs most from the sum of each (one change)", style="bold")
    console.print(shown)


def _page(found: "Explanation") -> str:
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>wordsens explain</title></head>'
        f"<body>{found._repr_html_()}</body></html>\n"
    )
