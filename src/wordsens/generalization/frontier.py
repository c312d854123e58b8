"""The frontier of the one-word experiment: the least error that leaves gamma below a limit."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from wordsens.errors import InputError, require_positive
from wordsens.generalization.loss import FEW_WORDS, Loss, LossObjective, OneWordLoss, loss_for, stages_for
from wordsens.generalization.new_text import Learned, NewText, as_new_text
from wordsens.generalization.one_word import Effort, Word, ball_of, error_of, words_of
from wordsens.maps.contract import DEFAULT_MEMORY_BUDGET, FeatureMap
from wordsens.regression import MinNormFit
from wordsens.regression.features import Texts
from wordsens.results import Look, Result
from wordsens.search.ball import Ball
from wordsens.search.climb import Climb, Momentum, QuasiNewton
from wordsens.search.maximize import maximize
from wordsens.search.plan import Search, SearchPlan, Stages
from wordsens.seeds import Seed, generator
from wordsens.text.matrix import TextMatrix

DEFAULT_GAMMAS = (0.1, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75)

STIFFNESS = 50.0
"""Weight of the squared excess of gamma over its limit. A round of multipliers divides the excess by 1 + this / 2."""

ROUNDS = 6
ROUND_STEPS = 15
INSIDE = 1e-4
"""The search aims at limits that are smaller by this much, relative, so that its points end inside the true ones."""


@dataclass(frozen=True, eq=False, repr=False)
class OneWordFrontier(Result):
    """The least errors found under each limit on gamma.

    Every point is attained and recomputed through the map: `errors` are upper bounds of the least errors.

    Attributes:
        gammas: (g,), the limits, ascending.
        errors: (g,), the least Err found with gamma <= the limit; never rises along the grid.
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

    def look(self) -> Look:
        """A row a limit on gamma."""
        columns = {
            "limit on gamma": self.gammas.tolist(),
            "least error": self.errors.tolist(),
            "gamma": self.attained_gammas.tolist(),
            "alignment": self.alignments.tolist(),
            "word": self.words.tolist(),
            "(2 - limit)^2": self.theorem.tolist(),
        }
        return Look(f"{self.map_name}, {self.training}: the least error found under each limit on gamma", columns)

    def at(self, gamma: float) -> float:
        """The least error found with gamma below that limit: the value at the largest limit of the grid up to it."""
        inside = self.errors[self.gammas <= gamma]
        return float(inside[-1]) if len(inside) else self.error_unchanged

    def to_dict(self) -> dict[str, Any]:
        """Everything but the perturbations, as plain Python values."""
        plain = {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "perturbations"}
        return {name: value.tolist() if isinstance(value, Tensor) else value for name, value in plain.items()}


@torch.inference_mode(False)
def one_word_frontier(
    phi: FeatureMap | Callable[[Tensor], Tensor],
    texts: Texts | None,
    y: Iterable[Any] | None,
    x: TextMatrix | Tensor | NewText,
    y_x: float | int | None = None,
    word: Word = 0,
    training: str = "fine-tuned",
    gammas: Iterable[Any] = DEFAULT_GAMMAS,
    seed: Seed = 0,
    *,
    radius: float | int | None = None,
    ridge: float | int = 0.0,
    fit: MinNormFit | None = None,
    search: Search = "normal",
    memory_budget: int = DEFAULT_MEMORY_BUDGET,
) -> OneWordFrontier:
    """min Err over Delta in the ball with |delta| <= g, for each g of a grid (ours).

    For RF the frontier lies near (2 - g)² (Theorems 4 and 5); for attention it need not. Each limit has a loss of its
    own, Err plus an augmented Lagrangian of |delta| <= g; all limits (and words) are searched together and exchange
    their points, and every point that was evaluated counts for every limit it obeys.

    Args:
        phi, texts, y, x, y_x, word, training, seed, radius, ridge, fit, memory_budget: as for
            one_word_generalization.
        gammas: the limits, positive.
        search: "quick", "normal", "thorough" or a SearchPlan: what each search spends.

    Raises:
        InputError: no limit, or one that is not positive; and what one_word_generalization raises.
    """
    started, plan = time.perf_counter(), SearchPlan.of(search)
    new = as_new_text(x, y_x, Learned(phi, texts, y, ridge, fit), memory_budget=memory_budget)
    limits = limits_of(gammas)
    loss = loss_for(new, training, "error")
    words = words_of(word, len(new.text)).to(new.rows.device)
    best = BestUnderLimits(new, loss, limits.to(new.rows.device))
    looks = _Looks(new, loss, best, plan, generator(seed, "frontier", training))
    one_at_a_time = new.functionals(loss.kind).one_word_at_a_time

    def look(chosen: Int[Tensor, " w"], stages: Stages, rounds: int) -> None:
        for group in chosen.split(1 if one_at_a_time else len(chosen)):
            looks.limits(group, ball_of(new, group, radius), stages, rounds)

    first_look, close_look = stages_for(new.functionals(loss.kind))
    if len(words) > FEW_WORDS:
        look(words, first_look, 1)
        words = best.word.unique()
    look(words, close_look, ROUNDS)
    effort = Effort(str(plan), best.evaluations, time.perf_counter() - started, int(seed))
    return frontier_at(new, training, best, effort)


def limits_of(gammas: Iterable[Any]) -> Float[Tensor, " g"]:
    """The limits on gamma, ascending; InputError for one that is not positive, or none."""
    limits = torch.tensor(sorted({require_positive("gammas", gamma) for gamma in gammas}), dtype=torch.float64)
    if len(limits) == 0:
        raise InputError("`gammas` is empty; give at least one positive limit on gamma")
    return limits


class BestUnderLimits:
    """The best point seen under each limit."""

    def __init__(self, new: NewText, loss: OneWordLoss, limits: Float[Tensor, " g"]):
        self._loss, self.limits = loss, limits
        count, d = len(limits), new.rows.shape[1]
        at_rest = loss.miss(new.rows.new_zeros(1, 2)).square()
        self.error = at_rest.double().repeat(count)
        self.word = torch.zeros(count, dtype=torch.long, device=limits.device)
        self.perturbation = new.rows.new_zeros(count, d)
        self.evaluations = 0

    def take(self, word: int, perturbations: Float[Tensor, "g d"]) -> None:
        """The points of a search that kept the best of its own under each limit."""
        self.word, self.perturbation = torch.full_like(self.word, word), perturbations

    def see(self, values: Float[Tensor, "b 2"], words: Int[Tensor, " b"], perturbations: Float[Tensor, "b d"]) -> None:
        """Take what is better than before."""
        self.evaluations += len(words)
        error = self._loss.miss(values).square().double()
        # A point on the limit itself could lie past it when it is recomputed, and then would not count at all.
        inside = values[:, 0].abs().double().unsqueeze(0) <= self.limits.unsqueeze(1) * (1 - INSIDE / 2)
        least, at = torch.where(inside, error, torch.inf).min(dim=1)
        better = least < self.error
        self.error = torch.where(better, least, self.error)
        self.word = torch.where(better, words[at], self.word)
        self.perturbation = torch.where(better.unsqueeze(1), perturbations[at], self.perturbation)


class _Looks:
    """Searches on some words for the least error under each limit."""

    def __init__(
        self, new: NewText, loss: OneWordLoss, best: BestUnderLimits, plan: SearchPlan, stream: torch.Generator
    ):
        self._loss, self._best, self._plan, self._stream = loss, best, plan, stream
        self._functionals, self._dtype = new.functionals(loss.kind), new.rows.dtype

    def limits(self, words: Int[Tensor, " w"], ball: Ball, stages: Stages, rounds: int) -> None:
        """Every pair of a word and a limit is an item; a search, then rounds that raise the multipliers."""
        count = len(self._best.limits)
        limits = (self._best.limits * (1 - INSIDE)).repeat(len(words)).to(self._dtype)
        multipliers = torch.zeros_like(limits)
        loss = _limited(self._loss, limits, multipliers)
        objective = LossObjective(
            self._functionals,
            words.repeat_interleave(count),
            loss,
            wanted=self._loss.wanted(),
            observe=self._best.see,
            stages=stages,
        )
        items = torch.arange(len(limits), device=limits.device)
        radius = ball.radius.repeat_interleave(count)
        found = maximize(objective, items, Ball(radius), self._plan, generator=self._stream)
        points = found.perturbations / radius.to(found.perturbations.dtype).unsqueeze(1)
        for _ in range(rounds):
            excess = objective.functionals(points * radius.to(points.dtype).unsqueeze(1), items)[:, 0].abs() - limits
            multipliers.add_(STIFFNESS * excess).clamp_(min=0)
            climb = Climb(objective, items, radius, points)
            rule = (Momentum if objective.kinked else QuasiNewton)(climb, first=0.05)
            for _ in range(ROUND_STEPS):
                rule.step(climb, objective.stages.tolerance)
            points = climb.x


def _limited(loss: OneWordLoss, limits: Float[Tensor, " m"], multipliers: Float[Tensor, " m"]) -> Loss:
    """Err + max(0, multiplier + stiffness (|delta| - limit))² / (2 stiffness); `multipliers` is read at every call."""

    def limited(values: Tensor, items: Tensor) -> tuple[Tensor, Tensor]:
        error, slopes = loss.loss(values)
        shift = values[:, 0]
        force = (multipliers[items] + STIFFNESS * (shift.abs() - limits[items])).clamp(min=0)
        slopes[:, 0] += force * shift.sign()
        return error + force.square() / (2 * STIFFNESS), slopes

    return limited


def frontier_at(new: NewText, training: str, best: BestUnderLimits, effort: Effort) -> OneWordFrontier:
    """The result: every witness is mapped through phi; a point that then breaks a limit does not count for it."""
    at = [new.outputs(int(word), delta, training) for word, delta in zip(best.word, best.perturbation, strict=True)]
    rest = new.outputs(int(best.word[0]), torch.zeros_like(best.perturbation[0]), training)
    chosen = []
    for limit in best.limits.tolist():
        inside = [(error_of(new, one), index) for index, one in enumerate(at) if abs(one.shift) <= limit]
        chosen.append(min(inside, default=(error_of(new, rest), None), key=lambda pair: pair[0]))
    outputs = [rest if index is None else at[index] for _, index in chosen]
    picked = torch.tensor([0 if index is None else index for _, index in chosen], device=best.word.device)
    still = torch.tensor([index is None for _, index in chosen], device=best.word.device)
    return OneWordFrontier(
        gammas=best.limits,
        errors=torch.tensor([error for error, _ in chosen], dtype=torch.float64),
        attained_gammas=torch.tensor([abs(one.shift) for one in outputs], dtype=torch.float64),
        alignments=torch.tensor([one.alignment for one in outputs], dtype=torch.float64),
        words=best.word[picked],
        perturbations=torch.where(still.unsqueeze(1), 0.0, best.perturbation[picked]),
        theorem=(2 - best.limits).clamp(min=0).square(),
        error_unchanged=error_of(new, rest),
        training=training,
        output_before=new.output_before,
        label=new.label,
        map_name=new.fit.phi.name,
        **vars(effort),
    )
