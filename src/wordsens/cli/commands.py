"""The `wordsens` command: the table of its commands, and how a run ends."""

import errno
import io
import sys
import sysconfig
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from wordsens.cli.command import Command
from wordsens.cli.terminal import abandon_stdout, typed
from wordsens.display.terminal import printable
from wordsens.errors import (
    InputError,
    MissingExtraError,
    RequirementError,
    WordsensError,
    first_line,
    shown,
)
from wordsens.version import __version__

# Every command with its panel in the help. The module wordsens.cli.NAME has the function NAME; a
# command of two words is a function of the first word's module.
COMMANDS = {
    "measure": "One text",
    "app": "One text",
    "audit": "Models",
    "calibrate": "Models",
    "check": "Models",
    "compare": "Models",
    "explain": "Models",
    "guard": "Models",
    "tune": "Models",
    "paper": "Experiments",
    "report": "Experiments",
    "sweep run": "Experiments",
    "sweep status": "Experiments",
    "sweep export": "Experiments",
    "sweep plot": "Experiments",
}

# A group of commands with its help.
GROUPS = {"sweep": "Run, watch, export and plot any grid of measurements."}

DONE, FAILURE, WRONG_INPUT, REQUIREMENT_FAILED, INTERRUPTED = 0, 1, 2, 3, 130

# Errors of the system about a path that cannot be what is wanted of it.
_REFUSED = {
    errno.ENAMETOOLONG,
    errno.EACCES,
    errno.EPERM,
    errno.ELOOP,
    errno.EROFS,
    errno.ENOTDIR,
    errno.EISDIR,
}

# Its errors about a stream that is closed or a disk that is full.
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF}

# Characters of a line on stderr.
_LONGEST = 2000

# typer carries click under a private name in some versions; its public BadParameter leads to the
# root error in all.
_UsageError: Any = next(
    kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException"
)

_LOOKS: dict[str, Any] = {
    "rich_markup_mode": "rich",
    "context_settings": {"help_option_names": ["-h", "--help"]},
}

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, **_LOOKS)


def _print_version(wanted: bool) -> bool:
    if wanted:
        print(f"wordsens {__version__}")
        raise typer.Exit
    return wanted


@app.callback()
def wordsens(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version and exit.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    """Measure how much one word can change what a model sees: word sensitivity of random features
    and attention."""


def _add_commands() -> None:
    groups = {"": app}
    for name, panel in COMMANDS.items():
        group, _, word = name.rpartition(" ")
        if group not in groups:
            groups[group] = typer.Typer(help=GROUPS[group], no_args_is_help=True, **_LOOKS)
            app.add_typer(groups[group], name=group, rich_help_panel=panel)
        function = getattr(import_module(f"wordsens.cli.{group or word}"), word)
        groups[group].command(word, rich_help_panel="" if group else panel, cls=Command)(function)


_add_commands()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code; 130 for SIGTERM too.

    Args:
        arguments: without the program's name; None for those of the process.
    """
    words = list(sys.argv[1:] if arguments is None else arguments) or ["--help"]
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    if sys.stdout is None:
        return _say("stdout is closed; give one, such as > /dev/null", FAILURE)
    try:
        typed.set(tuple(words))
        with _code_of_the_user():
            with typer.main.get_command(app).make_context("wordsens", words) as context:
                context.command.invoke(context)
            sys.stdout.flush()
    except BaseException as error:
        return _ending(error)
    return DONE


def _ending(error: BaseException) -> int:
    """Say on stderr in one line what ended the run; the exit code."""
    match error:
        case typer.Exit():
            return error.exit_code
        case KeyboardInterrupt():
            return _say(str(error) or "interrupted", INTERRUPTED)
        case InputError() | MissingExtraError():
            return _say(str(error), WRONG_INPUT)
        case RequirementError():
            return _say(str(error), REQUIREMENT_FAILED)
        case WordsensError():
            return _say(str(error), FAILURE)
        case _UsageError():
            command = error.ctx.command_path if error.ctx else "wordsens"
            return _say(f"{error.format_message()} (see {command} --help)", WRONG_INPUT)
        case MemoryError():
            remedy = "take fewer words, texts or features at a time"
            return _say(f"the memory does not suffice; {remedy}", FAILURE)
        case BrokenPipeError() | SystemExit() if _reader_has_gone(error):
            abandon_stdout()  # as with `head`: nothing is wrong
            return DONE
        case OSError(errno=number) if number in _FULL:
            abandon_stdout()
            return _say(f"the output cannot be written: {error.strerror}", FAILURE)
        case OSError(errno=number, filename=str(path)) if number in _REFUSED:
            refusal = f"{shown(path)} cannot be used: {error.strerror}; give another path"
            return _say(refusal, WRONG_INPUT)
        case Exception() if not isinstance(error, BrokenPipeError):
            traceback.print_exc()
            what = f"unexpected {type(error).__name__}: {error}"
            return _say(f"{what}; please report it with the lines above", FAILURE)
    what = f"{type(error).__name__}: {first_line(error)}"
    return _say(f"code that the command ran ended it with {what}; mend it there", FAILURE)


def _reader_has_gone(error: BaseException) -> bool:
    """For help texts rich turns the broken pipe into SystemExit. Without that, either error is of
    code that the command ran."""
    if isinstance(error, SystemExit):
        return isinstance(error.__context__, BrokenPipeError)
    try:
        print(flush=True)
    except BrokenPipeError:
        return True
    return False


@contextmanager
def _code_of_the_user() -> Iterator[None]:
    """Inside, an exception that went through a file of the user's, such as a map of one's own,
    becomes one line that names the file: typer.Exit too, which would end the command as if its work
    were done."""
    try:
        yield
    except (WordsensError, KeyboardInterrupt, MemoryError):
        raise
    except BaseException as error:
        for frame in reversed(traceback.extract_tb(error.__traceback__)):
            if _is_the_users(Path(frame.filename)):
                where = f"{frame.filename}, line {frame.lineno}, in {frame.name}"
                what = f"{type(error).__name__}: {first_line(error)}"
                raise WordsensError(f"{where}: {what}; mend it there") from error
        raise


def _is_the_users(file: Path) -> bool:
    """Whether a file belongs neither to this package, nor to an installed one, nor to Python."""
    folders = (
        Path(__file__).parents[1],
        Path(sysconfig.get_path("stdlib")),
        Path(sysconfig.get_path("platstdlib")),
    )
    installed = {"site-packages", "dist-packages"} & set(file.parts)
    within = any(file.is_relative_to(folder) for folder in folders)
    return file.is_file() and not installed and not within


def _say(message: str, code: int) -> int:
    """One line on stderr, whatever the message holds."""
    line = printable(" ".join(message.split()))
    if len(line) > _LONGEST:
        line = f"{line[: _LONGEST // 2]} ... {line[-_LONGEST // 2 :]}"
    if sys.stderr is not None:  # None is where it is closed, and `print` would take stdout for it
        print(f"wordsens: {line}", file=sys.stderr)
    return code
