"""From folders to runs: the records of every kind that a folder holds, read and never written."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wordsens.errors import InputError
from wordsens.experiments.kinds import KIND_NAMES, CellKind, kind_named
from wordsens.experiments.store.record import Record
from wordsens.experiments.store.store import RecordStore, SetAside
from wordsens.files import named_path

_AUDITS = "records"
"""An audit keeps its records in a folder of the name that sensitivities have."""


@dataclass(frozen=True)
class Part:
    """The records of one kind in a folder, in the order in which they were measured."""

    kind: CellKind
    records: tuple[Any, ...]
    store: RecordStore[Any]

    @property
    def done(self) -> list[Any]:
        """The records with a value."""
        return [record for record in self.records if record.done]


@dataclass(frozen=True)
class Run:
    """A folder of records.

    Attributes:
        name: what the report calls it: the folder's name, told apart from others of that name.
        folder: where it lies.
        parts: a kind each.
        unread: files that are no records of this version, each with the reason.
        specs: the sweeps that the folder holds, by file name.
    """

    name: str
    folder: Path
    parts: tuple[Part, ...]
    unread: tuple[str, ...]
    specs: dict[str, str]

    @property
    def records(self) -> list[Record]:
        """Of every kind."""
        return [record for part in self.parts for record in part.records]

    @property
    def failed(self) -> list[Record]:
        """The records of cells that failed."""
        return [record for record in self.records if not record.done]


def load_runs(folders: Iterable[str | Path]) -> list[Run]:
    """The runs in the folders, each folder once.

    Raises:
        InputError: no folder, or one that is none or holds no record that can be read.
    """
    paths = list(dict.fromkeys(named_path("folders", folder, home=False) for folder in folders))
    if not paths:
        raise InputError("`folders` names no folder; give the --out of a measure, paper, audit or sweep")
    names = _names(paths)
    return [_load(path, name) for path, name in zip(paths, names, strict=True)]


def _load(path: Path, name: str) -> Run:
    if not path.is_dir():
        what = "is a file" if path.is_file() else "does not exist"
        raise InputError(f"`folders` has {str(path)!r}, which {what}; give the folder that was a command's --out")
    parts: list[Part] = []
    unread: list[str] = []
    kinds = list(map(kind_named, KIND_NAMES))
    for home in dict.fromkeys([*(kind.folder for kind in kinds), _AUDITS]):
        if (path / home).is_dir():
            own = [kind for kind in kinds if kind.folder == home or (home == _AUDITS and kind.name == "audit")]
            read, refused = _read(path / home, own)
            parts += read
            unread += [f"{home}/{line}" for line in refused]
    if not parts:
        raise InputError(f"`folders` has {str(path)!r}, {_nothing(path, unread)}")
    return Run(name, path, tuple(parts), tuple(unread), _specs(path))


def _read(home: Path, kinds: Sequence[CellKind]) -> tuple[list[Part], list[str]]:
    """The records of every kind in one folder, and the files that are of none, each with a reason."""
    parts: list[Part] = []
    refused: dict[str, list[str]] = {}
    for tried, kind in enumerate(kinds):
        if tried and not refused:
            break
        told: list[SetAside] = []
        store = RecordStore(home, kind.record_type, on_set_aside=told.append, read_only=True)
        if records := store.read():
            parts.append(Part(kind, tuple(sorted(records, key=_order)), store))
        known = {one.path.name: one.reason for one in told}
        refused = {
            file: [*refused.get(file, []), reason] for file, reason in known.items() if not tried or file in refused
        }
    return parts, [f"{file} {_reason(reasons)}" for file, reasons in refused.items()]


def _order(record: Any) -> tuple[str, str]:
    return (record.started, record.cell)


def _reason(reasons: Sequence[str]) -> str:
    """The least technical of the reasons for which readers refused a file."""
    return min(reasons, key=lambda reason: ("has no column" in reason, len(reason)))


def _nothing(path: Path, unread: Sequence[str]) -> str:
    if unread:
        more = "" if len(unread) == 1 else f" (and {len(unread) - 1} more files)"
        return f"in which no record can be read: {unread[0]}{more}; measure again with this version"
    if any(path.glob("*.parquet")) and path.parent != path and not (path / "sweep.yaml").is_file():
        return f"which holds tables, but no folder of records; did you mean {str(path.parent)!r}?"
    return "which holds no records; give the folder that was the --out of a measure, paper, audit or sweep"


def _specs(path: Path) -> dict[str, str]:
    found = {}
    for file in sorted(path.glob("*.yaml")):
        try:
            found[file.name] = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            continue
    return found


def _names(paths: Sequence[Path]) -> list[str]:
    """The folders' own names; as much of their paths as tells them apart."""
    whole = [path.resolve().parts for path in paths]
    deep = 1
    while deep < max(map(len, whole)) and len({parts[-deep:] for parts in whole}) < len(whole):
        deep += 1
    return [readable("/".join(parts[-deep:])) for parts in whole]


def readable(path: str | Path) -> str:
    """The path as text: a name that is not UTF-8 has halves of surrogate pairs, which no page can hold.

    >>> readable("caf\\udce9")
    'caf?'
    """
    return str(path).encode(errors="replace").decode()
