"""The exception family, and the guards that every public function shares.

A message names the argument, gives its value, states the rule and adds the remedy, on one line.
Nothing here imports torch: the command line reports a wrong option before it loads anything heavy.
"""

import math
import re
import reprlib
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from difflib import get_close_matches
from importlib.util import find_spec
from numbers import Integral, Real
from typing import Annotated, Any


class WordsensError(Exception):
    """Root of every error that wordsens raises on purpose."""


class InputError(WordsensError, ValueError):
    """The input is wrong and the caller can mend it. The command line exits with code 2."""


class ZeroFeaturesError(InputError):
    """phi(X) has norm zero, so a relative change of the features is not defined."""


class MissingExtraError(WordsensError, ImportError):
    """An optional dependency is not installed. The command line exits with code 2."""

    def __init__(self, package: str, extra: str, purpose: str):
        super().__init__(
            f"{purpose} needs the package {package!r}, which is not installed; "
            f"install it with: pip install 'wordsens[{extra}]'"
        )


def require_extra(extra: str, purpose: str, *packages: str) -> None:
    """MissingExtraError for the first of the packages that is not installed, before any other
    work."""
    for package in packages:
        if find_spec(package) is None:
            raise MissingExtraError(package, extra, purpose)


class RequirementError(WordsensError):
    """A requirement that the user stated is not met. The command line exits with code 3."""


class BudgetError(WordsensError, MemoryError):
    """The work does not fit the stated memory budget."""


def _in_python(name: str, value: object) -> str:
    return f"`{name}`" if value is None else f"{name}={value!r}"


spelling: ContextVar[Callable[[str, object], str]] = ContextVar("spelling", default=_in_python)
"""How the reader of a message knows an argument: by its name in Python, or as an option."""


def argument(name: str, value: object = None) -> str:
    """An argument as the reader of a message knows it, with a value where one is proposed: its
    name in Python, or the option on the command line.

    >>> argument("max_words"), argument("max_words", 20)
    ('`max_words`', 'max_words=20')
    """
    return spelling.get()(name, value)


def _given(name: str, value: object) -> str:
    return f"{argument(name)} (={shown(value)})"


def require_positive(name: str, value: Any, *, remedy: str = "") -> float:
    """The value as a float, when it is a positive finite number; NumPy numbers count.

    >>> require_positive("radius", -1)
    Traceback (most recent call last):
    wordsens.errors.InputError: `radius` (=-1) must be a positive finite number
    """
    if (
        isinstance(value, bool)
        or not isinstance(value, Real)
        or not math.isfinite(value)
        or value <= 0
    ):
        raise InputError(f"{_given(name, value)} must be a positive finite number{_tail(remedy)}")
    return float(value)


def require_count(
    name: str, value: Any, *, least: int = 1, most: int | None = None, remedy: str = ""
) -> int:
    """The value as an int, when it is a whole number from `least` to `most`; NumPy integers count.

    >>> require_count("depth", 0)
    Traceback (most recent call last):
    wordsens.errors.InputError: `depth` (=0) must be a whole number, at least 1
    """
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise InputError(
            f"{_given(name, value)} must be a whole number, at least {least}{_tail(remedy)}"
        )
    if most is not None and int(value) > most:
        raise InputError(f"{_given(name, value)} must be at most {most:,}{_tail(remedy)}")
    return int(value)


# Annotations of a map's options: the rule that `maps.registry` checks before it makes a map.
Count = Annotated[int, require_count]
Positive = Annotated[float, require_positive]


def require_choice(name: str, value: Any, choices: Collection[str], *, remedy: str = "") -> str:
    """The value, when it is one of the choices; otherwise an error with the valid names and the
    nearest.

    >>> require_choice("score", "sofmax", ["softmax", "relu"])
    Traceback (most recent call last):
    wordsens.errors.InputError: `score` (='sofmax') must be one of softmax, relu; did you mean 'softmax'?
    """  # noqa: E501
    if isinstance(value, str) and value in choices:
        return value
    near = get_close_matches(value, list(choices), n=1) if isinstance(value, str) else []
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise InputError(
        f"{_given(name, value)} must be one of {', '.join(choices)}{hint}{_tail(remedy)}"
    )


def require_kind(name: str, value: Any, kind: type, *, remedy: str = "") -> None:
    """InputError when the value is not an instance of that class.

    >>> require_kind("phi", 3, dict, remedy="give a dictionary")
    Traceback (most recent call last):
    wordsens.errors.InputError: `phi` (=3) must be of the class dict; give a dictionary
    """
    if not isinstance(value, kind):
        raise InputError(
            f"{argument(name)} (={reprlib.repr(value)}) must be of the class {kind.__name__}"
            f"{_tail(remedy)}"
        )


def require_device(device: Any) -> Any:
    """The device, a name or a torch.device, when torch knows it and this machine has it."""
    import torch

    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, NotImplementedError, TypeError) as error:
        raise InputError(
            f"{argument('device')} (={str(device)!r}) is not available here; use 'cpu'"
            + (", or 'cuda' where torch sees a GPU" if not torch.cuda.is_available() else "")
        ) from error
    return device


def require_dtype(dtype: Any) -> Any:
    """The dtype, when it is one of torch's real floating-point types.

    >>> require_dtype("float32")
    Traceback (most recent call last):
    wordsens.errors.InputError: `dtype` (='float32') must be a floating-point type of torch; pass torch.float32
    """  # noqa: E501
    import torch

    if not isinstance(dtype, torch.dtype) or not dtype.is_floating_point:
        near = getattr(torch, str(dtype), None)
        near = near if isinstance(near, torch.dtype) and near.is_floating_point else torch.float64
        raise InputError(
            f"{_given('dtype', dtype)} must be a floating-point type of torch; pass {near}"
        )
    return dtype


def require_characters(where: str, text: str) -> str:
    """The text, when every character of it can be written; half of a surrogate pair stands for
    none.

    >>> require_characters("the text", "caf\\udce9")
    Traceback (most recent call last):
    wordsens.errors.InputError: the text: its character 3 ('\\udce9') is half of a pair, no character; save it as UTF-8
    """  # noqa: E501
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"{where}: its character {error.start} ({text[error.start]!r}) is half of a pair, no "
            "character; save it "
            "as UTF-8"
        ) from error
    return text


_SHOWN = 200
"""Characters of a value in a message: as much as two lines of a terminal."""


def shown(value: object) -> str:
    """The value as a message shows it: a long one without its middle."""
    try:
        spelled = repr(value)
    except ValueError:  # Python spells out no whole number of more than 4,300 digits
        return f"a {type(value).__name__} of thousands of digits"
    return (
        spelled
        if len(spelled) <= _SHOWN
        else f"{spelled[: _SHOWN // 2]}...{spelled[-_SHOWN // 2 :]}"
    )


def without_secrets(text: str) -> str:
    """The text, in whose addresses user, password and the values of the query are left out.

    >>> without_secrets("--endpoint=https://me:secret@host/v1?key=abc&version=2")
    '--endpoint=https://host/v1?key=...&version=...'
    """
    if "://" not in text:
        return text
    return re.sub(r"([?&][^=&#\s]+=)[^&#\s]+", r"\1...", re.sub(r"(://)[^/?#\s]*@", r"\1", text))


def first_line(error: BaseException) -> str:
    """The first line of another library's message, without its full stop, to stand inside one of
    ours."""
    lines = str(error).strip().splitlines()
    return lines[0].strip().rstrip(".;:") if lines else type(error).__name__


@contextmanager
def running(
    what: str, *, raises: type[WordsensError] = InputError, remedy: str = ""
) -> Iterator[None]:
    """Inside, code runs that is not ours, and whatever ends it becomes one line: SystemExit and the
    like too, which would end this process as if its work were done. Our own errors and an interrupt
    go through.

    >>> with running("`encode` (='mine:encode') failed", remedy="mend it"):
    ...     raise SystemExit("no key")
    Traceback (most recent call last):
    wordsens.errors.InputError: `encode` (='mine:encode') failed with SystemExit: no key; mend it
    """
    try:
        yield
    except (WordsensError, KeyboardInterrupt):
        raise
    except BaseException as error:
        raise raises(
            f"{what} with {type(error).__name__}: {first_line(error)}{_tail(remedy)}"
        ) from error


def _tail(remedy: str) -> str:
    return f"; {remedy}" if remedy else ""
