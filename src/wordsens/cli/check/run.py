"""The work of `wordsens check`: choose the pairs, measure them, write what was asked for, and judge."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from wordsens import __version__
from wordsens.cli.check.files import requirement_cases, write_markdown
from wordsens.cli.check.options import CheckRequest
from wordsens.cli.check.tables import print_check, print_first_look, print_made
from wordsens.cli.junit import write_junit
from wordsens.cli.terminal import notice, print_json, reporting
from wordsens.errors import InputError, RequirementError
from wordsens.evaluation.answer import answer
from wordsens.evaluation.check import Check, CheckOptions, choose_pairs, evaluate, require_askable
from wordsens.evaluation.kinds import Measured
from wordsens.evaluation.layers import LayerRow, layer_rows
from wordsens.evaluation.near_misses import near_misses
from wordsens.evaluation.similarities import similarities
from wordsens.models.contract import Model
from wordsens.models.pairs import PairModel
from wordsens.text.pairs import LENGTHS, Pair, write_pairs
from wordsens.text.readers import read_documents


def run_check(request: CheckRequest) -> None:
    """Measure the pairs and print the answer; RequirementError where a requirement fails, after all is written."""
    _require_folders(request)
    options = CheckOptions.of(
        request.budget, request.requirements or (), request.baseline, request.seed, request.threshold
    )
    pairs, notes = _pairs(request)
    require_askable(options, pairs)
    model = request.load()
    values = _measured(request, model, pairs, options)
    result = evaluate(model, pairs, values, options, notes)
    layers = _layers(request, model, pairs) if request.layers else []
    _write(request, result)
    if request.as_json:
        _print_json(request, result, layers)
    else:
        print_check(result, layers)
    if not result.passed:
        many = "a requirement is" if len(result.failures) == 1 else f"{len(result.failures)} requirements are"
        raise RequirementError(f"{many} not met: {'; '.join(result.failures)}")


def _pairs(request: CheckRequest) -> tuple[list[Pair], list[str]]:
    source: Any = request.pairs
    if request.texts is not None:
        documents = read_documents(
            request.texts, text_column=request.text_column, labels=False, limit=request.limit, skip_empty=True
        )
        source = near_misses(documents, seed=request.seed)
        if not request.as_json:
            print_made(source)
    pairs, notes = choose_pairs(source, request.kinds)
    if request.write_pairs is not None:
        own = source if request.texts is not None else pairs
        write_pairs(own, request.write_pairs)
        if not request.quiet:
            notice(f"{len(own)} pairs are in {request.write_pairs}; read and mend them, then give it to --pairs")
    return pairs, notes


def _measured(
    request: CheckRequest, model: Model | PairModel, pairs: Sequence[Pair], options: CheckOptions
) -> np.ndarray:
    """The similarities of the pairs; those of the length of a question first, with a first look where more follow."""
    short = np.array([pair.length == LENGTHS[0] for pair in pairs])
    values = np.empty(len(pairs))
    for members in (short, ~short):
        chosen = [pair for pair, member in zip(pairs, members, strict=True) if member]
        if not chosen:
            continue
        with reporting(1, "of the pairs", quiet=request.quiet) as report:
            values[members] = similarities(
                model, chosen, progress=lambda done, total: report.update(done / total, now="")
            )
        sides = {pair.same for pair in chosen}
        if members is short and not short.all() and len(sides) == 2 and not (request.as_json or request.quiet):
            measured = Measured(chosen, values[members], cosines=not isinstance(model, PairModel))
            table = measured.kind_rows(budget=options.budget, threshold=None, seed=options.seed)
            print_first_look(list(answer(model.name, table, measured, options.budget, None)), table)
    return values


def _layers(request: CheckRequest, model: Model | PairModel, pairs: Sequence[Pair]) -> list[LayerRow]:
    if isinstance(model, PairModel):
        raise InputError(f"{model.name} scores pairs and gives no layers; leave --layers out")
    with reporting(1, "of the layers", quiet=request.quiet) as report:
        return layer_rows(
            model, pairs, seed=request.seed, progress=lambda done, total: report.update(done / total, now="")
        )


def _require_folders(request: CheckRequest) -> None:
    """InputError where a file cannot be written, before anything is measured."""
    for option in ("write_pairs", "save_baseline", "junit", "markdown"):
        path = getattr(request, option)
        if path is not None and (not Path(path).expanduser().parent.is_dir() or Path(path).expanduser().is_dir()):
            raise InputError(f"`{option}` (={path!r}) must be a file in a folder that exists")


def _write(request: CheckRequest, result: Check) -> None:
    if request.save_baseline is not None:
        result.save_baseline(request.save_baseline)
    if request.junit is not None:
        write_junit(request.junit, f"wordsens check {result.model}", "wordsens.check", requirement_cases(result))
    if request.markdown is not None:
        write_markdown(result, request.markdown)


def _print_json(request: CheckRequest, result: Check, layers: Sequence[LayerRow]) -> None:
    """One document on stdout; its keys are those of docs/cli.md."""
    document = {
        "command": "check",
        "version": __version__,
        "model": result.model,
        "identity": result.identity,
        "budget": result.options.budget,
        "threshold": result.options.threshold,
        "seed": request.seed,
        **result.to_dict(),
        "layers": [asdict(row) for row in layers],
    }
    print_json(document)
