"""Functions that take the fields of a dataclass as keywords, and show each of them in their signature."""

import inspect
from collections.abc import Callable
from dataclasses import MISSING, fields
from typing import Any, TypeVar, get_type_hints

Made = TypeVar("Made", bound=Callable[..., Any])


def keywords_of(options: type[Any]) -> list[inspect.Parameter]:
    """A keyword parameter for each field of a dataclass, with its default and its annotation."""
    types = get_type_hints(options, include_extras=True)
    return [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if field.default is MISSING else field.default,
            annotation=types[field.name],
        )
        for field in fields(options)
    ]


def spells_out(options: type[Any]) -> Callable[[Made], Made]:
    """Makes help() show the fields of a dataclass in the place of a function's `**` keywords, which it is made of.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Greeting:
    ...     times: int = 1
    >>> @spells_out(Greeting)
    ... def greet(name: str, **greeting) -> str:
    ...     return " ".join(["hello", name] * Greeting(**greeting).times)
    >>> print(inspect.signature(greet), greet("you", times=2))
    (name: str, *, times: int = 1) -> str hello you hello you
    """

    def shown(function: Made) -> Made:
        signature = inspect.signature(function)
        plain = [one for one in signature.parameters.values() if one.kind is not inspect.Parameter.VAR_KEYWORD]
        spelled = signature.replace(parameters=[*plain, *keywords_of(options)])
        function.__signature__ = spelled  # pyright: ignore[reportAttributeAccessIssue]
        return function

    return shown
