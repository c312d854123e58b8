"""`wordsens compare`: its options, its work and what it prints."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wordsens.cli.model_choice import POOLS, TextOptions
from wordsens.cli.options import AsJson, Device, Quiet, Seed, Threads
from wordsens.cli.terminal import print_display, print_json, printing, reporting
from wordsens.display.page import html_page
from wordsens.errors import InputError, RequirementError, require_choice, require_count, require_positive
from wordsens.version import __version__

if TYPE_CHECKING:
    from wordsens.evaluation.comparison import Comparison
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
        result = compare_models(
            (first, second), prepared, progress=lambda done, total: report.update(done / total, now="")
        )
    _write(request, result, prepared.gate.cases(result.rows))
    with printing():
        if request.as_json:
            print_json({"command": "compare", "version": __version__, "seed": request.seed, **result.to_dict()})
        else:
            print_display(result.display())
    if not result.passed:
        many = "a requirement is" if len(result.failures) == 1 else f"{len(result.failures)} requirements are"
        raise RequirementError(f"{many} not met: {'; '.join(result.failures)}")


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


def _write(request: CompareRequest, result: "Comparison", cases: dict[str, list[str]]) -> None:
    if request.out is not None:
        result.save(Path(request.out).expanduser())
    if request.html is not None:
        title = f"{result.second} against {result.first}"
        page = html_page(result.display(), title=f"{title} · wordsens compare", heading=title, version=__version__)
        Path(request.html).expanduser().write_text(page, encoding="utf-8")
    if request.junit is not None:
        from wordsens.cli.junit import write_junit

        write_junit(request.junit, f"wordsens compare {result.first} {result.second}", "wordsens.compare", cases)
