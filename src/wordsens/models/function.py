"""Functions as models: from a list of texts to an array of vectors, with every answer checked."""

import pkgutil
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.display.numbers import plural
from wordsens.errors import (
    InputError,
    WordsensError,
    argument,
    first_line,
    require_characters,
    running,
    shown,
)
from wordsens.models.model import PROBES, Model

# The largest change of a vector between two calls that counts as rounding, as a share of its
# length: it moves a cosine by up to 2e-4. bfloat16 keeps two to three digits, and hosted models
# answer with about that much noise.
STEADY = 0.02


class FunctionModel(Model):
    """A function from a list of m texts to an array (m, d), about which nothing else is known.

    Args:
        function: called with at most `batch_size` texts at a time.
        name: for tables and records.
        batch_size: texts per call.
        error: raised for a bad answer: InputError if the caller can correct the function.
        zero: whether a vector of zeros is allowed.
    """

    def __init__(
        self,
        function: Callable[[list[str]], Any],
        *,
        name: str,
        batch_size: int = 32,
        error: type[WordsensError] = InputError,
        zero: bool = False,
    ):
        self.name, self._function, self._batch_size = name, function, batch_size
        self._answers, self._error, self._zero = Answers(name, error=error), error, zero

    def encode(self, texts: Sequence[str]) -> Float[Tensor, "m d"]:
        return self._rows(texts, zero=self._zero)

    def require_steady(self) -> Float[Tensor, "1 d"]:
        """The vector of a sentence, which is encoded twice alone and once among others.

        Raises:
            InputError: (or the error of this model) the vectors differ by more than STEADY times
                their length.
        """
        # A model for another language may give an English sentence the zero vector.
        alone, again = (self._rows(PROBES[:1], zero=True) for _ in range(2))
        among = self._rows(PROBES[::-1], zero=True)[-1:]
        for other, when in ((again, "in a second call"), (among, "among other texts")):
            change = float((other - alone).norm() / alone.norm())  # NaN where both are zero
            if change > STEADY:
                raise self._error(
                    f"{self.name} gives different vectors for {PROBES[0]!r}: {when} it is another "
                    f"(by {change:.2g} of its length; at most {STEADY:g}); switch off dropout and "
                    "whatever depends on the batch"
                )
        return alone

    def _rows(self, texts: Sequence[str], *, zero: bool) -> Float[Tensor, "m d"]:
        listed, size = require_texts(texts), self._batch_size
        batches = [listed[start : start + size] for start in range(0, len(listed), size)]
        return torch.cat(
            [self._answers.rows(batch, self._called(batch), zero=zero) for batch in batches]
        )

    def _called(self, batch: list[str]) -> Any:
        probes = "sentences on which wordsens tries every function, not your texts"
        kind = probes if batch[0] in PROBES else "texts"
        with running(
            f"{self.name} failed on {plural(len(batch), 'text')}",
            raises=self._error,
            remedy=f"it was called with one list of {kind}, the first {batch[0][:40]!r}",
        ):
            return self._function(batch)


class Answers:
    """Checks the answers of one model: one row per text, finite, not zero, and of the same length
    in every call.

    Args:
        name: of the model, for messages.
        error: raised for a bad answer.
    """

    def __init__(self, name: str, *, error: type[WordsensError] = InputError):
        self._name, self._error = name, error
        self._dimension = 0

    def rows(
        self, texts: Sequence[str], answer: Any, *, zero: bool = False
    ) -> Float[Tensor, "m d"]:
        """The answer to the texts as a float64 tensor on the CPU; a row of zeros is accepted only
        with `zero`.

        Raises:
            InputError: (or the error of this model) the answer is not such an array.
        """
        rows = self._numbers(answer)
        dimension = self._dimension or (rows.shape[1] if rows.ndim == 2 else 0)
        if not dimension or rows.shape != (len(texts), dimension):
            raise self._wrong(f"gave an array of shape {tuple(rows.shape)} for {len(texts)} texts")
        self._dimension = dimension
        finite, nonzero = rows.isfinite().all(dim=1), rows.any(dim=1) | zero
        for right, what in (
            (finite, "a number that is not finite"),
            (nonzero, "the zero vector, which has no cosine with any other,"),
        ):
            if not right.all():
                text = texts[right.tolist().index(False)][:40]
                raise self._error(
                    f"{self._name} gave {what} for the text {text!r}; leave the text out"
                )
        return rows

    def scores(self, texts: Sequence[str], answer: Any) -> Float[Tensor, " m"]:
        """The answer as one number per text: an array of shape (m,) or (m, 1)."""
        rows = self._numbers(answer)
        if rows.ndim == 2 and rows.shape[1] > 1:
            raise self._error(
                f"{self._name} gave {rows.shape[1]} scores per pair; it must give one"
            )
        return self.rows(texts, rows.unsqueeze(1) if rows.ndim == 1 else rows, zero=True)[:, 0]

    def _numbers(self, answer: Any) -> Tensor:
        try:
            array = _dense(answer)
            if "complex" in str(array.dtype):
                raise TypeError("complex numbers")
            numbers = torch.as_tensor(
                array if isinstance(array, Tensor) else array.astype(np.float64)
            ).to("cpu", torch.float64)
        except (TypeError, ValueError, RuntimeError) as error:
            raise self._wrong(
                f"gave a {type(answer).__name__} that is no array of numbers in rows of one "
                f"length ({first_line(error)})"
            ) from error
        kind = str(array.dtype).removeprefix("torch.")
        if numbers.ndim == 2 and _may_be_packed(kind, numbers):
            raise self._error(
                f"{self._name} gave {kind}, which may be bits packed eight in a byte (precision "
                "'binary' or 'ubinary'); unpack bits by 2.0 * np.unpackbits(np.array(answer)"
                ".astype('uint8'), axis=1) - 1; give integers that are numbers as "
                "np.array(answer, dtype='float32')"
            )
        return numbers

    def _wrong(self, answer: str) -> WordsensError:
        return self._error(
            f"{self._name} {answer}; its answer must be an array (texts, {self._dimension or 'd'}),"
            " one row per text and of one length in every call"
        )


def _dense(answer: Any) -> np.ndarray | Tensor:
    """The answer as one array or tensor; sparse ones of torch and scipy, and lists of such rows,
    are made dense."""
    rows: Sequence[Any] = answer if isinstance(answer, list | tuple) else [None]
    if all(isinstance(row, Tensor) for row in rows):
        answer = torch.stack(list(rows))
    if isinstance(answer, Tensor):
        return answer.detach().to_dense()
    if all(hasattr(row, "toarray") for row in rows):
        return np.vstack([row.toarray() for row in rows])
    return np.array(getattr(answer, "toarray", lambda: answer)())


def _may_be_packed(kind: str, numbers: Float[Tensor, "m d"]) -> bool:
    """True for bytes, and for integers that look like bytes: answers in JSON have no type. Half of
    all packed bytes are 128 and more, or a quarter -64 and less. Bits that are unpacked are 0 and
    1, or -1 and 1; counts are smaller."""
    if kind in ("int8", "uint8"):
        return bool((numbers.abs() > 1).any())
    in_a_byte = bool(((numbers >= -128) & (numbers <= 255)).all())
    large, negative = (float(part.double().mean()) for part in (numbers >= 128, numbers <= -64))
    alike = large > 0.25 or negative > 0.125
    return "int" in kind and numbers.shape[1] >= 4 and in_a_byte and alike


def require_texts(texts: Sequence[str]) -> list[str]:
    """The texts as a list; InputError for a single string, an empty list, or an entry that is not a
    string."""
    single = isinstance(texts, str) or not isinstance(texts, Iterable)
    listed = [] if single else list(texts)
    if not listed or not all(isinstance(text, str) for text in listed):
        raise InputError(
            f"{argument('texts')} (={shown(texts)}) must be a list of strings, at least one; put a "
            "single text into a list"
        )
    for place, text in enumerate(listed):
        require_characters(f"text {place}", text)
    return listed


def load_named(place: str, option: str = "encode") -> Any:
    """The object that "module:name" names; the module may lie in the working directory. Runs the
    module's code.

    Args:
        place: such as "my_encoder:encode" or "package.module:model.encode".
        option: its name in messages.

    Raises:
        InputError: no such module or name, or the module fails.

    >>> load_named("math:sqrt")(4.0)
    2.0
    """
    # The working directory comes last, so that no file there can replace a library.
    sys.path.extend({str(Path.cwd())}.difference(sys.path))
    with running(
        f"{argument(option)} (={place!r}) ended",
        remedy="give module:function, such as my_encoder:encode, and run in the module's folder or "
        "install it",
    ):
        return pkgutil.resolve_name(place)
