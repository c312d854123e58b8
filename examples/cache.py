"""A semantic cache whose threshold is calibrated on pairs of your own, with the guard behind it.

>>> from wordsens.models import as_model
>>> cache = SemanticCache(as_model("minilm").encode, str(PAIRS), budget=0.05)
>>> cache.put("How do I enable two-factor login?", "Settings, Security, On.")
>>> cache.get("how can I enable 2-factor login")
'Settings, Security, On.'
>>> print(cache.get("How do I disable two-factor login?"))
None

"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import wordsens as ws

PAIRS = Path(__file__).with_name("pairs.csv")


class SemanticCache:
    """Answers questions that mean the same; of pairs like the opposites in `pairs` at most a share
    `budget` hits."""

    def __init__(self, encode: Callable[[list[str]], Any], pairs: str, budget: float):
        self.encode = encode
        self.threshold = (
            ws.calibrate(encode, pairs, budget=budget).point_at(budget, guard=True).threshold
        )
        if self.threshold is None:
            raise ValueError(
                f"no threshold keeps {budget:.1%} of false hits: allow more, or take another model"
            )
        self.entries: list[tuple[str, Any, str]] = []

    def put(self, question: str, answer: str) -> None:
        self.entries.append((question, self._vector(question), answer))

    def get(self, question: str) -> str | None:
        vector = self._vector(question)
        for stored, other, answer in sorted(
            self.entries, key=lambda entry: -float(entry[1] @ vector)
        ):
            if float(other @ vector) < self.threshold:
                return None
            if ws.guard(stored, question).verdict != "different":
                return answer
        return None

    def _vector(self, text: str) -> Any:
        (vector,) = self.encode([text])
        return vector / (vector @ vector) ** 0.5
