"""A command is a function whose annotated parameters are its options.

`command` makes its help, runs it, and prints what it answers.
"""

import copy
import gc
import inspect
import logging
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, is_dataclass
from pathlib import Path
from typing import Annotated, Any, get_args

import typer
from typer.core import TyperCommand
from typer.models import ArgumentInfo

from wordsens.cli.terminal import notice, print_json, printing, reporting, stdout
from wordsens.display.terminal import print_view
from wordsens.display.view import View
from wordsens.errors import (
    InputError,
    RequirementError,
    WordsensError,
    argument,
    require_count,
    spelling,
)
from wordsens.version import __version__

FURTHER = "Further options"
"""The panel of options without one, in a command that names those that people use first."""

MODEL, TEXT, EFFORT, GATE = "Model", "Texts", "Effort", "Gate"
"""Other panels of the help."""

Rule = Callable[[str, Any], Any]
"""A function of the option's name and its value: the value, or InputError."""


def option(help: str, *names: str, panel: str | None = None, rule: Rule | None = None) -> Any:
    """An option by its help: its names where they are not the parameter's, its panel, its rule."""
    check = None if rule is None else _checked_by(rule)
    return typer.Option(*names, help=help, rich_help_panel=panel, callback=check)


def _checked_by(rule: Rule) -> Callable[..., Any]:
    def check(parameter: typer.CallbackParam, value: Any) -> Any:
        name = str(parameter.name)
        if isinstance(value, list):
            return [rule(name, each) for each in value]
        return None if value is None else rule(name, value)

    return check


def output_file(name: str, path: Path) -> Path:
    """The path of a file that can be written.

    >>> output_file("html", Path("no-such-folder/page.html"))
    Traceback (most recent call last):
    wordsens.errors.InputError: `html` (='no-such-folder/page.html') must be a file in a folder that exists
    """  # noqa: E501
    file = path.expanduser()
    if not file.parent.is_dir() or file.is_dir() or "\0" in str(path):
        raise InputError(
            f"{argument(name)} (={str(path)!r}) must be a file in a folder that exists"
        )
    if not os.access(file if file.exists() else file.parent, os.W_OK):
        raise InputError(f"{argument(name)} (={str(path)!r}) cannot be written; give another file")
    return file


Seed = Annotated[int, option("Random seed for weights, sampled texts and starting points.")]
Device = Annotated[str, option("Where to compute: cpu, cuda, ...")]
EncoderName = Annotated[
    str, option("minilm, a folder with a model, or a name on the Hugging Face hub.", panel="Text")
]
Show = Annotated[bool, option("Open it in the browser.", "--open")]
Html = Annotated[Path | None, option("Write the result as a page.", rule=output_file)]
Junit = Annotated[
    Path | None, option("Write the requirements as JUnit XML.", panel=GATE, rule=output_file)
]
Threads = Annotated[
    int,
    option(
        "CPU threads. With 1, results do not depend on the number of cores.",
        rule=require_count,
    ),
]


def requirements_option(examples: str) -> Any:
    """The option --require."""
    help = f"A requirement, such as {examples}; may be repeated. Exit code 3 if one fails."
    return option(help, "--require", panel=GATE)


@dataclass(frozen=True, kw_only=True)
class CommandRun:
    """How every command prints: a group of options, which `run` names in a command."""

    as_json: Annotated[
        bool, option("Print one JSON document on stdout instead of tables.", "--json")
    ] = False
    quiet: Annotated[bool, option("No progress and no notices.", "--quiet", "-q")] = False

    def notice(self, message: str) -> None:
        """One line on stderr, unless quiet."""
        if not self.quiet:
            notice(message)

    @contextmanager
    def progress(self, what: str, count: int = 1) -> Iterator[Callable[..., None]]:
        """A function of (done, total, now="") that reports the progress in `count` things."""
        with reporting(count, what, quiet=self.quiet) as report:
            yield lambda done, total, now="": report.update(count * done / total, now=now)


@contextmanager
def cpu_threads(count: int) -> Iterator[None]:
    """Inside, torch uses so many threads; after it, as many as before.

    One is the default of the command line: most products here are small, and a second thread that
    has to share its core with another program makes each of them wait.
    """
    import torch

    if not gc.get_freeze_count():
        gc.freeze()  # torch's modules are never garbage: a collection need not look through them
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What a command found.

    Attributes:
        document: for --json, below the command's name and the version.
        view: for a reader.
        lines: below the view, such as the files that were written.
        verbose: whether folded tables are shown.
        error: raised after all is printed.
    """

    document: Mapping[str, Any]
    view: View | None = None
    lines: Sequence[str] = ()
    verbose: bool = False
    error: WordsensError | None = None


def unmet(failures: Sequence[str]) -> RequirementError | None:
    """The error, for exit code 3, where there are failures."""
    if not failures:
        return None
    many = "a requirement is" if len(failures) == 1 else f"{len(failures)} requirements are"
    return RequirementError(f"{many} not met: {'; '.join(failures)}")


def command(
    name: str, *, first: Sequence[str] = ()
) -> Callable[[Callable[..., Answer | None]], Callable[..., None]]:
    """Makes a function a command: each parameter is an option, and a parameter that is annotated
    with a dataclass is an option for each of its fields. `run: CommandRun` has the options of every
    command.

    Args:
        name: as it is typed.
        first: the options that stand in the first panel of the help.

    >>> @command("greet")
    ... def greet(name: Annotated[str, option("Who.")], *, run: CommandRun) -> Answer:
    ...     return Answer(document={"name": name}, lines=[f"hello {name}"])
    >>> greet(name="you", as_json=False, quiet=False)
    hello you
    """

    def made(function: Callable[..., Answer | None]) -> Callable[..., None]:
        parameters = _signature(function)
        if "run" not in parameters:
            raise TypeError(f"{name}: a command takes `run: CommandRun`, used or not")
        groups = {
            group: _signature(parameter.annotation)
            for group, parameter in parameters.items()
            if is_dataclass(parameter.annotation)
        }
        options = list[inspect.Parameter]()
        for key, parameter in parameters.items():
            options += groups.get(key, {key: parameter}).values()
        options = [_in_help(each, first) for each in options]
        if first:
            options.sort(
                key=lambda each: (each.name not in first, _info(each).rich_help_panel == FURTHER)
            )

        def run_command(**values: Any) -> None:
            for group, members in groups.items():
                kind = parameters[group].annotation
                values[group] = kind(**{key: values.pop(key) for key in members})
            run = values["run"]
            level = logging.ERROR if run.quiet else logging.WARNING
            logging.getLogger("wordsens").setLevel(level)
            answer = function(**values)
            if answer is not None:
                _print(name, answer, as_json=run.as_json)

        run_command.__name__ = name
        run_command.__signature__ = inspect.Signature(options)  # pyright: ignore[reportFunctionMemberAccess]
        run_command.__annotations__ = {each.name: each.annotation for each in options}
        # Line breaks within a paragraph are those of the source, not those of a screen.
        text = inspect.cleandoc(function.__doc__ or "")
        run_command.__doc__ = re.sub(r"(?<!\n)\n(?!\n)", " ", text)
        return run_command

    return made


def _signature(function: Any) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(function, eval_str=True).parameters


def _info(parameter: inspect.Parameter) -> Any:
    return get_args(parameter.annotation)[1]


# What the help shows in the place of a value, where that is not plain.
_METAVARS = {bool: "", list[str] | None: "<str>", list[int] | None: "<int>"}


def _in_help(parameter: inspect.Parameter, first: Sequence[str]) -> inspect.Parameter:
    """The parameter, in the first panel of the help if it is named, else in its own, else in the
    last."""
    if not get_args(parameter.annotation):
        raise TypeError(f"{parameter.name}: annotate it as Annotated[type, option(help)]")
    kind, info = get_args(parameter.annotation)
    info = copy.copy(info)
    info.metavar = info.metavar or _METAVARS.get(kind)
    if first and not isinstance(info, ArgumentInfo):
        info.rich_help_panel = None if parameter.name in first else info.rich_help_panel or FURTHER
    keyword = inspect.Parameter.KEYWORD_ONLY
    return parameter.replace(kind=keyword, annotation=Annotated[kind, info])


def _print(name: str, answer: Answer, *, as_json: bool) -> None:
    with printing():
        if as_json:
            print_json({"command": name, "version": __version__, **answer.document})
        else:
            if answer.view is not None:
                print_view(answer.view, stdout(), verbose=answer.verbose)
            for line in answer.lines:
                stdout().print(line, soft_wrap=True)
    if answer.error is not None:
        raise answer.error


class Command(TyperCommand):
    """A command whose messages name its options as they are typed."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """As typer does it, but for a second file of pairs or texts, which would drop the first."""
        _, _, given = self.make_parser(ctx).parse_args(args=list(args))
        with self._naming():
            for parameter in given:
                if parameter.name in ("pairs", "texts") and given.count(parameter) > 1:
                    name = argument(parameter.name)
                    raise InputError(f"{name} is given twice, and takes one file; put both in one")
            return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """As typer does it."""
        with self._naming():
            return super().invoke(ctx)

    @contextmanager
    def _naming(self) -> Iterator[None]:
        """Inside, a message names an argument of the library as an option, where there is one."""
        options = {
            str(parameter.name): parameter.opts[0]
            for parameter in self.params
            if parameter.opts[0].startswith("--")
        }
        options |= {name[2:].replace("-", "_"): name for name in options.values()}
        if "spec" in [parameter.name for parameter in self.params]:
            options.pop("device", None)  # a key of the spec
        otherwise = spelling.get()

        def spelled(name: str, value: object) -> str:
            if name == "X":
                return "the text"
            if name not in options:
                return otherwise(name, value)
            return options[name] if value is None else f"{options[name]} {value}"

        token = spelling.set(spelled)
        try:
            yield
        finally:
            spelling.reset(token)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """As typer does it; an option without a help has that of the maps that take it, which loads
        torch."""
        from wordsens.maps.registry import option_help

        for parameter in self.params:
            if parameter.help == "":  # pyright: ignore[reportAttributeAccessIssue]
                parameter.help = option_help(str(parameter.name))  # pyright: ignore[reportAttributeAccessIssue]
        super().format_help(ctx, formatter)
