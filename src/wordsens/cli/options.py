"""Options that several commands share, and commands whose options are the fields of a dataclass."""

import copy
import functools
import gc
import inspect
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any, TypeVar, cast, get_args

import typer
from typer.models import ArgumentInfo

from wordsens.signatures import keywords_of

Options = TypeVar("Options")

FURTHER = "Further options"
"""The panel of options without one, in a command that names those that people use first."""


def option(text: str, *names: str, panel: str | None = None, default: bool = True) -> Any:
    """An option by its help: its names where they are not the field's, its panel, whether the
    default is shown."""
    return typer.Option(*names, help=text, rich_help_panel=panel, show_default=default)


Seed = Annotated[int, option("Fixes the weights, the texts drawn and the random starts.")]
Device = Annotated[str, option("Where to compute: cpu, cuda, ...")]
AsJson = Annotated[bool, option("Print one JSON document on stdout and no table.", "--json")]
Quiet = Annotated[bool, option("No progress and no notices.", "--quiet", "-q")]
Show = Annotated[bool, option("Open it in the browser.", "--open")]
EncoderName = Annotated[
    str, option("minilm, a folder with a model, or a name on the Hugging Face hub.", panel="Text")
]
Threads = Annotated[
    int, option("CPU threads. With 1 the numbers are the same on a machine with more cores.")
]


@contextmanager
def _cpu_threads(count: int) -> Iterator[None]:
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


def takes(
    options: type[Options], *, first: Sequence[str] = ()
) -> Callable[[Callable[[Options], None]], Callable[..., None]]:
    """Makes a function of one dataclass a command: each field is an option, declared there and
    nowhere else.

    The fields are annotated as typer wants parameters, or with the help of an option;
    `__post_init__` refuses what can be refused before anything heavy is loaded. A field `threads`
    is the number of CPU threads that the command uses. In its help the options named `first`, those
    that people use first, stand alone in the first panel.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True, kw_only=True)
    ... class Greeting:
    ...     name: Annotated[str, typer.Argument(help="Who is greeted.")]
    ...     times: Annotated[int, typer.Option(help="Greetings.")] = 1
    >>> @takes(Greeting)
    ... def greet(options: Greeting) -> None:
    ...     print(" ".join(["hello", options.name] * options.times))
    >>> greet(name="you")
    hello you
    """
    parameters = [
        parameter.replace(
            annotation=Annotated[kind, option(info) if isinstance(info, str) else info]
        )
        for parameter in keywords_of(cast(Any, options))
        for kind, info in [get_args(parameter.annotation)]
    ]
    for kind, *info in (get_args(parameter.annotation) for parameter in parameters):
        if kind is bool and info[0].metavar is None:
            info[0].metavar = ""  # else help shows "<bool>" beside a flag
    if first:
        parameters = [_in_panel(parameter, first) for parameter in parameters]
        parameters.sort(
            key=lambda parameter: (
                parameter.name not in first,
                get_args(parameter.annotation)[1].rich_help_panel == FURTHER,
            )
        )

    def made(function: Callable[[Options], None]) -> Callable[..., None]:
        @functools.wraps(function)
        def command(**values: Any) -> None:
            chosen = options(**values)
            if "threads" not in values:
                function(chosen)
                return
            with _cpu_threads(values["threads"]):
                function(chosen)

        command.__signature__ = inspect.Signature(parameters)  # pyright: ignore[reportAttributeAccessIssue]
        command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        # Line breaks within a paragraph are those of this file, not those of a screen.
        command.__doc__ = re.sub(r"(?<!\n)\n(?!\n)", " ", inspect.cleandoc(function.__doc__ or ""))
        del command.__wrapped__
        return command

    return made


def _in_panel(parameter: inspect.Parameter, first: Sequence[str]) -> inspect.Parameter:
    """The parameter in the first panel of the help if it is named, else in its own, or else in the
    last."""
    kind, info = get_args(parameter.annotation)
    if isinstance(info, ArgumentInfo):
        return parameter
    info = copy.copy(info)
    info.rich_help_panel = None if parameter.name in first else info.rich_help_panel or FURTHER
    return parameter.replace(annotation=Annotated[kind, info])
