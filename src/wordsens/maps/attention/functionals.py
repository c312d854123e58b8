"""Linear functionals of attention features when one word moves, from the closed form of the change.

With the notation of `attention_rows`, row j != i of the features changes by p_ji Delta + (p_ji - a_ji) r_ji, so

    c . theta = sum over j != i of [p_ji Delta . theta_j + (p_ji - a_ji) r_ji . theta_j] + (change of row i) . theta_i,

theta_j being row j of theta (n, d). The products r_ji . theta_j do not depend on Delta: one number a row.
Derivation: docs/theory/generalization.md.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from wordsens.maps.attention.features import RandomAttentionFeatures
from wordsens.maps.attention.head import Head
from wordsens.maps.attention.scores import ClosedForm, Moved
from wordsens.maps.word_functionals import Pull, WordFunctionals


@dataclass
class _Point:
    """One head at b pairs: what the gradient needs of the values."""

    answer: Moved
    on_delta: Float[Tensor, "b m n"]
    pushed: Float[Tensor, "b d"]
    new_scores: Float[Tensor, "b n"]
    attention: Float[Tensor, "b n"]


class _HeadFunctionals:
    """One head on one text: what does not depend on Delta.

    Args:
        head: the head.
        thetas: (m, n, d), this head's part of every theta.
    """

    def __init__(self, head: Head, thetas: Float[Tensor, "m n d"]):
        self.head, self.thetas = head, thetas
        self.flat = thetas.flatten(end_dim=1)

    def rest_products(self, words: Int[Tensor, " w"]) -> Float[Tensor, "w m n"]:
        """r_ji . theta_j for each word i, theta and row j."""
        head = self.head
        products = torch.einsum("wd,mnd->wmn", head.values[words], self.thetas)
        if head.score.normalized:
            products -= torch.linalg.vecdot(head.outputs, self.thetas)
        if head.dominant is not None:
            which, row, rest = head.dominant.pairs(words)
            products[which, :, row] = torch.einsum("kd,mkd->km", rest, self.thetas[:, row])
        return products

    def values(
        self, delta: Float[Tensor, "b d"], words: Int[Tensor, " b"], on_rest: Float[Tensor, "b m n"]
    ) -> tuple[Float[Tensor, "b m"], _Point]:
        head = self.head
        n = head.rows.shape[0]
        pair = torch.arange(len(words), device=words.device)
        moved = delta @ head.queries.T
        answer = head.response.move(moved, words)
        if head.dominant is not None:
            which, row, _ = head.dominant.pairs(words)
            answer.gain[which, row] = head.response.dominant_gain(moved[which, row], words[which], row)
            answer.gain_slope[which, row] = answer.p_slope[which, row]
        # Row i is not of this form: it is taken out here and evaluated plainly below.
        answer.p[pair, words] = 0
        answer.gain[pair, words] = 0
        on_delta = (delta @ self.flat.T).unflatten(1, (-1, n))
        values = torch.einsum("bn,bmn->bm", answer.p, on_delta) + torch.einsum("bn,bmn->bm", answer.gain, on_rest)

        pushed = delta @ head.symmetric
        new_scores = head.scores[words] + delta @ head.keys.T
        new_scores[pair, words] += moved[pair, words] + 0.5 * torch.linalg.vecdot(pushed, delta)
        attention = head.score.attention(new_scores)
        change = attention @ head.values + attention[pair, words].unsqueeze(1) * delta - head.outputs[words]
        values += torch.einsum("bd,mbd->bm", change, self.thetas[:, words])
        return values, _Point(answer, on_delta, pushed, new_scores, attention)

    def gradient(
        self,
        delta: Float[Tensor, "b d"],
        words: Int[Tensor, " b"],
        on_rest: Float[Tensor, "b m n"],
        weights: Float[Tensor, "b m"],
        at: _Point,
    ) -> Float[Tensor, "b d"]:
        head, answer = self.head, at.answer
        pair = torch.arange(len(words), device=words.device)
        on_scores = answer.p_slope * torch.einsum("bm,bmn->bn", weights, at.on_delta)
        on_scores += answer.gain_slope * torch.einsum("bm,bmn->bn", weights, on_rest)
        own_theta = torch.einsum("bm,mbd->bd", weights, self.thetas[:, words])
        on_weights = own_theta @ head.values.T
        on_weights[pair, words] += torch.linalg.vecdot(own_theta, delta)
        own_slope = head.score.pull_back(at.new_scores, at.attention, on_weights)
        own_self = own_slope[pair, words]
        on_scores[pair, words] = own_self
        result = (weights.unsqueeze(2) * answer.p.unsqueeze(1)).flatten(start_dim=1) @ self.flat
        result += at.attention[pair, words].unsqueeze(1) * own_theta + own_self.unsqueeze(1) * at.pushed
        return result + on_scores @ head.queries + own_slope @ head.keys


class AttentionFunctionals(WordFunctionals):
    """c . theta for random attention. Exact; b pairs cost O(b (m n d + d²)), and the preparation O(m n d) a word.

    Args:
        phi: the map.
        score: its score.
        rows: X, (n, d).
        thetas: (m, heads n d).
        memory_budget: bytes for intermediate results.
    """

    def __init__(
        self,
        phi: RandomAttentionFeatures,
        score: ClosedForm,
        rows: Float[Tensor, "n d"],
        thetas: Float[Tensor, "m p"],
        *,
        memory_budget: int,
    ):
        rows = phi.accept(rows)
        super().__init__(rows, len(thetas), memory_budget)
        self.kinked = score.kinked
        shaped = thetas.view(len(thetas), phi.heads, *rows.shape)
        heads = _heads_of(phi, score, rows)
        self._heads = [_HeadFunctionals(head, shaped[:, index]) for index, head in enumerate(heads)]
        self._rest: dict[int, list[Tensor]] = {}

    def bytes_per_pair(self) -> int:
        n, d = self.rows.shape
        return ((12 + 4 * self.count) * n + 8 * d) * self.rows.element_size()

    def starting_directions(self) -> Float[Tensor, "count d"]:
        """Those of the word sensitivity, along which words draw other rows' attention."""
        return torch.cat([each.head.directions for each in self._heads])

    def _evaluate(
        self, perturbations: Float[Tensor, "b d"], words: Int[Tensor, " b"], pull: Pull | None
    ) -> tuple[Float[Tensor, "b m"], Float[Tensor, "b d"] | None]:
        different, index = words.unique(return_inverse=True)
        rests = [rest[index] for rest in self._rest_products(different)]
        parts = [head.values(perturbations, words, rest) for head, rest in zip(self._heads, rests, strict=True)]
        values = torch.stack([part[0] for part in parts]).sum(dim=0)
        if pull is None:
            return values, None
        weights = pull(values)
        gradients = [
            head.gradient(perturbations, words, rest, weights, moved)
            for head, rest, (_, moved) in zip(self._heads, rests, parts, strict=True)
        ]
        return values, torch.stack(gradients).sum(dim=0)

    def _rest_products(self, words: Int[Tensor, " w"]) -> list[Float[Tensor, "w m n"]]:
        missing = [int(word) for word in words if int(word) not in self._rest]
        if missing:
            chosen = torch.tensor(missing, device=words.device)
            made = [head.rest_products(chosen) for head in self._heads]
            for at, word in enumerate(missing):
                self._rest[word] = [part[at] for part in made]
        return [torch.stack([self._rest[int(word)][head] for word in words]) for head in range(len(self._heads))]


def _heads_of(phi: RandomAttentionFeatures, score: ClosedForm, rows: Float[Tensor, "n d"]) -> list[Head]:
    return [Head(rows, weights, score) for weights in phi.head_weights(len(rows), phi.dtype)]
