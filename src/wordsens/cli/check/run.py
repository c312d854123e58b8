"""The work of `wordsens check`: choose the pairs, measure them, print, write what was asked for, and judge."""

import re
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from rich.text import Text

from wordsens import __version__
from wordsens.cli.check.options import CheckRequest
from wordsens.cli.junit import write_junit
from wordsens.cli.terminal import LITTLE, MUCH, notice, print_json, reporting, stdout, table
from wordsens.errors import InputError, RequirementError
from wordsens.evaluation.answer import answer
from wordsens.evaluation.check import Check, CheckOptions, choose_pairs, evaluate, require_askable
from wordsens.evaluation.kinds import KindTable, Measured
from wordsens.evaluation.layers import LayerRow, layer_rows
from wordsens.evaluation.near_misses import near_misses
from wordsens.evaluation.similarities import similarities
from wordsens.models.black_box import Model
from wordsens.models.pairs import PairModel
from wordsens.text.pairs import LENGTHS, Pair, write_pairs
from wordsens.text.readers import read_documents

_COIN = 0.5
"""Below this AUC opposites look more alike than paraphrases."""

_SHOWN = 8
"""Near misses of a kind that are printed; --write-pairs writes all."""


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


def print_first_look(answer: Sequence[str], kinds: KindTable) -> None:
    """The answer and the kinds of the short pairs, while the long ones are measured."""
    _say(answer)
    stdout().print("First look: texts of up to 50 words; paragraphs and pages follow.")
    _kinds(kinds)
    stdout().print()


def print_check(result: Check, layers: Sequence[LayerRow]) -> None:
    """The answer, what failed, then kinds, controls, lengths and layers."""
    console = stdout()
    _say(result.answer)
    for failure in result.failures:
        console.print(Text(f"FAILED: {failure}", style="bold red"))
    if result.passed and (result.options.requirements or result.drops):
        console.print("All requirements are met.", style="bold green")
    console.print()
    _kinds(result.kinds)
    for control in result.controls:
        spread = f"90 % within {control.low:.3f} to {control.high:.3f}"
        console.print(Text(f"{control.kind}: {control.pairs} pairs, median {control.median:.3f}, {spread}"))
    synonym = any(row.auc_synonym is not None for row in result.kinds)
    console.print(
        "AUC: the chance that an opposite is farther apart than a paraphrase; 1 perfect, .5 a coin, 0 always closer. "
        f"{'synonym: the same against one-word synonyms. ' * synonym}threshold: the smallest cosine that at most "
        f"{result.options.budget:.3g} of the opposites reach; recall: the paraphrases that do. Brackets: 95 %."
    )
    _lengths(result)
    if layers:
        _layer_table(layers)
    if result.drops:
        _drops(result)
    for note in result.notes:
        console.print(Text(f"Note: {note}"))


def print_made(pairs: Sequence[Pair]) -> None:
    """The near misses of each kind: some of them, and how many there are."""
    console = stdout()
    for kind in dict.fromkeys(pair.kind for pair in pairs):
        made = [pair for pair in pairs if pair.kind == kind]
        console.print(f"{kind}: {len(made)} near miss{'es' * (len(made) != 1)} made", style="bold")
        for pair in made[:_SHOWN]:
            here, there = (part or "-" for part in pair.changed)
            console.print(Text.assemble("  ", (here, LITTLE), " / ", (there, MUCH), f": {pair.second}"))
        if len(made) > _SHOWN:
            console.print(f"  and {len(made) - _SHOWN} more; --write-pairs FILE writes all of them")
    console.print()


def _say(answer: Sequence[str]) -> None:
    first, *others = answer
    stdout().print(Text(first, style="bold"))
    for line in others:
        stdout().print(Text(line))


def _kinds(kinds: KindTable) -> None:
    columns = ["pairs", "median", "AUC", "[95 %]", "synonym", "threshold", "recall"]
    shown = table(("kind", "left"), *((name, "right") for name in columns))
    for row in kinds:
        shown.add_row(
            Text(row.kind), str(row.pairs), f"{row.median_opposite:.3f}",
            Text.assemble((f"{row.auc:.3f}", MUCH if row.auc < _COIN else "")),
            Text(f"[{row.auc_low:.2f}, {row.auc_high:.2f}]"),
            "" if row.auc_synonym is None else f"{row.auc_synonym:.2f}",
            "none" if row.threshold is None else f"{row.threshold:.3f}",
            "none" if row.recall is None else f"{row.recall:.0%} [{row.recall_low:.0%}, {row.recall_high:.0%}]",
        )  # fmt: skip
    stdout().print(shown)


def _lengths(result: Check) -> None:
    lengths = [length for length in LENGTHS if any(row.length == length for row in result.lengths)]
    if len(lengths) < 2:
        return
    found = {(row.kind, row.length): row for row in result.lengths}
    shown = table(("kind", "left"), *((length, "right") for length in lengths))
    for kind in result.kinds.names:
        rows = [found.get((kind, length)) for length in lengths]
        cells = ["" if row is None else f"{row.auc:.3f} / {row.median_opposite:.3f} ({row.pairs})" for row in rows]
        shown.add_row(Text(kind), *cells)
    console = stdout()
    console.print()
    console.print("By length: AUC / median of the opposites (pairs)", style="bold")
    console.print(shown)


def _layer_table(layers: Sequence[LayerRow]) -> None:
    console = stdout()
    console.print()
    console.print(
        "By layer: AUC, and how far an opposite's farthest token and its pooled vector are moved", style="bold"
    )
    shown = table(
        ("kind", "left"), ("layer", "right"), ("AUC", "right"), ("synonym", "right"), ("token", "right"),
        ("pooled", "right"), ("kept", "right"),
    )  # fmt: skip
    for row in sorted(layers, key=lambda row: (row.kind, row.layer)):
        synonym = "" if row.auc_synonym is None else f"{row.auc_synonym:.2f}"
        shown.add_row(
            Text(row.kind), str(row.layer), f"{row.auc:.3f}", synonym, f"{row.rows:.3f}", f"{row.pooled:.3f}",
            f"{row.kept:.0%}",
        )  # fmt: skip
    console.print(shown)
    console.print(
        "token: the median cosine distance of the token that finds its like least in the other text; pooled: of the "
        "two pooled vectors; kept: their ratio, what pooling leaves of the difference."
    )


def _drops(result: Check) -> None:
    console = stdout()
    console.print()
    console.print("Since the baseline", style="bold")
    shown = table(("kind", "left"), ("before", "right"), ("now", "right"), ("p of the drop", "right"))
    for kind, drop in result.drops.items():
        shown.add_row(Text(kind), f"{drop.before:.4f}", f"{drop.after:.4f}", f"{drop.p:.2g}")
    console.print(shown)


def requirement_cases(result: Check) -> dict[str, list[str]]:
    """Every requirement, and every kind that was compared with a baseline, with what fails it."""
    cases = {requirement.text: requirement.failures(result.kinds) for requirement in result.options.requirements}
    for kind in result.drops:
        told = [failure for failure in result.failures if failure.startswith(f"{kind}.auc has dropped")]
        cases[f"{kind}.auc has not dropped since the baseline"] = told
    return cases


def write_markdown(result: Check, path: str) -> None:
    """The answer, what failed, and the table of kinds."""
    lines = [f"**wordsens check: {'passed' if result.passed else 'FAILED'}**", ""]
    lines += [f"- {_escaped(failure)}" for failure in result.failures] + [""] * bool(result.failures)
    lines += [_escaped(sentence) for sentence in result.answer]
    lines += [
        "",
        "| kind | pairs | opposite (median) | paraphrase (median) | AUC | 95 % interval | recall |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for row in result.kinds:
        recall = "none" if row.recall is None else f"{row.recall:.0%}"
        lines.append(
            f"| {_escaped(row.kind)} | {row.pairs} | {row.median_opposite:.3f} | {row.median_same:.3f} | "
            f"{row.auc:.3f} | {row.auc_low:.3f} to {row.auc_high:.3f} | {recall} |"
        )
    lines += ["", *(f"Note: {_escaped(note)}" for note in result.notes)]
    Path(path).expanduser().write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")


def _escaped(text: str) -> str:
    """The text on one line, with no character that Markdown or HTML would read as its own."""
    return re.sub(r"([\\|<>*_`\[\]#])", r"\\\1", " ".join(text.split()))
