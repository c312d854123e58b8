"""The columns of a record that its cell's spec alone decides, read from the spec itself."""

import json
from collections.abc import Iterable
from typing import Any

from wordsens.errors import InputError

REPLICATES = frozenset({"seed", "draw", "sample"})
"""Keys that name a repetition: records that differ in nothing else are draws of one quantity."""


def columns_of(spec: str) -> dict[str, Any]:
    """Every key of a spec under the name of its column: those of the text too, of which `text` keeps the kind.

    `words` and `word`, what was asked for, are `word_choice`: the columns of that name say what was searched.

    >>> columns_of('{"n": 4, "text": {"kind": "correlated", "mean_cosine": 0.3}, "words": {"sample": 2}}')
    {'n': 4, 'text': 'correlated', 'mean_cosine': 0.3, 'word_choice': '{"sample": 2}'}
    """
    try:
        keys = json.loads(spec)
    except ValueError as error:
        raise InputError(f"its spec is not JSON ({error})") from error
    if not isinstance(keys, dict):
        raise InputError("its spec is not the JSON of an object")
    found: dict[str, Any] = {}
    for key, value in keys.items():
        if key == "text" and isinstance(value, dict):
            own: dict[str, str] = {"kind": "text", "content": "text_content"}
            found |= {own.get(str(name), str(name)): one for name, one in value.items()}
        elif key in ("words", "word"):
            found["word_choice"] = value if isinstance(value, str) else json.dumps(value)
        elif key not in ("schema", "kind"):
            found[key] = tuple(value) if isinstance(value, list) else value
    return found


def varying(specs: Iterable[str], *, besides: Iterable[str]) -> dict[str, list[Any]]:
    """The columns, other than repetitions and `besides`, that have several values among the specs; the values sorted.

    A spec that lacks a key has no value of it: the mean cosine of a Gaussian text, for one.
    """
    seen: dict[str, dict[Any, None]] = {}
    for spec in specs:
        for name, value in columns_of(spec).items():
            seen.setdefault(name, {})[value] = None
    left = REPLICATES | set(besides)
    return {name: sorted(values, key=rank) for name, values in seen.items() if len(values) > 1 and name not in left}


def require_alike(specs: Iterable[str], *, besides: Iterable[str]) -> None:
    """InputError where what is drawn or averaged together differs in a column of the specs other than `besides`."""
    for name, values in varying(specs, besides=besides).items():
        listed = ", ".join("None" if value is None else str(value) for value in values[:4])
        raise InputError(
            f"`records` has several values of {name} ({listed}{', ...' if len(values) > 4 else ''}), which would be "
            f"taken together; filter them, such as [r for r in records if r.{name} == {values[-1]!r}]"
        )


def rank(value: Any) -> tuple[int, float, str]:
    """Orders values of any kind: none at all, then numbers, then words."""
    if value is None:
        return (0, 0.0, "")
    return (1, float(value), "") if isinstance(value, int | float) else (2, 0.0, str(value))


def told(name: str, value: Any) -> str:
    """A column's value in a few words.

    >>> told("mean_cosine", 0.3), told("starts", None)
    ('mean cosine = 0.3', 'starts = default')
    """
    if name == "text_content" and isinstance(value, str):
        value = value[:8]
    shown = "default" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
    return f"{name.replace('_', ' ')} = {shown}"
