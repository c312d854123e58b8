"""How the numbers were made: the command, the specs, versions, seeds and machines of each run; and
how to cite."""

import json
import shlex
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from wordsens.display.view import Code, Table, View
from wordsens.report.load import Run, readable
from wordsens.version import __version__

# How many different values of one thing are named.
LISTED = 12

# What is said of a run, and the column that says it.
_COLUMNS = {
    "wordsens": "wordsens_version",
    "commit": "commit",
    "hash of the code": "code",
    "seeds": "seed",
    "computed in": "dtype",
    "on": "device",
    "machine": "machine",
    "threads": "threads",
    "models": "model",
    "encoders": "encoder",
}

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
"""  # noqa: E501


def provenance_section(runs: Sequence[Run]) -> View:
    """The origin of each run, and the citations."""
    parts = [part for run in runs for part in _origin(run, run.name if len(runs) > 1 else "")]
    return View("How these numbers were made", (*parts, Code("How to cite", BIBTEX)))


def _origin(run: Run, name: str) -> list[Any]:
    counts = Counter((record["experiment"], record["status"]) for record in run.records)
    began = sorted(record["started"] for record in run.records)
    minutes = sum(record["seconds"] for record in run.records) / 60
    facts = [
        ("folder", readable(run.folder.resolve().name)),
        (
            "records",
            "; ".join(f"{count:,} {study} {status}" for (study, status), count in counts.items()),
        ),
        *((fact, _values(run, column)) for fact, column in _COLUMNS.items()),
        ("libraries", _values(run, "libraries", _versions)),
        ("started", " to ".join(dict.fromkeys((began[0], began[-1])))),
        ("computing time", f"{minutes:.1f} minutes of one process's time"),
        *(("skipped", line) for line in run.unread),
    ]
    commands = [
        Code(
            f"Command of {each.get('started', 'an unknown day')}",
            shlex.join(["wordsens", *map(str, each["arguments"])]),
        )
        for each in run.commands
    ]
    known = [fact for fact in facts if fact[1]]
    table = Table.of_rows(name, ("what", "value"), known, most=len(known))
    specs = [Code(f"The spec, {file}", text, folded=True) for file, text in run.specs.items()]
    return [*commands, table, *specs]


def _values(run: Run, column: str, render: Callable[[Any], str] = str) -> str:
    """The different values of a column, the most frequent first."""
    known = (record.get(column) for record in run.records)
    counts = Counter(value for value in known if value not in (None, ""))
    named = [render(value) for value, _ in counts.most_common(LISTED)]
    more = f" and {len(counts) - LISTED:,} more" if len(counts) > LISTED else ""
    return ", ".join(named) + more


def _versions(libraries: str) -> str:
    return ", ".join(map(" ".join, json.loads(libraries).items()))
