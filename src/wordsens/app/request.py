"""A measurement as a visitor sets it: checked, in a link, and as the command that gives the same
numbers."""

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ValidationError, ValidationInfo, field_validator

from wordsens.errors import InputError, require_choice
from wordsens.maps.registry import MAPS, MODEL, plain_name

BOTH = "both"

# What the page offers, by setting, each with its name there.
CHOICES = {
    "map": {
        BOTH: "attention and a fully connected layer",
        **{name: plain_name(name) for name in ("raf", "relu-raf", "rf")},
        "drf": plain_name("drf4"),
        MODEL: MAPS[MODEL].plain,
    },
    "pool": {
        "": "every word’s output",
        "own": "the model’s one vector",
        "mean": "mean",
        "cls": "first token",
        "max": "max",
    },
    "search": {
        "quick": "quick",
        "normal": "normal: several times slower",
        "thorough": "thorough",
    },
}

# Texts that the page offers, all our own; the first is measured beforehand.
EXAMPLES = {
    "A negation": "The second key does not open the door to the archive.",
    "A short review": "I did not love this film, but I would watch it again for her voice.",
    "Forty words": (
        "When the lights went out in the old theatre nobody moved, because everyone believed the "
        "silence was part of the play, and only when the actor laughed did we understand that he "
        "had simply forgotten how the story was supposed to end."
    ),
    "A notice": (
        "Guests may keep small dogs in the garden rooms, unless the house is full, and must tell "
        "the desk before nine in the evening."
    ),
    "Right to left": "הסרט לא היה רע, אבל הסוף היה ארוך מדי.",
}

# Pairs that the page offers, all our own; the first is compared beforehand.
PAIRS = {
    "On and off": ("How do I turn on two-step login?", "How do I turn off two-step login?"),
    "A negation": ("The lift is not working today.", "The lift is working today."),
    "Cancel or keep": ("How do I cancel my subscription?", "How do I keep my subscription?"),
    "The paper’s figure 1": ("I love her much", "I love her smile"),
    "The same, in other words": ("Please send 2 GB by 5 pm.", "please send two gigabytes by 17:00"),
}


class MeasureRequest(BaseModel, frozen=True):
    """The settings of a measurement.

    Attributes:
        text: the words.
        map, search, pool: one of CHOICES; pool "" for all rows.
        model: its name, for the map "model".
        layer: of the model.
    """

    text: str = ""
    map: str = BOTH
    model: str = "minilm"
    layer: int = -1
    pool: str = ""
    search: str = "quick"

    @field_validator(*CHOICES, "model")
    @classmethod
    def _offered(cls, value: str, info: ValidationInfo) -> str:
        name = str(info.field_name)
        offered = CHOICES.get(name, info.context)
        return value if offered is None else require_choice(name, value, offered)

    @classmethod
    def of(cls, values: Mapping[str, Any], models: Sequence[str]) -> "MeasureRequest":
        """The request with these values.

        Args:
            values: by name; what is missing has its default.
            models: the names that the page offers.

        Raises:
            InputError: the page does not offer one of the values.

        >>> MeasureRequest.of({"map": "rf", "layer": "2"}, ["minilm"]).layer
        2
        """
        try:
            return cls.model_validate(values, context=models)
        except ValidationError as error:
            name = error.errors()[0]["loc"][0]
            value = values[str(name)]
            raise InputError(f"The {name}, “{value}”, is not one that this page has.") from None

    @property
    def maps(self) -> tuple[str, ...]:
        """The maps to measure: attention, then a fully connected layer, for "both"."""
        return ("raf", "rf") if self.map == BOTH else (self.map,)

    def title(self, name: str) -> str:
        """One of the maps in a few words.

        >>> MeasureRequest().title("rf")
        'Fully connected layer (RF)'
        """
        if name == MODEL:
            layer = "last layer" if self.layer == -1 else f"layer {self.layer}"
            pooling = f", {self.pool} pooling" if self.pool else ""
            return f"{self.model}, {layer}{pooling}"
        words = CHOICES["map"][name].removeprefix("a ")
        return f"{words[0].upper()}{words[1:]}"

    def command(self, name: str) -> str:
        """The command that gives the same numbers of a map."""
        words = ["wordsens", "measure", self.text]
        words += ["--map", name, "--search", self.search]
        if name == MODEL:
            words += ["--model", self.model, "--layer", str(self.layer)]
            words += ["--pool", self.pool] if self.pool else []
        return shlex.join(words)

    def query(self) -> dict[str, str]:
        """The settings that differ from the defaults, for a link, without the text."""
        settings = self.model_dump(exclude_defaults=True, exclude={"text"})
        return {name: str(value) for name, value in settings.items()}
