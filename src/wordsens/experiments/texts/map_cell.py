"""The keys of a cell that searches texts for perturbations under a map, and what follows from them."""

from typing import Annotated, Any, ClassVar, Literal

import torch
from pydantic import Field, field_validator, model_validator

from wordsens.errors import require_choice
from wordsens.experiments.grid.cell_keys import CPU, Device
from wordsens.experiments.grid.map_keys import MapKeys
from wordsens.experiments.texts.documents import fingerprint
from wordsens.experiments.texts.source import (
    Embedded,
    GivenText,
    TextSource,
    require_own_rows,
    spelled_out,
    text_identity,
)
from wordsens.maps.registry import build_map
from wordsens.search.plan import EFFORTS, SearchPlan
from wordsens.seeds import derive_seed


class MapCell(MapKeys):
    """One map, texts of one source and size, one search. A kind of cell adds its keys.

    Attributes:
        map, n, d, depth, width, ...: see MapKeys.
        text: where texts come from.
        draw: 0, 1, ...: other texts and other weights.
        seed: of the whole experiment; of a given text, the seed of the map and of the search itself.
        radius: of the ball; None for the map's default, sqrt(d) but for a transformer.
        search: what the search spends: quick, normal or thorough.
        starts, steps, generations: of the search; None for what suits the map.
        dtype: of the whole computation.
        device: where it is computed: cpu, cuda, ... Its kind belongs to the identity, its number does not.
    """

    COUNTS: ClassVar[tuple[str, ...]] = ("starts", "steps", "generations")
    """Keys that say what the search spends in place of `search`."""

    text: Annotated[TextSource, Field(discriminator="kind")]
    draw: Annotated[int, Field(ge=0)] = 0
    seed: int = 0
    radius: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    search: str = EFFORTS[1]
    starts: Annotated[int, Field(ge=1)] | None = None
    steps: Annotated[int, Field(ge=0)] | None = None
    generations: Annotated[int, Field(ge=0)] | None = None
    dtype: Literal["float64", "float32"] = "float64"
    device: Device = CPU

    _text = field_validator("text", mode="before")(spelled_out)

    @field_validator("search")
    @classmethod
    def _known_effort(cls, name: str) -> str:
        return require_choice("search", name, EFFORTS)

    @model_validator(mode="after")
    def _rows_fit_the_map(self) -> "MapCell":
        if self.reads_texts_itself:
            require_own_rows(self.text)
        return self

    @property
    def search_plan(self) -> SearchPlan:
        """The plan that the cell asks for."""
        return SearchPlan(self.search, **{name: getattr(self, name) for name in self.COUNTS})

    def seed_of(self, purpose: str) -> int:
        """A seed of its own for a purpose: cells that differ in no text, size, draw or seed share it."""
        if isinstance(self.text, GivenText):
            return self.seed
        return derive_seed(self.seed, purpose, self.text.kind, self.n, self.d, self.draw)

    def build(self) -> Any:
        """The map."""
        dtype, seed = getattr(torch, self.dtype), self.seed_of("map")
        return build_map(self.map, self.n, self.d, options=self.map_options, seed=seed, dtype=dtype, device=self.device)

    def described(self) -> dict[str, Any]:
        """The columns of a MapRecord that the cell alone decides, besides those of its spec."""
        source = self.text if isinstance(self.text, Embedded) and not self.reads_texts_itself else None
        return {
            **{name: getattr(self, name) for name in ("n", "d", "seed", "draw", "dtype")},
            "map": self.recorded_map,
            "text": self.text.kind,
            "encoder": None if source is None else source.encoder,
            "layer": None if source is None else source.layer,
        }

    def identity_keys(self) -> dict[str, Any]:
        """The keys that can change the result: the options of this map alone, a dataset's content for its path."""
        keys = self.map_identity(super().identity_keys())
        if self.search == EFFORTS[1]:
            del keys["search"]  # cells were named before there was a choice
        content = self.content_of(self.text) if isinstance(self.text, Embedded) else None
        return {**keys, "text": text_identity(keys["text"], content, own_rows=self.reads_texts_itself)}

    def content_of(self, source: Embedded) -> str:
        """The digest of what the cell reads of a real source."""
        return fingerprint(source)
