"""Attention scores: how they become weights, how the weight of one moved word answers, and their derivatives."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor


@dataclass(frozen=True)
class Moved:
    """What a moved score of row j with word i does to row j, whose output changes by p Delta + gain r.

    r is x_i - o_j for weights divided by their sum, and x_i for others. Arrays are [pair, row].

    Attributes:
        p: the attention after the move.
        gain: (p - a)/(1 - a) for weights divided by their sum, p - a for others. Keeps its relative precision where
            p and a are close. For divided weights with a > 1/2 it is finite, and wrong: see `Response.dominant_gain`.
        p_slope, gain_slope: their derivatives in the score.
    """

    p: Float[Tensor, "b n"]
    gain: Float[Tensor, "b n"]
    p_slope: Float[Tensor, "b n"]
    gain_slope: Float[Tensor, "b n"]


class Response(ABC):
    """How the attention a_ji of row j to word i answers when its score moves by t, all other scores fixed.

    Built from the scores s (row first); O(n²) once, and one or two arrays of n² numbers, kept word first.
    """

    @abstractmethod
    def move(self, moved: Float[Tensor, "b n"], words: Int[Tensor, " b"]) -> Moved:
        """The answer of every row to t = moved."""

    def dominant_gain(
        self, moved: Float[Tensor, " m"], words: Int[Tensor, " m"], rows: Int[Tensor, " m"]
    ) -> Float[Tensor, " m"]:
        """p - a for single pairs of a word and a row with a > 1/2. Only for normalized scores."""
        raise AssertionError(f"{type(self).__name__} is not of scores divided by their sum")

    @staticmethod
    def joined(parts: "Sequence[Response]") -> "Response":
        """The response of several texts of n words each, of one score: word i of text t is word t n + i."""
        result = copy(parts[0])
        for name, value in vars(result).items():
            if isinstance(value, Tensor):
                setattr(result, name, torch.cat([getattr(part, name) for part in parts]))
        return result


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

    def push_forward(
        self, scores: Float[Tensor, "b n"], attention: Float[Tensor, "b n"], changes: Float[Tensor, "b n"]
    ) -> Float[Tensor, "b n"]:
        """How the weights change, to first order, when the scores do by `changes`.

        The transpose of `pull_back`; the same, where the derivative of the weights is a symmetric matrix.
        """
        return self.pull_back(scores, attention, changes)

    @abstractmethod
    def response(self, scores: Float[Tensor, "n n"]) -> Response:
        """How the weight of one word answers to its own score."""

    def softened(self, width: float) -> "Score | None":
        """The score with its kinks rounded off over `width`, for a search to climb first; None where there is none."""
        return None

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
        self._logit = torch.empty_like(scores)
        for block in row_blocks(*scores.shape):
            self._logit[:, block] = self._logits(scores[block]).T

    @staticmethod
    def _logits(scores: Float[Tensor, "r n"]) -> Float[Tensor, "r n"]:
        total = torch.logsumexp(scores, dim=1, keepdim=True)
        attention = torch.exp(scores - total)
        # log(sum without i) = total + log(1 - a) where a is at most 1/2; past that it would cancel.
        rest = total + torch.log1p(-attention.clamp(max=0.5))
        largest, word = attention.max(dim=1)
        row = (largest > 0.5).nonzero().squeeze(1)
        if len(row):
            others = scores[row].scatter(1, word[row].unsqueeze(1), -torch.inf)
            rest[row, word[row]] = torch.logsumexp(others, dim=1)
        return scores - rest

    def move(self, moved: Float[Tensor, "b n"], words: Int[Tensor, " b"]) -> Moved:
        logit = self._logit.index_select(0, words)
        odds = logit.clamp(max=0).exp_()  # a/(1 - a), where a is at most 1/2
        p = logit.add_(moved).sigmoid_()
        # 1 - p may have lost its relative precision, but only where p is near 1 and the term is dwarfed by p Delta.
        rest = 1 - p
        # (p - a)/(1 - a) = p + odds (1 - p) times tanh(t/2): no cancellation, no overflow.
        gain = torch.addcmul(p, odds, rest).mul_(_tanh_half(moved))
        p_slope = rest.mul_(p)
        return Moved(p, gain, p_slope, odds.mul_(p_slope).add_(p_slope))

    def dominant_gain(
        self, moved: Float[Tensor, " m"], words: Int[Tensor, " m"], rows: Int[Tensor, " m"]
    ) -> Float[Tensor, " m"]:
        return _sigmoid_gain(self._logit[words, rows], moved)


def _sigmoid_gain(logit: Tensor, moved: Tensor) -> Tensor:
    """p - a for a = sigmoid(logit), p = sigmoid(logit + moved): (p (1 - a) + a (1 - p)) tanh(moved/2)."""
    after = logit + moved
    p, a = torch.sigmoid(after), torch.sigmoid(logit)
    spread = torch.sigmoid(-logit).mul_(p).addcmul_(a, torch.sigmoid(after.neg_()))
    return spread.mul_(_tanh_half(moved))


def _tanh_half(t: Tensor) -> Tensor:
    """tanh(t/2) = -y/(2 + y), y = exp(-t) - 1: in half the time of torch.tanh, and as precise near 0."""
    y = t.neg().clamp_(max=80.0).expm1_()  # past 80 the quotient is 1 to rounding, and exp must not overflow
    return y.div_(y + 2).neg_()


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

    def push_forward(
        self, scores: Float[Tensor, "b n"], attention: Float[Tensor, "b n"], changes: Float[Tensor, "b n"]
    ) -> Float[Tensor, "b n"]:
        total = _or_one(torch.relu(scores).sum(dim=-1, keepdim=True))
        moved = torch.where(scores > 0, changes, torch.zeros_like(changes)) / total
        return moved - attention * moved.sum(dim=-1, keepdim=True)

    def softened(self, width: float) -> Score:
        from wordsens.maps.softened import SoftRelu

        return SoftRelu(normalized=self.normalized, width=width)

    def response(self, scores: Float[Tensor, "n n"]) -> Response:
        return _NormalizedReluResponse(scores)

    def attention_without(self, scores: Float[Tensor, "r n"], word: Int[Tensor, " r"]) -> Float[Tensor, "r n"]:
        return self.attention(scores.scatter(1, word.unsqueeze(1), 0.0))


class _NormalizedReluResponse(Response):
    """p = v / (v + rest), v = relu(s + t), rest the sum of the row's other weights; 0 where v is 0."""

    def __init__(self, scores: Float[Tensor, "n n"]):
        self._scores = torch.empty_like(scores)
        self._rest = torch.empty_like(scores)
        for block in row_blocks(*scores.shape):
            self._scores[:, block] = scores[block].T
            self._rest[:, block] = self._rests(scores[block]).T

    @staticmethod
    def _rests(scores: Float[Tensor, "r n"]) -> Float[Tensor, "r n"]:
        weights = torch.relu(scores)
        total = weights.sum(dim=1, keepdim=True)
        rest = total - weights
        # total - weight cancels where one word has more than half of the sum.
        row, word = (weights > 0.5 * total).nonzero(as_tuple=True)
        if len(row):
            rest[row, word] = weights[row].scatter(1, word.unsqueeze(1), 0.0).sum(dim=1)
        return rest

    def move(self, moved: Float[Tensor, "b n"], words: Int[Tensor, " b"]) -> Moved:
        score, rest = self._scores.index_select(0, words), self._rest.index_select(0, words)
        before = torch.relu(score)
        after = score.add_(moved).relu_()
        positive = torch.sign(after)
        old_total, total = before + rest, _or_one(after + rest)
        # (p - a)/(1 - a) = (after - before)/total, also in a row of zeros, which word i then has for itself.
        gain = (after - before).div_(total)
        gain_slope = old_total.mul_(positive).div_(total).div_(total)
        p_slope = rest.mul_(positive).div_(total).div_(total)
        return Moved(after.div_(total), gain, p_slope, gain_slope)

    def dominant_gain(
        self, moved: Float[Tensor, " m"], words: Int[Tensor, " m"], rows: Int[Tensor, " m"]
    ) -> Float[Tensor, " m"]:
        score, rest = self._scores[words, rows], self._rest[words, rows]
        before, after = torch.relu(score), torch.relu(score + moved)
        old_total, total = before + rest, _or_one(after + rest)
        # Where nothing else is positive, p and a are 0 or 1.
        return torch.where(rest == 0, after / total - 1, (after - before) / total * (rest / old_total))


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

    def softened(self, width: float) -> Score:
        from wordsens.maps.softened import SoftRelu

        return SoftRelu(normalized=self.normalized, width=width)

    def move_weight(self, score: Tensor, moved: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        after = torch.relu(score + moved)
        return after, after - torch.relu(score), torch.sign(after)


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
        p = torch.sigmoid(score + moved)
        return p, _sigmoid_gain(score, moved), p - p * p


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
        return score + moved, moved.clone(), torch.ones_like(moved)


class _UndividedResponse(Response):
    """p = g(s + t): no other score matters."""

    def __init__(self, scores: Float[Tensor, "n n"], score: Relu | Sigmoid | Linear):
        self._scores = scores.T.contiguous()
        self._score = score

    def move(self, moved: Float[Tensor, "b n"], words: Int[Tensor, " b"]) -> Moved:
        p, gain, slope = self._score.move_weight(self._scores.index_select(0, words), moved)
        return Moved(p, gain, slope, slope)


SCORES: dict[str, Score] = {score.name: score for score in (Softmax(), NormalizedRelu(), Relu(), Sigmoid(), Linear())}


def _or_one(total: Tensor) -> Tensor:
    """The divisor, with 1 where it is zero: zero weights stay zero."""
    return torch.where(total > 0, total, torch.ones_like(total))


def row_blocks(n: int, columns: int) -> list[slice]:
    """Which of n rows to work on at a time, so that no temporary array is large beside the arrays that are kept."""
    size = max(1, _BLOCK_NUMBERS // columns)
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


_BLOCK_NUMBERS = 1 << 21
