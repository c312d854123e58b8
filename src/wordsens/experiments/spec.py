"""Cells, the smallest things that an experiment measures, and sweeps: grids of cells from YAML files and overrides."""

import hashlib
import importlib
import itertools
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

from wordsens.errors import InputError, MissingExtraError, require_characters, require_choice, shown
from wordsens.experiments.provenance import code_version
from wordsens.files import named_path, small_text

try:
    import yaml
    from pydantic import (
        AfterValidator,
        BaseModel,
        ConfigDict,
        Field,
        ValidationError,
        field_validator,
        model_validator,
    )
except ModuleNotFoundError as error:
    raise MissingExtraError("pydantic or pyyaml", "records", "a sweep") from error

MOST_CELLS = 200_000
"""Of a sweep: each is checked before anything runs, in some 25 µs and 1.5 kB."""

EXPERIMENTS = (
    "sensitivity", "generalization", "attention", "departures", "correlations", "several-words", "similarity",
    "control", "audit",
)  # fmt: skip
"""A further one is a file of its name (`-` written `_`) beside this one, and its name here."""

CPU = "cpu"

_DEEPEST = 50
_LEAST, _MOST = -(2**63), 2**63 - 1


def _device_name(device: str) -> str:
    if not re.fullmatch(r"[a-z]+(:\d+)?", device):
        raise InputError(f"`device` (={device!r}) must be a name of torch's: cpu, cuda, cuda:1, mps, ...")
    return device


def _absolute_folder(model: str) -> str:
    folder = named_path("model", model)
    return str(folder.absolute()) if folder.is_dir() else model


Device = Annotated[str, AfterValidator(_device_name)]
"""cpu, cuda, cuda:1, mps, ..., as torch names them."""

ModelName = Annotated[str, AfterValidator(_absolute_folder)]
"""minilm, a name on the hub, or a folder, kept as an absolute path: a worker may run in another folder."""


class Strict(BaseModel, frozen=True):
    """A frozen model that refuses unknown keys and bends no types. Build one with `parse`, which raises InputError."""

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
        """The model that the data describe; InputError in one line with the key, its value and the rule."""
        try:
            return cls.model_validate(data)
        except ValidationError as error:
            raise InputError(f"{where}: {_one_line(error)}" if where else _one_line(error)) from error


class Cell(Strict, frozen=True):
    """One measurement. An experiment's cell is a subclass with its keys.

    Attributes:
        device: where it is computed; its kind is part of the identity, its number is not.
    """

    experiment: ClassVar[str]

    device: Device = CPU

    def spec(self) -> dict[str, Any]:
        """The keys that can change the result, without those that this cell does not use.

        A GPU sums in another order than a CPU, and a search may then end at another maximum: the kind of the device is
        one of them.
        """
        return {**self.model_dump(mode="json"), "device": self.device.partition(":")[0]}

    def described(self) -> dict[str, Any]:
        """Further columns of the record that need no measurement."""
        return {}

    def key(self, code: str | None = None) -> str:
        """The name of the record: a hash of the spec and of the code (None: this one), so that no two versions share a
        record.
        """
        identity = {"experiment": self.experiment, "code": code or code_version(), **self.spec()}
        return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:32]


def experiment_named(name: str) -> Any:
    """The `Experiment` of that name, or one's own as `module:NAME`; its file is imported when it is first asked for.

    >>> experiment_named("several-words").Cell.__name__
    'SeveralWordsCell'
    """
    if ":" in name:
        from wordsens.models.black_box import load_named

        own = load_named(name, "experiment")
        if not isinstance(getattr(own, "Cell", None), type):
            raise InputError(f"`experiment` (={name!r}) must name an Experiment, not a {type(own).__name__}")
        return own
    module = require_choice("experiment", name, EXPERIMENTS).replace("-", "_")
    return importlib.import_module(f"wordsens.experiments.{module}").EXPERIMENT


class Sweep(Strict, frozen=True):
    """Grids of cells of one experiment. In a grid a list is an axis: every combination of the axes is a cell.

    Attributes:
        name: what the sweep is called; its folder, by default.
        experiment: sensitivity, generalization, ...
        common: keys of every grid that does not set them itself.
        grids: for each, the keys of a cell, with a value or a list of values.

    >>> sweep = Sweep.parse({"name": "two", "grids": [{"map": "raf", "text": "gaussian", "n": [4, 6], "d": 8}]})
    >>> [cell.n for cell in sweep.cells()]
    [4, 6]
    """

    name: Annotated[str, Field(min_length=1)]
    experiment: str = "sensitivity"
    common: dict[str, Any] = Field(default_factory=dict)
    grids: Annotated[tuple[dict[str, Any], ...], Field(min_length=1, max_length=1000, strict=False)]

    @field_validator("name")
    @classmethod
    def _names_a_folder(cls, name: str) -> str:
        if not name.strip(". ") or any(one in "/\\" or not one.isprintable() for one in name):
            raise InputError(
                f"`name` (={name!r}) becomes a folder: it needs a letter, and no slash or control character"
            )
        return name

    @field_validator("experiment")
    @classmethod
    def _known_experiment(cls, name: str) -> str:
        return experiment_named(name).name

    @property
    def cell_type(self) -> type[Cell]:
        """The class of its cells."""
        return experiment_named(self.experiment).Cell

    def cells(self) -> list[Any]:
        """The cells, equal ones once, draw after draw: an interrupted run has then measured every point.

        Raises:
            InputError: an unknown key, an empty axis, a cell that is not valid, or more than MOST_CELLS cells.
        """
        grids = [{**self.common, **grid} for grid in self.grids]
        for at, grid in enumerate(grids):
            for key, value in grid.items():
                _within(f"{self.name}, grid {at}", require_choice, "key", key, self.cell_type.model_fields)
                if value == []:
                    raise InputError(f"{self.name}, grid {at}: `{key}` is an empty list; give it at least one value")
        count = sum(math.prod(len(_axis(value)) for value in grid.values()) for grid in grids)
        if count > MOST_CELLS:
            many = f"{count:,}" if count < 10**30 else "more than 10^30"
            raise InputError(f"{self.name}: {many} cells, at most {MOST_CELLS:,}; take fewer values an axis")
        cells = dict.fromkeys(cell for at, grid in enumerate(grids) for cell in self._cells_of(at, grid))
        return sorted(cells, key=lambda cell: getattr(cell, "draw", 0))

    def _cells_of(self, at: int, grid: Mapping[str, Any]) -> Iterator[Cell]:
        for values in itertools.product(*map(_axis, grid.values())):
            yield self.cell_type.parse(dict(zip(grid, values, strict=True)), where=f"{self.name}, grid {at}")

    def to_yaml(self) -> str:
        """The sweep as YAML, which `load_sweep` reads back."""
        data = self.model_dump(mode="json")
        return yaml.safe_dump(data, sort_keys=False, allow_unicode=True, default_flow_style=None, width=100)


def _axis(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else [value]


def load_sweep(path: str | Path, overrides: Iterable[str] = ()) -> Sweep:
    """The sweep in a YAML file, with overrides `key=value` applied in order.

    Raises:
        InputError: the file cannot be read, or describes no sweep: one line.
    """
    text = small_text(named_path("path", path, home=False), "path")
    return parse_sweep(text, overrides, where=str(path))


def parse_sweep(text: str, overrides: Iterable[str] = (), *, where: str = "the sweep") -> Sweep:
    """The sweep that a YAML text describes; see `load_sweep`.

    >>> text = "name: a\\ngrids: [{map: rf, text: gaussian, n: 4, d: 8}]"
    >>> [cell.n for cell in parse_sweep(text, ["n=[5, 6]"]).cells()]
    [5, 6]
    """
    data = _read_yaml(text, where)
    if not isinstance(data, dict):
        raise InputError(f"{where}: a sweep is a mapping with the keys {', '.join(Sweep.model_fields)}")
    return overridden(Sweep.parse(data, where=where), overrides)


def overridden(sweep: Sweep, overrides: Iterable[str]) -> Sweep:
    """The sweep with `key=value` applied in order; the value is YAML, and a list is an axis.

    `name` is the sweep's own. Another key is set in every grid that has it, or in all where none has. `text.layer=2`
    sets one key of a text. `map=raf` keeps the grids that have that map, with it alone, since the other keys of a grid
    are those of its maps; where none has it, it is set in all.
    """
    for one in overrides:
        key, equals, text = one.partition("=")
        key = key.strip()
        if not equals or not key:
            raise InputError(f"`override` (={shown(one)}) must be key=value, for example n=[10, 20]")
        sweep = _with_value(sweep, key, _read_yaml(text, f"override {shown(one)}"), one)
    return sweep


def _with_value(sweep: Sweep, key: str, value: Any, override: str) -> Sweep:
    if key == "name":
        return Sweep.parse({**sweep.model_dump(), "name": value})
    key, _, part = key.partition(".")
    _within(f"override {shown(override)}", require_choice, "key", key, ["name", *sweep.cell_type.model_fields])
    grids = [{**sweep.common, **grid} for grid in sweep.grids]
    if key == "map" and (kept := _with_maps(grids, _axis(value))):
        return sweep.model_copy(update={"common": {}, "grids": tuple(kept)})
    having = [grid for grid in grids if key in grid] or grids
    for grid in having:
        held = [spelled_out(one) for one in _axis(grid.get(key))]
        if part and not all(isinstance(one, dict) for one in held):
            raise InputError(f"override {shown(override)}: `{key}` (={shown(held)}) has no parts; set it as a whole")
        grid[key] = [{**one, part: value} for one in held] if part else value
    return sweep.model_copy(update={"common": {}, "grids": tuple(grids)})


def _with_maps(grids: Sequence[Mapping[str, Any]], maps: Sequence[Any]) -> list[dict[str, Any]]:
    """The grids that have some of the maps, with those alone; none unless each map is in one of them."""
    owned = [[one for one in _axis(grid.get("map")) if one in maps] for grid in grids]
    if {str(one) for own in owned for one in own} != {str(one) for one in maps}:
        return []
    return [{**grid, "map": own} for grid, own in zip(grids, owned, strict=True) if own]


def spelled_out(value: Any) -> Any:
    """A bare kind of text (`gaussian`) as the mapping it stands for; anything else as it is."""
    return {"kind": value} if isinstance(value, str) else value


def _read_yaml(text: str, where: str) -> Any:
    """Plain data. Aliases are refused: a short text could stand for more data than memory holds."""
    depth = 0
    try:
        for event in yaml.parse(text, Loader=yaml.SafeLoader):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if isinstance(event, yaml.AliasEvent):
                raise InputError(f"{where}: aliases (*name) are not read; write the value out, or use `common`")
            if depth > _DEEPEST:
                raise InputError(f"{where}: nested too deeply")
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or str(error)
        raise InputError(f"{where}{line}: not valid YAML: {' '.join(str(problem).split())}") from error
    except ValueError as error:  # a date or a number that is none
        raise InputError(f"{where}: {' '.join(str(error).split())}; put strings into quotes") from error


def _within(where: str, check: Any, *arguments: Any) -> None:
    """The check, whose error names the place."""
    try:
        check(*arguments)
    except InputError as error:
        raise InputError(f"{where}: {error}") from error


def _require_plain(key: str, value: Any) -> None:
    """Refuse what no record can hold: whole numbers of more than 64 bits, halves of surrogate pairs."""
    if isinstance(value, int) and not _LEAST <= value <= _MOST:
        raise InputError(f"`{key}` (={shown(value)}) must be a whole number of 64 bits, up to {_MOST:,}")
    if isinstance(value, str):
        require_characters(f"`{key}`", value)
    elif isinstance(value, list | tuple):
        for one in value:
            _require_plain(key, one)


def _one_line(error: ValidationError) -> str:
    """The first mistake in one line."""
    first = error.errors()[0]
    key = ".".join(str(part) for part in first["loc"])
    own = first.get("ctx", {}).get("error")
    if isinstance(own, InputError):
        return f"{key}: {own}" if key else str(own)
    if first["type"] == "missing":
        return f"`{key}` is missing; give it a value"
    rule = first["msg"].removeprefix("Input ").replace("should be", "must be")
    return f"`{key}` (={shown(first['input'])}) {rule[0].lower()}{rule[1:]}"
