"""Many independent ascents at once, the two rules that tell each where to step, and the check of where they end."""

from abc import ABC, abstractmethod
from dataclasses import replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from wordsens.search.objective import Ball, Objective, SearchResult, unit
from wordsens.seeds import gaussian_on

PATIENCE = 8
"""An ascent stops after this many steps in a row that gained less than the tolerance."""


def evaluated(
    objective: Objective, x: Float[Tensor, "b size"], words: Int[Tensor, " b"], radius: Float[Tensor, " b"]
) -> tuple[Float[Tensor, " b"], Float[Tensor, "b size"]]:
    """The objective at Delta = radius x, and its gradient in x; -1 and zeros where it is not a number."""
    scale = radius.to(x.dtype).unsqueeze(1)
    squared, gradient = objective.value_and_gradient((x * scale).unflatten(1, objective.shape), words)
    gradient = gradient.flatten(start_dim=1) * scale
    lost = squared.isnan().nonzero().squeeze(1)
    if len(lost):
        squared, gradient = squared.index_fill(0, lost, -1.0), gradient.index_fill(0, lost, 0.0)
    return squared, gradient


class Climb:
    """b ascents of an objective, in the coordinates x = Delta / radius.

    A point is a flat vector of one or more equal blocks, each with a ball of its own: one block for one word, or for
    several words in a joint ball; several blocks for several words with a ball each.

    Attributes:
        words, radius: (b,), the word (or group) of each ascent, and the radius of its balls.
        blocks: how many balls a point has.
        x: (b, size), the best point so far; every block has norm at most 1.
        squared: (b,), the objective there.
        slope: (b, size), its gradient in x.
        idle: (b,), how many steps in a row gained less than the tolerance.
    """

    def __init__(
        self,
        objective: Objective,
        words: Int[Tensor, " b"],
        radius: Float[Tensor, " b"],
        x: Float[Tensor, "b size"],
        blocks: int = 1,
    ):
        self.objective, self.words, self.radius, self.blocks = objective, words, radius, blocks
        self.x = self.into_ball(x)
        self.squared, self.slope = self.evaluate(self.x)
        self.idle = torch.zeros_like(words)
        self._projected: Tensor | None = None

    def __len__(self) -> int:
        return len(self.words)

    def evaluate(self, x: Float[Tensor, "b size"]) -> tuple[Float[Tensor, " b"], Float[Tensor, "b size"]]:
        """The objective and its gradient in x."""
        return evaluated(self.objective, x, self.words, self.radius)

    def into_ball(self, x: Float[Tensor, "b size"]) -> Float[Tensor, "b size"]:
        """The nearest points whose blocks lie in the unit ball, a few units of the last place inside it."""
        blocks = x.unflatten(1, (self.blocks, -1))
        norm = torch.linalg.vector_norm(blocks, dim=-1, keepdim=True)
        limit = 1 - 4 * torch.finfo(x.dtype).eps
        return (blocks * torch.where(norm > limit, limit / norm, torch.ones_like(norm))).flatten(start_dim=1)

    def feasible(self, direction: Float[Tensor, "b size"], x: Float[Tensor, "b size"]) -> Float[Tensor, "b size"]:
        """The direction without the outward part of each block that lies on its sphere."""
        direction, x = direction.unflatten(1, (self.blocks, -1)), x.unflatten(1, (self.blocks, -1))
        outward = torch.linalg.vecdot(direction, x).clamp(min=0)
        # `into_ball` leaves points of the sphere a few units of the last place inside it.
        on_sphere = torch.linalg.vector_norm(x, dim=-1) > 1 - 64 * torch.finfo(x.dtype).eps
        away = torch.where(on_sphere, outward, torch.zeros_like(outward)).unsqueeze(-1)
        return torch.addcmul(direction, x, away, value=-1).flatten(start_dim=1)

    def along(self, direction: Float[Tensor, "b size"]) -> Float[Tensor, "b size"]:
        """The direction made tangent to each sphere against which the slope presses; `feasible` elsewhere.

        There a step's inward part would lose in the first order what its tangent part gains in the second. An objective
        with kinks is left its inward steps: its gradient says less about what lies ahead.
        """
        if self.objective.inward:
            return self.feasible(direction, self.x)
        blocks, x = direction.unflatten(1, (self.blocks, -1)), self.x.unflatten(1, (self.blocks, -1))
        pressing = torch.linalg.vecdot(self.slope.unflatten(1, (self.blocks, -1)), x) > 0
        inward = torch.linalg.vecdot(blocks, x).clamp(max=0)
        on_sphere = torch.linalg.vector_norm(x, dim=-1) > 1 - 64 * torch.finfo(x.dtype).eps
        away = torch.where(on_sphere & pressing, inward, torch.zeros_like(inward)).unsqueeze(-1)
        return self.feasible(torch.addcmul(blocks, x, away, value=-1).flatten(start_dim=1), self.x)

    def projected_gradient(self) -> Float[Tensor, "b size"]:
        """The gradient as far as the balls let it be followed: zero at a stationary point."""
        if self._projected is None:
            self._projected = self.feasible(self.slope, self.x)
        return self._projected

    def move(self, trial: Float[Tensor, "b size"], tolerance: float) -> Bool[Tensor, " b"]:
        """Try the points; go to those that gain. Returns which did."""
        trial = self.into_ball(trial)
        squared, slope = self.evaluate(trial)
        better = squared > self.squared
        gained = better & (squared > self.squared * (1 + tolerance))
        self.idle = torch.where(gained, 0, self.idle + 1)
        # Most trials gain: what did not is put back, which is faster than choosing row by row.
        stay = (~better).nonzero().squeeze(1)
        for new, old in ((trial, self.x), (slope, self.slope), (squared, self.squared)):
            new[stay] = old[stay]
        self.x, self.slope, self.squared, self._projected = trial, slope, squared, None
        return better

    def select(self, chosen: Int[Tensor, " c"]) -> "Climb":
        """The chosen ascents, as they stand."""
        part = object.__new__(Climb)
        part.objective, part.blocks, part._projected = self.objective, self.blocks, None
        for name in ("words", "radius", "x", "squared", "slope", "idle"):
            setattr(part, name, getattr(self, name)[chosen])
        return part

    def store(self, chosen: Int[Tensor, " c"], part: "Climb") -> None:
        """Put ascents that `select` took out back in their places."""
        for name in ("x", "squared", "slope", "idle"):
            getattr(self, name)[chosen] = getattr(part, name)
        self._projected = None


class Rule(ABC):
    """A rule for the next step of an ascent. An object serves one run of one batch."""

    @abstractmethod
    def step(self, climb: Climb, tolerance: float) -> None:
        """Move every ascent of the batch once: one evaluation each."""

    @abstractmethod
    def select(self, chosen: Int[Tensor, " c"]) -> None:
        """Keep what was learnt of the chosen ascents only."""


class Momentum(Rule):
    """Steps of adapted length along an average of the past gradients' directions. Takes kinks of phi in its stride.

    m <- 0.7 m + g/‖g‖, x <- x + eta m/‖m‖, m without its outward part on the sphere. A step that gains lengthens
    eta by 30 %; one that loses is taken back, halves eta and clears m.
    """

    KEEP, GROW, SHRINK, LONGEST = 0.7, 1.3, 0.5, 4.0

    def __init__(self, climb: Climb, *, first: float = 0.4):
        self._eta = torch.full_like(climb.squared, first)
        self._memory = torch.zeros_like(climb.x)

    def step(self, climb: Climb, tolerance: float) -> None:
        memory = unit(climb.slope).add_(self._memory, alpha=self.KEEP)
        direction = unit(climb.feasible(memory, climb.x))
        better = climb.move(climb.x + self._eta.unsqueeze(1) * direction, tolerance)
        self._memory = torch.where(better.unsqueeze(1), memory, torch.zeros_like(memory))
        self._eta = torch.where(better, self._eta * self.GROW, self._eta * self.SHRINK).clamp(max=self.LONGEST)

    def select(self, chosen: Int[Tensor, " c"]) -> None:
        self._eta, self._memory = self._eta[chosen], self._memory[chosen]


class QuasiNewton(Rule):
    """Limited-memory BFGS on the sphere (or inside the ball, where the maximum lies there): for smooth phi.

    The two-loop recursion over the last pairs of a step and the change of the feasible gradient. A trial that loses is
    taken back, its ascent forgets its pairs, and the next step, along the gradient, is a quarter as long. Steps are at
    most half a radius.
    """

    MEMORY, LONGEST = 5, 0.5

    def __init__(self, climb: Climb, *, first: float = 0.4):
        self._history: list[tuple[Tensor, Tensor, Tensor]] = []
        self._scale = torch.ones_like(climb.squared)
        length = torch.linalg.vector_norm(climb.projected_gradient(), dim=1)
        # Step per gradient where no pair is known: the last pair's, at first what makes a step of length `first`.
        self._gamma = first / torch.where(length > 0, length, torch.ones_like(length))

    def step(self, climb: Climb, tolerance: float) -> None:
        before, projected_gradient = climb.x, climb.projected_gradient()
        direction = climb.along(self._direction(projected_gradient))
        downhill = torch.linalg.vecdot(direction, projected_gradient) <= 0
        if bool(downhill.any()):
            direction = torch.where(downhill.unsqueeze(1), projected_gradient * self._gamma.unsqueeze(1), direction)
        length = torch.linalg.vector_norm(direction, dim=1)
        step = (self._scale * length).clamp(max=self.LONGEST)
        better = climb.move(before + step.unsqueeze(1) * unit(direction), tolerance)

        # Zero where the trial lost and the ascent stays.
        moved, bent = climb.x - before, projected_gradient - climb.projected_gradient()
        curvature = torch.linalg.vecdot(moved, bent)
        squared = torch.linalg.vecdot(bent, bent)
        norms = torch.linalg.vector_norm(moved, dim=1) * squared.sqrt()
        useful = better & (curvature > 10 * torch.finfo(norms.dtype).eps * norms)
        inverse = torch.where(useful, 1 / curvature, torch.zeros_like(curvature))
        self._gamma = torch.where(useful, curvature / squared, self._gamma)
        earlier = [(m, b, torch.where(better, i, torch.zeros_like(i))) for m, b, i in self._history]
        self._history = [*earlier, (moved, bent, inverse)][-self.MEMORY :]
        self._scale = torch.where(better, (2 * self._scale).clamp(max=1), self._scale / 4)

    def _direction(self, projected_gradient: Float[Tensor, "b size"]) -> Float[Tensor, "b size"]:
        direction = projected_gradient.clone()
        weights = []
        for moved, bent, inverse in reversed(self._history):
            weight = inverse * torch.linalg.vecdot(moved, direction)
            direction.addcmul_(bent, weight.unsqueeze(1), value=-1)
            weights.append(weight)
        direction *= self._gamma.unsqueeze(1)
        for (moved, bent, inverse), weight in zip(self._history, reversed(weights), strict=True):
            back = inverse * torch.linalg.vecdot(bent, direction)
            direction.addcmul_(moved, (weight - back).unsqueeze(1))
        return direction

    def select(self, chosen: Int[Tensor, " c"]) -> None:
        self._history = [(m[chosen], b[chosen], i[chosen]) for m, b, i in self._history]
        self._scale, self._gamma = self._scale[chosen], self._gamma[chosen]


STEEPNESS = 0.01
"""A point is stationary where the squared change f rises along its feasible gradient g by less than this times 2 f a
radius."""

TRIALS = (1e-2, 1e-3)
"""The steps, in radii, along g after which f decides where |g| says nothing: at a kink g belongs to one side of it."""

_DRAWS, _AT_ONCE = 2000, 50
"""Points that are tried for a word at which the gradient vanishes, and how many a round."""


def verify_stationary(
    objective: Objective,
    words: Int[Tensor, " w"],
    ball: Ball,
    result: SearchResult,
    *,
    blocks: int = 1,
    generator: torch.Generator,
) -> SearchResult:
    """The result with `converged` only where the best point is stationary, and sampled where the gradient is zero.

    Stationary in the first order and in the map's own precision: |g| <= STEEPNESS * 2 f in the coordinates
    Delta / radius, g the gradient of f as far as the ball lets it be followed; or, at a kink, no gain above that rate
    after short steps along g. Where the gradient is exactly zero, as everywhere for a piecewise constant phi, random
    points and mixtures with the best of them are tried instead, and nothing is called converged.
    """
    climb = Climb(objective, words, ball.radius, _coordinates(result.perturbations, ball, blocks), blocks)
    flat = (climb.slope == 0).all(dim=1)
    steep = torch.linalg.vector_norm(climb.projected_gradient(), dim=1)
    stationary = steep <= STEEPNESS * 2 * climb.squared
    unsure = (~stationary & result.converged).nonzero().squeeze(1)
    if len(unsure):
        stationary[unsure] = _gains_nothing(climb.select(unsure), steep[unsure])
    spent = result.spent + 1
    spent[unsure] += len(TRIALS)
    result = replace(result, converged=result.converged & stationary & ~flat, spent=spent)
    return _sampled(result, climb, flat.nonzero().squeeze(1), ball, generator) if bool(flat.any()) else result


def _gains_nothing(climb: Climb, steep: Float[Tensor, " b"]) -> Bool[Tensor, " b"]:
    projected_gradient = climb.projected_gradient() / steep.unsqueeze(1)
    still = torch.ones_like(climb.squared, dtype=torch.bool)
    for step in TRIALS:
        ahead, _ = climb.evaluate(climb.into_ball(climb.x + step * projected_gradient))
        still &= ahead - climb.squared <= STEEPNESS * 2 * climb.squared * step
    return still


def _sampled(
    result: SearchResult, climb: Climb, flat: Int[Tensor, " f"], ball: Ball, generator: torch.Generator
) -> SearchResult:
    """The result with the flat words' points replaced by better ones, where sampling finds them.

    Half of the points are uniform on the sphere; the others are the best so far, moved by a random fraction of a
    radius, which climbs the steps of a piecewise constant map.
    """
    best, squared = climb.x[flat], climb.squared[flat]
    words, scale = climb.words[flat], climb.radius[flat].to(best.dtype).unsqueeze(1)
    for _ in range(_DRAWS // _AT_ONCE):
        drawn = gaussian_on(_AT_ONCE, *best.shape, generator=generator, dtype=best.dtype, device=best.device)
        drawn = _unit(drawn, climb.blocks)
        share = torch.rand(_AT_ONCE // 2, len(flat), 1, generator=generator, dtype=best.dtype, device=generator.device)
        drawn[: _AT_ONCE // 2] = _unit(best + share.to(best.device) * drawn[: _AT_ONCE // 2], climb.blocks)
        moved = (drawn * scale).flatten(end_dim=1).unflatten(1, climb.objective.shape)
        tried = climb.objective.value(moved, words.repeat(_AT_ONCE)).nan_to_num(-1.0, torch.inf).view(_AT_ONCE, -1)
        value, draw = tried.max(dim=0)
        better = value > squared
        best = torch.where(better.unsqueeze(1), drawn[draw, torch.arange(len(flat), device=draw.device)], best)
        squared = torch.where(better, value, squared)
    perturbations, values, spent = result.perturbations.clone(), result.squared.clone(), result.spent.clone()
    blocks = (best.unflatten(1, (climb.blocks, -1))).transpose(0, 1)
    inside = Ball(ball.radius[flat]).project(blocks * scale).transpose(0, 1)
    perturbations[flat], values[flat] = inside.reshape(len(flat), *climb.objective.shape), squared
    spent[flat] += _DRAWS
    return replace(result, perturbations=perturbations, squared=values, spent=spent)


def _coordinates(perturbations: Tensor, ball: Ball, blocks: int) -> Float[Tensor, "w size"]:
    """Delta / radius, flat; with points a rounding inside a sphere put on it, as a Climb has them."""
    x = perturbations.flatten(start_dim=1) / ball.radius.to(perturbations.dtype).unsqueeze(1)
    unit, length = _unit(x, blocks), torch.linalg.vector_norm(x.unflatten(1, (blocks, -1)), dim=-1)
    on_sphere = (length > 1 - 64 * torch.finfo(x.dtype).eps).repeat_interleave(x.shape[1] // blocks, dim=1)
    return torch.where(on_sphere, unit, x)


def _unit(points: Float[Tensor, "*ranks size"], blocks: int) -> Float[Tensor, "*ranks size"]:
    split = points.unflatten(-1, (blocks, -1))
    return unit(split).flatten(start_dim=-2)
