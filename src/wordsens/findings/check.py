"""What a check says: its sentences, and its tables for a terminal, a page and Markdown."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from wordsens.display.content import Display, Marked, Strong, Table, as_sentences, percent, plural
from wordsens.evaluation.calibrate import shortest_between
from wordsens.evaluation.check import Check, Guarded, KindRow, not_dropped
from wordsens.evaluation.layers import LayerRow
from wordsens.findings.calibrate import decimals
from wordsens.findings.guard import CHANGES
from wordsens.results import ResultTable

COIN = 0.5
"""The AUC of chance."""

_AROUND = 6
"""Words on either side of a change that a sentence shows."""

_FAILING = 5
"""Pairs behind a requirement that fails that are shown at once."""

_NEAR = 6
"""Likewise kinds of near-duplicates."""


def answer(check: Check) -> tuple[str, ...]:
    """The share of opposites that pass at the threshold, with the worst kind; then the kinds that
    the model tells."""
    measured = check.measured
    whose = "the package's " if measured.has_stand_ins else ""
    first = (
        f"{'At your threshold' if check.keep is None else 'At the threshold'} "
        f"{_threshold(check)}, which keeps {percent(check.recall)} of "
        f"{whose}{plural(int(measured.near.sum()), 'near-duplicate')}, "
        f"{percent(check.false_hits)} of {plural(int(measured.opposite.sum()), 'opposite')} pass "
        "as the same."
    )
    if check.changes:
        first += f" {as_sentences(*check.changes)}"
    worst = next(iter(check.kinds.values()))
    if worst.false_hits > 0:
        first += (
            f" Worst: {worst.kind} ({percent(worst.false_hits)} of {worst.pairs}), such as "
            f"{_example(check, worst)}."
        )
    above = [row.kind for row in check.kinds.values() if row.auc_low > COIN]
    below = [row.kind for row in check.kinds.values() if row.auc_high < COIN]
    unsure = [kind for kind in check.kinds if kind not in (*above, *below)]
    verdicts = {
        "tells these opposites from near-duplicates better than chance:": above,
        "may be no better than chance, too few pairs to tell:": unsure,
        "puts these closer together than near-duplicates:": below,
    }
    parts = [f"{verdict} {', '.join(kinds)}" for verdict, kinds in verdicts.items() if kinds]
    return first, f"{check.model} {'; '.join(parts)}."


def _plainest(check: Check, kind: str) -> int:
    """The place of the plainest opposite of the kind: a hit if there is one, short texts first,
    then the most alike."""
    measured = check.measured

    def plainness(place: int) -> tuple[bool, int, float]:
        value = measured.values[place]
        return value >= check.threshold, -len(measured.pairs[place].first.split()) // 12, value

    return max(np.flatnonzero(measured.opposites[kind]).tolist(), key=plainness)


def _example(check: Check, row: KindRow) -> str:
    place = _plainest(check, row.kind)
    pair = check.measured.pairs[place]
    first, second = (part or "-" for part in pair.changed)
    words, others = first.split(" ... "), second.split(" ... ")
    change = (
        f"'{words[0]}' and '{words[1]}' exchanged"
        if words == others[::-1] != others
        else f"'{first}' / '{second}'"
    )
    return f"{change} in {around(pair.first, pair.second)!r} ({check.measured.values[place]:.3f})"


def _threshold(check: Check) -> str:
    """The threshold in as few decimals as let the same pairs pass; a given one as it was given."""
    if check.keep is None:
        return decimals(check.threshold)
    below = check.measured.values[check.measured.values < check.threshold]
    above = float(below.max()) if len(below) else check.threshold - 1
    return decimals(shortest_between(above, check.threshold))


def around(text: str, other: str) -> str:
    """The text; of a long one, the words around its first difference from the other."""
    words = text.split()
    if len(words) <= 2 * _AROUND:
        return text
    differing = (
        at for at, (word, its) in enumerate(zip(words, other.split(), strict=False)) if word != its
    )
    place = next(differing, 0)
    start, stop = max(0, place - _AROUND), place + _AROUND
    return f"{'... ' * (start > 0)}{' '.join(words[start:stop])}{' ...' * (stop < len(words))}"


def pair_line(row: Mapping[str, Any]) -> str:
    """A row of `Check.all_pairs` in one line."""
    first, second = around(row["first"], row["second"]), around(row["second"], row["first"])
    judged = f" (guard: {row['guard']})" if "guard" in row else ""
    return f"{row['similarity']:.3f} {row['kind']}{judged}: {first!r} / {second!r}"


def cases(check: Check) -> dict[str, list[str]]:
    """Every requirement, and every kind that was compared with a baseline, with what fails it and
    the pairs behind."""
    names = [
        *(requirement.text for requirement in check.requirements),
        *map(not_dropped, check.drops),
    ]
    failures: dict[str, list[str]] = {}
    for name in names:
        sentences = [each.sentence for each in check.unmet if each.requirement == name]
        rows = check.failing_pairs(requirement=name)
        failures[name] = [*sentences, *map(pair_line, rows)]
    return failures


def table(check: Check) -> ResultTable:
    """A row a kind of opposite."""
    failed = tuple(f"FAILED: {failure}" for failure in check.failures)
    return ResultTable(check.answer[0], check.columns(), notes=failed)


def display(
    check: Check,
    layers: Sequence[LayerRow] = (),
    *,
    pairs: str = "worst",
    verbose: bool = False,
) -> Display:
    """The answer, what fails with its pairs, then kinds, near-duplicates, lengths, layers, changes
    and pairs, changed words marked.

    Args:
        check: the result.
        layers: layer by layer.
        pairs: "none" of those that fail nothing, the "worst" of each kind, or "all".
        verbose: with every kind's AUC, the kinds that the model tells, and every kind of
            near-duplicate.
    """
    score = "cosine" if check.measured.cosines else "score"
    guarded = None if check.verdicts is None else check.guarded()
    guard = () if guarded is None else ("guard",)
    columns = (score, "", *guard, "kind", "first", "second")

    def listing(
        title: str,
        rows: Sequence[Mapping[str, Any]],
        most: int | None = None,
        *,
        folded: bool = False,
    ) -> Table:
        return Table(
            title, columns, tuple(map(_pair_cells, rows)), most=most or len(rows), folded=folded
        )

    failing = check.failing_pairs(len(check.measured.pairs))
    tables = [
        listing(
            "Opposites behind the requirements that fail, worst first",
            [row for row in failing if not row["same"]],
            _FAILING,
        ),
        listing(
            "Near-duplicates behind the requirements that fail, worst first",
            [row for row in failing if row["same"]],
            _FAILING,
        ),
        _kinds(check, guarded, verbose=verbose),
        _near_duplicates(check, most=len(check.near_duplicates) if verbose else _NEAR),
        _lengths(check),
        _layers(layers),
        Table(
            "Since the baseline",
            ("kind", "before", "now", "p of the drop"),
            tuple(
                (kind, f"{drop['before']:.4f}", f"{drop['after']:.4f}", f"{drop['p']:.2g}")
                for kind, drop in check.drops.items()
            ),
            most=len(check.drops),
        ),
    ]
    if pairs != "none":
        plainest = [check.measured.pairs[_plainest(check, kind)] for kind in check.kinds]
        rows = {(row["kind"], row["first"], row["second"]): row for row in check.all_pairs()}
        shown = [rows[pair.kind, pair.first, pair.second] for pair in plainest]
        tables.append(listing("The plainest opposite of each kind", shown))
    if pairs == "all":
        title = (
            "Every pair: opposites from the most alike, then the same meaning from the least alike"
        )
        tables.append(listing(title, check.all_pairs(), folded=True))
    gated = bool(check.requirements or check.drops)
    return Display(
        check.answer if verbose else check.answer[:1],
        tuple(each for each in tables if each.rows),
        failures=check.failures,
        passed="All requirements are met." if gated and check.passed else "",
        notes=check.notes,
    )


def _pair_cells(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """A pair with its changed words marked; of long texts what stands around the change."""
    texts = around(row["first"], row["second"]), around(row["second"], row["first"])
    changed = row["changed_first"], row["changed_second"]
    marked = (
        Marked(text, tuple(words.split(" ... ")))
        for text, words in zip(texts, changed, strict=True)
    )
    return (
        f"{row['similarity']:.3f}",
        "hit" if row["hit"] and not row["same"] else "",
        *([row["guard"]] if "guard" in row else []),
        row["kind"],
        *marked,
    )


def _kinds(check: Check, guarded: Guarded | None, *, verbose: bool) -> Table:
    far = verbose and any(row.auc_far is not None for row in check.kinds.values())
    rows = []
    for row in check.kinds.values():
        cells: list[Any] = [row.kind, row.pairs, f"{row.false_hits:.0%}"]
        cells += [f"[{row.false_hits_low:.0%}, {row.false_hits_high:.0%}]"]
        cells += [f"{guarded.false_hits[row.kind]:.0%}"] if guarded else []
        if verbose:
            auc = f"{row.auc:.3f}"
            cells += [
                Strong(auc) if row.auc < COIN else auc,
                f"[{row.auc_low:.2f}, {row.auc_high:.2f}]",
            ]
        cells += [None if row.auc_far is None else f"{row.auc_far:.3f}"] if far else []
        rows.append(tuple(cells))
    note = (
        f"Threshold {_threshold(check)}: {check.recall:.0%} of {int(check.measured.near.sum())} "
        "near-duplicates of "
        f"the same meaning reach it [{check.recall_low:.0%}, {check.recall_high:.0%}]. false hits: "
        "the opposites that "
        f"do, which mean something else by one change, such as {CHANGES}."
    )
    if verbose:
        note += (
            " AUC: the chance that an opposite is less alike than a near-duplicate; 1 perfect, .5 "
            "a coin, 0 always "
            f"more alike, bold below a coin{'; far: than a paraphrase of few common words' * far}."
        )
    note += " Brackets: 95 %."
    if guarded:
        note += (
            f" With the guard {guarded.recall:.0%} of the near-duplicates and these opposites "
            "are hits."
        )
    headings = ["kind", "pairs", "false hits", "[95 %]"] + ["with guard"] * (guarded is not None)
    headings += ["AUC", "[95 %]"] * verbose + ["AUC far"] * far
    return Table("", tuple(headings), tuple(rows), note, len(rows))


def _near_duplicates(check: Check, *, most: int) -> Table:
    """Recall by kind, the lowest first."""
    rows = sorted(check.near_duplicates.values(), key=lambda row: row.recall)
    return Table(
        "Near-duplicates that reach the threshold",
        ("kind", "pairs", "recall", "[95 %]"),
        tuple(
            (
                row.kind,
                row.pairs,
                f"{row.recall:.0%}",
                f"[{row.recall_low:.0%}, {row.recall_high:.0%}]",
            )
            for row in rows
        ),
        most=most,
    )


def _lengths(check: Check) -> Table:
    """False hits by length; no row where all pairs are of one."""
    lengths = list(dict.fromkeys(row.length for row in check.lengths))
    shares = {
        (row.kind, row.length): f"{row.false_hits:.0%} of {row.pairs}" for row in check.lengths
    }
    kinds = check.kinds if len(lengths) > 1 else ()
    rows = tuple((kind, *(shares.get((kind, length)) for length in lengths)) for kind in kinds)
    return Table("False hits by length", ("kind", *lengths), rows, most=len(rows))


def _layers(layers: Sequence[LayerRow]) -> Table:
    def cells(row: LayerRow) -> Iterator[Any]:
        yield from (row.kind, row.layer, f"{row.auc:.3f}")
        yield None if row.auc_synonym is None else f"{row.auc_synonym:.2f}"
        yield from (f"{row.rows:.3f}", f"{row.pooled:.3f}", f"{row.kept:.0%}")

    return Table(
        "By layer: AUC, and how far an opposite's farthest token and its pooled vector are moved",
        ("kind", "layer", "AUC", "synonym", "token", "pooled", "kept"),
        tuple(tuple(cells(row)) for row in sorted(layers, key=lambda row: (row.kind, row.layer))),
        "token: the median cosine distance of the token that finds its like least in the other "
        "text; pooled: of the "
        "two pooled vectors; kept: their ratio, what pooling leaves of the difference.",
        len(layers),
    )
