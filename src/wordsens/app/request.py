"""A measurement as a visitor sets it: checked, in a link, and as the command that gives the
same."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from wordsens.errors import InputError, require_choice, require_count
from wordsens.maps.registry import MAPS as REGISTERED
from wordsens.maps.registry import MODEL, plain_name
from wordsens.search.plan import EFFORTS

BOTH = "both"
MAPS = {
    BOTH: "attention and a fully connected layer",
    **{name: plain_name(name) for name in ("raf", "relu-raf", "rf", "drf")},
    MODEL: REGISTERED[MODEL].plain,
}
"""The maps of the page, with their names there."""

POOLS = {
    "": "every word’s output",
    "own": "the model’s one vector",
    "mean": "mean",
    "cls": "first token",
    "max": "max",
}

LEAST_SHARE, MOST_SHARE = 0.05, 2.0

EXAMPLES = {
    "A negation": "The second key does not open the door to the archive.",
    "A short review": "I did not love this film, but I would watch it again for her voice.",
    "Forty words": (
        "When the lights went out in the old theatre nobody moved, because everyone believed the "
        "silence was part of "
        "the play, and only when the actor laughed did we understand that he had simply forgotten "
        "how the story was "
        "supposed to end."
    ),
    "A notice": (
        "Guests may keep small dogs in the garden rooms, unless the house is full, and must tell "
        "the desk before nine "
        "in the evening."
    ),
    "Right to left": "הסרט לא היה רע, אבל הסוף היה ארוך מדי.",
}
"""Texts that the page offers, all our own; the first is measured beforehand."""

PAIRS = {
    "On and off": ("How do I turn on two-step login?", "How do I turn off two-step login?"),
    "A negation": ("The lift is not working today.", "The lift is working today."),
    "Cancel or keep": ("How do I cancel my subscription?", "How do I keep my subscription?"),
    "The paper’s figure 1": ("I love her much", "I love her smile"),
    "The same, in other words": ("Please send 2 GB by 5 pm.", "please send two gigabytes by 17:00"),
}
"""Pairs that the page offers, all our own; the first is compared beforehand."""


@dataclass(frozen=True, kw_only=True)
class MeasureRequest:
    """The settings of a measurement.

    Attributes:
        text: the words.
        map: one of MAPS.
        model: its name, for the map "model".
        layer, pool: of the model; pool "" for all rows.
        depth: of drf.
        share: the radius over its default: sqrt(d), or of a model the word's own length.
        search: one of EFFORTS.
        seed: of the weights and the search.

    Raises:
        InputError: a value that the page does not offer.
    """

    text: str = ""
    map: str = BOTH
    model: str = "minilm"
    layer: int = -1
    pool: str = ""
    depth: int = 4
    share: float = 1.0
    search: str = "quick"
    seed: int = 0

    def __post_init__(self) -> None:
        require_choice("map", self.map, list(MAPS))
        require_choice("pool", self.pool, list(POOLS))
        require_choice("search", self.search, EFFORTS)
        require_count("seed", self.seed, least=0)
        if require_count("depth", self.depth) > 8:
            raise InputError(f"`depth` (={self.depth}) must be at most 8 on this page")
        if not LEAST_SHARE <= self.share <= MOST_SHARE:
            raise InputError(
                f"`share` (={self.share}) must lie between {LEAST_SHARE} and {MOST_SHARE}"
            )

    def require_allowed(self, models: Sequence[str], words: int) -> None:
        """InputError for a model that is not on the list, and for a text that is empty or too
        long."""
        require_choice("model", self.model, models)
        count = len(self.text.split())
        if count == 0:
            raise InputError(
                "There is no text yet. Type a sentence of two words or more, or pick an example."
            )
        if count > words:
            raise InputError(
                f"This text has {count:,} words, and this page takes {words:,}. Shorten it; the "
                "wordsens command "
                "takes longer texts."
            )

    @property
    def single(self) -> tuple["MeasureRequest", ...]:
        """A request for each map: attention, then a fully connected layer, for "both"."""
        return (
            tuple(replace(self, map=name) for name in ("raf", "rf"))
            if self.map == BOTH
            else (self,)
        )

    @property
    def map_options(self) -> dict[str, Any]:
        """Options of the maps."""
        return {
            "depth": self.depth,
            "model": self.model,
            "model_layer": self.layer,
            "pool": self.pool or None,
        }

    @property
    def name(self) -> str:
        """The map in a few words.

        >>> MeasureRequest(map="drf").name
        '4 fully connected layers (DRF, L = 4)'
        """
        if self.map == MODEL:
            layer = "last layer" if self.layer == -1 else f"layer {self.layer}"
            return f"{self.model}, {layer}" + (f", {self.pool} pooling" if self.pool else "")
        recorded = f"drf{self.depth}" if self.map == "drf" else self.map
        title = plain_name(recorded).removeprefix("a ")
        return f"{title[0].upper()}{title[1:]}"

    def command(self, radius: float | None) -> str:
        """The command that gives the same numbers; `radius` None for the default."""
        words = ["wordsens", "measure", self.text, "--map", self.map, "--search", self.search]
        words += ["--seed", str(self.seed)] if self.seed else []
        words += ["--depth", str(self.depth)] if self.map == "drf" else []
        if self.map == MODEL:
            words += ["--model", self.model, "--layer", str(self.layer)]
            words += ["--pool", self.pool] if self.pool else []
        return shlex.join(words + ([] if radius is None else ["--radius", repr(radius)]))

    def query(self) -> dict[str, str]:
        """The settings that differ from the defaults, for a link, without the text."""
        default, names = (
            MeasureRequest(),
            [field.name for field in fields(self) if field.name != "text"],
        )
        return {
            name: str(getattr(self, name))
            for name in names
            if getattr(self, name) != getattr(default, name)
        }

    @classmethod
    def of_query(cls, query: Mapping[str, str], default: "MeasureRequest") -> "MeasureRequest":
        """The request that a link holds; what is wrong in it is left out.

        >>> MeasureRequest.of_query({"map": "rf", "share": "much", "layer": "2"}, MeasureRequest()).layer
        2
        """  # noqa: E501
        request = default
        for one in fields(cls):
            if one.name not in query:
                continue
            kind: Any = type(getattr(default, one.name))
            try:
                request = replace(request, **{one.name: kind(query[one.name])})
            except ValueError:
                continue
        return request
