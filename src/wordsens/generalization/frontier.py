"""The frontier of the one-word experiment: the least error that leaves gamma below a limit."""

import time
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from wordsens.errors import InputError, require_positive
from wordsens.generalization.loss import (
    FEW_WORDS,
    BestPoints,
    Loss,
    Losses,
    LossObjective,
    climb_within_limits,
    stages_for,
)
from wordsens.generalization.new_text import Learner, NewText, as_new_text
from wordsens.generalization.one_word import Effort, Word, ball_of, error_of, words_of
from wordsens.maps.base import DEFAULT_MEMORY_BUDGET
from wordsens.regression.features import Texts
from wordsens.results import Result, ResultTable
from wordsens.search.ball import Ball
from wordsens.search.maximize import maximize
from wordsens.search.plan import Search, SearchPlan, Stages
from wordsens.seeds import Seed, generator
from wordsens.text.matrix import TextMatrix

DEFAULT_GAMMAS = (0.1, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75)

ROUNDS, ROUND_STEPS = 6, 15
"""Of the multipliers, and of the climb after each."""


@dataclass(frozen=True, eq=False, repr=False)
class OneWordFrontier(Result):
    """The least errors that a search reached under each limit on gamma.

    Every point is attained and recomputed through the map: `errors` are upper bounds of the least errors.

    Attributes:
        gammas: (g,), the limits, ascending.
        errors: (g,), the least Err reached with gamma <= the limit; never rises along the grid.
        attained_gammas: (g,), the gamma of that witness.
        alignments: (g,), its F.
        words: (g,), its word.
        perturbations: (g, d).
        theorem: (g,), (2 - limit)², where Theorems 4 and 5 put RF in the limit; 0 past 2.
        error_unchanged: Err at Delta = 0.
        training: how (X, y) was learned.
        output_before: phi(X).theta*.
        label: y.
        search: what each search was allowed, in words, such as "normal".
        evaluations: how many perturbed texts were evaluated.
        seconds: what the call took.
        seed: of the random starts.
        map_name: the map's name.
    """

    gammas: Float[Tensor, " g"]
    errors: Float[Tensor, " g"]
    attained_gammas: Float[Tensor, " g"]
    alignments: Float[Tensor, " g"]
    words: Int[Tensor, " g"]
    perturbations: Float[Tensor, "g d"]
    theorem: Float[Tensor, " g"]
    error_unchanged: float
    training: str
    output_before: float
    label: float
    search: str
    evaluations: int
    seconds: float = field(compare=False)
    seed: int
    map_name: str

    def result_table(self) -> ResultTable:
        """A row a limit on gamma."""
        columns = {
            "limit on gamma": self.gammas.tolist(),
            "least error": self.errors.tolist(),
            "gamma": self.attained_gammas.tolist(),
            "alignment": self.alignments.tolist(),
            "word": self.words.tolist(),
            "(2 - limit)^2": self.theorem.tolist(),
        }
        return ResultTable(f"{self.map_name}, {self.training}: least error reached under each limit on gamma", columns)

    def at(self, gamma: float) -> float:
        """The least error reached with gamma below that limit: the value at the largest limit of the grid up to it."""
        inside = self.errors[self.gammas <= gamma]
        return float(inside[-1]) if len(inside) else self.error_unchanged

    def to_dict(self) -> dict[str, Any]:
        """Everything but the perturbations, as plain Python values."""
        plain = {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "perturbations"}
        return {name: value.tolist() if isinstance(value, Tensor) else value for name, value in plain.items()}


@torch.inference_mode(False)
def one_word_frontier(
    phi: Learner,
    texts: Texts | None = None,
    y: Iterable[Any] | None = None,
    x: TextMatrix | Tensor | None = None,
    y_x: float | int | None = None,
    *,
    word: Word = 0,
    training: str = "fine-tuned",
    gammas: Iterable[Any] = DEFAULT_GAMMAS,
    seed: Seed = 0,
    radius: float | int | None = None,
    ridge: float | int = 0.0,
    search: Search = "normal",
    memory_budget: int = DEFAULT_MEMORY_BUDGET,
) -> OneWordFrontier:
    """min Err over Delta in the ball with |delta| <= g, for each g of a grid (ours).

    For RF the frontier lies near (2 - g)² (Theorems 4 and 5); for attention it need not. Each limit has a loss of its
    own, Err plus an augmented Lagrangian of |delta| <= g; all limits (and words) are searched together and exchange
    their points, and every point that was evaluated counts for every limit it obeys.

    Args:
        phi, texts, y, x, y_x, word, training, seed, radius, ridge, memory_budget: as for one_word_generalization.
        gammas: the limits, positive.
        search: "quick", "normal", "thorough" or a SearchPlan: what each search spends.

    Raises:
        InputError: no limit, or one that is not positive; and what one_word_generalization raises.
    """
    started, plan = time.perf_counter(), SearchPlan.of(search)
    new = as_new_text(phi, texts, y, x, y_x, ridge=ridge, memory_budget=memory_budget)
    limits = limits_of(gammas)
    losses = Losses(new, losses_under(training, limits))
    words = words_of(word, len(new.text)).to(new.rows.device)
    best, stream = BestPoints(losses, new), generator(seed, "frontier", training)

    def search_words(chosen: Int[Tensor, " w"], stages: Stages, rounds: int) -> None:
        """Every pair of a word and a limit is an item; a search, then rounds that raise the multipliers."""
        for group in chosen.split(1 if losses.functionals.one_word_at_a_time else len(chosen)):
            items = losses.repeated(len(group))
            objective = LossObjective(items, group.repeat_interleave(len(losses)), stages, observe=best.see)
            reach = ball_of(new, group, radius).radius.repeat_interleave(len(losses))
            each = torch.arange(len(items), device=reach.device)
            points = maximize(objective, each, Ball(reach), plan, generator=stream).perturbations
            points = points / reach.to(points.dtype).unsqueeze(1)
            climb_within_limits(objective, items, reach, points, rounds=rounds, steps=ROUND_STEPS)

    first_stages, close_stages = stages_for(losses.functionals)
    if len(words) > FEW_WORDS:
        search_words(words, first_stages, 1)
        words = best.words.unique()
    search_words(words, close_stages, ROUNDS)
    effort = Effort(str(plan), best.evaluations, time.perf_counter() - started, int(seed))
    return frontier_at(new, training, limits, best.words, best.perturbations, effort)


def limits_of(gammas: Iterable[Any]) -> Float[Tensor, " g"]:
    """The limits on gamma, ascending; InputError for one that is not positive, or none."""
    limits = torch.tensor(sorted({require_positive("gammas", gamma) for gamma in gammas}), dtype=torch.float64)
    if len(limits) == 0:
        raise InputError("`gammas` is empty; give at least one positive limit on gamma")
    return limits


def losses_under(training: str, limits: Float[Tensor, " g"]) -> list[Loss]:
    """Err under each limit."""
    return [replace(Loss.of(training, "error"), limit=limit) for limit in limits.tolist()]


def frontier_at(
    new: NewText,
    training: str,
    limits: Float[Tensor, " g"],
    words: Int[Tensor, " g"],
    perturbations: Float[Tensor, "g d"],
    effort: Effort,
) -> OneWordFrontier:
    """The result: every witness is mapped through phi; a point that then breaks a limit does not count for it."""
    at = [new.outputs(int(word), delta, training) for word, delta in zip(words, perturbations, strict=True)]
    at_rest = new.outputs(int(words[0]), torch.zeros_like(perturbations[0]), training)
    chosen = []
    for limit in limits.tolist():
        inside = [(error_of(new, one), index) for index, one in enumerate(at) if abs(one.shift) <= limit]
        chosen.append(min(inside, default=(error_of(new, at_rest), None), key=lambda pair: pair[0]))
    outputs = [at_rest if index is None else at[index] for _, index in chosen]
    picked = torch.tensor([0 if index is None else index for _, index in chosen], device=words.device)
    unmoved = torch.tensor([index is None for _, index in chosen], device=words.device)
    return OneWordFrontier(
        gammas=limits.to(words.device),
        errors=torch.tensor([error for error, _ in chosen], dtype=torch.float64),
        attained_gammas=torch.tensor([abs(one.shift) for one in outputs], dtype=torch.float64),
        alignments=torch.tensor([one.alignment for one in outputs], dtype=torch.float64),
        words=words[picked],
        perturbations=torch.where(unmoved.unsqueeze(1), 0.0, perturbations[picked]),
        theorem=(2 - limits).clamp(min=0).square().to(words.device),
        error_unchanged=error_of(new, at_rest),
        training=training,
        output_before=new.output_before,
        label=new.label,
        map_name=new.fit.phi.name,
        **vars(effort),
    )
