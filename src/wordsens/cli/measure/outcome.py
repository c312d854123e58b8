"""The findings of `wordsens measure`: results, with theory and real words beside them."""

from dataclasses import dataclass
from typing import Any

from wordsens.sensitivity.result import Sensitivity
from wordsens.text.matrix import TextMatrix
from wordsens.theory import Condition, Prediction


@dataclass(frozen=True)
class RealSwaps:
    """For each searched word, the relative change by the best real word found in its place, and that word."""

    values: tuple[float, ...]
    names: tuple[str, ...]


@dataclass(frozen=True)
class Comparison:
    """Theory and real words to compare a measurement with.

    Attributes:
        predicted: of S, where there is a prediction.
        conditions: of the theorem about the map.
        small_radius: the limit of S / radius as the radius shrinks, a number a searched word; None unless asked for.
        swaps: the best real word in the place of each searched word; None unless asked for.
    """

    predicted: Prediction | None
    conditions: tuple[Condition, ...]
    small_radius: tuple[float, ...] | None = None
    swaps: RealSwaps | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain Python values: a part of an entry of `results`."""
        return {
            "predicted": None if self.predicted is None else self.predicted.value,
            "predicted_of": None if self.predicted is None else self.predicted.of,
            "predicted_in_range": None if self.predicted is None else self.predicted.in_range,
            "conditions": [str(condition) for condition in self.conditions],
            "small_radius": None if self.small_radius is None else list(self.small_radius),
            "swap": None if self.swaps is None else list(self.swaps.values),
            "swapped_for": None if self.swaps is None else list(self.swaps.names),
        }


@dataclass(frozen=True)
class Measured:
    """One text with what every map gave on it."""

    text: TextMatrix
    results: tuple[Sensitivity, ...]
    seconds: tuple[float, ...]
    comparisons: tuple[Comparison, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain Python values: one entry of `texts` in the JSON document."""
        return {
            "source": self.text.source,
            "label": self.text.label,
            "n": len(self.text),
            "d": self.text.rows.shape[1],
            "tokens": list(self.text.tokens or ()),
            "results": [
                {**result.to_dict(), **comparison.to_dict(), "seconds": seconds}
                for result, seconds, comparison in zip(self.results, self.seconds, self.comparisons, strict=True)
            ],
        }
