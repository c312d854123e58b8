"""The making of the numbers: the command, the specs, versions, seeds and machines of each run."""

import json
import shlex
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from wordsens.experiments.store import Record
from wordsens.report.load import Run, readable

LISTED = 12
"""So many different values of one thing are named."""


@dataclass(frozen=True)
class Origin:
    """The origin of a run's numbers.

    Attributes:
        name: of the run.
        commands: (what it is, the command): as they were typed, or else what measures the run's cells again.
        facts: (what, value): versions, seeds, machines, times.
        specs: by file name.
        unread: files that were passed over, with the reason.
    """

    name: str
    commands: tuple[tuple[str, str], ...]
    facts: tuple[tuple[str, str], ...]
    specs: dict[str, str]
    unread: tuple[str, ...]


def origin(run: Run) -> Origin:
    """The origin of a run."""
    records = run.records
    facts = [
        ("folder", readable(run.folder.resolve())),
        ("records", _counts(run)),
        ("wordsens", _values(records, "wordsens_version")),
        ("commit", _values(records, "commit")),
        ("code", _values(records, "code")),
        ("libraries", _libraries(records)),
        ("seeds", _values(records, "seed")),
        ("computed in", _values(records, "dtype")),
        ("on", _values(records, "device")),
        ("machine", _values(records, "machine")),
        ("threads", _values(records, "threads")),
        ("started", _period(records)),
        ("computed for", f"{sum(record.seconds for record in records) / 60:.1f} minutes of one process's time"),
        ("models", _values(records, "model")),
        ("encoders", _values(records, "encoder")),
    ]
    return Origin(run.name, _commands(run), tuple(fact for fact in facts if fact[1]), run.specs, run.unread)


def _commands(run: Run) -> tuple[tuple[str, str], ...]:
    kept = [
        (
            f"Typed on {one.get('started', 'a day that was not kept')}",
            shlex.join(["wordsens", *map(str, one["arguments"])]),
        )
        for one in run.commands
    ]
    folder = shlex.quote(readable(run.folder.name))
    again = [
        ("The command was not kept; this measures the same cells", f"wordsens sweep run {folder}/{shlex.quote(name)}")
        for name in run.specs
    ]
    return tuple(kept or again)


def _counts(run: Run) -> str:
    return "; ".join(
        f"{len(part.done):,} {part.name}"
        + (f" and {len(part.records) - len(part.done):,} failed" if len(part.records) > len(part.done) else "")
        for part in run.parts
    )


def _values(records: Iterable[Any], name: str) -> str:
    """The different values, the most frequent first."""
    found = Counter(value for record in records if (value := record.columns.get(name)) not in (None, ""))
    listed = [str(value) for value, _ in found.most_common(LISTED)]
    if all(isinstance(value, int) for value in found):
        listed = [str(value) for value in sorted(found)[:LISTED]]
    more = f" and {len(found) - LISTED:,} more" if len(found) > LISTED else ""
    return ", ".join(listed) + more


def _libraries(records: Iterable[Record]) -> str:
    found = dict.fromkeys(record.libraries for record in records if record.libraries)
    told = [", ".join(f"{name} {version}" for name, version in json.loads(one).items()) for one in found]
    return "; or ".join(told[:LISTED])


def _period(records: Iterable[Any]) -> str:
    times = sorted(record.started for record in records)
    return times[0] if times[0] == times[-1] else f"{times[0]} to {times[-1]}"
