"""The base of every spec: unknown keys refused, types not bent, and errors of one line."""

from typing import Any, TypeVar

from wordsens.errors import InputError, MissingExtraError, require_choice

try:
    from pydantic import BaseModel, ConfigDict, ValidationError, model_validator
except ImportError as error:
    raise MissingExtraError("pydantic", "records", "a spec") from error

Model = TypeVar("Model", bound=BaseModel)


class StrictModel(BaseModel):
    """A frozen spec. Build one with `parse`, which raises InputError; `2.0` or `"2"` is no whole number."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, data: Any) -> Any:
        if isinstance(data, dict):
            for key in data:
                require_choice("key", key, cls.model_fields)
        return data

    @classmethod
    def parse(cls: type[Model], data: Any, *, where: str = "") -> Model:
        """The model that the data describe.

        Args:
            data: a dictionary of the model's keys.
            where: what the error names as the place of the mistake, a file for instance.

        Raises:
            InputError: one line with the key, its value and the rule.
        """
        try:
            return cls.model_validate(data)
        except ValidationError as error:
            place = f"{where}: " if where else ""
            raise InputError(place + _one_line(error)) from error


def _one_line(error: ValidationError) -> str:
    first = error.errors()[0]
    key = ".".join(str(part) for part in first["loc"])
    own = first.get("ctx", {}).get("error")
    if isinstance(own, InputError):
        return f"{key}: {own}" if key else str(own)
    if first["type"] == "missing":
        return f"`{key}` is missing; give it a value"
    rule = first["msg"].removeprefix("Input ").replace("should be", "must be")
    return f"`{key}` (={first['input']!r}) {rule[0].lower()}{rule[1:]}"
