"""`wordsens guard`: one pair, a stream of pairs with a verdict a line, or a rewriting. Torch is not loaded."""

import csv
import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from itertools import chain
from typing import Annotated, Any

import typer

from wordsens.cli.options import AsJson, takes
from wordsens.cli.terminal import printable
from wordsens.errors import InputError, RequirementError
from wordsens.evaluation.guard import Guard, lost_meaning
from wordsens.files import named_path, small_text

_COLUMNS = ("first", "second")


@dataclass(frozen=True, kw_only=True)
class GuardOptions:
    """The options of `wordsens guard`."""

    texts: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FIRST SECOND]",
            help="Two texts; none: pairs from stdin, JSON lines or CSV, with the columns first and second.",
            show_default=False,
        ),
    ] = None
    rewrite: Annotated[
        bool,
        typer.Option(
            "--rewrite",
            help="FIRST and SECOND are files, a text and its rewriting: prints the negations, quantities, dates, "
            "conditions, modals and names that the rewriting lost.",
        ),
    ] = False
    require_same: Annotated[
        bool, typer.Option("--require-same", help="Exit code 3 unless every verdict is same, or nothing is lost.")
    ] = False
    as_json: AsJson = False

    def __post_init__(self) -> None:
        if self.texts and len(self.texts) != 2:
            raise InputError(f"`texts` (={len(self.texts)} of them) must be two texts, or none for pairs from stdin")
        if self.rewrite and not self.texts:
            raise InputError("`--rewrite` needs two files: the original and the rewritten text")


@takes(GuardOptions)
def guard(options: GuardOptions) -> None:
    """May two near-duplicates be treated as the same? For semantic caches and memories, by rules, without a model.

    The verdict is same, different or unsure, with a reason such as "negation: 'not'" or "quantity: 2 GB / 3 GB".

    With --rewrite: what a compressed prompt or a summary lost, with its place.

    Example: wordsens guard "How do I enable it?" "How do I disable it?"
    """
    if options.rewrite:
        _report_losses(options)
        return
    judge, others, unread = Guard(), 0, 0
    for pair in [(options.texts[0], options.texts[1])] if options.texts else _pairs(sys.stdin):
        if isinstance(pair, InputError):
            unread += 1
            line = json.dumps({"verdict": None, "error": str(pair)}) if options.as_json else f"error\t{pair}"
        else:
            judgement = judge(*pair)
            others += judgement.verdict != "same"
            line = printable(f"{judgement.verdict}\t{judgement.reason}")
            line = json.dumps(asdict(judgement), ensure_ascii=False) if options.as_json else line
        _print(line, flush=not options.texts)
    if unread:
        raise InputError(
            f"{unread} line{'s' * (unread > 1)} of stdin without a pair: an error stands in the place of the verdict"
        )
    if options.require_same and others:
        raise RequirementError(f"{others} of the pairs are not the same")


def _report_losses(options: GuardOptions) -> None:
    """Prints what the second file lost of the first, a loss a line, or all in one JSON object."""
    original, rewritten = (small_text(named_path("texts", name), "texts") for name in options.texts or ())
    losses = lost_meaning(original, rewritten)
    if options.as_json:
        _print(json.dumps({"lost": [asdict(loss) for loss in losses]}, ensure_ascii=False))
    else:
        lines = [(loss.kind, loss.text, f"{loss.start}-{loss.stop}", loss.sentence) for loss in losses]
        for line in lines or [("nothing lost",)]:
            _print(printable("\t".join(" ".join(cell.split()) for cell in line)))
    if options.require_same and losses:
        raise RequirementError(f"the rewriting lost {len(losses)} of what changes the meaning")


def _print(line: str, *, flush: bool = False) -> None:
    """Prints a line; lone surrogates, which no stream can write, become escapes."""
    print(line.encode("utf-8", "backslashreplace").decode("utf-8"), flush=flush)


def _pairs(lines: Iterable[str]) -> Iterator[tuple[str, str] | InputError]:
    """The pairs of JSON lines, objects with `first` and `second` or arrays of two, or of CSV with these columns; in the
    place of a line that holds none what is wrong with it."""
    stream = iter(lines)
    head = next((line for line in stream if line.strip()), None)
    if head is None:
        raise InputError("stdin has no pair; give two texts, or lines of JSON or CSV with the columns first and second")
    lines = chain([head], stream)
    if head.lstrip().startswith(("{", "[")):
        yield from (_of_json(line, number) for number, line in enumerate(lines, 1) if line.strip())
        return
    rows = csv.reader(lines)
    names = [name.strip().lower() for name in next(rows)]
    if not set(_COLUMNS) <= set(names):
        raise InputError(f"stdin, line 1: the columns are {', '.join(names)}; it needs first and second, or JSON lines")
    places = [names.index(name) for name in _COLUMNS]
    for number, row in enumerate(rows, 2):
        if row:
            if len(row) <= max(places):
                yield InputError(f"stdin, line {number}: {len(row)} columns, but line 1 has {len(names)}")
            else:
                yield row[places[0]], row[places[1]]


def _of_json(line: str, number: int) -> tuple[str, str] | InputError:
    try:
        value: Any = json.loads(line)
    except json.JSONDecodeError as error:
        return InputError(f"stdin, line {number}: no JSON ({error.msg})")
    pair: Any = [value.get(name) for name in _COLUMNS] if isinstance(value, dict) else value
    match pair:
        case [str(first), str(second)]:
            return first, second
    return InputError(f'stdin, line {number}: it must be {{"first": "...", "second": "..."}} or ["...", "..."]')
