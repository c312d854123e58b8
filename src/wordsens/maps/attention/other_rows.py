"""The changes that one moved word makes to the other words' rows of an attention layer, and their slope in Delta.

With u_j = W^T x_j / scale, the score that row j gives word i becomes s_ji + u_j . Delta, so for j != i (derivation:
docs/theory/attention.md)

    change of row j = p_ji Delta + (p_ji - a_ji) r_ji,    r_ji = x_i - m_ji = (x_i - o_j)/(1 - a_ji),

a_ji and p_ji being the attention of row j to word i before and after, o_j the output of row j and m_ji its output
without word i (zero for scores that are not divided by their sum). Squared norms expand into inner products of Delta
with the u_j, the o_j and x_i. With a value matrix V, read V^T Delta for Delta and V^T x_i for x_i, but in u_j . Delta.

Arrays indexed [word, row] are stored word first: a batch gathers whole rows.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from wordsens.maps.attention.scores import ClosedForm, Response


@dataclass(frozen=True)
class Dominant:
    """The rows of which one word takes over half: there (x_i - o_j)/(1 - a_ji) would cancel, so r_ji is kept.

    Attributes:
        words, rows: (m,), the word i and the row j.
        rest: (m, d), r_ji.
    """

    words: Int[Tensor, " m"]
    rows: Int[Tensor, " m"]
    rest: Float[Tensor, "m d"]

    def pairs(self, words: Int[Tensor, " b"]) -> tuple[Int[Tensor, " c"], Int[Tensor, " c"], Float[Tensor, "c d"]]:
        """The pairs of a batch that meet dominated rows: the pair, the row and its r_ji."""
        which, at = (words.unsqueeze(1) == self.words).nonzero(as_tuple=True)
        return which, self.rows[at], self.rest[at]

    @staticmethod
    def joined(parts: "Sequence[Dominant | None]", n: int) -> "Dominant | None":
        """Those of several texts of n words; None where none has any."""
        some = [(part.words + text * n, part.rows, part.rest) for text, part in enumerate(parts) if part is not None]
        return Dominant(*(torch.cat(arrays) for arrays in zip(*some, strict=True))) if some else None


class OtherRows(ABC):
    """The rows of a text but the moved word's own, under one head.

    Delta may be given by k coordinates in an orthonormal basis. Without a `lift`, `values` and r_ji of dominated rows
    are then in them too.

    Attributes:
        score, response: what the weights are made with, and how they answer to one moved score.
        lift: (k, m), V with V^T Delta what the value of the moved word changes by; None: the identity.
        values: (n, m), the values, without their mean where weights sum to one: x_i without a value matrix.
        lengths: [word, row], (n, n), ‖r_ji‖² where weights are divided by their sum.
        squared_values: (n,), their squared lengths where weights are not divided: there r_ji is the value.
        dominant: the rows of which one word takes over half.
    """

    score: ClosedForm
    response: Response
    lift: Float[Tensor, "k m"] | None
    values: Float[Tensor, "n m"]
    lengths: Float[Tensor, "n n"]
    squared_values: Float[Tensor, " n"]
    dominant: Dominant | None

    def seen(self, delta: Float[Tensor, "b k"]) -> Float[Tensor, "b m"]:
        """V^T Delta."""
        return delta if self.lift is None else delta @ self.lift

    def lifted(self, vectors: Float[Tensor, "b m"]) -> Float[Tensor, "b k"]:
        """V r: what is multiplied with V^T Delta by r is multiplied with Delta by it."""
        return vectors if self.lift is None else vectors @ self.lift.mT

    @abstractmethod
    def evaluate(
        self, delta: Float[Tensor, "b k"], words: Int[Tensor, " b"], gradient: bool
    ) -> tuple[Float[Tensor, " b"], Float[Tensor, "b k"] | None]:
        """The squared change of every pair, and its gradient where asked for."""

    def others(
        self,
        seen: Float[Tensor, "b m"],
        words: Int[Tensor, " b"],
        row_of_word: Int[Tensor, " b"],
        moved: Float[Tensor, "b n"],
        along: Float[Tensor, "b n"] | None,
        gradient: bool,
        *,
        own: bool = False,
    ) -> tuple[Float[Tensor, " b"], Float[Tensor, "b m"] | None]:
        """The squared change of all rows but the word's own; half of its gradient in V^T Delta but for two products.

        Args:
            seen, words: the pairs, each by its V^T Delta.
            row_of_word: which row of its text each word is.
            moved: u_j . Delta; where the gradient is asked for, overwritten by what it takes from each u_j.
            along: -o_j . V^T Delta, for weights that are divided by their sum; likewise overwritten. None, though they
                are: x_i . V^T Delta stands for r_ji . V^T Delta, dominated rows included.
            gradient: whether it is asked for.
            own: whether the word's own row is counted like the others, by what `moved` has for it.
        """
        at = row_of_word.unsqueeze(1)
        answer = self.response.move(moved, words)
        p, gain = answer.p, answer.gain
        value = self.values.index_select(0, words)
        with_own = torch.linalg.vecdot(value, seen).unsqueeze(1)
        on_rest_of_word = with_own if along is None else along.add_(with_own)
        if self.score.normalized:
            length = self.lengths.index_select(0, words)
        else:
            length = self.squared_values.index_select(0, words).unsqueeze(1)
        dominated = None
        if self.score.normalized and self.dominant is not None:
            which, row, rest = self.dominant.pairs(words)
            gain[which, row] = self.response.dominant_gain(moved[which, row], words[which], row)
            answer.gain_slope[which, row] = answer.p_slope[which, row]
            if along is not None:
                dominated = which, row, rest
                along[which, row] = torch.linalg.vecdot(rest, seen[which])
        if not own:
            p.scatter_(1, at, 0.0)
            gain.scatter_(1, at, 0.0)
        on_delta = torch.addcmul(p * torch.linalg.vecdot(seen, seen).unsqueeze(1), gain, on_rest_of_word)
        on_rest = torch.addcmul(p * on_rest_of_word, gain, length)
        squared = torch.linalg.vecdot(p, on_delta) + torch.linalg.vecdot(gain, on_rest)
        if not gradient:
            return squared, None

        torch.mul(answer.p_slope, on_delta, out=moved).addcmul_(answer.gain_slope, on_rest)
        if not own:
            moved.scatter_(1, at, 0.0)
        result = torch.linalg.vecdot(p, p).unsqueeze(1) * seen
        if along is None:
            pulled = torch.linalg.vecdot(p, gain).unsqueeze(1)
        else:
            torch.mul(p, gain, out=along)
            if dominated is not None:
                which, row, rest = dominated
                result.index_add_(0, which, along[which, row].unsqueeze(1) * rest)
                along[which, row] = 0
            pulled = along.sum(dim=1, keepdim=True)
        return squared, result.addcmul_(pulled, value)
