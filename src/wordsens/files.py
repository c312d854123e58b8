"""Paths and files that users name: looked at before they are read, so that a wrong one is an
InputError at once."""

import ast
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path

from wordsens.errors import InputError, argument, first_line, shown

MOST_BYTES = 500_000
"""Of a spec, or another file that is held whole: PyYAML reads about 100 kB a second, and the
presets stay below 20."""

_PACKAGE = Path(__file__).parent


def named_path(name: str, value: str | PathLike[str], *, home: bool = True) -> Path:
    """The path; nothing need be there.

    Args:
        name: of the argument, for the message.
        value: the path.
        home: whether `~` stands for the user's folder.

    Raises:
        InputError: the system cannot look there: too long a name, a null character, a folder
            without permission.

    >>> named_path("spec", "a" * 5000)
    Traceback (most recent call last):
    wordsens.errors.InputError: `spec` (='aaa...aaa') cannot be used as a path: File name too long; give another one
    """  # noqa: E501
    path = Path(value)
    try:
        path = path.expanduser() if home else path
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        pass
    except (OSError, ValueError, RuntimeError) as error:
        reason = (
            error.strerror if isinstance(error, OSError) and error.strerror else first_line(error)
        )
        raise InputError(
            f"{argument(name)} (={shown(os.fspath(value))}) cannot be used as a path: {reason}; "
            "give another one"
        ) from error
    return path


def require_file(path: Path) -> None:
    """InputError for a device, a pipe or a folder, which may never end or never begin; a missing
    file passes."""
    try:
        kind = path.stat().st_mode
    except (OSError, ValueError):
        return
    if not stat.S_ISREG(kind):
        what = "a folder" if stat.S_ISDIR(kind) else "a device or a pipe"
        raise InputError(
            f"{shown(str(path))} is {what}, not a file; save what is to be read in a file"
        )


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
            raise InputError(
                f"{argument(name)} (={shown(str(path))}) has more than {most:,} bytes; give a "
                "smaller file"
            )
        return content.decode("utf-8-sig")
    except OSError as error:
        raise InputError(
            f"{argument(name)} (={shown(str(path))}) cannot be read as a text file: "
            f"{error.strerror}"
        ) from error
    except UnicodeDecodeError as error:
        raise InputError(
            f"{argument(name)} (={shown(str(path))}) cannot be read as a text file: "
            f"{first_line(error)}"
        ) from error


@contextmanager
def writing(name: str, path: Path) -> Iterator[None]:
    """Turns what the system says while a file is written into an InputError that names the
    argument."""
    try:
        yield
    except OSError as error:
        raise InputError(
            f"{argument(name)} (={str(path)!r}) cannot be written: "
            f"{error.strerror or first_line(error)}; name a file in a folder that exists and may "
            "be written"
        ) from error


def replace_file(path: Path, content: bytes) -> None:
    """Write a file that is never seen half-written: aside, flushed to disk, and renamed. A device
    or a pipe is written to as it is.

    Raises:
        OSError: that cannot be done; what was in the file before is still there.
    """
    if path.exists() and not path.is_file():
        path.write_bytes(content)
        return
    aside = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}.tmp")
    try:
        with aside.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)


def packaged_text(name: str) -> str:
    """The content of a text that comes with the package, by its path in it.

    >>> packaged_text("text/shipped/reviews.jsonl")[:5]
    '{"id"'
    """
    return (_PACKAGE / name).read_text(encoding="utf-8")


def packaged_files(folder: str) -> dict[str, Path]:
    """The files of a folder of the package, by name.

    >>> "reviews.jsonl" in packaged_files("text/shipped")
    True
    """
    return {path.name: path for path in sorted((_PACKAGE / folder).iterdir())}


def own_sources(name: str, path: Path) -> set[Path]:
    """The file of the module of that full name, and the files beside it that it imports, directly
    or not."""
    package, found, waiting = name.rpartition(".")[0], set[Path](), [path]
    while waiting:
        file = waiting.pop()
        if file in found or not file.is_file():
            continue
        found.add(file)
        for node in ast.walk(ast.parse(file.read_bytes())):
            names = [
                alias.name for alias in getattr(node, "names", ()) if isinstance(node, ast.Import)
            ]
            if isinstance(node, ast.ImportFrom):
                module = ".".join(filter(None, (package if node.level == 1 else "", node.module)))
                names = [module, *(f"{module}.{alias.name}" for alias in node.names)]
            beside = [other for other in names if other.rpartition(".")[0] == package]
            waiting += [path.with_name(f"{other.rpartition('.')[2]}.py") for other in beside]
    return found
