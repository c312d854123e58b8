"""`wordsens guard`: one pair, a stream of pairs with a verdict a line, a file of pairs, or a
rewriting. No torch."""

import csv
import json
import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict, replace
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import typer

from wordsens.cli.command import Answer, CommandRun, command, option, output_file
from wordsens.display.terminal import printable
from wordsens.errors import InputError, RequirementError, require_count
from wordsens.evaluation.guard import Guard, lost_meaning
from wordsens.files import named_path, small_text

_COLUMNS = ("first", "second")
_NEEDED = "give the columns first and second, or JSON lines"

# Bytes of a file from which on several processes pay, which need a moment to start.
_LARGE = 10_000_000


def _table_file(name: str, path: Path) -> Path:
    from wordsens.text.tables import require_table

    require_table(path, name)
    return output_file(name, path)


@command("guard", first=("pairs", "out", "require_same", "rewrite", "as_json"))
def guard(
    texts: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FIRST SECOND",
            help="Two texts. If none are given, pairs are read from stdin, as JSON lines or CSV "
            "with the columns first and second.",
            show_default=False,
        ),
    ] = None,
    *,
    rewrite: Annotated[
        bool,
        option(
            "FIRST and SECOND are files, a text and its rewriting: prints the negations, "
            "quantities, dates, conditions, modals and names that the rewriting lost.",
            "--rewrite",
        ),
    ] = False,
    require_same: Annotated[
        bool,
        option(
            "Exit code 3 unless every verdict is same (with --rewrite: unless nothing is lost).",
            "--require-same",
        ),
    ] = False,
    pairs: Annotated[
        str | None,
        option(
            "A file of pairs: CSV, TSV, JSON lines or Parquet with the columns first and second."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        option(
            "Write the rows of --pairs, each with its verdict and reason, to this file.",
            rule=_table_file,
        ),
    ] = None,
    encoding: Annotated[str, option("Encoding of the file of --pairs.")] = "utf-8",
    workers: Annotated[
        int | None,
        option(
            "Processes for --pairs; default: one, and every core for a large file.",
            rule=require_count,
        ),
    ] = None,
    run: CommandRun,
) -> Answer | None:
    """Decide whether two near-duplicate texts may be treated as the same. For semantic caches and
    agent memories; it uses rules, not a model.

    The verdict is same, different or unsure, with a reason such as "negation: 'not'" or "quantity:
    2 GB / 3 GB".

    With --rewrite it lists what a compressed prompt or a summary lost, and where in the original.

    Example: wordsens guard "How do I enable it?" "How do I disable it?"
    """
    texts = texts or []
    if len(texts) not in (0, 2):
        raise InputError(
            f"`texts` (={len(texts)} of them) must be two texts, or none for pairs from stdin"
        )
    if pairs is None and (out is not None or workers is not None):
        raise InputError("--out and --workers are for the file of --pairs; name it")
    if pairs is not None and (texts or rewrite):
        raise InputError("--pairs excludes two texts and --rewrite; leave one out")
    if rewrite and not texts:
        raise InputError("--rewrite needs two files: the original and the rewritten text")
    if pairs is not None:
        answer = _guard_file(pairs, out, workers or _workers(pairs), encoding=encoding, run=run)
        return answer if require_same else replace(answer, error=None)
    if rewrite:
        others = _print_losses(*texts, as_json=run.as_json)
        failure = f"the rewriting lost {others} of what changes the meaning"
    else:
        others = _print_verdicts(texts, run)
        failure = _not_same(others)
    if require_same and others:
        raise RequirementError(failure)
    return None


def _not_same(count: int) -> str:
    return f"{count} of the pairs are not the same"


def _guard_file(
    pairs: str, out: Path | None, workers: int, *, encoding: str, run: CommandRun
) -> Answer:
    """Judges the pairs of a file and writes them with their verdicts: how many have each, and
    why."""
    from wordsens.evaluation.guard.bulk import guard_pairs

    if out is not None and out.resolve() == named_path("pairs", pairs).resolve():
        raise InputError(f"--out (={str(out)!r}) is the file of --pairs; give another one")
    with run.progress("of the pairs") as progress:
        guarded = guard_pairs(pairs, workers=workers, encoding=encoding, progress=progress)
    if out is None:
        run.notice("--out FILE writes every pair with its verdict and reason")
    else:
        guarded.write(out)
    others = len(guarded) - guarded.counts["same"]
    error = RequirementError(_not_same(others)) if others else None
    return Answer(document=guarded.to_dict(), view=guarded.view(), error=error)


def _workers(pairs: str) -> int:
    """As many as there are cores for this process where the file is large, else one."""
    path = Path(pairs).expanduser()
    if not path.is_file() or path.stat().st_size < _LARGE:
        return 1
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _print_losses(original: str, rewritten: str, *, as_json: bool) -> int:
    """Prints what the second file lost of the first, a loss a line, or all in one JSON object; how
    many there are."""
    first, second = (
        small_text(named_path("texts", name), "texts") for name in (original, rewritten)
    )
    if not first.strip():
        raise InputError(
            "the first text of --rewrite is empty; give the original, then its rewriting"
        )
    losses = lost_meaning(first, second)
    lines = [(loss.kind, loss.text, f"{loss.start}-{loss.stop}", loss.sentence) for loss in losses]
    document = {"lost": [asdict(loss) for loss in losses]}
    for line in [()] if as_json else lines or [("nothing lost",)]:
        _print(document, *line, as_json=as_json)
    return len(losses)


def _print_verdicts(texts: list[str], run: CommandRun) -> int:
    """Prints the verdict on two texts, or on each pair of stdin as it comes; how many are not
    "same".

    Raises:
        InputError: at the end, where a line of stdin held no pair.
    """
    judge, others, unread = Guard(), 0, 0
    for pair in [(texts[0], texts[1])] if texts else _pairs(sys.stdin or ()):
        if isinstance(pair, InputError):
            unread += 1
            error = {"verdict": None, "error": str(pair)}
            _print(error, "error", str(pair), as_json=run.as_json)
            continue
        judgement = judge(*pair)
        others += judgement.verdict != "same"
        verdict = asdict(judgement)
        _print(verdict, judgement.verdict, judgement.reason, as_json=run.as_json)
        if texts and not run.as_json:
            from wordsens.evaluation.guard.judge import ADVICE

            run.notice(ADVICE[judgement.verdict])
    if unread:
        raise InputError(
            f"{unread} line{'s' * (unread > 1)} of stdin without a pair: an error stands in the "
            "place of the verdict"
        )
    return others


def _print(document: dict[str, Any], *cells: str, as_json: bool) -> None:
    """Prints a line: the document, or the cells with a tab between two."""
    line = "\t".join(" ".join(cell.split()) for cell in cells)
    print(json.dumps(document, ensure_ascii=False) if as_json else printable(line), flush=True)


def _pairs(lines: Iterable[str]) -> Iterator[tuple[str, str] | InputError]:
    """The pairs of JSON lines, objects with `first` and `second` or arrays of two, or of CSV with
    these columns; in the place of a line that holds none what is wrong with it."""
    from wordsens.text.tables import require_column, require_different

    stream = iter(lines)
    head = next((line for line in stream if line.strip()), None)
    if head is None:
        raise InputError(
            "stdin has no pair; give two texts, or lines of JSON or CSV with the columns first and "
            "second"
        )
    head = head.removeprefix("\ufeff")
    if head.lstrip().startswith(("{", "[")):
        for number, line in enumerate(chain([head], stream), 1):
            if line.strip():
                yield _of_json(line, number)
        return
    csv.field_size_limit(sys.maxsize)  # a text may be long
    rows = csv.DictReader(chain([head], stream))
    names = list(rows.fieldnames or ())
    require_different(list(filter(str.strip, names)), "stdin, line 1,")
    for name in _COLUMNS:
        require_column(name, names, "stdin, line 1,", _NEEDED)
    row = None
    for row in rows:
        first, second = (row[name] for name in _COLUMNS)
        if first is None or second is None:
            yield InputError(f"stdin, line {rows.line_num}: it has fewer columns than line 1")
        else:
            yield first, second
    if row is None:
        raise InputError("stdin has a header and no pair below it; give at least one pair")


def _of_json(line: str, number: int) -> tuple[str, str] | InputError:
    from wordsens.text.tables import parsed_json

    try:
        value = parsed_json(line, f"stdin, line {number},")
    except InputError as error:
        return error
    pair: Any = [value.get(name) for name in _COLUMNS] if isinstance(value, dict) else value
    match pair:
        case [str(first), str(second)]:
            return first, second
    return InputError(
        f'stdin, line {number}: it must be {{"first": "...", "second": "..."}} or ["...", "..."]'
    )
