"""The fields of a dataclass as keyword parameters of a function."""

import inspect
from dataclasses import MISSING, fields
from typing import Any, get_type_hints


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
