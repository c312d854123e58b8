"""Cells, the smallest things that a study measures: their keys, their identity, and where a record
comes from."""

import hashlib
import json
import os
import platform
import re
import sys
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

from wordsens.errors import InputError, MissingExtraError, require_characters, require_choice, shown
from wordsens.files import named_path, own_sources
from wordsens.version import __version__, commit

try:
    from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError, model_validator
except ModuleNotFoundError as error:
    raise MissingExtraError("pydantic or pyyaml", "records", "a sweep") from error

CPU = "cpu"

_LEAST, _MOST = -(2**63), 2**63 - 1


def _device_name(device: str) -> str:
    if not re.fullmatch(r"[a-z]+(:\d+)?", device):
        raise InputError(
            f"`device` (={device!r}) must be a name of torch's: cpu, cuda, cuda:1, mps, ..."
        )
    return device


def _absolute(path: str) -> str:
    there = named_path("path", path)
    return str(there.absolute()) if there.exists() else path


# cpu, cuda, cuda:1, mps, ..., as torch names them.
Device = Annotated[str, AfterValidator(_device_name)]

# A path that exists here becomes an absolute one: a worker may run in another folder. A name on the
# hub stays as it is.
PathOrName = Annotated[str, AfterValidator(_absolute)]
ModelName = PathOrName


class Strict(BaseModel, frozen=True):
    """A frozen model that refuses unknown keys and bends no types. Build one with `parse`, which
    raises InputError."""

    model_config = ConfigDict(extra="forbid", strict=True)

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, data: Any) -> Any:
        if isinstance(data, dict):
            for key, value in data.items():
                require_choice("key", key, cls.model_fields)
                _require_plain(key, value)
        return data

    @classmethod
    def parse(cls, data: Any, *, where: str = "") -> Self:
        """The model that the data describe; InputError in one line with the key, its value and the
        rule."""
        try:
            return cls.model_validate(data)
        except ValidationError as error:
            raise InputError(
                f"{where}: {_one_line(error)}" if where else _one_line(error)
            ) from error


class Cell(Strict, frozen=True):
    """One measurement. An experiment's cell is a subclass with its keys.

    Attributes:
        device: where it is computed; its kind is part of the identity, its number is not.
    """

    experiment: ClassVar[str]

    device: Device = CPU

    def spec(self) -> dict[str, Any]:
        """The keys that can change the result, without those that this cell does not use.

        A GPU sums in another order than a CPU, and a search may then end at another maximum: the
        kind of the device is one of them.
        """
        return {**self.model_dump(mode="json"), "device": self.device.partition(":")[0]}

    def described(self) -> dict[str, Any]:
        """Further columns of the record that need no measurement."""
        return {}

    def key(self, code: str | None = None) -> str:
        """The name of the record: a hash of the spec and of the code (None: this one), so that no
        two versions share a record.
        """
        identity = {
            "experiment": self.experiment,
            "code": code or code_version(type(self)),
            **self.spec(),
        }
        return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:32]


def spelled_out(value: Any) -> Any:
    """A bare kind of text (`gaussian`) as the mapping it stands for; anything else as it is."""
    return {"kind": value} if isinstance(value, str) else value


def _require_plain(key: str, value: Any) -> None:
    """Refuse what no record can hold: whole numbers of more than 64 bits, halves of surrogate
    pairs."""
    if isinstance(value, int) and not _LEAST <= value <= _MOST:
        raise InputError(
            f"`{key}` (={shown(value)}) must be a whole number of 64 bits, up to {_MOST:,}"
        )
    if isinstance(value, str):
        require_characters(f"`{key}`", value)
    elif isinstance(value, list | tuple):
        for one in value:
            _require_plain(key, one)


def _one_line(error: ValidationError) -> str:
    """The first mistake in one line."""
    first = error.errors()[0]
    key = ".".join(str(part) for part in first["loc"])
    cause = first.get("ctx", {}).get("error")
    if isinstance(cause, InputError):
        return f"{key}: {cause}" if key else str(cause)
    if first["type"] == "missing":
        return f"`{key}` is missing; give it a value"
    rule = first["msg"].removeprefix("Input ").replace("should be", "must be")
    several = (
        "; several values are a list: [10, 20]"
        if isinstance(value := first["input"], str) and "," in value
        else ""
    )
    return f"`{key}` (={shown(value)}) {rule[0].lower()}{rule[1:]}{several}"


_LIBRARIES = ("torch", "numpy", "scipy", "transformers", "tokenizers")

_PACKAGE = Path(__file__).parents[1]

# The code that a cell's value can depend on, besides the file of its study.
_NUMERIC = (
    *("activations.py", "seeds.py", "intervals.py", "evaluation/word_lists.py"),
    *("sweeps/texts.py", "sweeps/map_cell.py", "sweeps/measurement.py"),
    *("text/**/*.py", "models/**/*.py", "gaussian/**/*.py", "search/**/*.py", "maps/**/*.py"),
    *("certificates/**/*.py", "theory/**/*.py", "sensitivity/**/*.py"),
    *("generalization/**/*.py", "training/penalty.py"),
)
_DOCSTRING = re.compile(r'(^ *r?)?"""[\s\S]*?"""', re.MULTILINE)
"""A string in triple quotes: group 1 is there if a line begins with it."""


def without_docstrings(path: Path) -> bytes:
    """A file of this package without its docstrings, which no value depends on."""
    source = path.read_text(encoding="utf-8")
    return _DOCSTRING.sub(lambda found: found[0] if found[1] is None else "", source).encode()


@cache
def code_version(cell: "type[Cell] | None" = None) -> str:
    """The hash of the code that a cell's value can depend on, its first 12 hexadecimal digits: the
    numeric packages without their docstrings, and the file of its study with what that imports from
    its folder. None: the numeric packages alone. The content of a file counts, not its time or
    place.
    """
    files = {path for pattern in _NUMERIC for path in _PACKAGE.glob(pattern)}
    contents = [(path.name, without_docstrings(path)) for path in files]
    if cell is not None:
        modules = {cell.__module__, cell.experiment.partition(":")[0]} & set(sys.modules)
        for name in modules - {"wordsens.sweeps.measurement"}:
            own = own_sources(name, Path(sys.modules[name].__file__ or ""))
            contents += [(path.name, path.read_bytes()) for path in own - files]
    parts = sorted(name + hashlib.sha256(content).hexdigest() for name, content in contents)
    return hashlib.sha256("".join(parts).encode()).hexdigest()[:12]


def provenance(cell: Cell) -> dict[str, Any]:
    """The columns that say how a record was made, at the end of the cell."""
    torch = sys.modules.get("torch")
    return {
        "wordsens_version": __version__,
        "commit": commit(),
        "code": code_version(type(cell)),
        "libraries": _libraries(),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "threads": None if torch is None else torch.get_num_threads(),
    }


@cache
def _libraries() -> str:
    """The versions of Python and of the libraries that a value can depend on, as JSON."""
    versions = {name: version(name) for name in _LIBRARIES if find_spec(name)}
    return json.dumps({"python": platform.python_version(), **versions}, sort_keys=True)


def error_line(error: BaseException) -> str:
    """The error on one line, its class first.

    >>> error_line(ValueError("two\\nlines"))
    'ValueError: two lines'
    """
    return f"{type(error).__name__}: {' '.join(str(error).split()) or 'no message'}"
