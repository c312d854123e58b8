"""From folders to runs: the records of every kind that a folder holds, read and never written."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wordsens.errors import InputError, argument
from wordsens.files import named_path
from wordsens.sweeps.store import FILE, Row, Store, as_frame

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True)
class Part:
    """The records of one experiment in a folder, in the order in which they were measured."""

    name: str
    records: tuple[Row, ...]

    @property
    def done(self) -> list[Row]:
        """The records with a value."""
        return [record for record in self.records if record["status"] == "done"]

    @cached_property
    def frame(self) -> "DataFrame":
        """The records with a value, as a DataFrame."""
        return as_frame(self.done)


@dataclass(frozen=True)
class Run:
    """A folder of records.

    Attributes:
        name: what the report calls it: the folder's name, told apart from others of that name.
        folder: where it lies.
        parts: an experiment each.
        unread: what is there and not shown, with the reason.
        specs: the sweeps that the folder holds, by file name.
    """

    name: str
    folder: Path
    parts: tuple[Part, ...]
    unread: tuple[str, ...]
    specs: dict[str, str]
    commands: tuple[dict[str, Any], ...] = ()

    @property
    def records(self) -> list[Row]:
        """Of every kind."""
        return [record for part in self.parts for record in part.records]

    @property
    def failed(self) -> list[Row]:
        """The records of cells that failed."""
        return [record for record in self.records if record["status"] == "failed"]


def load_runs(folders: Iterable[str | Path]) -> list[Run]:
    """The runs in the folders, each folder once.

    Raises:
        InputError: no folder, or one that is none or holds no record that can be read.
    """
    paths = list(dict.fromkeys(named_path("folders", folder, home=False) for folder in folders))
    if not paths:
        raise InputError(
            f"{argument('folders')} names no folder; give the --out of a measure, paper or sweep"
        )
    common = os.path.commonpath([path.resolve().parent for path in paths])
    return [_load(path, readable(path.resolve().relative_to(common).as_posix())) for path in paths]


def _load(path: Path, name: str) -> Run:
    if not path.is_dir():
        what = "is a file" if path.is_file() else "does not exist"
        raise InputError(
            f"{argument('folders')} has {str(path)!r}, which {what}; give the folder that was a "
            "command's --out"
        )
    if not (path / FILE).is_file() and path.parent != path and (path.parent / FILE).is_file():
        raise InputError(
            f"{argument('folders')} has {str(path)!r}, which holds no results; did you mean "
            f"{str(path.parent)!r}?"
        )
    with Store(path, read_only=True) as store:
        records, commands = store.rows(), tuple(store.commands())
        unread = tuple(
            f"{count} {name} cells of another version of the code"
            for name, code in store.codes().items()
            if (count := store.other_versions(name, code))
        )
    if not records:
        raise InputError(
            f"{argument('folders')} has {str(path)!r}, which holds no results yet; give the --out "
            "of a finished run"
        )
    parts = tuple(
        Part(name, tuple(record for record in records if record["experiment"] == name))
        for name in dict.fromkeys(record["experiment"] for record in records)
    )
    specs = {
        file.name: file.read_text(encoding="utf-8", errors="replace")
        for file in sorted(path.glob("*.yaml"))
    }
    return Run(name, path, parts, unread, specs, commands)


def readable(path: str | Path) -> str:
    """The path as text: a name that is not UTF-8 has halves of surrogate pairs, which no page can
    hold.

    >>> readable("caf\\udce9")
    'caf?'
    """
    return str(path).encode(errors="replace").decode()
