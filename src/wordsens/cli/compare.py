"""`wordsens compare`: its options, its work and what it prints."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from wordsens.cli.model_choice import POOLS, TextOptions
from wordsens.cli.options import AsJson, Device, Quiet, Seed, Threads
from wordsens.cli.terminal import LITTLE, MUCH, print_json, printing, reporting, stdout, table
from wordsens.errors import InputError, RequirementError, require_choice, require_count, require_positive
from wordsens.version import __version__

if TYPE_CHECKING:
    from wordsens.evaluation.comparison import Comparison
    from wordsens.evaluation.difference import Difference
    from wordsens.evaluation.neighbours import ChangedNeighbour
    from wordsens.models.black_box import Model
    from wordsens.models.pairs import PairModel

_TEXT, _GATE, _EFFORT, _MODEL = "Texts", "Gate", "Effort", "Models"


@dataclass(frozen=True, kw_only=True)
class CompareRequest(TextOptions):
    """The options of `wordsens compare`."""

    models: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FIRST SECOND",
            help="Each a name or folder (a hub's name with @revision), module:function, or https://host/v1#model; the "
            "key of an endpoint in WORDSENS_API_KEY.",
            show_default=False,
        ),
    ] = None
    pairs: Annotated[
        str | None,
        typer.Option(
            help="Pairs of the check: a file of your own, or 'none'; default: the package's.",
            show_default=False,
            rich_help_panel=_TEXT,
        ),
    ] = None
    encode: Annotated[
        list[str] | None,
        typer.Option(help="module:function in the place of a model.", show_default=False, rich_help_panel=_MODEL),
    ] = None
    pool: Annotated[
        str | None,
        typer.Option(
            help="own, mean, cls, last or max, of both; default: each model's own.",
            show_default=False,
            rich_help_panel=_MODEL,
        ),
    ] = None
    device: Device = "cpu"
    words_per_text: Annotated[
        int, typer.Option(help="Words removed from a text, one by one.", rich_help_panel=_EFFORT)
    ] = 8
    word_texts: Annotated[int, typer.Option(help="Texts that words are removed from.", rich_help_panel=_EFFORT)] = 300
    neighbours: Annotated[int, typer.Option(help="Neighbours of a text that count.", rich_help_panel=_EFFORT)] = 10
    max_words: Annotated[
        int | None, typer.Option(help="A longer text keeps its first words.", show_default=False, rich_help_panel=_TEXT)
    ] = None
    threshold: Annotated[
        float | None,
        typer.Option(
            help="Your cosine threshold with FIRST: also give the one at which SECOND keeps as many near-duplicates.",
            show_default=False,
        ),
    ] = None
    tolerance: Annotated[
        float, typer.Option(help="Differences up to this share do not count.", rich_help_panel=_EFFORT)
    ] = 0.01
    requirements: Annotated[
        list[str] | None,
        typer.Option(
            "--require",
            help="Such as 'check.negation.difference >= -.02', 'neighbours.recall.second >= .9' or 'all.differs <= 0'; "
            "may be repeated. Exit code 3 when one fails.",
            rich_help_panel=_GATE,
        ),
    ] = None
    junit: Annotated[
        str | None,
        typer.Option(help="Write the requirements as JUnit XML.", show_default=False, rich_help_panel=_GATE),
    ] = None
    out: Annotated[
        str | None, typer.Option(help="Save the comparison, for ws.Comparison.load.", show_default=False)
    ] = None
    html: Annotated[str | None, typer.Option(help="Write the comparison as a page.", show_default=False)] = None
    seed: Seed = 0
    threads: Threads = 1
    as_json: AsJson = False
    quiet: Quiet = False

    def __post_init__(self) -> None:
        given = [*(self.models or []), *(self.encode or [])]
        object.__setattr__(self, "models", given)
        if len(given) != 2:
            raise InputError(f"give two models, FIRST and SECOND, or --encode for one of them; got {len(given)}")
        if self.pool is not None:
            require_choice("pool", self.pool, POOLS)
        for name in ("threads", "words_per_text", "word_texts", "neighbours"):
            require_count(name, getattr(self, name))
        self.require_texts()
        if self.max_words is not None:
            require_count("max_words", self.max_words)
        if self.threshold is not None and self.pairs == "none":
            raise InputError("--threshold needs the pairs of the check; leave --pairs none out")
        require_positive("tolerance", self.tolerance)
        for option in ("junit", "out", "html"):
            path = getattr(self, option)
            if path is not None and (not Path(path).expanduser().parent.is_dir() or Path(path).expanduser().is_dir()):
                raise InputError(f"`{option}` (={path!r}) must be a file in a folder that exists")


_TITLES = {
    "check": "Flipped meanings: area under the curve of opposites against near-duplicates",
    "removal": "Kinds of words: how far a text moves without one, relative to its length",
    "rank": "Words' ranks among the words of their text (0 the least, 1 the most)",
    "word": "Single words: how far a text moves without it",
    "neighbours": "Neighbours: between two calls of one model, and between the models",
}
_WORDS = 8
"""Rows of single words and ranks that are printed; --json has all."""

_TEXTS = 5
"""Texts with another first neighbour that are printed."""

_LETTERS = 90


def run_compare(request: CompareRequest) -> None:
    """Compare and print the answer; RequirementError where a requirement fails, after all is written."""
    from wordsens.evaluation.compare import ComparePlan, compare_models, prepare

    documents = request.documents(max_words=request.max_words, quiet=request.quiet)
    plan = ComparePlan(
        words_per_text=request.words_per_text,
        word_texts=request.word_texts,
        neighbours=request.neighbours,
        tolerance=request.tolerance,
        threshold=request.threshold,
    )
    prepared = prepare(documents, request.pairs, plan, request.requirements or (), request.seed)
    first, second = (_loaded(given, request) for given in request.models or [])
    with reporting(1, "of the texts", quiet=request.quiet) as report:
        found = compare_models(
            (first, second), prepared, progress=lambda done, total: report.update(done / total, now="")
        )
    _write(request, found, prepared.gate.cases(found.rows))
    with printing():
        if request.as_json:
            print_json({"command": "compare", "version": __version__, "seed": request.seed, **found.to_dict()})
        else:
            print_comparison(found)
    if not found.passed:
        many = "a requirement is" if len(found.failures) == 1 else f"{len(found.failures)} requirements are"
        raise RequirementError(f"{many} not met: {'; '.join(found.failures)}")


def _loaded(given: str, request: CompareRequest) -> "Model | PairModel":
    """The model that a name, a folder, name@revision, module:function or URL#model stands for."""
    from wordsens.files import named_path
    from wordsens.models.black_box import load_named
    from wordsens.models.endpoint import Endpoint
    from wordsens.models.load import as_model, load

    if "://" in given:
        url, _, model = given.partition("#")
        return as_model(Endpoint(url=url, model=model) if model else Endpoint(url=url))
    if ":" in given and not named_path("models", given).exists():
        return load(load_named(given, "models"))
    name, revision = given, None
    if not named_path("models", given).exists():
        name, _, revision = given.partition("@")
    return load(name, pool=request.pool, revision=revision or None, device=request.device)


def _write(request: CompareRequest, found: "Comparison", cases: dict[str, list[str]]) -> None:
    if request.out is not None:
        found.save(Path(request.out).expanduser())
    if request.html is not None:
        Path(request.html).expanduser().write_text(_page(found), encoding="utf-8")
    if request.junit is not None:
        from wordsens.cli.junit import write_junit

        write_junit(request.junit, f"wordsens compare {found.first} {found.second}", "wordsens.compare", cases)


def _page(found: "Comparison") -> str:
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>wordsens compare</title></head>'
        f'<body style="margin:2em">{found._repr_html_()}</body></html>\n'
    )


def print_comparison(found: "Comparison") -> None:
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
        if part in ("rank", "word"):
            rows = sorted(rows, key=lambda row: (not row.differs, -abs(row.difference)))
        _rows(found, title, rows, _WORDS if part in ("rank", "word") else len(rows))
    _changed(found.changed)
    console.print()
    if found.apart is not None:
        console.print(f"The two vectors of a text, at length one, lie {found.apart:.2g} apart (mean).")
    for note in found.notes:
        console.print(Text(f"Note: {note}"))


def _rows(found: "Comparison", title: str, rows: "Sequence[Difference]", most: int) -> None:
    if not rows:
        return
    console = stdout()
    console.print()
    console.print(title, style="bold")
    shown = table(("", "left"), ("first", "right"), ("second", "right"), ("difference", "right"), ("95 %", "right"),
                  ("", "right"))  # fmt: skip
    for row in rows[:most]:
        style = "" if not row.differs else MUCH if row.difference > 0 else LITTLE
        counted = "pairs" if row.part == "check" else "texts"
        shown.add_row(
            Text(row.name, style=style), f"{row.first:.4f}", f"{row.second:.4f}", f"{row.difference:+.4f}",
            f"{row.low:+.4f} to {row.high:+.4f}", f"{row.count} {counted}",
        )  # fmt: skip
    console.print(shown)
    if len(rows) > most:
        console.print(f"and {len(rows) - most} more (--json)")


def _changed(changed: "Sequence[ChangedNeighbour]") -> None:
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
