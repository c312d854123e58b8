"""`wordsens compare`: its options, its work and its files."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import wordsens as ws
from wordsens.cli.command import (
    EFFORT,
    MODEL,
    TEXT,
    Answer,
    CommandRun,
    Device,
    Html,
    Junit,
    Seed,
    Threads,
    command,
    cpu_threads,
    option,
    output_file,
    requirements_option,
    unmet,
)
from wordsens.cli.groups import (
    BatchSize,
    MaxWords,
    OnError,
    Pool,
    TextOptions,
    Texts,
    shortened,
    write_junit,
    write_page,
)
from wordsens.errors import InputError, require_count, require_positive

if TYPE_CHECKING:
    from wordsens.models.model import Model
    from wordsens.models.pairs import PairModel

_effort = partial(option, panel=EFFORT)


@command("compare", first=("texts", "pairs", "threshold", "requirements", "html"))
def compare(
    models: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FIRST SECOND",
            help="Each is a name or folder (a hub name may end with @revision), module:function, "
            "or https://host/v1#model. An endpoint's API key is read from WORDSENS_API_KEY.",
            show_default=False,
        ),
    ] = None,
    texts: Texts = None,
    *,
    reading: TextOptions,
    pairs: Annotated[
        str | None,
        option(
            "Pairs for the check: a file of your own, or 'none'; default: the package's.",
            panel=TEXT,
        ),
    ] = None,
    encode: Annotated[
        list[str] | None,
        option(
            "module:function as one of the two models: SECOND if FIRST is given, else FIRST; give "
            "it twice for both.",
            panel=MODEL,
        ),
    ] = None,
    pool: Pool = None,
    batch_size: BatchSize = None,
    on_error: OnError = None,
    device: Device = "cpu",
    words_per_text: Annotated[
        int, _effort("Words deleted from each text, one at a time.", rule=require_count)
    ] = 8,
    word_texts: Annotated[
        int, _effort("Number of texts that words are deleted from.", rule=require_count)
    ] = 300,
    max_words: MaxWords = None,
    threshold: Annotated[
        float | None,
        option(
            "Your cosine threshold with FIRST; default: the one that accepts nine of ten "
            "near-duplicates."
        ),
    ] = None,
    tolerance: Annotated[
        float, _effort("Differences up to this size do not count.", rule=require_positive)
    ] = 0.01,
    requirements: Annotated[
        list[str] | None,
        requirements_option(
            "'check.negation.difference >= -.02', 'false_hits.all kinds.second <= .2' or "
            "'all.differs <= 0'"
        ),
    ] = None,
    junit: Junit = None,
    out: Annotated[
        Path | None, option("Save the comparison, for ws.Comparison.load.", rule=output_file)
    ] = None,
    html: Html = None,
    seed: Seed = 0,
    threads: Threads = 1,
    run: CommandRun,
) -> Answer:
    """Find what differs between two models, or between a model before and after a change. A gate
    for CI.

    Each model is a name or folder, module:function, or the URL of an embeddings endpoint. The
    command compares AUCs, false hits and recall on pairs (as in check), how much a text's vector
    changes when a word is deleted, and which texts have a different nearest text. An AUC or
    the effect of deletions counts as different only if a joint test over all rows finds it
    significant. Exit code 3 if a requirement fails.

    With --threshold but without --texts, it only converts the threshold. It prints the threshold
    that gives SECOND the same recall as FIRST, the threshold that gives it the same false hits, and
    what your present threshold would do with SECOND.

    Example: wordsens compare minilm ./quantised --texts texts.csv --require
    'neighbours.nearest.second <= .05'
    """
    names = [*(models or []), *(encode or [])]
    if len(names) != 2:
        raise InputError(
            f"give two models, FIRST and SECOND, or --encode for one of them; got {len(names)}"
        )
    if on_error is not None and not any("://" in name for name in names):
        raise InputError("--on-error goes with the URL of an endpoint; leave it out")
    if threshold is not None and pairs == "none":
        raise InputError("--threshold needs the pairs of the check; leave --pairs none out")
    from wordsens.evaluation.compare import read_requirements

    read_requirements(requirements or ())  # refused before a model is loaded
    loading = partial(_loaded, on_error=on_error, batch_size=batch_size, pool=pool, device=device)
    if texts is None and threshold is not None and not (requirements or junit):
        with cpu_threads(threads), run.progress("of the pairs") as progress:
            old, new = map(loading, names)
            carried = ws.carry_threshold(old, new, threshold, pairs, seed, progress=progress)
        return _answer(carried, f"{carried.new} instead of {carried.old}", out, html, seed)
    documents = shortened(reading.read(texts, run.notice, by_line=True), max_words)
    with cpu_threads(threads), run.progress("of the texts") as progress:
        first, second = map(loading, names)
        found = ws.compare(
            first,
            second,
            documents,
            pairs,
            seed,
            requirements=requirements or (),
            words_per_text=words_per_text,
            word_texts=word_texts,
            tolerance=tolerance,
            threshold=threshold,
            progress=progress,
        )
    cases = {
        text: [each.sentence for each in found.unmet if each.requirement == text]
        for text in found.requirements
    }
    write_junit(junit, "compare", f"{found.first} {found.second}", cases)
    answer = _answer(found, f"{found.second} against {found.first}", out, html, seed)
    return replace(answer, error=unmet(found.failures))


def _answer(
    found: "ws.Comparison | ws.CarriedThreshold",
    title: str,
    out: Path | None,
    html: Path | None,
    seed: int,
) -> Answer:
    """The answer, which is also saved and written as a page where that is wanted."""
    if out is not None:
        found.save(out)
    view = found.view()
    write_page(html, "compare", title, view)
    return Answer(document={"seed": seed, **found.to_dict()}, view=view)


def _loaded(
    name: str, on_error: str | None, batch_size: int | None, *, pool: str | None, device: str
) -> "Model | PairModel":
    """The model that a name, a folder, name@revision, module:function or URL#model stands for."""
    from wordsens.files import named_path
    from wordsens.models.function import load_named
    from wordsens.models.load import load

    if "://" in name:
        url, _, model = name.partition("#")
        endpoint = ws.Endpoint(url=url, model=model or None, on_error=on_error or "stop")
        return load(endpoint, batch_size=batch_size)
    revision = None
    if not named_path("models", name).exists():
        if ":" in name:
            return load(load_named(name, "models"), batch_size=batch_size)
        name, _, revision = name.partition("@")
    return load(name, revision=revision or None, pool=pool, device=device, batch_size=batch_size)
