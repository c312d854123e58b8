"""The training features Phi as an operator: in memory where they fit a budget, computed again where
they do not."""

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.errors import InputError, shown
from wordsens.maps.base import FeatureMap
from wordsens.maps.mapping import features_by_text
from wordsens.text.matrix import TextMatrix, as_text_matrix

# Bytes that the training features may take in memory, unless a caller says otherwise: 2 GiB.
TRAINING_BYTES = 2 << 30

_PIECE_BYTES = 32 << 20

# Texts of one shape: a list of (n, d) texts, or one array (texts, n, d).
Texts = Sequence[TextMatrix | Tensor | np.ndarray] | Tensor | np.ndarray


class TrainingFeatures:
    """Phi (N, p): row s is flat(phi(text s)). Products are in float64, whatever the map's dtype.

    Args:
        phi: the map.
        texts: N texts of one shape (n, d), taken as they are.
        memory_budget: bytes. Phi is in memory in the map's dtype when it fits; past that it is
            computed again, in chunks, for every product, and about N p itemsize / memory_budget
            times for the Gram matrix.

    Attributes:
        size: p.
        text_shape: (n, d) of every text.
        stored: Phi where it is in memory, else None.

    Raises:
        InputError: no text, texts of unequal shape, or features that are not finite.
    """

    def __init__(
        self,
        phi: FeatureMap,
        texts: Texts,
        *,
        memory_budget: int = TRAINING_BYTES,
    ):
        self.phi, self.memory_budget = phi, memory_budget
        self._texts = as_equal_texts(texts)
        self.text_shape = tuple(self._texts[0].shape)
        first = self._mapped(0, 1)
        self.size = first.shape[1]
        self._chunk = max(1, _PIECE_BYTES // (self.size * 8))
        self.stored: Tensor | None = None
        if len(self) * self.size * first.element_size() <= memory_budget:
            self.stored = self._rows(0, len(self), first.dtype)

    def __len__(self) -> int:
        return len(self._texts)

    def gram(self) -> Float[Tensor, "N N"]:
        """Phi Phi^T in float64."""
        if self.stored is None:
            size = max(1, self.memory_budget // (self.size * 8))
            blocks = []
            for start in range(0, len(self), size):
                rows = self._rows(start, min(start + size, len(self)), torch.float64)
                blocks.append(self.inner_products(rows))
            return torch.cat(blocks)
        gram = torch.zeros(len(self), len(self), dtype=torch.float64, device=self.phi.device)
        # A block of features at a time: float64 copies stay small.
        for block in self.stored.split(max(1, _PIECE_BYTES // (len(self) * 8)), dim=1):
            part = block.double()
            gram.addmm_(part, part.T)
        return gram

    def inner_products(self, vectors: Float[Tensor, "m p"]) -> Float[Tensor, "m N"]:
        """v Phi^T for every vector: one pass over Phi."""
        return torch.cat([vectors @ rows.T for _, rows in self._chunks(0, len(self))], dim=1)

    def combine(self, coefficients: Float[Tensor, "m N"]) -> Float[Tensor, "m p"]:
        """c Phi for every row of coefficients: one pass over Phi."""
        total = coefficients.new_zeros(len(coefficients), self.size)
        for start, rows in self._chunks(0, len(self)):
            total.addmm_(coefficients[:, start : start + len(rows)], rows)
        return total

    def _chunks(
        self,
        start: int,
        stop: int,
    ) -> Iterator[tuple[int, Float[Tensor, "rows p"]]]:
        """(index of the first row, rows of Phi in float64)."""
        for begin in range(start, stop, self._chunk):
            end = min(begin + self._chunk, stop)
            rows = self._mapped(begin, end) if self.stored is None else self.stored[begin:end]
            yield begin, rows.double()

    def _rows(
        self,
        start: int,
        stop: int,
        dtype: torch.dtype,
    ) -> Float[Tensor, "rows p"]:
        rows = torch.empty(stop - start, self.size, dtype=dtype, device=self.phi.device)
        for begin, part in self._chunks(start, stop):
            rows[begin - start : begin - start + len(part)] = part
        return rows

    @torch.no_grad()
    def _mapped(
        self,
        start: int,
        stop: int,
    ) -> Float[Tensor, "rows p"]:
        batch = self.phi.accept(torch.stack(self._texts[start:stop]))
        features = features_by_text(self.phi, batch)
        if not bool(torch.isfinite(features).all()):
            raise InputError(
                f"{self.phi.name} gives NaN or infinity on one of the texts {start} to {stop - 1}; "
                "use float64 or rescale the rows"
            )
        return features


def as_equal_texts(texts: Texts) -> list[Tensor]:
    """The rows of each text, all of one shape; those of an array are not copied."""
    if isinstance(texts, np.ndarray):
        texts = torch.from_numpy(texts)
    if isinstance(texts, Tensor):
        if texts.ndim != 3 or 0 in texts.shape or not bool(torch.isfinite(texts).all()):
            raise InputError(
                f"`texts` (shape {tuple(texts.shape)}) must be finite and (N, n, d); give N texts "
                "of n words each"
            )
        return list(texts.detach())
    rows = [as_text_matrix(text, f"texts[{at}]").rows.detach() for at, text in enumerate(texts)]
    shapes = sorted({tuple(text.shape) for text in rows})
    if len(shapes) != 1:
        raise InputError(
            f"`texts` has texts of {len(shapes)} shapes ({shown(shapes)}); give at least one text, "
            "and truncate all to one size (TextMatrix.truncated)"
        )
    return rows
