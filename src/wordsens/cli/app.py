"""The `wordsens` command: its commands, and how a run ends."""

import os
import sys
import traceback
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from wordsens import __version__
from wordsens.cli.audit.command import audit
from wordsens.cli.check.command import check
from wordsens.cli.compare.command import compare
from wordsens.cli.explain.command import explain
from wordsens.cli.measure.command import measure
from wordsens.cli.option_names import in_options, options_of
from wordsens.cli.page import page
from wordsens.cli.paper.command import paper
from wordsens.cli.report.command import report
from wordsens.cli.stopping import Terminated
from wordsens.cli.sweep.command import sweep
from wordsens.cli.typed import typed
from wordsens.errors import InputError, MissingExtraError, RequirementError, WordsensError

DONE, FAILURE, WRONG_INPUT, REQUIREMENT_FAILED, INTERRUPTED, TERMINATED = 0, 1, 2, 3, 130, 143

# typer carries click under a private name in some versions; its public BadParameter leads to the root error
# in all.
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
    try:
        with typer.main.get_command(app).make_context("wordsens", given) as context:
            context.command.invoke(context)
        sys.stdout.flush()
    except typer.Exit as end:
        return end.exit_code
    except Terminated as stop:
        return _say(str(stop) or "terminated", TERMINATED)
    except KeyboardInterrupt as interrupt:
        return _say(str(interrupt) or "interrupted", INTERRUPTED)
    except (BrokenPipeError, SystemExit):
        # The reader has gone, as `head` does: nothing is wrong. For help texts rich turns the broken pipe into
        # SystemExit. What Python still flushes at exit must go nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
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
    except Exception as error:
        traceback.print_exc()
        return _say(f"unexpected {type(error).__name__}: {error}; please report it with the lines above", FAILURE)
    return DONE


def _say(message: str, code: int) -> int:
    """One line on stderr, whatever the message holds."""
    print(f"wordsens: {' '.join(message.split())}", file=sys.stderr)
    return code
