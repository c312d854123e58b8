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

LISTED = 12
"""So many different values of one thing are named."""

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
"""What is said of a run, and the column that says it."""

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
    def values(column: str, render: Callable[[Any], str] = str) -> str:
        """The different values of a column, the most frequent first; numbers in order."""
        counts = Counter(
            value for record in run.records if (value := record.get(column)) not in (None, "")
        )
        ordered = (
            sorted(counts)
            if all(isinstance(value, int) for value in counts)
            else [v for v, _ in counts.most_common()]
        )
        more = f" and {len(counts) - LISTED:,} more" if len(counts) > LISTED else ""
        return ", ".join(map(render, ordered[:LISTED])) + more

    counts = [
        f"{len(part.done):,} {part.name}"
        + (f" and {failed:,} failed" if (failed := len(part.records) - len(part.done)) else "")
        for part in run.parts
    ]
    began = sorted(record["started"] for record in run.records)
    facts = [
        ("folder", readable(run.folder.resolve().name)),
        ("records", "; ".join(counts)),
        *((name, values(column)) for name, column in _COLUMNS.items()),
        ("libraries", values("libraries", _libraries)),
        ("started", " to ".join(dict.fromkeys((began[0], began[-1])))),
        (
            "computed for",
            f"{sum(record['seconds'] for record in run.records) / 60:.1f} minutes of one process's "
            "time",
        ),
        *(("passed over", line) for line in run.unread),
    ]
    commands = [
        Code(
            f"Typed on {each.get('started', 'an unknown day')}",
            shlex.join(["wordsens", *map(str, each["arguments"])]),
        )
        for each in run.commands
    ]
    folder = shlex.quote(readable(run.folder.name))
    again = "The command is not known; this measures the same cells"
    commands = commands or [
        Code(again, f"wordsens sweep run {folder}/{shlex.quote(spec)}") for spec in run.specs
    ]
    specs = [Code(f"The spec, {file}", text, folded=True) for file, text in run.specs.items()]
    known = [fact for fact in facts if fact[1]]
    table = Table.of_rows(name, ("what", "value"), known, most=len(known))
    return [*commands, table, *specs]


def _libraries(versions: str) -> str:
    return ", ".join(f"{name} {version}" for name, version in json.loads(versions).items())
