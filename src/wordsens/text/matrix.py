"""A text as a matrix: one row per word, with its tokens, label and source."""

import math
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.errors import InputError, argument
from wordsens.results import Result


@dataclass(frozen=True)
class Word:
    """A word as a reader sees it, and the rows of its tokens.

    Attributes:
        text: as it is written.
        rows: the indices of its tokens' rows, in order.
        start, stop: its place in the text, in characters; -1 if unknown.
        shared: whether one of its tokens holds a part of another word too.
    """

    text: str
    rows: tuple[int, ...]
    start: int = -1
    stop: int = -1
    shared: bool = False


@dataclass(frozen=True, eq=False, repr=False)
class TextMatrix(Result):
    """X of shape (n, d): the rows of one text.

    Attributes:
        rows: (n, d), one embedding per word.
        tokens: n strings, or None for a synthetic text.
        label: +1, -1 or None.
        source: where the text came from, e.g. "shipped/review-001" or "gaussian(seed=0)".
        whole_words: the words of the text, each with its rows, special tokens left out; None where
            they are not known.
    """

    rows: Float[Tensor, "n d"]
    tokens: tuple[str, ...] | None = None
    label: int | None = None
    source: str = ""
    whole_words: tuple[Word, ...] | None = None

    def __post_init__(self) -> None:
        require_rows(self.rows, "rows")
        if self.tokens is not None and len(self.tokens) != len(self.rows):
            raise InputError(
                f"`tokens` has {len(self.tokens)} entries, but `rows` has {len(self.rows)} rows; "
                "give one token per row"
            )

    def __len__(self) -> int:
        return self.rows.shape[0]

    def word(self, index: int) -> str:
        """The name of word `index`: its token, or `#index` where there are no tokens."""
        return self.tokens[index] if self.tokens is not None else f"#{index}"

    def truncated(self, words: int, dimension: int) -> "TextMatrix":
        """The first `words` words and the first `dimension` coordinates, rows rescaled to length
        sqrt(dimension).

        Raises InputError when the text is shorter: it is not padded.
        """
        n, d = self.rows.shape
        if not (1 <= words <= n and 1 <= dimension <= d):
            raise InputError(
                f"text {self.source!r} has {n} words and {d} coordinates, so its first {words} "
                f"words and {dimension} coordinates cannot be taken; choose a longer text or a "
                "smaller size"
            )
        whole = [word for word in self.whole_words or () if max(word.rows) < words]
        return replace(
            self,
            rows=rescale_rows(self.rows[:words, :dimension]),
            tokens=None if self.tokens is None else self.tokens[:words],
            whole_words=None if self.whole_words is None else tuple(whole),
        )

    def to(
        self, dtype: torch.dtype | None = None, device: torch.device | str | None = None
    ) -> "TextMatrix":
        """The same text with its rows in another dtype or on another device."""
        return replace(self, rows=self.rows.to(dtype=dtype, device=device))


def require_rows(rows: Tensor, name: str) -> None:
    """InputError for rows that cannot be a text: no matrix, empty, NaN or infinite entries, a zero
    row."""
    if rows.ndim != 2 or 0 in rows.shape or not rows.is_floating_point():
        raise InputError(
            f"{argument(name)} (shape {tuple(rows.shape)}, {rows.dtype}) must be a floating-point "
            "matrix, n words by d coordinates"
        )
    for sound, what, remedy in (
        (torch.isfinite(rows), "NaN or infinity", "every entry must be finite"),
        ((rows != 0).any(1, True), "only zeros", "drop that word or give it an embedding"),
    ):
        if not bool(sound.all()):
            bad = int((~sound).nonzero()[0, 0])
            raise InputError(f"{argument(name)} has {what} in row {bad}; {remedy}")


def rescale_rows(rows: Float[Tensor, "n d"]) -> Float[Tensor, "n d"]:
    """Every row scaled to Euclidean length sqrt(d), the paper's normalisation.

    >>> round(rescale_rows(torch.tensor([[3.0, 4.0]])).norm().item() ** 2, 6)
    2.0
    """
    require_rows(rows, "rows")
    largest = rows.abs().amax(dim=1, keepdim=True)
    bounded = rows / largest
    return bounded * (
        math.sqrt(rows.shape[1]) / torch.linalg.vector_norm(bounded, dim=1, keepdim=True)
    )


def as_text_matrix(text: "TextMatrix | Tensor | np.ndarray", name: str = "X") -> TextMatrix:
    """The text as a TextMatrix, checked. Tensors and arrays are taken as they are: nothing is
    rescaled."""
    if isinstance(text, TextMatrix):
        return text
    if isinstance(text, np.ndarray) and text.dtype.kind in "fiub" and text.dtype.itemsize <= 8:
        text = torch.from_numpy(text.astype(text.dtype.newbyteorder("="), order="C", copy=True))
    if not isinstance(text, Tensor):
        kind = f"an array of {text.dtype}" if isinstance(text, np.ndarray) else type(text).__name__
        raise InputError(
            f"{argument(name)} ({kind}) must be a TextMatrix, a tensor or an array of shape (n, "
            "d); embed strings first, with wordsens.embed"
        )
    require_rows(text, name)
    return TextMatrix(text)
