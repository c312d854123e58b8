"""The work of `wordsens tune`, and what it prints."""

from collections.abc import Sequence
from typing import Any

from rich.text import Text

from wordsens import __version__
from wordsens.cli.stopping import stopped_by_sigterm
from wordsens.cli.terminal import LITTLE, MUCH, print_json, reporting, stdout, table
from wordsens.cli.tune.options import TuneRequest
from wordsens.text.readers import read_documents
from wordsens.training.adapter.parity.plan import ParityPlan
from wordsens.training.adapter.plan import PARITY, TunePlan
from wordsens.training.adapter.result import Tuned
from wordsens.training.adapter.tune import HeldOut, tune


def run_tune(request: TuneRequest) -> None:
    """Tune, and print what it did. KeyboardInterrupt says how to go on."""
    texts = None
    if request.texts is not None:
        texts = read_documents(
            request.texts, text_column=request.text_column, labels=False, limit=request.limit, skip_empty=True
        )
    asked, parity = (
        {name: getattr(request, name) for name in names if getattr(request, name) is not None}
        for names in (("depth", "rank", "steps"), ("waves", "share"))
    )
    try:
        with stopped_by_sigterm(), reporting(1, "of the tuning", quiet=request.quiet) as report:
            found = tune(
                request.model,
                request.out,
                request.pairs,
                texts,
                plan=TunePlan(adapter=request.adapter, **asked, parity=ParityPlan(**parity)),
                held_out=HeldOut(domains=request.held_out, kinds=request.held_out_kinds),
                seed=request.seed,
                pool=request.pool,
                revision=request.revision,
                told=lambda now, share: report.update(share, now=now),
            )
    except KeyboardInterrupt as stop:
        raise type(stop)(
            f"interrupted: nothing is in {request.out} yet; the same command goes on from the last checkpoint, if any"
        ) from None
    if request.as_json:
        print_json({"command": "tune", "version": __version__, "seed": request.seed, **found.to_dict()})
    else:
        _print(found)


def _print(found: Tuned) -> None:
    console = stdout()
    for sentence in found.answer:
        console.print(Text(sentence))
    where = ", ".join(found.domains) or "every third text"
    _table(f"Kept apart: {where}", found.unseen.rows(found.kinds))
    counted = found.plan.adapter == PARITY
    _table("The other domains" if counted else "Where it was trained", found.seen.rows(found.kinds))
    console.print(
        "AUC: the chance that an opposite is farther apart than a paraphrase; 1 perfect, .5 a coin. Brackets: 95 %. "
        "opposite, paraphrase: median cosines, before and after."
    )
    for note in found.notes:
        console.print(Text(f"Note: {note}"))
    made = "numbers were set" if counted else "weights were trained"
    console.print(Text(f"{found.weights:,} {made}; the model is in {found.folder}", style="bold"))


def _table(heading: str, rows: Sequence[dict[str, Any]]) -> None:
    console = stdout()
    console.print()
    console.print(Text(heading, style="bold"))
    shown = table(
        ("kind", "left"), ("pairs", "right"), ("AUC before", "right"), ("AUC", "right"), ("95 %", "right"),
        ("opposite", "right"), ("paraphrase", "right"),
    )  # fmt: skip
    for row in rows:
        style = MUCH if row["auc_high"] < 0.5 else LITTLE if row["auc_low"] > 0.5 else ""
        shown.add_row(
            f"{row['kind']}{'' if row['trained'] else ' (not trained)'}",
            str(row["pairs"]),
            f"{row['auc_before']:.3f}",
            Text(f"{row['auc']:.3f}", style=style),
            f"[{row['auc_low']:.2f}, {row['auc_high']:.2f}]",
            f"{row['median_opposite_before']:.2f} > {row['median_opposite']:.2f}",
            f"{row['median_same_before']:.2f} > {row['median_same']:.2f}",
        )
    console.print(shown)
