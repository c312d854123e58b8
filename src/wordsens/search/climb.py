"""Many independent ascents at once, the two rules that tell each where to step, and the check of
where they end."""

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
    objective: Objective,
    x: Float[Tensor, "b size"],
    words: Int[Tensor, " b"],
    radius: Float[Tensor, " b"],
) -> tuple[Float[Tensor, " b"], Float[Tensor, "b size"]]:
    """The objective at Delta = radius x, and its gradient in x; -1 and zeros where it is not a
    number."""
    scale = radius.to(x.dtype).unsqueeze(1)
    squared, gradient = objective.value_and_gradient(
        (x * scale).unflatten(1, objective.shape), words
    )
    lost = squared.isnan()
    return squared.masked_fill(lost, -1.0), (gradient.flatten(start_dim=1) * scale).masked_fill(
        lost.unsqueeze(1), 0.0
    )


class Climb:
    """b ascents of an objective, in the coordinates x = Delta / radius. Steps change all tensors in
    place.

    A point is a flat vector of one or more equal blocks, each with a ball of its own: one block for
    one word, or for several words in a joint ball; several blocks for several words with a ball
    each.

    Attributes:
        words, radius: (b,), the word (or group) of each ascent, and the radius of its balls.
        blocks: how many balls a point has.
        x: (b, size), the best point so far; every block has norm at most 1.
        squared: (b,), the objective there.
        slope: (b, size), its gradient in x.
        projected_gradient: (b, size), the gradient as far as the balls let it be followed: zero at
            a stationary point.
        idle: (b,), how many steps in a row gained less than the tolerance; from PATIENCE on an
            ascent stands still.
        steps: (b,), how many steps it took.
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
        self.idle, self.steps = torch.zeros_like(words), torch.zeros_like(words)
        self.projected_gradient = self.feasible(self.slope, self.x)

    def __len__(self) -> int:
        return len(self.words)

    def evaluate(
        self, x: Float[Tensor, "b size"]
    ) -> tuple[Float[Tensor, " b"], Float[Tensor, "b size"]]:
        """The objective and its gradient in x."""
        return evaluated(self.objective, x, self.words, self.radius)

    def into_ball(self, x: Float[Tensor, "b size"]) -> Float[Tensor, "b size"]:
        """The nearest points whose blocks lie in the unit ball, a few units of the last place
        inside it."""
        blocks = x.unflatten(1, (self.blocks, -1))
        norm = torch.linalg.vector_norm(blocks, dim=-1, keepdim=True)
        limit = 1 - 4 * torch.finfo(x.dtype).eps
        return (blocks * torch.where(norm > limit, limit / norm, torch.ones_like(norm))).flatten(
            start_dim=1
        )

    def feasible(
        self, direction: Float[Tensor, "b size"], x: Float[Tensor, "b size"]
    ) -> Float[Tensor, "b size"]:
        """The direction without the outward part of each block that lies on its sphere."""
        direction, x = direction.unflatten(1, (self.blocks, -1)), x.unflatten(1, (self.blocks, -1))
        outward = torch.linalg.vecdot(direction, x).clamp(min=0)
        # `into_ball` leaves points of the sphere a few units of the last place inside it.
        on_sphere = torch.linalg.vector_norm(x, dim=-1) > 1 - 64 * torch.finfo(x.dtype).eps
        away = torch.where(on_sphere, outward, torch.zeros_like(outward)).unsqueeze(-1)
        return torch.addcmul(direction, x, away, value=-1).flatten(start_dim=1)

    def along(self, direction: Float[Tensor, "b size"]) -> Float[Tensor, "b size"]:
        """The direction made tangent to each sphere against which the slope presses; `feasible`
        elsewhere.

        There a step's inward part would lose in the first order what its tangent part gains in the
        second. An objective with kinks is left its inward steps: its gradient says less about what
        lies ahead.
        """
        if self.objective.inward:
            return self.feasible(direction, self.x)
        blocks, x = (
            direction.unflatten(1, (self.blocks, -1)),
            self.x.unflatten(1, (self.blocks, -1)),
        )
        pressing = torch.linalg.vecdot(self.slope.unflatten(1, (self.blocks, -1)), x) > 0
        inward = torch.linalg.vecdot(blocks, x).clamp(max=0)
        on_sphere = torch.linalg.vector_norm(x, dim=-1) > 1 - 64 * torch.finfo(x.dtype).eps
        away = torch.where(on_sphere & pressing, inward, torch.zeros_like(inward)).unsqueeze(-1)
        return self.feasible(torch.addcmul(blocks, x, away, value=-1).flatten(start_dim=1), self.x)

    def move(self, trial: Float[Tensor, "b size"], tolerance: float) -> Bool[Tensor, " b"]:
        """Try the points; go to those that gain, but for ascents that stand still. Returns which
        went."""
        trial, going = self.into_ball(trial), self.idle < PATIENCE
        squared, slope = self.evaluate(trial)
        better = (squared > self.squared) & going
        gained = better & (squared > self.squared * (1 + tolerance))
        self.idle.copy_(torch.where(gained, 0, self.idle + 1))
        self.steps.add_(going)
        for current, tried in ((self.x, trial), (self.slope, slope)):
            torch.where(better.unsqueeze(1), tried, current, out=current)
        torch.where(better, squared, self.squared, out=self.squared)
        self.projected_gradient.copy_(self.feasible(self.slope, self.x))
        return better

    def select(self, chosen: Int[Tensor, " c"]) -> "Climb":
        """The chosen ascents, as they stand."""
        part = object.__new__(Climb)
        part.objective, part.blocks = self.objective, self.blocks
        for name in ("words", "radius", *_STATE):
            setattr(part, name, getattr(self, name)[chosen])
        return part

    def of_texts(self) -> "list[Climb]":
        """The ascents of each text, under the objective of that text alone."""
        parts = []
        for text, (objective, places) in enumerate(
            zip(
                self.objective.alone,
                torch.arange(len(self)).chunk(self.objective.texts),
                strict=True,
            )
        ):
            part = self.select(places.to(self.words.device))
            part.objective, part.words = objective, part.words - text * self.objective.stride
            parts.append(part)
        return parts

    def store(self, chosen: Int[Tensor, " c"], part: "Climb") -> None:
        """Put ascents that `select` took out back in their places."""
        for name in _STATE:
            getattr(self, name)[chosen] = getattr(part, name)


_STATE = "x", "squared", "slope", "projected_gradient", "idle", "steps"


class Rule(ABC):
    """A rule for the next step of an ascent. An object serves one run of one batch."""

    @abstractmethod
    def step(self, climb: Climb, tolerance: float) -> None:
        """Move every ascent of the batch once: one evaluation each."""

    @abstractmethod
    def select(self, chosen: Int[Tensor, " c"]) -> None:
        """Keep what was learnt of the chosen ascents only."""


class Momentum(Rule):
    """Steps of adapted length along an average of the past gradients' directions. Takes kinks of
    phi in its stride.

    m <- 0.7 m + g/‖g‖, x <- x + eta m/‖m‖, m without its outward part on the sphere. A step that
    gains lengthens eta by 30 %; one that loses is taken back, halves eta and clears m.
    """

    KEEP, GROW, SHRINK, LONGEST = 0.7, 1.3, 0.5, 4.0

    def __init__(self, climb: Climb, *, first: float = 0.4):
        self._eta = torch.full_like(climb.squared, first)
        self._memory = torch.zeros_like(climb.x)

    def step(self, climb: Climb, tolerance: float) -> None:
        memory = unit(climb.slope).add_(self._memory, alpha=self.KEEP)
        direction = unit(climb.feasible(memory, climb.x))
        better = climb.move(climb.x + self._eta.unsqueeze(1) * direction, tolerance)
        self._memory.copy_(memory.masked_fill_(~better.unsqueeze(1), 0.0))
        self._eta.mul_(torch.where(better, self.GROW, self.SHRINK)).clamp_(max=self.LONGEST)

    def select(self, chosen: Int[Tensor, " c"]) -> None:
        self._eta, self._memory = self._eta[chosen], self._memory[chosen]


class QuasiNewton(Rule):
    """Limited-memory BFGS on the sphere (or inside the ball, where the maximum lies there): for
    smooth phi.

    The two-loop recursion over the last pairs of a step and the change of the feasible gradient. A
    trial that loses is taken back, its ascent forgets its pairs, and the next step, along the
    gradient, is a quarter as long. Steps are at most half a radius.
    """

    MEMORY = 5
    LONGEST = 0.5

    def __init__(self, climb: Climb, *, first: float = 0.4):
        # Of the last steps, in a ring: the step, what the gradient lost, and 1 over their product;
        # 0 of no step.
        self._moved = [torch.zeros_like(climb.x) for _ in range(self.MEMORY)]
        self._bent = [torch.zeros_like(climb.x) for _ in range(self.MEMORY)]
        self._inverse = [torch.zeros_like(climb.squared) for _ in range(self.MEMORY)]
        self._next = 0
        self._scale = torch.ones_like(climb.squared)
        length = torch.linalg.vector_norm(climb.projected_gradient, dim=1)
        # Step per gradient where no pair is known: the last pair's, at first what makes a step of
        # length `first`.
        self._gamma = first / torch.where(length > 0, length, torch.ones_like(length))

    def step(self, climb: Climb, tolerance: float) -> None:
        projected_gradient = climb.projected_gradient.clone()
        direction = climb.along(self._direction(projected_gradient))
        downhill = torch.linalg.vecdot(direction, projected_gradient) <= 0
        direction = torch.where(
            downhill.unsqueeze(1), projected_gradient * self._gamma.unsqueeze(1), direction
        )
        step = (self._scale * torch.linalg.vector_norm(direction, dim=1)).clamp_(max=self.LONGEST)
        moved, bent, inverse = (
            part[self._next] for part in (self._moved, self._bent, self._inverse)
        )
        self._next = (self._next + 1) % self.MEMORY
        moved.copy_(climb.x)
        better = climb.move(climb.x + step.unsqueeze(1) * unit(direction), tolerance)

        # Zero where the trial lost and the ascent stays.
        torch.sub(climb.x, moved, out=moved)
        torch.sub(projected_gradient, climb.projected_gradient, out=bent)
        curvature = torch.linalg.vecdot(moved, bent)
        squared = torch.linalg.vecdot(bent, bent)
        norms = torch.linalg.vector_norm(moved, dim=1) * squared.sqrt()
        useful = better & (curvature > 10 * torch.finfo(norms.dtype).eps * norms)
        for known in self._inverse:
            known.masked_fill_(~better, 0.0)
        inverse.copy_(torch.where(useful, 1 / curvature, 0.0))
        torch.where(useful, curvature / squared, self._gamma, out=self._gamma)
        self._scale.copy_(torch.where(better, (2 * self._scale).clamp_(max=1), self._scale / 4))

    def _direction(self, projected_gradient: Float[Tensor, "b size"]) -> Float[Tensor, "b size"]:
        direction = projected_gradient.clone()
        oldest_first = [(self._next + age) % self.MEMORY for age in range(self.MEMORY)]
        weights = {}
        for pair in reversed(oldest_first):
            weights[pair] = self._inverse[pair] * torch.linalg.vecdot(self._moved[pair], direction)
            direction.addcmul_(self._bent[pair], weights[pair].unsqueeze(1), value=-1)
        direction *= self._gamma.unsqueeze(1)
        for pair in oldest_first:
            back = self._inverse[pair] * torch.linalg.vecdot(self._bent[pair], direction)
            direction.addcmul_(self._moved[pair], (weights[pair] - back).unsqueeze(1))
        return direction

    def select(self, chosen: Int[Tensor, " c"]) -> None:
        for ring in (self._moved, self._bent, self._inverse):
            ring[:] = [part[chosen] for part in ring]
        self._scale, self._gamma = self._scale[chosen], self._gamma[chosen]


STEEPNESS = 0.01
"""A point is stationary where the squared change f rises along its feasible gradient g by less than
this times 2 f a radius."""

TRIALS = (1e-2, 1e-3)
"""The steps, in radii, along g after which f decides where |g| says nothing: at a kink g belongs to
one side of it."""

_DRAWS, _AT_ONCE = 2000, 50
"""Points that are tried for a word at which the gradient vanishes, and how many a round."""


def verify_stationary(
    climb: Climb, ball: Ball, result: SearchResult, *, generator: torch.Generator
) -> SearchResult:
    """The result with `converged` only where the climb's point is stationary, and sampled where its
    gradient is zero.

    Stationary in the first order and in the map's own precision: |g| <= STEEPNESS * 2 f in the
    coordinates Delta / radius, g the gradient of f as far as the ball lets it be followed; or, at a
    kink, no gain above that rate after short steps along g. Where the gradient is exactly zero, as
    everywhere for a piecewise constant phi, random points and mixtures with the best of them are
    tried instead, and nothing is called converged.

    Args:
        climb: of each word of one text its best ascent.
        ball, result: their balls, and what was found.
    """
    flat = (climb.slope == 0).all(dim=1)
    steep = torch.linalg.vector_norm(climb.projected_gradient, dim=1)
    stationary = steep <= STEEPNESS * 2 * climb.squared
    unsure = (~stationary & result.converged).nonzero().squeeze(1)
    spent = result.spent.clone()
    if len(unsure):
        stationary[unsure] = _gains_nothing(climb.select(unsure), steep[unsure])
        spent[unsure] += len(TRIALS)
    result = replace(result, converged=result.converged & stationary & ~flat, spent=spent)
    if not bool(flat.any()):
        return result
    members = flat.nonzero().squeeze(1)
    return _sampled(result, climb.select(members), members, ball, generator)


def _gains_nothing(climb: Climb, steep: Float[Tensor, " b"]) -> Bool[Tensor, " b"]:
    uphill = climb.projected_gradient / steep.unsqueeze(1)
    still = torch.ones_like(climb.squared, dtype=torch.bool)
    for step in TRIALS:
        ahead, _ = climb.evaluate(climb.into_ball(climb.x + step * uphill))
        still &= ahead - climb.squared <= STEEPNESS * 2 * climb.squared * step
    return still


def _sampled(
    result: SearchResult,
    climb: Climb,
    members: Int[Tensor, " f"],
    ball: Ball,
    generator: torch.Generator,
) -> SearchResult:
    """The result with the members' points, where these ascents stand, replaced by better ones that
    sampling finds.

    Half of the points are uniform on the sphere; the others are the best so far, moved by a random
    fraction of a radius, which climbs the steps of a piecewise constant map.
    """
    best, squared, scale = climb.x, climb.squared, climb.radius.to(climb.x.dtype).unsqueeze(1)
    for _ in range(_DRAWS // _AT_ONCE):
        drawn = gaussian_on(
            _AT_ONCE, *best.shape, generator=generator, dtype=best.dtype, device=best.device
        )
        drawn = _unit(drawn, climb.blocks)
        share = torch.rand(
            _AT_ONCE // 2,
            len(members),
            1,
            generator=generator,
            dtype=best.dtype,
            device=generator.device,
        )
        drawn[: _AT_ONCE // 2] = _unit(
            best + share.to(best.device) * drawn[: _AT_ONCE // 2], climb.blocks
        )
        moved = (drawn * scale).flatten(end_dim=1).unflatten(1, climb.objective.shape)
        tried = (
            climb.objective.value(moved, climb.words.repeat(_AT_ONCE))
            .nan_to_num(-1.0, torch.inf)
            .view(_AT_ONCE, -1)
        )
        value, draw = tried.max(dim=0)
        better = value > squared
        best = torch.where(
            better.unsqueeze(1), drawn[draw, torch.arange(len(best), device=draw.device)], best
        )
        squared = torch.where(better, value, squared)
    perturbations, values, spent = (
        result.perturbations.clone(),
        result.squared.clone(),
        result.spent.clone(),
    )
    blocks = (best.unflatten(1, (climb.blocks, -1))).transpose(0, 1)
    inside = Ball(ball.radius[members]).project(blocks * scale).transpose(0, 1)
    perturbations[members], values[members] = (
        inside.reshape(len(members), *climb.objective.shape),
        squared,
    )
    spent[members] += _DRAWS
    return replace(result, perturbations=perturbations, squared=values, spent=spent)


def _unit(points: Float[Tensor, "*ranks size"], blocks: int) -> Float[Tensor, "*ranks size"]:
    split = points.unflatten(-1, (blocks, -1))
    return unit(split).flatten(start_dim=-2)
