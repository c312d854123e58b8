"""The entries of a vocabulary, and the row of each at each place of a text."""

from collections.abc import Callable, Iterable, Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from wordsens.errors import InputError


class Vocabulary:
    """A list of entries that a word may be swapped for.

    Args:
        tokens: the v entries as strings.
        rows: a function of entries (c,) and positions (p,), counted as rows of the text, that
            returns the rows (c, p, d) of these entries there.
        name: of the vocabulary, in results.
        outliers: entries that a search always evaluates, because a slope does not predict their
            effect.

    Raises:
        InputError: there is no entry, or an outlier is not one of them.
    """

    def __init__(
        self,
        tokens: Sequence[str],
        rows: Callable[[Int[Tensor, " c"], Int[Tensor, " p"]], Float[Tensor, "c p d"]],
        *,
        name: str = "vocabulary",
        outliers: Sequence[int] = (),
    ):
        self.tokens = tuple(tokens)
        self.rows = rows
        self.name = name
        self.outliers = tuple(outliers)
        if not self.tokens:
            raise InputError("`tokens` is empty; give at least one entry")
        wrong = [entry for entry in self.outliers if not 0 <= entry < len(self)]
        if wrong:
            raise InputError(
                f"`outliers` has {wrong[0]}, which is not an entry; take 0 to {len(self) - 1}"
            )

    def __len__(self) -> int:
        return len(self.tokens)

    def only(self, tokens: Iterable[str]) -> "Vocabulary | None":
        """The entries with these names, such as the `substitutes` of a word; None if there is none.

        >>> import torch
        >>> words = Vocabulary.of_rows(["film", "play", "runs"], torch.eye(3)).only(["play", "novel"])
        >>> words.tokens, words.rows(torch.tensor([0]), torch.tensor([2])).tolist()
        (('play',), [[[0.0, 1.0, 0.0]]])
        """  # noqa: E501
        wanted = set(tokens)
        chosen = [entry for entry, token in enumerate(self.tokens) if token in wanted]
        if not chosen:
            return None
        every = torch.tensor(chosen)
        return Vocabulary(
            [self.tokens[entry] for entry in chosen],
            lambda entries, at: self.rows(every.to(entries.device)[entries], at),
            name=self.name,
            outliers=[place for place, entry in enumerate(chosen) if entry in self.outliers],
        )

    def __repr__(self) -> str:
        return f"Vocabulary({self.name!r}, {len(self)} entries)"

    @classmethod
    def of_rows(
        cls, tokens: Sequence[str], rows: Float[Tensor, "v d"], *, name: str = "vocabulary"
    ) -> "Vocabulary":
        """Entries whose rows are the same everywhere.

        >>> import torch
        >>> Vocabulary.of_rows(["a", "b"], torch.eye(2)).rows(torch.tensor([1]), torch.tensor([0, 3])).shape
        torch.Size([1, 2, 2])
        """  # noqa: E501
        if len(rows) != len(tokens):
            raise InputError(
                f"`rows` has {len(rows)} rows for {len(tokens)} tokens; give one row per token"
            )
        return cls(
            tokens,
            lambda entries, at: rows[entries].unsqueeze(1).expand(-1, len(at), -1),
            name=name,
        )
