"""How the numbers were made: the command, the specs, versions, seeds and machines of each run; and how to cite."""

import json
import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from wordsens.display.content import Code, Section, Table
from wordsens.report.load import Run, readable
from wordsens.sweeps.store import Record
from wordsens.version import __version__

LISTED = 12
"""So many different values of one thing are named."""

BIBTEX = f"""@inproceedings{{bombari2024word,
  title     = {{Towards Understanding the Word Sensitivity of Attention Layers: A Study via Random Features}},
  author    = {{Bombari, Simone and Mondelli, Marco}},
  booktitle = {{International Conference on Machine Learning}},
  year      = {{2024}}
}}

@software{{wordsens,
  title   = {{wordsens: how much can one word change what a model sees?}},
  author  = {{{{The wordsens authors}}}},
  version = {{{__version__}}}
}}
"""


def provenance_section(runs: Sequence[Run]) -> Section:
    """The origin of each run, and the citations."""
    parts = [part for run in runs for part in _origin(run, run.name if len(runs) > 1 else "")]
    return Section("How these numbers were made", (*parts, Code("How to cite", BIBTEX)))


def _origin(run: Run, name: str) -> list[Any]:
    records = run.records
    facts = [
        ("folder", readable(run.folder.resolve().name)),
        ("records", _counts(run)),
        ("wordsens", _values(records, "wordsens_version")),
        ("commit", _values(records, "commit")),
        ("hash of the code", _values(records, "code")),
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
        *(("passed over", line) for line in run.unread),
    ]
    commands = [
        Code(f"Typed on {one.get('started', 'an unknown day')}", shlex.join(["wordsens", *map(str, one["arguments"])]))
        for one in run.commands
    ]
    folder = shlex.quote(readable(run.folder.name))
    again = [
        Code(
            "The command is not known; this measures the same cells", f"wordsens sweep run {folder}/{shlex.quote(spec)}"
        )
        for spec in run.specs
    ]
    specs = [Code(f"The spec, {file}", text, folded=True) for file, text in run.specs.items()]
    return [*(commands or again), Table(name, (), tuple(fact for fact in facts if fact[1])), *specs]


def _counts(run: Run) -> str:
    return "; ".join(
        f"{len(part.done):,} {part.name}"
        + (f" and {len(part.records) - len(part.done):,} failed" if len(part.records) > len(part.done) else "")
        for part in run.parts
    )


def _values(records: Iterable[Any], name: str) -> str:
    """The different values, the most frequent first."""
    counts = Counter(value for record in records if (value := record.columns.get(name)) not in (None, ""))
    listed = [str(value) for value, _ in counts.most_common(LISTED)]
    if all(isinstance(value, int) for value in counts):
        listed = [str(value) for value in sorted(counts)[:LISTED]]
    more = f" and {len(counts) - LISTED:,} more" if len(counts) > LISTED else ""
    return ", ".join(listed) + more


def _libraries(records: Iterable[Record]) -> str:
    different = dict.fromkeys(record.libraries for record in records if record.libraries)
    listed = [", ".join(f"{name} {version}" for name, version in json.loads(one).items()) for one in different]
    return "; or ".join(listed[:LISTED])


def _period(records: Iterable[Any]) -> str:
    times = sorted(record.started for record in records)
    return times[0] if times[0] == times[-1] else f"{times[0]} to {times[-1]}"
