"""`wordsens compare`: its options, its work and its files."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wordsens.cli.model_choice import (
    EFFORT,
    MODEL,
    POOLS,
    TEXT,
    BatchSize,
    CommandOptions,
    Html,
    Junit,
    MaxWords,
    OnError,
    TextOptions,
    require_met,
    requirements_option,
    unset,
    write_junit,
    write_page,
)
from wordsens.cli.options import Device, takes
from wordsens.cli.terminal import reporting
from wordsens.errors import InputError, require_choice, require_count, require_positive

if TYPE_CHECKING:
    from wordsens.models.model import Model
    from wordsens.models.pairs import PairModel

_MODELS = (
    "Each a name or folder (a hub's name with @revision), module:function, or "
    "https://host/v1#model; the key of an "
    "endpoint in WORDSENS_API_KEY."
)


@dataclass(frozen=True, kw_only=True)
class CompareOptions(TextOptions, CommandOptions):
    """The options of `wordsens compare`."""

    models: Annotated[
        list[str] | None, typer.Argument(metavar="FIRST SECOND", help=_MODELS, show_default=False)
    ] = None
    pairs: Annotated[
        str | None,
        unset(
            "Pairs of the check: a file of your own, or 'none'; default: the package's.", panel=TEXT
        ),
    ] = None
    encode: Annotated[
        list[str] | None, unset("module:function in the place of a model.", panel=MODEL)
    ] = None
    pool: Annotated[
        str | None,
        unset("own, mean, cls, last or max, of both; default: each model's own.", panel=MODEL),
    ] = None
    batch_size: BatchSize = None
    on_error: OnError = None
    device: Device = "cpu"
    words_per_text: Annotated[
        int, typer.Option(help="Words removed from a text, one by one.", rich_help_panel=EFFORT)
    ] = 8
    word_texts: Annotated[
        int, typer.Option(help="Texts that words are removed from.", rich_help_panel=EFFORT)
    ] = 300
    max_words: MaxWords = None
    threshold: Annotated[
        float | None,
        unset(
            "Your cosine threshold with FIRST; default: the one that accepts nine of ten "
            "near-duplicates."
        ),
    ] = None
    tolerance: Annotated[
        float,
        typer.Option(help="Differences up to this share do not count.", rich_help_panel=EFFORT),
    ] = 0.01
    requirements: Annotated[
        list[str] | None,
        requirements_option(
            "'check.negation.difference >= -.02', 'false_hits.all kinds.second <= .2' or "
            "'all.differs <= 0'"
        ),
    ] = None
    junit: Junit = None
    out: Annotated[str | None, unset("Save the comparison, for ws.Comparison.load.")] = None
    html: Html = None

    def __post_init__(self) -> None:
        CommandOptions.__post_init__(self)
        models = [*(self.models or []), *(self.encode or [])]
        object.__setattr__(self, "models", models)
        if len(models) != 2:
            raise InputError(
                f"give two models, FIRST and SECOND, or --encode for one of them; got {len(models)}"
            )
        if self.on_error is not None and not any("://" in model for model in models):
            raise InputError("--on-error goes with the URL of an endpoint; leave it out")
        if self.pool is not None:
            require_choice("pool", self.pool, POOLS)
        for name in ("words_per_text", "word_texts"):
            require_count(name, getattr(self, name))
        self.require_texts()
        if self.max_words is not None:
            require_count("max_words", self.max_words)
        if self.threshold is not None and self.pairs == "none":
            raise InputError("--threshold needs the pairs of the check; leave --pairs none out")
        require_positive("tolerance", self.tolerance)
        self.require_files("junit", "out", "html")


@takes(CompareOptions, first=("texts", "pairs", "threshold", "requirements", "html"))
def compare(options: CompareOptions) -> None:
    """Find what differs between two models, or one before and after a change, on your own texts. A
    gate for CI.

    Each model is a name or folder, module:function, or the URL of an embeddings endpoint. It
    compares AUCs, false hits and recall on pairs (as in check), how far a text moves without each
    word, and which texts have another nearest text. AUCs and removals count as different only where
    a test of all rows together says so. Exit code 3 when a requirement fails.

    Example: wordsens compare minilm ./quantised --texts texts.csv --require
    'neighbours.nearest.second <= .05'
    """
    from wordsens.evaluation.compare import compare, read_requirements

    requirements = options.requirements or ()
    read_requirements(requirements)  # refused before a model is loaded
    documents = options.documents(max_words=options.max_words, quiet=options.quiet)
    first, second = (_loaded(name, options) for name in options.models or [])
    with reporting(1, "of the texts", quiet=options.quiet) as report:
        result = compare(
            first,
            second,
            documents,
            options.pairs,
            options.seed,
            requirements=requirements,
            words_per_text=options.words_per_text,
            word_texts=options.word_texts,
            tolerance=options.tolerance,
            threshold=options.threshold,
            progress=lambda done, total: report.update(done / total, now=""),
        )
    if options.out is not None:
        result.save(Path(options.out).expanduser())
    if options.html is not None:
        write_page(
            options.html, "compare", f"{result.second} against {result.first}", result.view()
        )
    if options.junit is not None:
        cases = {
            text: [each.sentence for each in result.unmet if each.requirement == text]
            for text in result.requirements
        }
        write_junit(options.junit, "compare", f"{result.first} {result.second}", cases)
    options.print("compare", {"seed": options.seed, **result.to_dict()}, result.view())
    require_met(result.failures)


def _loaded(name: str, options: CompareOptions) -> "Model | PairModel":
    """The model that a name, a folder, name@revision, module:function or URL#model stands for."""
    from wordsens.files import named_path
    from wordsens.models.endpoint import Endpoint
    from wordsens.models.function import load_named
    from wordsens.models.load import load

    if "://" in name:
        url, _, model = name.partition("#")
        endpoint = Endpoint(url=url, model=model or None, on_error=options.on_error or "stop")
        return load(endpoint, batch_size=options.batch_size)
    local = {"pool": options.pool, "device": options.device, "batch_size": options.batch_size}
    if named_path("models", name).exists():
        return load(name, **local)
    if ":" in name:
        return load(load_named(name, "models"), batch_size=options.batch_size)
    name, _, revision = name.partition("@")
    return load(name, revision=revision or None, **local)
