"""Texts in pairs: a text, and a copy in which one word is another, that flips its meaning or keeps it."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from wordsens.errors import InputError
from wordsens.text.matrix import TextMatrix


@dataclass(frozen=True, eq=False)
class TextPairs:
    """Pairs of texts of one shape, as numbers of words of one vocabulary.

    Attributes:
        table: (v, d), the words' embeddings.
        first, second: (p, n), the numbers of the words of each pair's two texts.
        flipped: (p,), True where the second means something else than the first, False where it means the same.
    """

    table: Float[Tensor, "v d"]
    first: Int[Tensor, "p n"]
    second: Int[Tensor, "p n"]
    flipped: Bool[Tensor, " p"]

    def __len__(self) -> int:
        return len(self.flipped)

    def rows(self, chosen: Tensor | slice = slice(None)) -> tuple[Float[Tensor, "b n d"], Float[Tensor, "b n d"]]:
        """The two texts of the chosen pairs as rows; `chosen` are numbers of pairs, or a mask."""
        return self.table[self.first[chosen]], self.table[self.second[chosen]]

    def part(self, chosen: Tensor | slice) -> "TextPairs":
        """The chosen pairs alone."""
        return TextPairs(self.table, self.first[chosen], self.second[chosen], self.flipped[chosen])


def text_pairs(pairs: Sequence[tuple[TextMatrix, TextMatrix, bool]]) -> TextPairs:
    """Pairs of real texts, each with whether the second flips the meaning of the first.

    Args:
        pairs: (first, second, flipped), the texts as `ws.embed` gives them, all of one shape.

    Raises:
        InputError: no pair, or texts of several shapes.

    >>> import wordsens as ws
    >>> first, second = (ws.TextMatrix(ws.gaussian_text(3, 4, seed).rows) for seed in range(2))
    >>> pairs = text_pairs([(first, second, True), (second, second, False)])
    >>> len(pairs), pairs.rows()[0].shape, pairs.flipped.tolist()
    (2, torch.Size([2, 3, 4]), [True, False])
    """
    texts = [text for first, second, _ in pairs for text in (first, second)]
    shapes = {tuple(text.rows.shape) for text in texts}
    if len(shapes) != 1:
        raise InputError(
            f"`pairs` have texts of {len(shapes)} shapes; give at least one pair, and texts of as many words all"
        )
    ((n, _),) = shapes
    words = torch.arange(len(texts) * n).view(-1, 2, n)
    table = torch.cat([text.rows.float() for text in texts])
    return TextPairs(table, words[:, 0], words[:, 1], torch.tensor([flipped for _, _, flipped in pairs]))
