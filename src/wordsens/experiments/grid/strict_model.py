"""The base of every spec: unknown keys refused, types not bent, and errors of one line."""

import re
from collections.abc import Callable
from typing import Any, TypeVar

from wordsens.errors import InputError, MissingExtraError, require_characters, require_choice, shown

try:
    from pydantic import BaseModel, ConfigDict, ValidationError, model_validator
except ImportError as error:
    raise MissingExtraError("pydantic", "records", "a spec") from error

_LEAST, _MOST = -(2**63), 2**63 - 1

Model = TypeVar("Model", bound=BaseModel)
Loc = tuple[str | int, ...]


class StrictModel(BaseModel):
    """A frozen spec. Build one with `parse`, which raises InputError; `2.0` or `"2"` is no whole number."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, data: Any) -> Any:
        if isinstance(data, dict):
            for key, value in data.items():
                require_choice("key", key, cls.model_fields)
                _require_plain(key, value)
        return data

    @classmethod
    def parse(cls: type[Model], data: Any, *, where: str | Callable[[Loc], str] = "") -> Model:
        """The model that the data describe.

        Args:
            data: a dictionary of the model's keys.
            where: what the error names as the place of the mistake, a file for instance; or a function that gives
                it from the path of the key that is wrong.

        Raises:
            InputError: one line with the key, its value and the rule.
        """
        try:
            return cls.model_validate(data)
        except ValidationError as error:
            line, path = _one_line(error)
            place = where if isinstance(where, str) else where(path)
            raise InputError(f"{place}: {line}" if place else line) from error


def _require_plain(key: str, value: Any) -> None:
    """Refuse what no record can hold: whole numbers of more than 64 bits, halves of surrogate pairs."""
    if isinstance(value, int) and not _LEAST <= value <= _MOST:
        raise InputError(f"`{key}` (={shown(value)}) must be a whole number of 64 bits, up to {_MOST:,}")
    if isinstance(value, str):
        require_characters(f"`{key}`", value)
    elif isinstance(value, list | tuple):
        for one in value:
            _require_plain(key, one)


def _one_line(error: ValidationError) -> tuple[str, Loc]:
    """The first mistake in one line, and the path of its key."""
    first = error.errors()[0]
    path: Loc = tuple(first["loc"])
    key = ".".join(str(part) for part in path)
    own = first.get("ctx", {}).get("error")
    if isinstance(own, InputError):
        return f"{key}: {own}" if key else str(own), path + _named(str(own), path)
    if first["type"] == "missing":
        return f"`{key}` is missing; give it a value", path
    rule = first["msg"].removeprefix("Input ").replace("should be", "must be")
    return f"`{key}` (={shown(first['input'])}) {rule[0].lower()}{rule[1:]}", path


def _named(message: str, path: Loc) -> Loc:
    """The key that a message of ours speaks of, where the path does not end there yet."""
    unknown = re.match(r"`key` \(='(.*?)'\)", message)
    name = unknown or re.match(r"`(\w+)`", message)
    return (name[1],) if name and name[1] not in path else ()
