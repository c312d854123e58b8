"""The `wordsens` command: its commands, and how a run ends."""

import errno
import io
import sys
import sysconfig
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from wordsens.cli.commands import audit, check, compare, explain, flips, guard, measure, paper, report, tune
from wordsens.cli.option_names import in_options, options_of, require_once
from wordsens.cli.page import page
from wordsens.cli.stopping import Terminated
from wordsens.cli.sweep import sweep
from wordsens.cli.terminal import abandon_stdout, printable, typed
from wordsens.errors import InputError, MissingExtraError, RequirementError, WordsensError, first_line, shown
from wordsens.version import __version__

DONE, FAILURE, WRONG_INPUT, REQUIREMENT_FAILED, INTERRUPTED, TERMINATED = 0, 1, 2, 3, 130, 143

# typer carries click under a private name in some versions; its public BadParameter leads to the root error
# in all.
_REFUSED = {errno.ENAMETOOLONG, errno.EACCES, errno.EPERM, errno.ELOOP, errno.EROFS, errno.ENOTDIR, errno.EISDIR}
"""Errors of the system about a path that cannot be what is wanted of it."""

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF}
"""Its errors about a stream or a disk that takes nothing more."""

_LONGEST = 2000
"""Characters of a line on stderr."""

_UsageError: Any = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")

app = typer.Typer(
    add_completion=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)


def _print_version(asked: bool) -> bool:
    if asked:
        print(f"wordsens {__version__}")
        raise typer.Exit
    return asked


@app.callback()
def wordsens(
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True),
    ] = False,
) -> None:
    """Measure how much one word can change what a model sees: word sensitivity of random features and attention."""


app.command(rich_help_panel="One text")(measure)
app.command(rich_help_panel="Models")(audit)
app.command(rich_help_panel="Models")(check)
app.command(rich_help_panel="Models")(compare)
app.command(rich_help_panel="Models")(explain)
app.command(rich_help_panel="Models")(flips)
app.command(rich_help_panel="Models")(guard)
app.command(rich_help_panel="Models")(tune)
app.command(rich_help_panel="Experiments")(paper)
app.command(rich_help_panel="Experiments")(report)
app.command("app", rich_help_panel="One text")(page)
app.add_typer(sweep, name="sweep", rich_help_panel="Experiments")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code: 0 done, 1 a failure, 2 the input is wrong, 3 a
    requirement is not met, 130 interrupted, 143 terminated.

    Args:
        arguments: without the program's name; None for those of the process.
    """
    given = list(sys.argv[1:] if arguments is None else arguments) or ["--help"]
    typed.set(tuple(given))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    if sys.stdout is None:
        return _say("there is no stdout to write to: it is closed; give one, such as > /dev/null", FAILURE)
    try:
        with _code_of_the_user():
            require_once(typer.main.get_command(app), given)
            with typer.main.get_command(app).make_context("wordsens", given) as context:
                context.command.invoke(context)
            sys.stdout.flush()
    except typer.Exit as end:
        return end.exit_code
    except Terminated as stop:
        return _say(str(stop) or "terminated", TERMINATED)
    except KeyboardInterrupt as interrupt:
        return _say(str(interrupt) or "interrupted", INTERRUPTED)
    except (BrokenPipeError, SystemExit) as error:
        # The reader has gone, as `head` does: nothing is wrong. For help texts rich turns the broken pipe into
        # SystemExit. Without that, either is of code that the command ran.
        if isinstance(error.__context__, BrokenPipeError) if isinstance(error, SystemExit) else _reader_has_gone():
            abandon_stdout()
            return DONE
        return _ended(error)
    except (InputError, MissingExtraError) as error:
        # A spec has the key `device` where a command has the option.
        options = options_of(typer.main.get_command(app), given, keep=("device",) if given[0] == "sweep" else ())
        return _say(in_options(str(error), options), WRONG_INPUT)
    except RequirementError as error:
        return _say(str(error), REQUIREMENT_FAILED)
    except WordsensError as error:
        return _say(str(error), FAILURE)
    except _UsageError as error:
        return _say(f"{error.format_message()} (see wordsens --help)", WRONG_INPUT)
    except MemoryError:
        return _say("the memory does not suffice; take fewer words, texts or features at a time", FAILURE)
    except OSError as error:
        if error.errno in _FULL:
            abandon_stdout()
            return _say(f"the output cannot be written: {error.strerror}", FAILURE)
        if error.errno in _REFUSED and error.filename is not None:
            return _say(f"{shown(error.filename)} cannot be used: {error.strerror}; give another path", WRONG_INPUT)
        return _unexpected(error)
    except Exception as error:
        return _unexpected(error)
    except BaseException as error:
        return _ended(error)
    return DONE


@contextmanager
def _code_of_the_user() -> Iterator[None]:
    """Inside, an exception that went through a file of the user's, such as a map of one's own, becomes one line that
    names the file: typer.Exit too, which would end the command as if its work were done."""
    try:
        yield
    except (WordsensError, KeyboardInterrupt, MemoryError):
        raise
    except BaseException as error:
        frames = traceback.extract_tb(error.__traceback__)
        for frame in reversed(frames):
            if _is_the_users(Path(frame.filename)):
                raise WordsensError(
                    f"{frame.filename}, line {frame.lineno}, in {frame.name}: {type(error).__name__}: "
                    f"{first_line(error)}; mend it there"
                ) from error
        raise


def _is_the_users(file: Path) -> bool:
    """Whether a file belongs neither to this package, nor to an installed one, nor to Python."""
    own = (Path(__file__).parents[1], Path(sysconfig.get_path("stdlib")), Path(sysconfig.get_path("platstdlib")))
    installed = {"site-packages", "dist-packages"} & set(file.parts)
    return file.is_file() and not installed and not any(file.is_relative_to(folder) for folder in own)


def _reader_has_gone() -> bool:
    try:
        print(flush=True)
    except BrokenPipeError:
        return True
    return False


def _ended(error: BaseException) -> int:
    kind = type(error).__name__
    return _say(f"code that the command ran ended it with {kind}: {first_line(error)}; mend it there", FAILURE)


def _unexpected(error: Exception) -> int:
    traceback.print_exc()
    return _say(f"unexpected {type(error).__name__}: {error}; please report it with the lines above", FAILURE)


def _say(message: str, code: int) -> int:
    """One line on stderr, whatever the message holds."""
    line = printable(" ".join(message.split()))
    if len(line) > _LONGEST:
        line = f"{line[: _LONGEST // 2]} ... {line[-_LONGEST // 2 :]}"
    if sys.stderr is not None:  # None is where it is closed, and `print` would take stdout for it
        print(f"wordsens: {line}", file=sys.stderr)
    return code
