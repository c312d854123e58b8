"""Batched projected ascent: many words and many starts at once, for any WordChange."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from wordsens.ball import Ball
from wordsens.feature_map import WordChange

Progress = Callable[[int, int], None]
"""Called with (steps done, steps at most)."""


@dataclass(frozen=True)
class AscentResult:
    """What a search found, word by word.

    Attributes:
        perturbations: (w, d), the best Delta of each word, inside its ball.
        squared: (w,), the searcher's own ‖phi(X^i(Delta)) - phi(X)‖²; recompute it before you trust it.
        evaluations: how many (word, Delta) pairs were evaluated.
        converged: (w,), whether the winning start stopped gaining before the steps ran out.
    """

    perturbations: Float[Tensor, "w d"]
    squared: Float[Tensor, " w"]
    evaluations: int
    converged: Bool[Tensor, " w"]


def ascend(
    change: WordChange,
    words: Int[Tensor, " w"],
    ball: Ball,
    *,
    starts: int,
    steps: int,
    tolerance: float,
    generator: torch.Generator,
    progress: Progress | None = None,
) -> AscentResult:
    """Maximise ‖phi(X^i(Delta)) - phi(X)‖² over the ball of each word, from several starts.

    Each pair (start, word) takes steps Delta <- project(Delta + eta radius g/‖g‖) along the gradient g. A step that
    gains lengthens eta by half; one that loses is taken back and halves eta. With a long eta the step is the ball's
    linear maximiser, which is the power iteration for maps that are nearly linear in Delta. A pair stops
    when `patience` steps in a row gained less than `tolerance`, relative.

    Args:
        change: the map's change on one text.
        words: the word of each ball.
        ball: the radius of each word.
        starts: starting points a word: the map's own directions first, random points of the sphere after them.
        steps: evaluations a start, at most.
        tolerance: the relative gain of the squared change under which a step counts as idle.
        generator: draws the random starts.
        progress: told after every step.

    Cost: one evaluation of `change` on the pairs still running, a step.
    """
    pairs = _Pairs.start(change, words, ball, starts, generator)
    taken = 0
    while taken < steps and pairs.running.any():
        pairs.step(change, tolerance)
        taken += 1
        if progress is not None:
            progress(taken, steps)
    return pairs.best(len(words))


class _Pairs:
    """The state of starts * words ascents, flattened; pair p belongs to word position p % w."""

    GROW, SHRINK, FIRST_STEP, PATIENCE = 1.5, 0.5, 1.0, 4

    def __init__(self, delta: Tensor, words: Tensor, ball: Ball):
        self.delta, self.words, self.ball = delta, words, ball
        count = len(words)
        self.evaluations = 0
        self.idle = torch.zeros(count, dtype=torch.long, device=words.device)
        self.eta = torch.full((count,), self.FIRST_STEP, dtype=delta.dtype, device=words.device)
        self.running = torch.ones(count, dtype=torch.bool, device=words.device)

    @classmethod
    def start(
        cls, change: WordChange, words: Tensor, ball: Ball, starts: int, generator: torch.Generator
    ) -> "_Pairs":
        informed = ball.linear_maximizer(change.starting_directions(words)[:starts])
        dimension = change.rows.shape[1]
        random = ball.sample(
            starts - len(informed), dimension=dimension, generator=generator, dtype=change.rows.dtype
        )
        delta = torch.cat([informed, random]).flatten(end_dim=1)
        pairs = cls(delta, words.repeat(starts), Ball(ball.radius.repeat(starts)))
        pairs.squared, pairs.gradient = change.squared_norm_and_gradient(delta, pairs.words)
        pairs.evaluations = len(delta)
        return pairs

    def step(self, change: WordChange, tolerance: float) -> None:
        at = self.running.nonzero().squeeze(1)
        ball = Ball(self.ball.radius[at])
        delta = self.delta[at]
        move = ball.linear_maximizer(self.gradient[at]) * self.eta[at].unsqueeze(1)
        trial = ball.project(delta + move)
        squared, gradient = change.squared_norm_and_gradient(trial, self.words[at])
        self.evaluations += len(at)
        before = self.squared[at]
        better = squared > before
        gain = torch.where(better, squared - before, torch.zeros_like(before))
        chosen = at[better]
        self.delta[chosen], self.gradient[chosen] = trial[better], gradient[better]
        self.squared[chosen] = squared[better]
        self.eta[at] *= torch.where(better, self.GROW, self.SHRINK).to(self.eta.dtype)
        self.eta[at] = self.eta[at].clamp(max=8.0)
        self.idle[at] = torch.where(gain > tolerance * before, 0, self.idle[at] + 1)
        self.running[at] = self.idle[at] < self.PATIENCE

    def best(self, words: int) -> AscentResult:
        squared, winner = self.squared.view(-1, words).max(dim=0)
        chosen = winner * words + torch.arange(words, device=winner.device)
        return AscentResult(
            perturbations=self.delta[chosen],
            squared=squared,
            evaluations=self.evaluations,
            converged=~self.running[chosen],
        )
