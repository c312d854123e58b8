"""Sweeps: grids of cells of one study, from YAML files, presets and overrides."""

import itertools
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

from wordsens.errors import InputError, MissingExtraError, require_choice, shown
from wordsens.files import named_path, small_text
from wordsens.sweeps import SCALES, STUDIES
from wordsens.sweeps.spec import Cell, Strict, spelled_out
from wordsens.sweeps.store import write_whole
from wordsens.sweeps.study import Study, Summary

try:
    import yaml
    from pydantic import Field, field_validator
except ModuleNotFoundError as error:
    raise MissingExtraError("pydantic or pyyaml", "records", "a sweep") from error

if TYPE_CHECKING:
    from pandas import DataFrame

# Of a sweep: each is checked before anything runs, in some 25 µs and 1.5 kB.
MOST_CELLS = 200_000

_OF_YAML_1_1 = ("int", "float", "timestamp")


def study_named(name: str) -> Study:
    """The study of that name, or one's own as `module:NAME`.

    >>> study_named("several-words").Cell.__name__
    'SeveralWordsCell'
    """
    from wordsens.models.function import load_named

    if ":" not in name:
        name = STUDIES[require_choice("experiment", name, STUDIES)][0]
    study = load_named(name, "experiment")
    if not isinstance(study, Study):
        raise InputError(
            f"`experiment` (={name!r}) must name a Study, not a {type(study).__name__}"
        )
    return study


class Sweep(Strict, frozen=True):
    """Grids of cells of one study. In a grid a list is an axis: every combination of the axes
    is a cell.

    Attributes:
        name: what the sweep is called; its folder, by default.
        experiment: sensitivity, generalization, ...
        common: keys of every grid that does not set them itself.
        grids: for each, the keys of a cell, with a value or a list of values.

    >>> sweep = Sweep.parse({"name": "two", "grids": [{"map": "raf", "text": "gaussian", "n": [4, 6], "d": 8}]})
    >>> [cell.n for cell in sweep.cells()]
    [4, 6]
    """  # noqa: E501

    name: Annotated[str, Field(min_length=1)]
    experiment: str = "sensitivity"
    common: dict[str, Any] = Field(default_factory=dict)
    grids: Annotated[tuple[dict[str, Any], ...], Field(min_length=1, max_length=1000, strict=False)]

    @field_validator("common", "grids", mode="before")
    @classmethod
    def _of_python(cls, values: Any) -> Any:
        return _python_values(values)

    @field_validator("name")
    @classmethod
    def _names_a_folder(cls, name: str) -> str:
        if not name.strip(". ") or any(one in "/\\" or not one.isprintable() for one in name):
            raise InputError(
                f"`name` (={name!r}) becomes a folder: it needs a letter, and no slash or control "
                "character"
            )
        return name

    @field_validator("experiment")
    @classmethod
    def _known_experiment(cls, name: str) -> str:
        return study_named(name).name

    def cells(self) -> list[Any]:
        """The cells, equal ones once, draw after draw: an interrupted run has then measured every
        point.

        Raises:
            InputError: an unknown key, an empty axis, a cell that is not valid, or more than
                MOST_CELLS cells.
        """
        grids = [{**self.common, **grid} for grid in self.grids]
        count = sum(math.prod(len(_axis(value)) for value in grid.values()) for grid in grids)
        if count > MOST_CELLS:
            many = f"{count:,}" if count < 10**30 else "more than 10^30"
            raise InputError(
                f"{self.name}: {many} cells, at most {MOST_CELLS:,}; take fewer values per axis"
            )
        cells = [cell for number, grid in enumerate(grids) for cell in self._cells(number, grid)]
        return sorted(dict.fromkeys(cells), key=lambda cell: getattr(cell, "draw", 0))

    def _cells(self, number: int, grid: Mapping[str, Any]) -> Iterator[Cell]:
        where, kind = f"{self.name}, grid {number}", study_named(self.experiment).Cell
        for key, value in grid.items():
            if value == []:
                raise InputError(f"{where}: `{key}` is an empty list; give it at least one value")
        for values in itertools.product(*map(_axis, grid.values())):
            yield kind.parse(dict(zip(grid, values, strict=True)), where=where)

    def to_yaml(self) -> str:
        """The sweep as YAML, which `load_sweep` reads back."""
        return yaml.dump(
            self.model_dump(mode="json"),
            Dumper=_Dumper,
            allow_unicode=True,
            sort_keys=False,
            default_flow_style=None,
            width=100,
        )

    def save(self, folder: Path) -> None:
        """Write the sweep to EXPERIMENT.yaml in the folder."""
        write_whole(folder / f"{self.experiment.replace(':', '-')}.yaml", self.to_yaml().encode())


def _python_values(value: Any) -> Any:
    """Python's own numbers and lists for those of NumPy and torch, and for ranges."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, dict):
        return {key: _python_values(one) for key, one in value.items()}
    return [*map(_python_values, value)] if isinstance(value, list | tuple | range) else value


def _axis(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else [value]


def load_sweep(path: str | Path, overrides: Iterable[str] = ()) -> Sweep:
    """The sweep in a YAML file, with overrides `key=value` applied in order.

    Raises:
        InputError: the file cannot be read, or describes no sweep: one line.
    """
    text = small_text(named_path("spec", path, home=False), "spec")
    return parse_sweep(text, overrides, where=str(path))


def parse_sweep(text: str, overrides: Iterable[str] = (), *, where: str = "the sweep") -> Sweep:
    """The sweep that a YAML text describes; see `load_sweep`.

    >>> text = "name: a\\ngrids: [{map: rf, text: gaussian, n: 4, d: 8}]"
    >>> [cell.n for cell in parse_sweep(text, ["n=[5, 6]"]).cells()]
    [5, 6]
    """
    data = _read_yaml(text, where)
    if not isinstance(data, dict):
        raise InputError(
            f"{where}: a sweep is a mapping with the keys {', '.join(Sweep.model_fields)}"
        )
    return overridden(Sweep.parse(data, where=where), overrides)


def overridden(sweep: Sweep, overrides: Iterable[str]) -> Sweep:
    """The sweep with `key=value` applied in order; the value is YAML, and a list is an axis.

    `name` is the sweep's own. Another key is set in every grid that has it, or in all where none
    has. `text.layer=2` sets one key of a text. `map=raf` keeps the grids that have that map, with
    it alone, since the other keys of a grid are those of its maps; where none has it, it is set in
    all.
    """
    for override in overrides:
        key, equals, text = override.partition("=")
        if not equals:
            raise InputError(
                f"`override` (={shown(override)}) must be key=value, for example n=[10, 20]"
            )
        key, value = key.strip(), _read_yaml(text, f"override {shown(override)}")
        changes = (
            {"name": value}
            if key == "name"
            else {"common": {}, "grids": _with_value(sweep, key, value)}
        )
        sweep = Sweep.parse({**sweep.model_dump(), **changes})
    return sweep


def _with_value(sweep: Sweep, key: str, value: Any) -> list[dict[str, Any]]:
    key, _, part = key.partition(".")
    require_choice("override", key, ["name", *study_named(sweep.experiment).Cell.model_fields])
    grids = [{**sweep.common, **grid} for grid in sweep.grids]
    if key == "map" and (with_maps := _with_maps(grids, _axis(value))):
        return with_maps
    for grid in [grid for grid in grids if key in grid] or grids:
        wholes = [spelled_out(whole) for whole in _axis(grid.get(key))]
        if part and not all(isinstance(whole, dict) for whole in wholes):
            raise InputError(f"`{key}` (={shown(wholes)}) has no part {part}; set it as a whole")
        grid[key] = [{**whole, part: value} for whole in wholes] if part else value
    return grids


def _with_maps(grids: Sequence[Mapping[str, Any]], maps: Sequence[Any]) -> list[dict[str, Any]]:
    """The grids that have some of the maps, with those alone; none unless each map is in one of
    them."""
    chosen = [[name for name in _axis(grid.get("map")) if name in maps] for grid in grids]
    if {str(name) for names in chosen for name in names} != {str(name) for name in maps}:
        return []
    return [{**grid, "map": names} for grid, names in zip(grids, chosen, strict=True) if names]


class _Loader(yaml.SafeLoader):
    """Plain data. Refuses a key that is given twice, and aliases: a short text could stand for more
    data than memory holds. Numbers are those of YAML 1.2 and JSON: 1e-5 is one; 010, 1_0 and 1:20,
    which YAML 1.1 reads as 8, 10 and 80, are texts, so that a number is asked for. Dates are
    texts."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            self._refuse("aliases (*name) are not read; write the value out", self.peek_event())
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key, _ in node.value:
            if str(key.value) in seen:
                self._refuse(f"the key {key.value!r} is given twice; keep one of them", key)
            seen.add(str(key.value))
        return super().construct_mapping(node, deep)

    def _refuse(self, problem: str, place: Any) -> NoReturn:
        raise yaml.MarkedYAMLError(problem=problem, problem_mark=place.start_mark)


_Loader.yaml_implicit_resolvers = {
    first: [each for each in resolvers if each[0].rpartition(":")[2] not in _OF_YAML_1_1]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:int", re.compile(r"[-+]?(0|[1-9][0-9]*)$"), list("-+0123456789")
)
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(
        r"[-+]?(([0-9]+\.[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?|[0-9]+[eE][-+]?[0-9]+"
        r"|\.(inf|Inf|INF))$|\.(nan|NaN|NAN)$"
    ),
    list("-+.0123456789"),
)


class _Dumper(yaml.SafeDumper):
    yaml_implicit_resolvers = _Loader.yaml_implicit_resolvers


def _read_yaml(text: str, where: str) -> Any:
    try:
        return yaml.load(text, Loader=_Loader)
    except Exception as error:  # of YAML; nested too deeply; a value that its !!tag does not allow
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark else ""
        problem = " ".join(str(getattr(error, "problem", None) or error).split())
        raise InputError(f"{where}{line}: not valid YAML: {problem}") from error


def paper_sweep(
    name: str,
    scale: str,
    source: Any = None,
    *,
    seed: int = 0,
    labels: str | None = None,
    search: str | None = None,
    **choices: Any,
) -> tuple[Sweep, list[str]]:
    """An experiment as the paper has it, and notices.

    Args:
        name: of the experiment.
        scale: quick, laptop or full.
        source: of real texts; None for the shipped reviews.
        seed: of every draw.
        labels: what experiments that learn learn; None for the texts' own.
        search: "quick", "normal" or "thorough" in place of the scale's own starts and steps.
        choices: what this experiment's preset takes besides.
    """
    from wordsens.sweeps.texts import ShippedText

    study = study_named(name)
    if study.preset is None:
        raise InputError(f"`experiment` (={name!r}) has no preset; give a sweep of your own")
    require_choice("scale", scale, SCALES)
    grids, notices = study.preset(scale, source or ShippedText(), seed, labels, **choices)
    if search is not None:
        counts = getattr(study.Cell, "COUNTS", ())
        plain = [{key: grid[key] for key in grid if key not in counts} for grid in grids]
        grids = [{**grid, "search": search} for grid in plain]
    common = {"seed": seed} if "seed" in study.Cell.model_fields else {}
    data = {"name": f"paper-{name}-{scale}", "experiment": name, "common": common, "grids": grids}
    return Sweep.parse(data), list(dict.fromkeys(notices))


def summarize(records: "DataFrame") -> Summary:
    """What the records of one study say: its tables and findings.

    Args:
        records: of `read_records`, or some of its rows; failed ones are left out.

    Raises:
        InputError: no record is finished, they are of several studies, or of one without a
            summary.

    >>> summarize(ws.read_records("out")).findings  # doctest: +SKIP
    """
    study, done = finished_of_one(records)
    return study.summary(done)


def finished_of_one(records: "DataFrame") -> "tuple[Study, DataFrame]":
    """The study whose records these are, and the finished ones.

    Raises:
        InputError: none is finished, they are of several studies, or columns are missing.
    """
    if missing := {"cell", "experiment", "status", "spec"} - set(getattr(records, "columns", ())):
        raise InputError(
            f"`records` has no column {', '.join(sorted(missing))}; give rows of read_records, "
            "with all columns"
        )
    done = records.loc[records["status"] == "done"].reset_index(drop=True)
    names = list(dict.fromkeys(done["experiment"]))
    if len(names) != 1:
        raise InputError(
            "`records` must be finished ones of one experiment, and are of "
            f"{', '.join(names) or 'none'}"
        )
    return study_named(names[0]), done
