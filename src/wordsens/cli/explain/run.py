"""The work of `wordsens explain`, and what it prints."""

from pathlib import Path
from typing import Any

from rich.text import Text

from wordsens import __version__
from wordsens.cli.explain.options import ExplainRequest
from wordsens.cli.terminal import print_json, stdout, table
from wordsens.evaluation.explain.explain import ExplainPlan, explain
from wordsens.evaluation.explain.explanation import FALL, RISE, Explanation
from wordsens.maps.transformer.features import TransformerFeatures

_FAINT = 0.1
"""The share of the largest removal under which a word is not coloured."""

_STRONG = 0.5
"""The share from which on it is bold."""


def run_explain(request: ExplainRequest) -> None:
    """Explain the score and print it."""
    plan = ExplainPlan(tries=request.tries, vectors=request.vectors)
    texts = request.texts or []
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
        return request.load()
    return TransformerFeatures.from_pretrained(
        request.model, output="probabilities", device=request.device, revision=request.revision
    )


def _print(found: Explanation) -> None:
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


def _coloured(found: Explanation, side: int) -> Text:
    shown = Text(found.texts[side])
    for word in found.words:
        shade = found.shade(word)
        if word.side == side and abs(shade) >= _FAINT:
            bold = "bold " * (abs(shade) >= _STRONG)
            shown.stylize(f"{bold}{RISE if shade > 0 else FALL}", word.start, word.stop)
    return shown


def _words(found: Explanation) -> None:
    columns = {"removed": "removal", "best swap": "swap", "down": "lowers", "up": "raises", "bound": "upper"}
    columns |= {"both removed": "apart"}
    kept = {head: name for head, name in columns.items() if any(getattr(w, name) is not None for w in found.words)}
    shown = table(("word", "left"), *((head, "right") for head in kept), ("", "left"))
    for at, word in enumerate(found.words):
        if at and word.side != found.words[at - 1].side:
            shown.add_row()
        numbers = (getattr(word, name) for name in kept.values())
        named = [f"for {word.swapped_for}"] * (word.swapped_for is not None)
        named += [f"with {word.counterpart}"] * (word.counterpart is not None)
        shown.add_row(Text(word.word), *("" if n is None else f"{n:+.4f}" for n in numbers), Text(", ".join(named)))
    console = stdout()
    console.print(shown)
    told = {
        "removed": "removed: the change without the word, one change.",
        "best swap": f"best swap: the farthest of {max(w.tried for w in found.words)} other words.",
        "down": "down, up: the farthest found by moving the word's vectors by up to their length; attained, no bound.",
        "bound": "bound: certified.",
        "both removed": "both removed: the largest rise without this word and one of the other text, one change each.",
    }
    console.print(" ".join(sentence for head, sentence in told.items() if head in kept))


def _pairs(found: Explanation) -> None:
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


def _page(found: Explanation) -> str:
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>wordsens explain</title></head>'
        f"<body>{found._repr_html_()}</body></html>\n"
    )
