"""Paths and files that users name: looked at before they are read, so that a wrong one is an InputError at once."""

import atexit
import json
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.resources import as_file, files
from os import PathLike
from pathlib import Path
from typing import Any

from wordsens.errors import InputError, first_line, shown

MOST_BYTES = 500_000
"""Of a spec, or another file that is held whole: PyYAML reads about 100 kB a second, and the presets stay below 20."""

_COLUMNS = ".json.columns"
"""The ending, in a wheel's archive, of JSON lines that are packed by column."""


def named_path(name: str, value: str | PathLike[str], *, home: bool = True) -> Path:
    """The path; nothing need be there.

    Args:
        name: of the argument, for the message.
        value: the path.
        home: whether `~` stands for the user's folder.

    Raises:
        InputError: the system cannot look there: too long a name, a null character, a folder without permission.

    >>> named_path("spec", "a" * 5000)
    Traceback (most recent call last):
    wordsens.errors.InputError: `spec` (='aaa...aaa') cannot be used as a path: File name too long; give another one
    """
    path = Path(value)
    try:
        path = path.expanduser() if home else path
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        pass
    except (OSError, ValueError, RuntimeError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else first_line(error)
        raise InputError(
            f"`{name}` (={shown(os.fspath(value))}) cannot be used as a path: {reason}; give another one"
        ) from error
    return path


def require_file(path: Path) -> None:
    """InputError for a device, a pipe or a folder, which may never end or never begin; a missing file passes."""
    try:
        kind = path.stat().st_mode
    except (OSError, ValueError):
        return
    if not stat.S_ISREG(kind):
        what = "a folder" if stat.S_ISDIR(kind) else "a device or a pipe"
        raise InputError(f"{shown(str(path))} is {what}, not a file; save what is to be read in a file")


def small_text(path: Path, name: str, *, most: int = MOST_BYTES) -> str:
    """The text of a file of at most `most` bytes, in UTF-8.

    Raises:
        InputError: no such file, no regular one, a larger one, or not UTF-8; it names the argument.
    """
    require_file(path)
    try:
        with path.open("rb") as file:
            content = file.read(most + 1)
        if len(content) > most:
            raise InputError(f"`{name}` (={shown(str(path))}) has more than {most:,} bytes; give a smaller file")
        return content.decode("utf-8-sig")
    except OSError as error:
        raise InputError(f"`{name}` (={shown(str(path))}) cannot be read as a text file: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(
            f"`{name}` (={shown(str(path))}) cannot be read as a text file: {first_line(error)}"
        ) from error


@contextmanager
def writing(name: str, path: Path) -> Iterator[None]:
    """Turns what the system says while a file is written into an InputError that names the argument."""
    try:
        yield
    except OSError as error:
        raise InputError(
            f"`{name}` (={str(path)!r}) cannot be written: {error.strerror or first_line(error)}; name a file in a "
            "folder that exists and may be written"
        ) from error


def packaged_text(name: str) -> str:
    """The content of a text that comes with the package, by its path in it; a wheel has them all in one archive.

    >>> packaged_text("training/adapter/words/opposites.txt")[:8]
    '# Chains'
    """
    plain = files("wordsens").joinpath(*name.split("/"))
    content = plain.read_bytes() if plain.is_file() else _archived()[name]
    return content.decode("utf-8")


@cache
def packaged_files(folder: str) -> dict[str, Path]:
    """The files of a folder of texts of the package, by name; a wheel's are unpacked until the process ends.

    >>> sorted(packaged_files("experiments/grid/examples"))[0]
    'attention-temperature.yaml'
    """
    plain = Path(str(files("wordsens").joinpath(*folder.split("/"))))
    if not plain.is_dir():
        plain = Path(tempfile.mkdtemp(prefix="wordsens-"))
        atexit.register(shutil.rmtree, plain, ignore_errors=True)
        for name, content in _archived().items():
            if name.startswith(f"{folder}/"):
                (plain / name.removeprefix(f"{folder}/")).write_bytes(content)
    return {path.name: path for path in sorted(plain.iterdir())}


@cache
def _archived() -> dict[str, bytes]:
    """The texts of a wheel's archive (hatch_build.py makes it, JSON lines by column)."""
    import tarfile  # only a wheel needs it

    with as_file(files("wordsens").joinpath("texts.tar.bz2")) as path, tarfile.open(path, "r:bz2") as archive:
        opened = {member.name: archive.extractfile(member) for member in archive.getmembers()}
        read = {name: file.read() for name, file in opened.items() if file is not None}
    by_column = {name: _lines(json.loads(content)) for name, content in read.items() if name.endswith(_COLUMNS)}
    return read | {name.removesuffix(_COLUMNS) + ".jsonl": lines for name, lines in by_column.items()}


def _lines(columns: dict[str, list[Any]]) -> bytes:
    """JSON lines of columns; a row has no key where its value is null."""
    rows = (dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True))
    kept = ({key: value for key, value in row.items() if value is not None} for row in rows)
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in kept).encode()
