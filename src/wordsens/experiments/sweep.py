"""A sweep: grids of cells, as they are written in YAML."""

import itertools
from pathlib import Path
from typing import Annotated, Any, ClassVar

import yaml
from pydantic import Field

from wordsens.errors import InputError, require_choice
from wordsens.experiments.spec import SensitivityCell
from wordsens.experiments.strict_model import StrictModel


class SensitivitySweep(StrictModel):
    """Grids of cells. In a grid a key with a list is an axis: every combination of the axes is a cell.

    Attributes:
        name: what the sweep is called.
        common: keys of every cell, unless its grid says otherwise.
        grids: for each grid, the keys of a cell (`cell_kind`) with a value or a list of values.

    >>> sweep = SensitivitySweep.parse(
    ...     {"name": "two", "common": {"d": 8, "text": "gaussian"}, "grids": [{"map": "rf", "n": [4, 6]}]}
    ... )
    >>> [cell.n for cell in sweep.cells()]
    [4, 6]
    """

    cell_kind: ClassVar[type[Any]] = SensitivityCell

    name: Annotated[str, Field(min_length=1)]
    common: dict[str, Any] = Field(default_factory=dict)
    grids: Annotated[tuple[dict[str, Any], ...], Field(min_length=1, strict=False)]

    def cells(self) -> list[Any]:
        """The cells, equal ones once; draw after draw, so that an interrupted run has measured every point.

        Raises:
            InputError: for an unknown key, an empty axis, or a cell that is not valid: the place, the key, the rule.
        """
        cells: dict[Any, None] = {}
        for index, grid in enumerate(self.grids):
            where = f"{self.name}: grids.{index}"
            keys = {**self.common, **grid}
            for key in keys:
                require_choice(f"{where}.key", key, self.cell_kind.model_fields)
            axes = [self._axis(where, key, value) for key, value in keys.items()]
            for values in itertools.product(*axes):
                cell = self.cell_kind.parse(dict(zip(keys, values, strict=True)), where=where)
                cells[cell] = None
        return sorted(cells, key=lambda cell: cell.draw)

    @staticmethod
    def _axis(where: str, key: str, value: Any) -> list[Any]:
        if isinstance(value, list | tuple) and not value:
            raise InputError(f"{where}: `{key}` is an empty list; give it at least one value")
        return list(value) if isinstance(value, list | tuple) else [value]

    def to_yaml(self) -> str:
        """The sweep as YAML, which `from_yaml` reads back."""
        return yaml.safe_dump(
            self.model_dump(mode="json"), sort_keys=False, allow_unicode=True, default_flow_style=None, width=100
        )

    @classmethod
    def from_yaml(cls, text: str, *, where: str = "") -> "SensitivitySweep":
        """The sweep that the YAML text describes; InputError where it describes none."""
        try:
            data = yaml.safe_load(text)
        except yaml.YAMLError as error:
            raise InputError(f"{where}: not valid YAML: {' '.join(str(error).split())}") from error
        if not isinstance(data, dict):
            raise InputError(f"{where}: a sweep is a mapping with the keys name, common and grids")
        return cls.parse(data, where=where)

    @classmethod
    def load(cls, path: str | Path) -> "SensitivitySweep":
        """The sweep in a YAML file."""
        try:
            text = Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"`path` (={str(path)!r}) cannot be read as a text file: {error}") from error
        return cls.from_yaml(text, where=str(path))

    def save(self, path: str | Path) -> None:
        """Write the sweep as YAML."""
        Path(path).write_text(self.to_yaml(), encoding="utf-8")
