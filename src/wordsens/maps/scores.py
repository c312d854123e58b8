"""Attention scores: how they become weights, how the weight of one moved word answers, and their derivatives."""

from abc import ABC, abstractmethod

import torch
from jaxtyping import Float, Int
from torch import Tensor


class Response(ABC):
    """How the attention a_ji of row j to word i answers when its score moves by t, all other scores fixed.

    Built from the scores s (row first). Arrays it returns are word first: [pair, row].
    """

    @abstractmethod
    def move(
        self, moved: Float[Tensor, "b n"], words: Int[Tensor, " b"]
    ) -> tuple[Float[Tensor, "b n"], Float[Tensor, "b n"], Float[Tensor, "b n"]]:
        """(p, dp/dt, p - a) at t = moved; p - a keeps its relative precision where p and a are close."""

    @abstractmethod
    def weight(self, words: Int[Tensor, " b"]) -> Float[Tensor, "b n"]:
        """1 / (1 - a_ji): turns x_i - o_j into x_i - m_ji, where a_ji <= 1/2. Anything finite where a_ji > 1/2."""


class Score(ABC):
    """How scores (..., n) of a row become attention weights.

    Attributes:
        name: the option that selects it.
        normalized: whether the weights are divided by their sum.
        sums_to_one: whether every row of weights sums to one, whatever the scores.
        kinked: whether the weights have kinks in the scores, which a quasi-Newton search stumbles over.
    """

    name: str
    normalized: bool
    sums_to_one: bool = False
    kinked: bool = False

    @abstractmethod
    def attention(self, scores: Float[Tensor, "*batch n"]) -> Float[Tensor, "*batch n"]:
        """The weights."""

    @abstractmethod
    def pull_back(
        self, scores: Float[Tensor, "b n"], attention: Float[Tensor, "b n"], slopes: Float[Tensor, "b n"]
    ) -> Float[Tensor, "b n"]:
        """The gradient in the scores of a function whose gradient in the weights is `slopes`."""

    @abstractmethod
    def response(self, scores: Float[Tensor, "n n"]) -> Response:
        """How the weight of one word answers to its own score."""

    def attention_without(self, scores: Float[Tensor, "r n"], word: Int[Tensor, " r"]) -> Float[Tensor, "r n"]:
        """The weights of r rows after one word of each is taken out. Only for normalized scores."""
        raise AssertionError(f"{self.name} scores are not divided by their sum")


class Softmax(Score):
    """exp(s_l) / sum_m exp(s_m)."""

    name, normalized, sums_to_one = "softmax", True, True

    def attention(self, scores: Float[Tensor, "*batch n"]) -> Float[Tensor, "*batch n"]:
        return torch.softmax(scores, dim=-1)

    def pull_back(
        self, scores: Float[Tensor, "b n"], attention: Float[Tensor, "b n"], slopes: Float[Tensor, "b n"]
    ) -> Float[Tensor, "b n"]:
        return attention * (slopes - (attention * slopes).sum(dim=-1, keepdim=True))

    def response(self, scores: Float[Tensor, "n n"]) -> Response:
        return _SoftmaxResponse(scores)

    def attention_without(self, scores: Float[Tensor, "r n"], word: Int[Tensor, " r"]) -> Float[Tensor, "r n"]:
        return torch.softmax(scores.scatter(1, word.unsqueeze(1), -torch.inf), dim=-1)


class _SoftmaxResponse(Response):
    """p = sigmoid(logit(a) + t). Logits are kept, so that 1 - a and p may be far below the rounding of 1."""

    def __init__(self, scores: Float[Tensor, "n n"]):
        total = torch.logsumexp(scores, dim=1, keepdim=True)
        attention = torch.exp(scores - total)
        # log(sum without i) = total + log(1 - a) where a is at most 1/2; past that it would cancel.
        rest = total + torch.log1p(-attention.clamp(max=0.5))
        largest, word = attention.max(dim=1)
        row = (largest > 0.5).nonzero().squeeze(1)
        if len(row):
            others = scores[row].scatter(1, word[row].unsqueeze(1), -torch.inf)
            rest[row, word[row]] = torch.logsumexp(others, dim=1)
        self._logit = (scores - rest).T.contiguous()

    def move(
        self, moved: Float[Tensor, "b n"], words: Int[Tensor, " b"]
    ) -> tuple[Float[Tensor, "b n"], Float[Tensor, "b n"], Float[Tensor, "b n"]]:
        return _sigmoid_move(self._logit[words], moved)

    def weight(self, words: Int[Tensor, " b"]) -> Float[Tensor, "b n"]:
        # 1/(1 - a) = 1 + exp(logit); logit <= 0 wherever a <= 1/2.
        return self._logit[words].clamp_(max=0).exp_().add_(1)


def _sigmoid_move(logit: Tensor, moved: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """(p, p(1-p), p - a) for a = sigmoid(logit), p = sigmoid(logit + moved).

    p - a = p (1 - a)(1 - exp(-t)) for t > 0 and a (1 - p)(exp(t) - 1) for t <= 0: no cancellation, no overflow.
    """
    p = torch.sigmoid(logit + moved)
    rest = 1 - p
    up = moved > 0
    # -expm1(-|t|) times p (1 - a) or -a (1 - p): one product, no overflow. 1 - p may have lost its relative precision,
    # but only where p is near 1 and the term is dwarfed by p Delta.
    other = torch.sigmoid(torch.where(up, -logit, logit))
    gain = torch.where(up, p, -rest).mul_(other).mul_(torch.expm1(-moved.abs()).neg_())
    return p, p * rest, gain


class NormalizedRelu(Score):
    """relu(s_l) / sum_m relu(s_m); a row whose sum is 0 stays 0."""

    name, normalized, kinked = "relu", True, True

    def attention(self, scores: Float[Tensor, "*batch n"]) -> Float[Tensor, "*batch n"]:
        weights = torch.relu(scores)
        return weights / _or_one(weights.sum(dim=-1, keepdim=True))

    def pull_back(
        self, scores: Float[Tensor, "b n"], attention: Float[Tensor, "b n"], slopes: Float[Tensor, "b n"]
    ) -> Float[Tensor, "b n"]:
        positive = scores > 0
        total = _or_one(torch.relu(scores).sum(dim=-1, keepdim=True))
        return torch.where(
            positive,
            (slopes - (attention * slopes).sum(dim=-1, keepdim=True)) / total,
            torch.zeros_like(slopes),
        )

    def response(self, scores: Float[Tensor, "n n"]) -> Response:
        return _NormalizedReluResponse(scores)

    def attention_without(self, scores: Float[Tensor, "r n"], word: Int[Tensor, " r"]) -> Float[Tensor, "r n"]:
        return self.attention(scores.scatter(1, word.unsqueeze(1), 0.0))


class _NormalizedReluResponse(Response):
    """p = v / (v + rest), v = relu(s + t), rest the sum of the row's other weights; 0 where v is 0."""

    def __init__(self, scores: Float[Tensor, "n n"]):
        weights = torch.relu(scores)
        total = weights.sum(dim=1, keepdim=True)
        rest = total - weights
        # total - weight cancels where one word has more than half of the sum.
        row, word = (weights > 0.5 * total).nonzero(as_tuple=True)
        if len(row):
            rest[row, word] = weights[row].scatter(1, word.unsqueeze(1), 0.0).sum(dim=1)
        self._scores = scores.T.contiguous()
        self._rest = rest.T.contiguous()

    def move(
        self, moved: Float[Tensor, "b n"], words: Int[Tensor, " b"]
    ) -> tuple[Float[Tensor, "b n"], Float[Tensor, "b n"], Float[Tensor, "b n"]]:
        score, rest = self._scores[words], self._rest[words]
        before, after = torch.relu(score), torch.relu(score + moved)
        old_total, new_total = _or_one(before + rest), _or_one(after + rest)
        p = after / new_total
        alone = rest == 0
        # (after - before) rest / (totals): exact where close; where nothing else is positive, p and a are 0 or 1.
        gain = torch.where(alone, p - before / old_total, (after - before) / new_total * (rest / old_total))
        slope = torch.where(after > 0, rest / new_total / new_total, torch.zeros_like(rest))
        return p, slope, gain

    def weight(self, words: Int[Tensor, " b"]) -> Float[Tensor, "b n"]:
        score, rest = self._scores[words], self._rest[words]
        own = torch.relu(score)
        # 1/(1 - a) = (own + rest)/rest; a row that nothing attends to has a = 0; capped where a > 1/2.
        return torch.where(own < rest, (own + rest) / _or_one(rest), torch.ones_like(rest))


class Relu(Score):
    """relu(s_l), not divided."""

    name, normalized, kinked = "relu-unnormalized", False, True

    def attention(self, scores: Float[Tensor, "*batch n"]) -> Float[Tensor, "*batch n"]:
        return torch.relu(scores)

    def pull_back(
        self, scores: Float[Tensor, "b n"], attention: Float[Tensor, "b n"], slopes: Float[Tensor, "b n"]
    ) -> Float[Tensor, "b n"]:
        return torch.where(scores > 0, slopes, torch.zeros_like(slopes))

    def response(self, scores: Float[Tensor, "n n"]) -> Response:
        return _UndividedResponse(scores, self)

    def move_weight(self, score: Tensor, moved: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        after = torch.relu(score + moved)
        return after, (after > 0).to(score.dtype), after - torch.relu(score)


class Sigmoid(Score):
    """1 / (1 + exp(-s_l)), not divided."""

    name, normalized = "sigmoid", False

    def attention(self, scores: Float[Tensor, "*batch n"]) -> Float[Tensor, "*batch n"]:
        return torch.sigmoid(scores)

    def pull_back(
        self, scores: Float[Tensor, "b n"], attention: Float[Tensor, "b n"], slopes: Float[Tensor, "b n"]
    ) -> Float[Tensor, "b n"]:
        return slopes * attention * torch.sigmoid(-scores)

    def response(self, scores: Float[Tensor, "n n"]) -> Response:
        return _UndividedResponse(scores, self)

    def move_weight(self, score: Tensor, moved: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return _sigmoid_move(score, moved)


class Linear(Score):
    """s_l itself, not divided: linear attention without a feature map."""

    name, normalized = "linear", False

    def attention(self, scores: Float[Tensor, "*batch n"]) -> Float[Tensor, "*batch n"]:
        return scores

    def pull_back(
        self, scores: Float[Tensor, "b n"], attention: Float[Tensor, "b n"], slopes: Float[Tensor, "b n"]
    ) -> Float[Tensor, "b n"]:
        return slopes

    def response(self, scores: Float[Tensor, "n n"]) -> Response:
        return _UndividedResponse(scores, self)

    def move_weight(self, score: Tensor, moved: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return score + moved, torch.ones_like(moved), moved.clone()


class _UndividedResponse(Response):
    """p = g(s + t): no other score matters."""

    def __init__(self, scores: Float[Tensor, "n n"], score: Relu | Sigmoid | Linear):
        self._scores = scores.T.contiguous()
        self._score = score

    def move(
        self, moved: Float[Tensor, "b n"], words: Int[Tensor, " b"]
    ) -> tuple[Float[Tensor, "b n"], Float[Tensor, "b n"], Float[Tensor, "b n"]]:
        return self._score.move_weight(self._scores[words], moved)

    def weight(self, words: Int[Tensor, " b"]) -> Float[Tensor, "b n"]:
        return torch.ones_like(self._scores[words])


SCORES: dict[str, Score] = {score.name: score for score in (Softmax(), NormalizedRelu(), Relu(), Sigmoid(), Linear())}


def _or_one(total: Tensor) -> Tensor:
    """The divisor, with 1 where it is zero: zero weights stay zero."""
    return torch.where(total > 0, total, torch.ones_like(total))
