"""A measurement as a visitor sets it: checked, in a link, and as the command that gives the same
numbers."""

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ValidationError, ValidationInfo, field_validator

from wordsens.errors import require_choice
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

    @field_validator(*CHOICES)
    @classmethod
    def _offered(cls, value: str, info: ValidationInfo) -> str:
        name = str(info.field_name)
        return require_choice(name, value, CHOICES[name])

    @classmethod
    def of(
        cls, values: Mapping[str, Any], default: "MeasureRequest", models: Sequence[str]
    ) -> tuple["MeasureRequest", list[str]]:
        """The request with these values, and the names of those that the page does not offer, which
        keep their defaults.

        >>> values = {"map": "rf", "search": "all", "layer": "2"}
        >>> request, wrong = MeasureRequest.of(values, MeasureRequest(), ["minilm"])
        >>> request.layer, wrong
        (2, ['search'])
        """
        wrong = []
        try:
            cls.model_validate(values)
        except ValidationError as error:
            wrong = [str(each["loc"][0]) for each in error.errors()]
        if values.get("model", default.model) not in models:
            wrong.append("model")
        offered = {name: value for name, value in values.items() if name not in wrong}
        return cls.model_validate(default.model_dump() | offered), wrong

    @property
    def maps(self) -> tuple[str, ...]:
        """The maps to measure: attention, then a fully connected layer, for "both"."""
        return ("raf", "rf") if self.map == BOTH else (self.map,)

    @property
    def title(self) -> str:
        """The map in a few words.

        >>> MeasureRequest(map="drf").title
        '4 fully connected layers (DRF, L = 4)'
        """
        if self.map == MODEL:
            layer = "last layer" if self.layer == -1 else f"layer {self.layer}"
            return f"{self.model}, {layer}" + (f", {self.pool} pooling" if self.pool else "")
        name = CHOICES["map"][self.map].removeprefix("a ")
        return f"{name[0].upper()}{name[1:]}"

    def command(self, name: str) -> str:
        """The command that gives the same numbers of a map."""
        words = ["wordsens", "measure", self.text, "--map", name, "--search", self.search]
        if name == MODEL:
            words += ["--model", self.model, "--layer", str(self.layer)]
            words += ["--pool", self.pool] if self.pool else []
        return shlex.join(words)

    def query(self) -> dict[str, str]:
        """The settings that differ from the defaults, for a link, without the text."""
        settings = self.model_dump(exclude_defaults=True, exclude={"text"})
        return {name: str(value) for name, value in settings.items()}
