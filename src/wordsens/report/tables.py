"""Findings and tables of a report: what each experiment's records say together, given texts, and
what failed."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from wordsens.display.view import Finding, Picture, Table, View
from wordsens.errors import InputError
from wordsens.maps.registry import map_title
from wordsens.report.load import Part, Run
from wordsens.sensitivity.measured import contrast
from wordsens.sweeps.measurement import GIVEN
from wordsens.sweeps.study import compact
from wordsens.sweeps.sweep import study_named

# Letters of a text that is shown in a table.
_SHORT = 60

# Columns of given texts, and what they are called in a record.
_COLUMNS = {
    "S": "value",
    "at most": "upper",
    "predicted": "predicted",
    "word": "token",
    "n": "n",
    "d": "d",
    "radius": "radius",
    "words searched": "words",
    "converged": "converged",
    "bound": "rigor",
}


def part_view(part: Part, pictures: Sequence[Picture] = (), run: str = "") -> View:
    """The findings, figures and tables of one experiment's records, under its name, after that of
    the run where there are several."""
    title = f"{run}: " * bool(run) + part.name.replace("-", " ").capitalize()
    given = [each for each in part.done if part.name == "sensitivity" and each["text"] == GIVEN]
    parts = _given(given) if given else []
    study = study_named(part.name)
    if study.tables is None or not part.done:
        return View(title, (*parts, *pictures))
    try:
        summary = study.summary(part.frame)
    except InputError as error:  # records that differ in more than one table can tell
        return View(title, (*parts, f"These records are not summarized: {error}.", *pictures))
    tables = [
        replace(table, note=summary.note * (place == 0), folded=place > 0, most=len(table))
        for place, table in enumerate(filter(len, map(compact, summary.tables)))
    ]
    return View(title, (*parts, *summary.findings, *pictures, *tables))


def _given(records: Sequence[Any]) -> list[Any]:
    """Texts that a user gave: attention beside a fully connected layer, and one row per text and
    map."""
    ordered = sorted(records, key=lambda record: -record["value"])
    columns = {
        "text": list(map(_short, ordered)),
        "map": [map_title(record["map"]) for record in ordered],
        **{name: [record.get(key) for record in ordered] for name, key in _COLUMNS.items()},
        "predicted for": list(map(_predicted_for, ordered)),
    }
    note = (
        "S: the largest change of the output found when one word's vector moves by at most the "
        "radius, divided by the output's size; a lower bound. At most: an upper bound. Predicted: "
        "theory for large d, not a bound. Converged: the share of words whose search ended at a "
        "local maximum."
    )
    table = compact(Table("Your texts", columns, {"converged": "%"}, note, coloured=("S",)))
    values: dict[Any, list[tuple[str, float]]] = {}
    for record in records:
        values.setdefault(record.get("text_content"), []).append((record["map"], record["value"]))
    one_size = len({record["d"] for record in records}) == 1
    sentence = contrast([*values.values()]) if one_size else None
    return [*([Finding(sentence)] if sentence else []), table]


def _short(record: Any) -> str:
    """The text of a record, or its source where it is long."""
    content = " ".join((record.get("content") or "").split())
    return content if 0 < len(content) <= _SHORT else str(record["source"])


def _predicted_for(record: Any) -> str | None:
    """The texts that a prediction is about."""
    if record["predicted"] is None:
        return None
    return record["predicted_of"] + "; untested at such sizes" * (not record["predicted_in_range"])


def failed_table(runs: Sequence[Run]) -> Table:
    """One row per cell that failed."""
    rows = [
        (run.name, record["cell"], record["error"] or "no reason given")
        for run in runs
        for record in run.failed
    ]
    total = sum(len(run.records) for run in runs)
    return Table.of_rows(
        f"{len(rows):,} of {total:,} measurements failed",
        ("run", "cell", "error"),
        rows,
        note="No number on this page includes them. Run the same command to try them again.",
        most=5,
    )
