"""The tables of `wordsens check`, behind its answer in sentences."""

from collections.abc import Sequence

from rich.text import Text

from wordsens.cli.terminal import LITTLE, MUCH, stdout, table
from wordsens.evaluation.check import Check
from wordsens.evaluation.kinds import KindTable
from wordsens.evaluation.layers import LayerRow
from wordsens.text.pairs import LENGTHS, Pair

_COIN = 0.5
"""Below this AUC opposites look more alike than paraphrases."""

_SHOWN = 8
"""Near misses of a kind that are printed; --write-pairs writes all."""


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
        _layers(layers)
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


def _layers(layers: Sequence[LayerRow]) -> None:
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
