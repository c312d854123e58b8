"""The `wordsens` command: its commands, and how a run ends."""

import errno
import io
import re
import sys
import sysconfig
import traceback
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from wordsens.cli.audit import audit
from wordsens.cli.calibrate import calibrate
from wordsens.cli.check import check
from wordsens.cli.compare import compare
from wordsens.cli.explain import explain
from wordsens.cli.guard import guard
from wordsens.cli.measure import MeasureCommand, measure
from wordsens.cli.page import page
from wordsens.cli.paper import paper
from wordsens.cli.report import report
from wordsens.cli.stopping import Terminated
from wordsens.cli.sweep import sweep
from wordsens.cli.terminal import abandon_stdout, typed
from wordsens.cli.tune import tune
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

DONE, FAILURE, WRONG_INPUT, REQUIREMENT_FAILED, INTERRUPTED, TERMINATED = 0, 1, 2, 3, 130, 143

_REFUSED = {
    errno.ENAMETOOLONG,
    errno.EACCES,
    errno.EPERM,
    errno.ELOOP,
    errno.EROFS,
    errno.ENOTDIR,
    errno.EISDIR,
}
"""Errors of the system about a path that cannot be what is wanted of it."""

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF}
"""Its errors about a stream or a disk that takes nothing more."""

_LONGEST = 2000
"""Characters of a line on stderr."""

_OTHER_NAMES = {
    "words": "--word",
    "held_out": "--hold-out",
    "held_out_kinds": "--hold-out-kind",
    "model_layer": "--layer",
    "timeout": "--endpoint-timeout",
    "retries": "--endpoint-retries",
}
"""Arguments of the library whose option has another name, where the command has that option."""

# typer carries click under a private name in some versions; its public BadParameter leads to the
# root error in all.
_UsageError: Any = next(
    kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException"
)

app = typer.Typer(
    add_completion=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)


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


app.command(rich_help_panel="One text", cls=MeasureCommand)(measure)
app.command("app", rich_help_panel="One text")(page)
for command in (audit, calibrate, check, compare, explain, guard, tune):
    app.command(rich_help_panel="Models")(command)
for command in (paper, report):
    app.command(rich_help_panel="Experiments")(command)
app.add_typer(sweep, name="sweep", rich_help_panel="Experiments")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code: 0 done, 1 a failure, 2 the input is wrong, 3 a
    requirement is not met, 130 interrupted, 143 terminated.

    Args:
        arguments: without the program's name; None for those of the process.
    """
    words = list(sys.argv[1:] if arguments is None else arguments) or ["--help"]
    typed.set(tuple(words))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    if sys.stdout is None:
        return _say(
            "there is no stdout to write to: it is closed; give one, such as > /dev/null", FAILURE
        )
    try:
        with _code_of_the_user():
            _require_once(words)
            with typer.main.get_command(app).make_context("wordsens", words) as context:
                context.command.invoke(context)
            sys.stdout.flush()
    except typer.Exit as end:
        return end.exit_code
    except Terminated as stop:
        return _say(str(stop) or "terminated", TERMINATED)
    except KeyboardInterrupt as interrupt:
        return _say(str(interrupt) or "interrupted", INTERRUPTED)
    except (BrokenPipeError, SystemExit) as error:
        # The reader has gone, as `head` does: nothing is wrong. For help texts rich turns the
        # broken pipe into SystemExit. Without that, either is of code that the command ran.
        if (
            isinstance(error.__context__, BrokenPipeError)
            if isinstance(error, SystemExit)
            else _reader_has_gone()
        ):
            abandon_stdout()
            return DONE
        return _ended(error)
    except (InputError, MissingExtraError) as error:
        return _say(in_options(str(error), _options_of(words)), WRONG_INPUT)
    except RequirementError as error:
        return _say(str(error), REQUIREMENT_FAILED)
    except WordsensError as error:
        return _say(str(error), FAILURE)
    except _UsageError as error:
        return _say(f"{error.format_message()} (see wordsens --help)", WRONG_INPUT)
    except MemoryError:
        return _say(
            "the memory does not suffice; take fewer words, texts or features at a time", FAILURE
        )
    except OSError as error:
        if error.errno in _FULL:
            abandon_stdout()
            return _say(f"the output cannot be written: {error.strerror}", FAILURE)
        if error.errno in _REFUSED and error.filename is not None:
            return _say(
                f"{shown(error.filename)} cannot be used: {error.strerror}; give another path",
                WRONG_INPUT,
            )
        return _unexpected(error)
    except Exception as error:
        return _unexpected(error)
    except BaseException as error:
        return _ended(error)
    return DONE


def _parameters(words: Sequence[str]) -> Collection[Any]:
    """The parameters of the command that the words name."""
    command: Any = typer.main.get_command(app)
    for word in words:
        command = getattr(command, "commands", {}).get(word, command)
    return command.params


def _require_once(words: Sequence[str]) -> None:
    """InputError for a second file of pairs or texts: the first would be dropped without a word."""
    names = [word.partition("=")[0] for word in words]
    for parameter in _parameters(words):
        options = [option for option in parameter.opts if option.startswith("--")]
        if parameter.name in ("pairs", "texts") and sum(map(names.count, options)) > 1:
            raise InputError(f"{options[0]} is given twice, and takes one file; put both in one")


def _options_of(words: Sequence[str]) -> dict[str, str]:
    """Every option of the command that the words name, by its name in the library."""
    options = {}
    for parameter in _parameters(words):
        if option := next((name for name in parameter.opts if name.startswith("--")), ""):
            options |= {parameter.name: option, option.removeprefix("--").replace("-", "_"): option}
    options |= {name: option for name, option in _OTHER_NAMES.items() if option in options.values()}
    if words[0] == "sweep":
        options.pop("device", None)  # a spec has the key `device`, where a command has the option
    return options


def in_options(message: str, options: Mapping[str, str]) -> str:
    """The library's message in the words of the command line: every argument under its option's
    name.

    >>> in_options("`radius` (=0) must be positive; or radius=2", {"radius": "--radius"})
    '--radius (=0) must be positive; or --radius 2'
    >>> in_options("`X` has one word", {})
    'the text has one word'
    """
    if options:
        names = "|".join(sorted(map(re.escape, options), key=len, reverse=True))
        message = re.sub(rf"`({names})`", lambda match: options[match[1]], message)
        message = re.sub(rf"\b({names})=(?=[\w'])", lambda match: f"{options[match[1]]} ", message)
        if compound := "|".join(name for name in options if "_" in name):
            message = re.sub(
                rf"(?<![-\w`'/])({compound})(?![\w='/])", lambda match: options[match[1]], message
            )
    return message.replace("`X`", "the text")


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
                raise WordsensError(
                    f"{frame.filename}, line {frame.lineno}, in {frame.name}: "
                    f"{type(error).__name__}: "
                    f"{first_line(error)}; mend it there"
                ) from error
        raise


def _is_the_users(file: Path) -> bool:
    """Whether a file belongs neither to this package, nor to an installed one, nor to Python."""
    folders = (
        Path(__file__).parents[1],
        Path(sysconfig.get_path("stdlib")),
        Path(sysconfig.get_path("platstdlib")),
    )
    installed = {"site-packages", "dist-packages"} & set(file.parts)
    return (
        file.is_file()
        and not installed
        and not any(file.is_relative_to(folder) for folder in folders)
    )


def _reader_has_gone() -> bool:
    try:
        print(flush=True)
    except BrokenPipeError:
        return True
    return False


def _ended(error: BaseException) -> int:
    kind = type(error).__name__
    return _say(
        f"code that the command ran ended it with {kind}: {first_line(error)}; mend it there",
        FAILURE,
    )


def _unexpected(error: Exception) -> int:
    traceback.print_exc()
    return _say(
        f"unexpected {type(error).__name__}: {error}; please report it with the lines above",
        FAILURE,
    )


def _say(message: str, code: int) -> int:
    """One line on stderr, whatever the message holds."""
    line = printable(" ".join(message.split()))
    if len(line) > _LONGEST:
        line = f"{line[: _LONGEST // 2]} ... {line[-_LONGEST // 2 :]}"
    if sys.stderr is not None:  # None is where it is closed, and `print` would take stdout for it
        print(f"wordsens: {line}", file=sys.stderr)
    return code
