"""Options that several commands share, and commands whose options are the fields of a dataclass."""

import functools
import inspect
from collections.abc import Callable
from typing import Annotated, Any, TypeVar, cast, get_args

import typer

from wordsens.maps.registry import OPTIONS
from wordsens.signatures import keywords_of

Options = TypeVar("Options")

Seed = Annotated[int, typer.Option(help="Fixes the weights, the texts drawn and the random starts.")]
Device = Annotated[str, typer.Option(help="Where to compute: cpu, cuda, ...")]
CellDevice = Annotated[
    str | None,
    typer.Option(help="Where to compute, whatever the spec says: cpu, cuda, ...", show_default=False),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout and no table.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no notices.")]
EncoderName = Annotated[
    str,
    typer.Option(help="minilm, a folder with a model, or a name on the Hugging Face hub.", rich_help_panel="Text"),
]
Threads = Annotated[
    int, typer.Option(help="CPU threads. With 1 the numbers are the same on a machine with more cores.")
]


def map_option(name: str) -> Any:
    """The command-line option for an option of the maps, with the help that `maps.registry` has for it."""
    option = OPTIONS[name]
    return typer.Option(help=option.help, show_default=option.default is not None, rich_help_panel="Maps")


def takes(options: type[Options]) -> Callable[[Callable[[Options], None]], Callable[..., None]]:
    """Makes a function of one dataclass a command: each field is an option, declared there and nowhere else.

    The fields are annotated as typer wants parameters; `__post_init__` refuses what can be refused before
    anything heavy is loaded.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True, kw_only=True)
    ... class Greeting:
    ...     name: Annotated[str, typer.Argument(help="Who is greeted.")]
    ...     times: Annotated[int, typer.Option(help="Greetings.")] = 1
    >>> @takes(Greeting)
    ... def greet(options: Greeting) -> None:
    ...     print(" ".join(["hello", options.name] * options.times))
    >>> list(inspect.signature(greet).parameters)
    ['name', 'times']
    >>> greet(name="you")
    hello you
    """
    parameters = keywords_of(cast(Any, options))
    for kind, *info in (get_args(parameter.annotation) for parameter in parameters):
        if kind is bool and info[0].metavar is None:
            info[0].metavar = ""  # else help shows "<bool>" beside a flag

    def made(function: Callable[[Options], None]) -> Callable[..., None]:
        @functools.wraps(function)
        def command(**given: Any) -> None:
            function(options(**given))

        command.__signature__ = inspect.Signature(parameters)  # pyright: ignore[reportAttributeAccessIssue]
        command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        del command.__wrapped__
        return command

    return made
