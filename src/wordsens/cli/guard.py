"""`wordsens guard`: one pair, a stream of pairs with a verdict a line, a file of pairs, or a
rewriting. No torch."""

import csv
import json
import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import typer

from wordsens.cli.options import AsJson, Quiet, option, takes
from wordsens.cli.terminal import notice, print_json, printing, reporting, stdout
from wordsens.display.terminal import print_view, printable
from wordsens.errors import InputError, RequirementError, require_count
from wordsens.evaluation.guard import Guard, lost_meaning
from wordsens.files import named_path, small_text
from wordsens.version import __version__

_COLUMNS = ("first", "second")
_NEEDED = "give the columns first and second, or JSON lines"

_LARGE = 10_000_000
"""Bytes of a file from which on several processes pay, which need a moment to start."""


@dataclass(frozen=True, kw_only=True)
class GuardOptions:
    """The options of `wordsens guard`."""

    texts: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FIRST SECOND",
            help="Two texts; none: pairs from stdin, JSON lines or CSV, with the columns first and "
            "second.",
            show_default=False,
        ),
    ] = None
    rewrite: Annotated[
        bool,
        typer.Option(
            "--rewrite",
            help="FIRST and SECOND are files, a text and its rewriting: prints the negations, "
            "quantities, dates, "
            "conditions, modals and names that the rewriting lost.",
        ),
    ] = False
    require_same: Annotated[
        bool,
        typer.Option(
            "--require-same", help="Exit code 3 unless every verdict is same, or nothing is lost."
        ),
    ] = False
    pairs: Annotated[
        str | None,
        option(
            "A file of pairs: CSV, TSV, JSON lines or Parquet with the columns first and second.",
            default=False,
        ),
    ] = None
    out: Annotated[
        str | None,
        option(
            "Write the rows of --pairs, each with its verdict and reason, to this file.",
            default=False,
        ),
    ] = None
    encoding: Annotated[str, option("Of a plain file of --pairs.")] = "utf-8"
    workers: Annotated[
        int | None,
        option(
            "Processes for --pairs; default: one, and every core for a large file.", default=False
        ),
    ] = None
    as_json: AsJson = False
    quiet: Quiet = False

    def __post_init__(self) -> None:
        if self.texts and len(self.texts) != 2:
            raise InputError(
                f"`texts` (={len(self.texts)} of them) must be two texts, or none for pairs from "
                "stdin"
            )
        if self.pairs is None and (self.out is not None or self.workers is not None):
            raise InputError("--out and --workers are for the file of --pairs; name it")
        if self.pairs is not None and (self.texts or self.rewrite):
            raise InputError("--pairs excludes two texts and --rewrite; leave one out")
        if self.workers is not None:
            require_count("workers", self.workers)
        if self.rewrite and not self.texts:
            raise InputError("`--rewrite` needs two files: the original and the rewritten text")


@takes(GuardOptions, first=("pairs", "out", "require_same", "rewrite", "as_json"))
def guard(options: GuardOptions) -> None:
    """May two near-duplicates be treated as the same? For semantic caches and memories, by rules,
    without a model.

    The verdict is same, different or unsure, with a reason such as "negation: 'not'" or "quantity:
    2 GB / 3 GB".

    With --rewrite: what a compressed prompt or a summary lost, with its place.

    Example: wordsens guard "How do I enable it?" "How do I disable it?"
    """
    if options.pairs is not None:
        _guard_file(options, options.pairs)
        return
    if options.rewrite:
        _report_losses(options)
        return
    judge, others, unread = Guard(), 0, 0
    for pair in [(options.texts[0], options.texts[1])] if options.texts else _pairs(sys.stdin):
        if isinstance(pair, InputError):
            unread += 1
            error = (
                json.dumps({"verdict": None, "error": str(pair)})
                if options.as_json
                else f"error\t{pair}"
            )
            _print(error, flush=True)
            continue
        judgement = judge(*pair)
        others += judgement.verdict != "same"
        line = printable(f"{judgement.verdict}\t{judgement.reason}")
        _print(
            json.dumps(asdict(judgement), ensure_ascii=False) if options.as_json else line,
            flush=True,
        )
        if options.texts and not (options.as_json or options.quiet):
            from wordsens.evaluation.guard.judge import ADVICE

            notice(ADVICE[judgement.verdict])
    if unread:
        raise InputError(
            f"{unread} line{'s' * (unread > 1)} of stdin without a pair: an error stands in the "
            "place of the verdict"
        )
    if options.require_same and others:
        raise RequirementError(f"{others} of the pairs are not the same")


def _guard_file(options: GuardOptions, path: str) -> None:
    """Judges the pairs of a file, writes them with their verdicts, and prints how many have each,
    and why."""
    from wordsens.evaluation.guard.bulk import guard_pairs
    from wordsens.text.tables import require_table

    if options.out is not None:
        out = Path(options.out).expanduser()
        require_table(out, "out")
        if not out.parent.is_dir() or out.is_dir():
            raise InputError(f"`out` (={options.out!r}) must be a file in a folder that exists")
        if out.resolve() == named_path("pairs", path).resolve():
            raise InputError(f"`out` (={options.out!r}) is the file of --pairs; give another one")
    with reporting(1, "of the pairs", quiet=options.quiet) as report:
        guarded = guard_pairs(
            path,
            workers=options.workers or _workers(Path(path).expanduser()),
            encoding=options.encoding,
            progress=lambda done, total: report.update(done / total, now=""),
        )
    if options.out is not None:
        guarded.write(options.out)
    with printing():
        if options.as_json:
            print_json({"command": "guard", "version": __version__, **guarded.to_dict()})
        else:
            print_view(guarded.view(), stdout())
    if options.out is None and not options.quiet:
        notice("--out FILE writes every pair with its verdict and reason")
    others = len(guarded) - guarded.counts["same"]
    if options.require_same and others:
        raise RequirementError(f"{others} of the pairs are not the same")


def _workers(path: Path) -> int:
    """As many as there are cores for this process where the file is large, else one."""
    large = path.is_file() and path.stat().st_size >= _LARGE
    cores = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    return cores if large else 1


def _report_losses(options: GuardOptions) -> None:
    """Prints what the second file lost of the first, a loss a line, or all in one JSON object."""
    original, rewritten = (
        small_text(named_path("texts", name), "texts") for name in options.texts or ()
    )
    if not original.strip():
        raise InputError(
            "the first text of `--rewrite` is empty; give the original, then its rewriting"
        )
    losses = lost_meaning(original, rewritten)
    if options.as_json:
        _print(json.dumps({"lost": [asdict(loss) for loss in losses]}, ensure_ascii=False))
    else:
        lines = [
            (loss.kind, loss.text, f"{loss.start}-{loss.stop}", loss.sentence) for loss in losses
        ]
        for line in lines or [("nothing lost",)]:
            _print(printable("\t".join(" ".join(cell.split()) for cell in line)))
    if options.require_same and losses:
        raise RequirementError(f"the rewriting lost {len(losses)} of what changes the meaning")


def _print(line: str, *, flush: bool = False) -> None:
    """Prints a line; lone surrogates, which no stream can write, become escapes."""
    print(line.encode("utf-8", "backslashreplace").decode("utf-8"), flush=flush)


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
    lines = chain([head], stream)
    if head.lstrip().startswith(("{", "[")):
        yield from (_of_json(line, number) for number, line in enumerate(lines, 1) if line.strip())
        return
    csv.field_size_limit(sys.maxsize)  # a text may be long
    rows = csv.reader(lines)
    names = next(rows)
    require_different(list(filter(str.strip, names)), "stdin, line 1,")
    places = [
        names.index(require_column(name, names, "stdin, line 1,", _NEEDED)) for name in _COLUMNS
    ]
    number = 1
    for number, row in enumerate(rows, 2):
        if row:
            if len(row) <= max(places):
                yield InputError(
                    f"stdin, line {number}: {len(row)} columns, but line 1 has {len(names)}"
                )
            else:
                yield row[places[0]], row[places[1]]
    if number == 1:
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
