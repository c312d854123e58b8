"""What a check says: its headline, its tables, and pairs with their changed words marked."""

from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any

import numpy as np

from wordsens.display.numbers import as_sentences, column, decimals, number, percent, plural
from wordsens.display.view import Chart, Marked, Table, View
from wordsens.evaluation.calibrate import shortest_between
from wordsens.evaluation.check import Check, KindRow, not_dropped
from wordsens.evaluation.guard.judge import CHANGES
from wordsens.intervals import ends

# The AUC of chance.
CHANCE = 0.5

# Words on either side of a change that a sentence shows.
_AROUND = 6

# The columns of what changed since a baseline.
_SIDES = ("before", "after", "p")

# Pairs behind a requirement that fails, and kinds of near-duplicates, that are shown at once.
_FAILING, _NEAR = 5, 6


def _headline(check: Check) -> str:
    """The share of near-duplicates and of opposites that the threshold accepts, which pairs were
    left out or replaced, and the worst kind."""
    scored, worst = check.scored, check.rows[0]
    whose = "the package's " if scored.has_stand_ins else ""
    recall, false_hits = (column([share], "%")[0] for share in (check.recall, check.false_hits))
    sentence = (
        f"At threshold {_threshold(check)}, {check.model} accepts {recall} of "
        f"{whose}{plural(int(scored.near.sum()), 'near-duplicate')} and, wrongly, "
        f"{false_hits} of {plural(int(scored.opposite.sum()), 'opposite')}."
    )
    kind = (
        f"Worst kind: {worst.kind}, {percent(worst.false_hits.value)} of {worst.pairs}, such as "
        f"{_example(_plainest(check, worst.kind))}."
    )
    changes = as_sentences(*scored.changes)
    return " ".join(filter(None, (sentence, changes, kind * (worst.false_hits.value > 0))))


def view(check: Check, *, pairs: str = "worst", verbose: bool = False) -> View:
    """The headline, what fails with its pairs, then kinds, near-duplicates, lengths, changes since
    the baseline, and pairs. See `Check.view`."""
    failing = check.failing_pairs(len(check.scored.pairs))
    most = len(failing) if verbose else _FAILING
    tables = [
        _pairs_table(
            check,
            f"{name} behind the requirements that fail, worst first",
            [row for row in failing if row["same"] is same],
            most=most,
        )
        for name, same in (("Opposites", False), ("Near-duplicates", True))
    ]
    shares = sorted(check.near_duplicates.items(), key=lambda row: row[1].value)
    near = Table.of_rows(
        "Near-duplicates by kind",
        ("kind", "pairs", "accepted"),
        [(kind, share.n, share) for kind, share in shares],
        units={"accepted": "%"},
        most=len(shares) if verbose else _NEAR,
    )
    drops = Table.of_rows(
        "AUC since the baseline",
        ("kind", *_SIDES),
        [(kind, *(drop[name] for name in _SIDES)) for kind, drop in check.drops.items()],
    )
    tables += [_kinds_table(check), near, _length_table(check), drops]
    if pairs != "none":
        rows = [_plainest(check, row.kind) for row in check.rows]
        tables.append(_pairs_table(check, "The plainest opposite of each kind", rows))
    if pairs == "all":
        title = (
            "Every pair: opposites, the most similar first; then near-duplicates, the least "
            "similar first"
        )
        tables.append(_pairs_table(check, title, check.all_pairs(), folded=True))
    gated = bool(check.requirements or check.drops)
    return View(
        _headline(check),
        tuple(filter(len, tables)),
        failures=check.failures,
        passed="All requirements are met." if gated and check.passed else "",
        notes=check.notes,
        chart=_chart(check),
    )


def _chart(check: Check) -> Chart:
    """The share of each group of pairs that a threshold accepts."""
    values = check.scored.values
    thresholds = np.linspace(float(np.quantile(values, 0.01)), float(values.max()), 200).tolist()
    groups = {
        "near-duplicates (same meaning)": values[check.scored.near],
        "opposites": values[check.scored.opposite],
    }
    rows = [
        (threshold, float((members >= threshold).mean()), name)
        for name, members in groups.items()
        for threshold in thresholds
    ]
    options = {
        "x": "threshold",
        "y": "accepted",
        "colour": "pairs",
        "limits": (0, None),
        "guides": {f"threshold {_threshold(check)}": [(check.threshold, None)]},
        "labels": {
            "threshold": f"threshold on the {_score(check)} of the two texts",
            "accepted": "share of the pairs accepted as the same",
        },
        "title": f"Pairs that {check.model} accepts at each threshold",
        "caption": "Each curve: the share of the pairs accepted at a threshold. Accepted "
        "opposites are false hits.",
    }
    columns = zip(("threshold", "accepted", "pairs"), zip(*rows, strict=True), strict=True)
    return Chart("lines", dict(columns), options)


def _score(check: Check) -> str:
    return "cosine" if check.scored.cosines else "score"


def _kinds_table(check: Check) -> Table:
    rows = check.rows
    columns: dict[str, Any] = {
        "kind": [row.kind for row in rows],
        "pairs": [row.pairs for row in rows],
        "false hits": [row.false_hits for row in rows],
    }
    note = (
        "False hits: opposites at or above the threshold, which mean something else by one "
        f"change, such as {CHANGES}. AUC: the chance that an opposite is less similar than a "
        "near-duplicate; 1 is perfect, 0.5 is chance, less means that opposites are more similar; "
        "far: the same against paraphrases that share few words. Above chance: whether the AUC's "
        'interval says so; "unsure" if there are too few pairs. Brackets: 95 % confidence '
        "intervals."
    )
    if check.scored.verdicts is not None:
        guarded = check.guarded()
        columns["with guard"] = [guarded["false_hits"][row.kind] for row in rows]
        note += (
            f" Threshold and guard together accept {percent(guarded['recall'])} of the "
            "near-duplicates."
        )
    columns["above chance"] = [above_chance(row) for row in rows]
    columns["AUC"] = [row.auc for row in rows]
    columns["AUC far"] = [row.auc_far and row.auc_far.value for row in rows]
    units = {"false hits": "%", "with guard": "%"}
    return Table("", columns, units=units, note=note, most=len(rows))


def above_chance(row: KindRow) -> str:
    """Whether opposites of the kind are less similar than near-duplicates more often than by
    chance."""
    low, high = (CHANCE, CHANCE) if row.auc is None else ends(row.auc)
    if low > CHANCE:
        return "yes"
    return "no, worse" if high < CHANCE else "unsure"


def _length_table(check: Check) -> Table:
    """False hits by length; no row where all pairs are of one."""
    lengths = list(dict.fromkeys(row.length for row in check.lengths))
    shares = {(row.kind, row.length): row.false_hits for row in check.lengths}
    kinds = [row.kind for row in check.rows] if len(lengths) > 1 else []
    columns = {"kind": kinds} | {
        length: [shares.get((kind, length)) for kind in kinds] for length in lengths
    }
    units = dict.fromkeys(lengths, "%")
    return Table("False hits by length of the texts", columns, units=units, most=len(kinds))


def _pairs_table(
    check: Check, title: str, rows: Sequence[Mapping[str, Any]], most: int = 0, folded: bool = False
) -> Table:
    """Pairs with their changed words marked; of long texts the words around the change."""
    columns: dict[str, Any] = {
        _score(check): [row["similarity"] for row in rows],
        "accepted": [row["hit"] for row in rows],
    }
    if check.scored.verdicts is not None:
        columns["guard"] = [row["guard"] for row in rows]
    columns["kind"] = [row["kind"] for row in rows]
    for name, other in (("first", "second"), ("second", "first")):
        columns[name] = [
            Marked(around(row[name], row[other]), tuple(row[f"changed_{name}"].split(" ... ")))
            for row in rows
        ]
    return Table(title, columns, most=most or len(rows), folded=folded)


def _plainest(check: Check, kind: str) -> Mapping[str, Any]:
    """The plainest opposite of the kind: a hit if there is one, short texts first, then the most
    similar."""
    rows = [row for row in check.all_pairs() if row["kind"] == kind and not row["same"]]
    return max(
        rows, key=lambda row: (row["hit"], -len(row["first"].split()) // 12, row["similarity"])
    )


def _example(row: Mapping[str, Any]) -> str:
    first, second = (row[name] or "-" for name in ("changed_first", "changed_second"))
    words, others = first.split(" ... "), second.split(" ... ")
    change = f"'{first}' / '{second}'"
    if words == others[::-1] != others:
        change = f"'{words[0]}' and '{words[1]}' exchanged"
    return f"{change} in {around(row['first'], row['second'])!r} ({number(row['similarity'])})"


def _threshold(check: Check) -> str:
    """The threshold in as few decimals as let the same pairs pass; a given one as it was given."""
    if check.keep is None:
        return decimals(check.threshold)
    values = check.scored.values
    below = values[values < check.threshold]
    above = float(below.max()) if len(below) else check.threshold - 1
    return decimals(shortest_between(above, check.threshold))


def around(text: str, other: str) -> str:
    """The text; of a long one, the words around its first difference from the other."""
    words = text.split()
    if len(words) <= 2 * _AROUND:
        return text
    alike = takewhile(lambda both: both[0] == both[1], zip(words, other.split(), strict=False))
    place = len(list(alike))
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
    names = [*(each.text for each in check.requirements), *map(not_dropped, check.drops)]
    failures: dict[str, list[str]] = {}
    for name in names:
        sentences = [each.sentence for each in check.unmet if each.requirement == name]
        rows = check.failing_pairs(requirement=name)
        failures[name] = [*sentences, *map(pair_line, rows)]
    return failures
