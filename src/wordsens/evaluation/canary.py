"""Does the same model still stand behind a name or an endpoint? A few texts with their vectors, saved once."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from wordsens.errors import InputError
from wordsens.files import named_path, small_text, writing
from wordsens.models.black_box import STEADY, Model
from wordsens.models.load import as_model
from wordsens.text.shipped_data import meaning_pairs

TEXTS = 32

_FORMAT = 1
_MOST_BYTES = 50_000_000


@dataclass(frozen=True)
class Moved:
    """How far a model has moved from a canary.

    Attributes:
        model: its name now.
        dimensions: of its vectors, then and now.
        moved, moved_most: |now - then| / |then|, the mean and the largest over the texts; None where the dimensions
            differ.
        cosine: the least cosine of a text's vectors then and now; None where the dimensions differ.
        neighbours: of how many texts another of them is the nearest now.
        texts: how many there are.
    """

    model: str
    dimensions: tuple[int, int]
    moved: float | None
    moved_most: float | None
    cosine: float | None
    neighbours: int
    texts: int

    @property
    def same(self) -> bool:
        """True where no vector moved by more than 2 % of its length, which bfloat16 and batching may do."""
        return self.moved_most is not None and self.moved_most <= STEADY

    @property
    def answer(self) -> str:
        """The result in a sentence."""
        if self.moved_most is None:
            then, now = self.dimensions
            return f"Another model: {self.model} gives vectors of {now} numbers, and gave {then}."
        verdict = "The same model" if self.same else "Another model"
        return (
            f"{verdict}: the {self.texts} vectors of {self.model} moved by {self.moved:.2g} of their length, at most "
            f"{self.moved_most:.2g} (least cosine {self.cosine:.6f}); {self.neighbours} texts have another nearest one."
        )

    def to_dict(self) -> dict[str, Any]:
        """The figures, as the JSON document has them."""
        return {"same": self.same, "answer": self.answer, **asdict(self)}


@dataclass(frozen=True)
class Canary:
    """Texts and the vectors that a model gave them.

    Attributes:
        model: its name then.
        texts: usually 32.
        vectors: one a text, (texts, d).

    >>> letters = lambda texts: [[1 + text.count(letter) for letter in "abcdefgh"] for text in texts]
    >>> Canary.stamp(letters).compare(letters).same
    True
    """

    model: str
    texts: tuple[str, ...]
    vectors: Float[np.ndarray, "texts d"]

    @classmethod
    def stamp(cls, model: Any, texts: Sequence[str] | None = None) -> "Canary":
        """The canary of a model: of your texts, or of 32 of the package's own.

        Raises:
            InputError: the model cannot be loaded or gives no vectors.
        """
        read = as_model(model)
        chosen = tuple(_own_texts() if texts is None else texts)
        return cls(read.name, chosen, read.encode(chosen).numpy())

    def save(self, path: str | PathLike[str]) -> None:
        """Write texts and vectors to a JSON file, with eight digits a number."""
        place = Path(path).expanduser()
        document = {
            "format": _FORMAT,
            "model": self.model,
            "texts": self.texts,
            "vectors": [[float(f"{number:.8g}") for number in row] for row in self.vectors.tolist()],
        }
        with writing("canary", place):
            place.write_text(json.dumps(document, ensure_ascii=False) + "\n", encoding="utf-8")

    @classmethod
    def read(cls, path: str | PathLike[str]) -> "Canary":
        """The canary in the file.

        Raises:
            InputError: there is no such file, or it was not written by `save`.
        """
        place = named_path("canary", path)
        text = small_text(place, "canary", most=_MOST_BYTES)
        try:
            document = json.loads(text)
            if document["format"] != _FORMAT:
                raise ValueError(f"its format is {document['format']!r}, not {_FORMAT}")
            vectors = np.array(document["vectors"], dtype=np.float64)
            texts = tuple(str(text) for text in document["texts"])
            if vectors.ndim != 2 or len(vectors) != len(texts) or not np.isfinite(vectors).all() or not len(texts):
                raise ValueError("it must hold one vector of finite numbers for each text")
            return cls(str(document["model"]), texts, vectors)
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(
                f"`canary`: the file {str(place)!r} is no canary ({type(error).__name__}: {error}); write one with "
                "--canary FILE --write"
            ) from error

    def compare(self, model: Any) -> Moved:
        """How far the model's vectors of these texts are from the saved ones."""
        read: Model = as_model(model)
        now = read.encode(self.texts).numpy()
        changed = int((_nearest(now) != _nearest(self.vectors)).sum())
        dimensions = self.vectors.shape[1], now.shape[1]
        if dimensions[0] != dimensions[1]:
            return Moved(read.name, dimensions, None, None, None, changed, len(self.texts))
        lengths = np.linalg.norm(self.vectors, axis=1)
        moved = np.linalg.norm(now - self.vectors, axis=1) / lengths
        cosines = (now * self.vectors).sum(axis=1) / (lengths * np.linalg.norm(now, axis=1))
        least = min(float(cosines.min()), 1.0)
        return Moved(read.name, dimensions, float(moved.mean()), float(moved.max()), least, changed, len(self.texts))


def _own_texts() -> list[str]:
    """The first texts of 32 shipped pairs, spread over their kinds."""
    texts = list(dict.fromkeys(pair.first for pair in meaning_pairs()))
    return texts[:: len(texts) // TEXTS][:TEXTS]


def _nearest(vectors: Float[np.ndarray, "texts d"]) -> np.ndarray:
    """Of every text the most alike of the others."""
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = units @ units.T
    np.fill_diagonal(cosines, -np.inf)
    return cosines.argmax(axis=1)
