"""`wordsens check`: its options, its work and what it prints."""

import csv
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from wordsens.cli.model_choice import ModelOptions, TextOptions
from wordsens.cli.options import AsJson, Quiet, Seed, Threads
from wordsens.cli.terminal import LITTLE, MUCH, notice, print_display, print_json, printing, reporting, stdout
from wordsens.display.page import html_page, markdown
from wordsens.errors import InputError, RequirementError, require_count
from wordsens.version import __version__

if TYPE_CHECKING:
    from wordsens.evaluation.check import Check, Guarded
    from wordsens.evaluation.layers import LayerRow
    from wordsens.models.black_box import Model
    from wordsens.models.pairs import PairModel
    from wordsens.text.pairs import Pair

_PAIRS, _GATE, _MORE = "Pairs", "Gate", "Further answers"
_FILES = ("write_pairs", "save_baseline", "junit", "markdown", "csv_file", "html")

_SHOWN = 8
"""Near misses of a kind that are printed; --write-pairs writes all."""


@dataclass(frozen=True, kw_only=True)
class CheckRequest(ModelOptions, TextOptions):
    """The options of `wordsens check`; `texts` are those from which near misses are made."""

    pairs: Annotated[
        str | None,
        typer.Option(
            help="Your own pairs: CSV, TSV, JSON lines or Parquet with kind, first, second, same; or NevIR-style query "
            "pairs with q1, q2, doc1, doc2.",
            show_default=False,
            rich_help_panel=_PAIRS,
        ),
    ] = None
    texts: Annotated[
        str | None,
        typer.Option(
            "--texts",
            "--from",
            help="Make near misses (enable/disable, not, numbers, order) from these English texts.",
            show_default=False,
            rich_help_panel=_PAIRS,
        ),
    ] = None
    write_pairs: Annotated[
        str | None,
        typer.Option(
            help="Write the pairs to this file, to read, correct and give to --pairs.",
            show_default=False,
            rich_help_panel=_PAIRS,
        ),
    ] = None
    kinds: Annotated[
        list[str] | None,
        typer.Option("--kind", help="Only this kind of opposite; may be repeated.", rich_help_panel=_PAIRS),
    ] = None
    threshold: Annotated[
        float | None,
        typer.Option(
            help="The cosine from which on two texts count as the same; default: the one of --keep.",
            show_default=False,
        ),
    ] = None
    keep: Annotated[float, typer.Option(help="The share of near-duplicates that the threshold keeps.")] = 0.9
    all_pairs: Annotated[
        bool, typer.Option("--all-pairs", help="Print every pair, worst first.", rich_help_panel=_MORE)
    ] = False
    csv_file: Annotated[
        str | None,
        typer.Option("--csv", help="Write every pair with its cosine.", show_default=False, rich_help_panel=_MORE),
    ] = None
    html: Annotated[
        str | None, typer.Option(help="Write the result as a page.", show_default=False, rich_help_panel=_MORE)
    ] = None
    guard: Annotated[
        bool,
        typer.Option(
            "--guard", help="Also false hits and recall with the guard behind the threshold.", rich_help_panel=_MORE
        ),
    ] = False
    layers: Annotated[
        bool,
        typer.Option("--layers", help="Also compare layer by layer, before and after pooling.", rich_help_panel=_MORE),
    ] = False
    requirements: Annotated[
        list[str] | None,
        typer.Option(
            "--require",
            help="Such as 'negation.false_hits <= .2', 'all.auc >= .4' or 'recall >= .9'; may be repeated. Exit code 3 "
            "when one fails.",
            rich_help_panel=_GATE,
        ),
    ] = None
    baseline: Annotated[
        str | None,
        typer.Option(
            help="Fail on a significant drop of an AUC since this file was saved.",
            show_default=False,
            rich_help_panel=_GATE,
        ),
    ] = None
    save_baseline: Annotated[
        str | None,
        typer.Option(help="Save the similarities, for --baseline.", show_default=False, rich_help_panel=_GATE),
    ] = None
    junit: Annotated[
        str | None,
        typer.Option(help="Write the requirements as JUnit XML.", show_default=False, rich_help_panel=_GATE),
    ] = None
    markdown: Annotated[
        str | None,
        typer.Option(help="Write the answer and the table as Markdown.", show_default=False, rich_help_panel=_GATE),
    ] = None
    seed: Seed = 0
    threads: Threads = 1
    as_json: AsJson = False
    quiet: Quiet = False

    def __post_init__(self) -> None:
        super().__post_init__()
        require_count("threads", self.threads)
        if self.pairs is not None and self.texts is not None:
            raise InputError(
                "--pairs and --texts exclude each other; write near misses with --write-pairs, and add yours"
            )
        if self.limit is not None:
            require_count("limit", self.limit)
        for option in _FILES:
            path = getattr(self, option)
            if path is not None and (not Path(path).expanduser().parent.is_dir() or Path(path).expanduser().is_dir()):
                name = option.removesuffix("_file")
                raise InputError(f"`{name}` (={path!r}) must be a file in a folder that exists")


def run_check(request: CheckRequest) -> None:
    """Measure the pairs and print the answer; RequirementError where a requirement fails, after all is written."""
    from wordsens.evaluation.check import CheckOptions, evaluate, prompted, require_cosine
    from wordsens.evaluation.similarities import readable, similarities

    options = CheckOptions.of(
        request.threshold, request.keep, request.requirements or (), request.baseline, request.seed
    )
    pairs, notes = _pairs(request)
    options.require_kinds(pairs)
    model = request.load()
    require_cosine(options.threshold, model)
    sides = prompted(model, request.prompt_names or ())
    read, unread = readable(sides, pairs)
    with reporting(1, "of the pairs", quiet=request.quiet) as report:
        values = similarities(sides, read, progress=lambda done, total: report.update(done / total, now=""))
    result = evaluate(sides, read, values, options, [*notes, *unread])
    layers = _layers(request, model, read) if request.layers else []
    guarded = result.guarded() if request.guard else None
    _write(request, result, layers, guarded)
    with printing():
        if request.as_json:
            print_json(_document(request, result, layers, guarded))
        else:
            pairs = "all" if request.all_pairs else "none"
            print_display(result.display(guarded, layers, pairs=pairs), verbose=request.all_pairs)
    if not result.passed:
        many = "a requirement is" if len(result.failures) == 1 else f"{len(result.failures)} requirements are"
        raise RequirementError(f"{many} not met: {'; '.join(result.failures)}")


def _pairs(request: CheckRequest) -> "tuple[list[Pair], list[str]]":
    from wordsens.evaluation.check import choose_pairs
    from wordsens.text.pairs import read_pairs, write_pairs

    source: Any = request.pairs
    if request.texts is not None:
        from wordsens.evaluation.near_misses import near_misses

        source = near_misses(request.documents(quiet=request.quiet), seed=request.seed)
        if not request.as_json:
            print_made(source)
    elif request.pairs is not None:
        source = read_pairs(request.pairs, encoding=request.encoding)
    pairs, notes = choose_pairs(source, request.kinds)
    if request.write_pairs is not None:
        own = source if request.texts is not None else pairs
        write_pairs(own, request.write_pairs)
        if not request.quiet:
            notice(f"{len(own)} pairs are in {request.write_pairs}; read and correct them, then give it to --pairs")
    return pairs, notes


def _layers(request: CheckRequest, model: "Model | PairModel", pairs: "Sequence[Pair]") -> "list[LayerRow]":
    from wordsens.evaluation.layers import layer_rows
    from wordsens.models.pairs import PairModel

    if isinstance(model, PairModel):
        raise InputError(f"{model.name} scores pairs and gives no layers; leave --layers out")
    with reporting(1, "of the layers", quiet=request.quiet) as report:
        return layer_rows(
            model, pairs, seed=request.seed, progress=lambda done, total: report.update(done / total, now="")
        )


def _document(
    request: CheckRequest, result: "Check", layers: "Sequence[LayerRow]", guarded: "Guarded | None"
) -> dict[str, Any]:
    """One document; its keys are those of docs/json.md."""
    return {
        "command": "check",
        "version": __version__,
        "model": result.model,
        "identity": result.identity,
        "keep": None if request.threshold is not None else request.keep,
        "seed": request.seed,
        **result.to_dict(all_pairs=request.all_pairs),
        "layers": [asdict(row) for row in layers],
        "guarded": None if guarded is None else asdict(guarded),
    }


def _write(request: CheckRequest, result: "Check", layers: "Sequence[LayerRow]", guarded: "Guarded | None") -> None:
    if request.save_baseline is not None:
        result.save_baseline(request.save_baseline)
    if request.junit is not None:
        from wordsens.cli.junit import write_junit

        write_junit(request.junit, f"wordsens check {result.model}", "wordsens.check", requirement_cases(result))
    if request.markdown is not None:
        gated = bool(result.options.requirements or result.drops)
        verdict = f"**wordsens check: {'passed' if result.passed else 'FAILED'}**\n\n" if gated else ""
        text = verdict + markdown(result.display(guarded, layers, pairs="none"))
        Path(request.markdown).expanduser().write_text(text, encoding="utf-8")
    if request.csv_file is not None:
        rows = result.all_pairs()
        with Path(request.csv_file).expanduser().open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    if request.html is not None:
        from wordsens.plotting import cosines
        from wordsens.plotting.style import with_picture

        title = f"Does {result.model} tell opposites from near-duplicates?"
        display = with_picture(result.display(guarded, layers, pairs="all"), cosines(result))
        page = html_page(display, title=f"{title} · wordsens check", heading=title, version=__version__)
        Path(request.html).expanduser().write_text(page, encoding="utf-8")


def print_made(pairs: "Sequence[Pair]") -> None:
    """The near misses of each kind: some of them, and how many there are."""
    console = stdout()
    for kind in dict.fromkeys(pair.kind for pair in pairs):
        built = [pair for pair in pairs if pair.kind == kind]
        console.print(f"{kind}: {len(built)} near miss{'es' * (len(built) != 1)} made", style="bold")
        for pair in built[:_SHOWN]:
            here, there = (part or "-" for part in pair.changed)
            console.print(Text.assemble("  ", (here, LITTLE), " / ", (there, MUCH), f": {pair.second}"))
        if len(built) > _SHOWN:
            console.print(f"  and {len(built) - _SHOWN} more; --write-pairs FILE writes all of them")
    console.print()


def requirement_cases(result: "Check") -> dict[str, list[str]]:
    """Every requirement, and every kind that was compared with a baseline, with what fails it and the pairs behind."""
    from wordsens.evaluation.check import failures_of

    whole = {name: getattr(result, name) for name in ("threshold", "recall", "recall_low", "recall_high")}
    cases = {one.text: failures_of(one, result.kinds, whole) for one in result.options.requirements}
    for kind in result.drops:
        failed = [failure for failure in result.failures if failure.startswith(f"{kind}.auc has dropped")]
        cases[f"{kind}.auc has not dropped since the baseline"] = failed
    rows = result.failing_pairs()
    for failures in cases.values():
        if failures:
            kinds = {failure.split(" ")[0].rpartition(".")[0] for failure in failures}
            failures += [_plain(row) for row in rows if row["kind"] in kinds or row["same"]]
    return cases


def _plain(row: dict[str, Any]) -> str:
    from wordsens.evaluation.check import around

    first, second = around(row["first"], row["second"]), around(row["second"], row["first"])
    return f"{row['similarity']:.3f} {row['kind']}: {first!r} / {second!r}"
