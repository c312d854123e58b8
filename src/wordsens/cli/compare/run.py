"""The work of `wordsens compare`: read the texts, load the models, compare, print, write files, and judge."""

from collections.abc import Sequence
from pathlib import Path

from rich.text import Text

from wordsens import __version__
from wordsens.cli.compare.options import CompareRequest
from wordsens.cli.junit import write_junit
from wordsens.cli.terminal import LITTLE, MUCH, print_json, reporting, stdout, table
from wordsens.errors import RequirementError
from wordsens.evaluation.compare import ComparePlan, compare_models, prepare
from wordsens.evaluation.comparison import Comparison
from wordsens.evaluation.difference import CHECK, NEIGHBOURS, RANK, REMOVAL, WORD, Difference
from wordsens.evaluation.neighbours import ChangedNeighbour
from wordsens.files import named_path
from wordsens.models.black_box import Model, load_named
from wordsens.models.endpoint import Endpoint
from wordsens.models.load import as_model, as_pair_model, is_pair_model
from wordsens.models.pairs import PairModel
from wordsens.text.readers import read_documents

_TITLES = {
    CHECK: "Flipped meanings: area under the curve of opposites against paraphrases",
    REMOVAL: "Kinds of words: how far a text moves without one, relative to its length",
    RANK: "Words' ranks among the words of their text (0 the least, 1 the most)",
    WORD: "Single words: how far a text moves without it",
    NEIGHBOURS: "Neighbours: between two calls of one model, and between the models",
}
_WORDS = 8
"""Rows of single words and ranks that are printed; --json has all."""

_TEXTS = 5
"""Texts with another first neighbour that are printed."""

_LETTERS = 90


def run_compare(request: CompareRequest) -> None:
    """Compare and print the answer; RequirementError where a requirement fails, after all is written."""
    documents = read_documents(
        request.dataset, text_column=request.text_column, labels=False, limit=request.limit, skip_empty=True
    )
    plan = ComparePlan(
        words_per_text=request.words_per_text,
        word_texts=request.word_texts,
        neighbours=request.neighbours,
        tolerance=request.tolerance,
    )
    prepared = prepare(documents, request.pairs, plan, request.requirements or (), request.seed)
    first, second = (_loaded(given, request) for given in request.models or [])
    with reporting(1, "of the texts", quiet=request.quiet) as report:
        found = compare_models(
            (first, second), prepared, progress=lambda done, total: report.update(done / total, now="")
        )
    _write(request, found, prepared.gate.cases(found.rows))
    if request.as_json:
        document = {"command": "compare", "version": __version__, "seed": request.seed, **found.to_dict()}
        print_json(document)
    else:
        print_comparison(found)
    if not found.passed:
        many = "a requirement is" if len(found.failures) == 1 else f"{len(found.failures)} requirements are"
        raise RequirementError(f"{many} not met: {'; '.join(found.failures)}")


def _loaded(given: str, request: CompareRequest) -> Model | PairModel:
    """The model that a name, a folder, name@revision, module:function or URL#model stands for."""
    if "://" in given:
        url, _, model = given.partition("#")
        return as_model(Endpoint(url=url, model=model) if model else Endpoint(url=url))
    if named_path("models", given).exists():
        name, revision = given, None
    elif ":" in given:
        return as_model(load_named(given, "models"))
    else:
        name, _, revision = given.partition("@")
        revision = revision or None
    if is_pair_model(name, revision):
        return as_pair_model(name, revision=revision, device=request.device)
    return as_model(name, pool=request.pool, revision=revision, device=request.device)


def _write(request: CompareRequest, found: Comparison, cases: dict[str, list[str]]) -> None:
    if request.out is not None:
        found.save(Path(request.out).expanduser())
    if request.html is not None:
        Path(request.html).expanduser().write_text(_page(found), encoding="utf-8")
    if request.junit is not None:
        write_junit(request.junit, f"wordsens compare {found.first} {found.second}", "wordsens.compare", cases)


def _page(found: Comparison) -> str:
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>wordsens compare</title></head>'
        f'<body style="margin:2em">{found._repr_html_()}</body></html>\n'
    )


def print_comparison(found: Comparison) -> None:
    """The answer, what failed, then the rows of every part and the texts whose neighbours changed."""
    console = stdout()
    first, *others = found.answer
    console.print(Text(first, style="bold"))
    for line in others:
        console.print(Text(line))
    for failure in found.failures:
        console.print(Text(f"FAILED: {failure}", style="bold red"))
    if found.passed and found.requirements:
        console.print("All requirements are met.", style="bold green")
    for part, title in _TITLES.items():
        rows = [row for row in found.rows if row.part == part and row.low is not None]
        if part in (RANK, WORD):
            rows = sorted(rows, key=lambda row: (not row.differs, -abs(row.difference)))
        _rows(found, title, rows, _WORDS if part in (RANK, WORD) else len(rows))
    _changed(found.changed)
    console.print()
    if found.apart is not None:
        console.print(f"The two vectors of a text, at length one, lie {found.apart:.2g} apart (mean).")
    for note in found.notes:
        console.print(Text(f"Note: {note}"))


def _rows(found: Comparison, title: str, rows: Sequence[Difference], most: int) -> None:
    if not rows:
        return
    console = stdout()
    console.print()
    console.print(title, style="bold")
    shown = table(("", "left"), ("first", "right"), ("second", "right"), ("difference", "right"), ("95 %", "right"),
                  ("", "right"))  # fmt: skip
    for row in rows[:most]:
        style = "" if not row.differs else MUCH if row.difference > 0 else LITTLE
        shown.add_row(
            Text(row.name, style=style), f"{row.first:.4f}", f"{row.second:.4f}", f"{row.difference:+.4f}",
            f"{row.low:+.4f} to {row.high:+.4f}", f"{row.count} {'pairs' if row.part == CHECK else 'texts'}",
        )  # fmt: skip
    console.print(shown)
    if len(rows) > most:
        console.print(f"and {len(rows) - most} more (--json)")


def _changed(changed: Sequence[ChangedNeighbour]) -> None:
    if not changed:
        return
    console = stdout()
    console.print()
    console.print("Texts with another first neighbour, the clearest first", style="bold")
    for one in changed[:_TEXTS]:
        console.print(Text(_cut(one.text)))
        console.print(Text(f"  was next to: {_cut(one.old_text)}"))
        console.print(Text(f"  is next to:  {_cut(one.new_text)}"))
        if one.words:
            told = ", ".join(f"'{word.word}' {word.first:+.3f} / {word.second:+.3f}" for word in one.words[:3])
            console.print(Text(f"  without these words the old one leads by more or less, first / second: {told}"))


def _cut(text: str) -> str:
    plain = " ".join(text.split())
    return plain if len(plain) <= _LETTERS else plain[:_LETTERS].rsplit(" ", 1)[0] + " ..."
