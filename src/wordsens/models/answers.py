"""A model's answer as rows of numbers, or one line that says what is wrong with it."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.errors import InputError, WordsensError, first_line, require_characters

_SHOWN = 40


class Answers:
    """Checks the answers of one model: one row a text, finite, not zero, and of the same length in every call.

    Args:
        name: of the model, for messages.
        error: raised for a bad answer.
    """

    def __init__(self, name: str, *, error: type[WordsensError] = InputError):
        self._name, self._error = name, error
        self._dimension: int | None = None

    def rows(self, texts: Sequence[str], answer: Any, *, zero: bool = False) -> Float[Tensor, "m d"]:
        """The answer to the texts as a float64 tensor on the CPU; a row of zeros will do only where `zero` says so.

        Raises:
            InputError: (or the error of this model) an answer that is no such array.
        """
        rows = self._array(answer)
        if rows.ndim != 2 or not rows.shape[-1]:
            raise self._wrong(f"gave an array of shape {tuple(rows.shape)} for {len(texts)} texts", "(texts, d)")
        if len(rows) != len(texts):
            raise self._wrong(f"gave {len(rows)} vectors for {len(texts)} texts", "one row a text")
        dimension = rows.shape[1]
        if self._dimension not in (None, dimension):
            raise self._wrong(
                f"gave vectors of {dimension} numbers, and of {self._dimension} before", "one dimension in every call"
            )
        self._dimension = dimension
        self._require_numbers(texts, rows, zero)
        return rows

    def scores(self, texts: Sequence[str], answer: Any) -> Float[Tensor, " m"]:
        """The answer as one number a text: an array of shape (m,) or (m, 1)."""
        rows = self._array(answer)
        if rows.ndim == 2 and rows.shape[1] > 1:
            raise self._wrong(f"gave {rows.shape[1]} scores a pair", "one score a pair")
        return self.rows(texts, rows.unsqueeze(1) if rows.ndim == 1 else rows, zero=True)[:, 0]

    def _require_numbers(self, texts: Sequence[str], rows: Tensor, zero: bool) -> None:
        finite = rows.isfinite().all(dim=1)
        if not finite.all():
            text = texts[int((~finite).nonzero()[0])]
            raise self._wrong(f"gave a number that is not finite for the text {_shown(text)}", "finite numbers")
        lost = (rows == 0).all(dim=1)
        if lost.any() and not zero:
            text = texts[int(lost.nonzero()[0])]
            raise self._error(
                f"{self._name} gave the zero vector for the text {_shown(text)}, which has no cosine with any other; "
                "leave the text out"
            )

    def _array(self, answer: Any) -> Tensor:
        try:
            if isinstance(answer, list | tuple) and answer and all(isinstance(row, Tensor) for row in answer):
                answer = torch.stack(list(answer))
            if isinstance(answer, Tensor):
                return answer.detach().to("cpu", torch.float64)
            return torch.from_numpy(np.array(answer, dtype=np.float64))
        except (TypeError, ValueError, RuntimeError) as error:
            raise self._wrong(
                f"gave a {type(answer).__name__} that is no array of numbers ({first_line(error)})", "(texts, d)"
            ) from error

    def _wrong(self, found: str, rule: str) -> WordsensError:
        return self._error(f"{self._name} {found}; its answer must be {rule}")


def require_texts(texts: Sequence[str]) -> list[str]:
    """The texts as a list; InputError for a single string, none at all, or what is not a string."""
    if isinstance(texts, str):
        raise InputError(f"`texts` (={_shown(texts)}) must be a list of texts; put it into a list")
    listed = list(texts)
    odd = [text for text in listed if not isinstance(text, str)]
    if odd or not listed:
        raise InputError(f"`texts` must be a list of strings, at least one; got {repr(odd[0]) if odd else 'none'}")
    for at, text in enumerate(listed):
        require_characters(f"text {at}", text)
    return listed


def _shown(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}...")
