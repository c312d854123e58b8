"""The work of `wordsens compare`: read the texts, load the models, compare, write what was asked for, and judge."""

from pathlib import Path

from wordsens import __version__
from wordsens.cli.compare.options import CompareRequest
from wordsens.cli.compare.tables import print_comparison
from wordsens.cli.junit import write_junit
from wordsens.cli.terminal import print_json, reporting
from wordsens.errors import RequirementError
from wordsens.evaluation.compare.compare import ComparePlan, compare_models, prepare
from wordsens.evaluation.compare.comparison import Comparison
from wordsens.files import named_path
from wordsens.models.choice import as_model, as_pair_model, is_pair_model
from wordsens.models.contract import Model
from wordsens.models.endpoint import Endpoint
from wordsens.models.function import load_named
from wordsens.models.pairs import PairModel
from wordsens.text.readers import read_documents


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
