"""Many independent ascents at once, the two rules that tell each where to step, and the check of
where they end."""

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from wordsens.search.objective import Ball, Objective, SearchResult, into_ball, unit
from wordsens.seeds import gaussian_on

# Points (*b, size) with one flat axis, and numbers (*b) of each.
Flat = Float[Tensor, "*b size"]
Values = Float[Tensor, "*b"]

# An ascent stops after this many steps in a row that gained less than the tolerance.
PATIENCE = 8


@dataclass(frozen=True)
class BallProblem:
    """An objective on the balls of w places, in the coordinates x = Delta / radius.

    A point is a flat vector of equal blocks, each in a unit ball of its own: one block for each row
    that moves, or one for all where they share a joint ball.

    Attributes:
        places: (w,), as many of each text of the objective.
        radius: (w, r), one for each row that moves together, or one for all coordinates.
        joint: whether rows share a ball, sum_i ‖Delta_i‖² / radius_i² <= 1.
        streams: random numbers for each text of the objective.
    """

    objective: Objective
    places: Int[Tensor, " w"]
    radius: Float[Tensor, "w r"]
    streams: Sequence[torch.Generator]
    joint: bool = False

    def select(self, chosen: Int[Tensor, " c"]) -> "BallProblem":
        """The problem of these places, as many of each text."""
        return replace(self, places=self.places[chosen], radius=self.radius[chosen])

    def blocks(self, x: Flat) -> Float[Tensor, "*b blocks block"]:
        """The parts of each point that have a ball of their own."""
        return x.unflatten(-1, (1 if self.joint else self.radius.shape[1], -1))

    def unit(self, x: Flat) -> Flat:
        """Every block of length 1; zero stays zero."""
        return unit(self.blocks(x)).flatten(start_dim=-2)

    def into_ball(self, x: Flat) -> Flat:
        """The nearest points a few units of the last place inside their balls."""
        return into_ball(self.blocks(x)).flatten(start_dim=-2)

    def scaled(self, x: Flat) -> Flat:
        """The points times their radii: a Delta from an x, a gradient in x from one in Delta."""
        radius = self.radius.to(x.dtype).view(len(x), *[1] * (x.ndim - 2), -1)
        if self.radius.shape[1] == 1:
            return x * radius
        return x * radius.repeat_interleave(x.shape[-1] // self.radius.shape[1], dim=-1)

    def value(self, x: Flat) -> Values:
        """The objective; -1 where it is not a number."""
        values = self.objective.value(*self._pairs(x))
        return values.nan_to_num(-1.0, torch.inf).view(x.shape[:-1])

    def evaluate(self, x: Flat) -> tuple[Values, Flat]:
        """The objective and its gradient in x; -1 and zeros where it is not a number."""
        squared, gradient = self.objective.value_and_gradient(*self._pairs(x))
        lost = squared.isnan()
        slope = self.scaled(gradient.view_as(x)).masked_fill(lost.view(*x.shape[:-1], 1), 0.0)
        return squared.masked_fill(lost, -1.0).view(x.shape[:-1]), slope

    def _pairs(self, x: Flat) -> tuple[Tensor, Tensor]:
        """Delta of every point, place by place, and its place."""
        deltas = self.scaled(x).reshape(-1, *self.objective.shape)
        return deltas, self.places.repeat_interleave(len(deltas) // len(x))

    def witnesses(self, x: Flat) -> Float[Tensor, "w *shape"]:
        """Delta of points, inside their balls after rounding."""
        blocks = self.blocks(x)
        inside = Ball(torch.ones_like(blocks[..., 0], dtype=torch.float64)).project(blocks)
        return self.scaled(inside.flatten(start_dim=1)).view(-1, *self.objective.shape)

    def drawn(self, draw: Callable[[torch.Generator, int], Tensor]) -> Float[Tensor, "w ..."]:
        """What each text's generator gives for its places."""
        per_text = len(self.places) // len(self.streams)
        parts = [draw(stream, per_text) for stream in self.streams]
        return torch.cat(parts).to(self.places.device)

    def directions(self, count: int, dtype: torch.dtype) -> Flat:
        """Random points on the spheres, `count` for each place."""
        size, device = self.objective.coordinates, self.objective.device

        def draw(stream: torch.Generator, w: int) -> Tensor:
            return gaussian_on(w, count, size, generator=stream, dtype=dtype, device=device)

        return self.unit(self.drawn(draw))


class Climb:
    """b ascents of a problem. Steps change all tensors in place.

    Attributes:
        problem: of the b places, one for each ascent.
        x: (b, size), the best point so far.
        squared: (b,), the objective there.
        slope: (b, size), its gradient in x.
        projected_gradient: (b, size), the gradient as far as the balls let it be followed: zero at
            a stationary point.
        idle: (b,), how many steps in a row gained less than the tolerance; from PATIENCE on an
            ascent stands still.
        steps: (b,), how many steps were tried.
    """

    def __init__(self, problem: BallProblem, x: Flat):
        self.problem, self.x = problem, problem.into_ball(x)
        self.squared, self.slope = problem.evaluate(self.x)
        self.idle = torch.zeros_like(problem.places)
        self.steps = torch.ones_like(self.idle)
        self.projected_gradient = self.feasible(self.slope)

    def __len__(self) -> int:
        return len(self.x)

    def feasible(self, direction: Flat, *, tangent: bool = False) -> Flat:
        """The direction without the outward part of each block that lies on its sphere, where
        `into_ball` leaves it a few units of the last place inside.

        `tangent`: where the slope presses against the sphere also without the inward part: a step's
        inward part would lose in the first order what its tangent part gains in the second.
        """
        direction, x = self.problem.blocks(direction), self.problem.blocks(self.x)
        on_sphere = torch.linalg.vector_norm(x, dim=-1) > 1 - 64 * torch.finfo(x.dtype).eps
        across = torch.linalg.vecdot(direction, x)
        if tangent:
            on_sphere &= (across > 0) | (
                torch.linalg.vecdot(self.problem.blocks(self.slope), x) > 0
            )
        else:
            on_sphere &= across > 0
        away = (across * on_sphere).unsqueeze(-1)
        return torch.addcmul(direction, x, away, value=-1).flatten(start_dim=1)

    def move(self, trial: Flat, tolerance: float) -> Bool[Tensor, " b"]:
        """Try the points; go to those that gain, but for ascents that stand still. Returns which
        went."""
        trial = self.problem.into_ball(trial)
        squared, slope = self.problem.evaluate(trial)
        better = (squared > self.squared) & (self.idle < PATIENCE)
        gained = better & (squared > self.squared * (1 + tolerance))
        self.idle.copy_(torch.where(gained, 0, self.idle + 1))
        self.steps += 1
        for current, tried in ((self.x, trial), (self.slope, slope)):
            torch.where(better.unsqueeze(1), tried, current, out=current)
        torch.where(better, squared, self.squared, out=self.squared)
        self.projected_gradient.copy_(self.feasible(self.slope))
        return better

    def select(self, chosen: Int[Tensor, " c"]) -> "Climb":
        """The chosen ascents, as they stand."""
        part = copy(self)
        part.problem = self.problem.select(chosen)
        for name in _STATE:
            setattr(part, name, getattr(self, name)[chosen])
        return part

    def store(self, chosen: Int[Tensor, " c"], part: "Climb") -> None:
        """Put ascents that `select` took out back in their places."""
        for name in _STATE:
            getattr(self, name)[chosen] = getattr(part, name)


_STATE = "x", "squared", "slope", "projected_gradient", "idle", "steps"


class Momentum:
    """Steps of adapted length along an average of the past gradients' directions: for kinked phi,
    whose kinks it passes.

    m <- 0.7 m + g/‖g‖, x <- x + eta m/‖m‖, m without its outward part on the sphere. A step that
    gains lengthens eta by 30 %; one that loses is taken back, halves eta and clears m.
    """

    KEEP, GROW, SHRINK, LONGEST = 0.7, 1.3, 0.5, 4.0

    def __init__(self, climb: Climb, *, first: float = 0.4):
        self._eta = torch.full_like(climb.squared, first)
        self._memory = torch.zeros_like(climb.x)

    def step(self, climb: Climb, tolerance: float) -> None:
        memory = unit(climb.slope).add_(self._memory, alpha=self.KEEP)
        direction = unit(climb.feasible(memory))
        better = climb.move(climb.x + self._eta.unsqueeze(1) * direction, tolerance)
        self._memory.copy_(memory.masked_fill_(~better.unsqueeze(1), 0.0))
        self._eta.mul_(torch.where(better, self.GROW, self.SHRINK)).clamp_(max=self.LONGEST)

    def select(self, chosen: Int[Tensor, " c"]) -> None:
        self._eta, self._memory = self._eta[chosen], self._memory[chosen]


class QuasiNewton:
    """Limited-memory BFGS on the sphere, or inside the ball where the maximum lies there: for
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
        self._moved, self._bent = climb.x.new_zeros(2, self.MEMORY, *climb.x.shape)
        self._inverse = climb.x.new_zeros(self.MEMORY, len(climb))
        self._next = 0
        self._scale = torch.ones_like(climb.squared)
        length = torch.linalg.vector_norm(climb.projected_gradient, dim=1)
        # Step per gradient where no pair is known: the last pair's, at first what makes a step of
        # length `first`.
        self._gamma = first / torch.where(length > 0, length, torch.ones_like(length))

    def step(self, climb: Climb, tolerance: float) -> None:
        projected_gradient = climb.projected_gradient.clone()
        tangent = not climb.problem.objective.inward
        direction = climb.feasible(self._direction(projected_gradient), tangent=tangent)
        downhill = torch.linalg.vecdot(direction, projected_gradient) <= 0
        direction = torch.where(
            downhill.unsqueeze(1), projected_gradient * self._gamma.unsqueeze(1), direction
        )
        step = (self._scale * torch.linalg.vector_norm(direction, dim=1)).clamp_(max=self.LONGEST)
        moved, bent = self._moved[self._next], self._bent[self._next]
        inverse = self._inverse[self._next]
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
        self._inverse.masked_fill_(~better, 0.0)
        inverse.copy_(torch.where(useful, 1 / curvature, 0.0))
        torch.where(useful, curvature / squared, self._gamma, out=self._gamma)
        self._scale.copy_(torch.where(better, (2 * self._scale).clamp_(max=1), self._scale / 4))

    def _direction(self, projected_gradient: Flat) -> Flat:
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
        self._moved, self._bent = self._moved[:, chosen], self._bent[:, chosen]
        self._inverse = self._inverse[:, chosen]
        self._scale, self._gamma = self._scale[chosen], self._gamma[chosen]


# A point is stationary where the squared change f rises along its feasible gradient g by less than
# this times 2 f a radius.
STEEPNESS = 0.01

# The steps, in radii, along g after which f decides where |g| says nothing: at a kink g belongs to
# one side of it.
TRIALS = (1e-2, 1e-3)

# Points that are tried for a place at which the gradient vanishes, and how many a round.
_DRAWS, _AT_ONCE = 2000, 50


def verified(climb: Climb) -> SearchResult:
    """The result of the ascents, one of each place: `converged` only where a point is stationary,
    and sampled where its gradient is zero.

    Stationary in the first order and in the map's own precision: |g| <= STEEPNESS * 2 f in the
    coordinates Delta / radius, g the gradient of f as far as the ball lets it be followed; or, at a
    kink, no gain above that rate after short steps along g. Where the gradient is exactly zero, as
    everywhere for a piecewise constant phi, random points and mixtures with the best of them are
    tried instead, and nothing is called converged.
    """
    flat = (climb.slope == 0).all(dim=1)
    steep = torch.linalg.vector_norm(climb.projected_gradient, dim=1)
    stationary = steep <= STEEPNESS * 2 * climb.squared
    ended, spent = climb.idle >= PATIENCE, torch.zeros_like(climb.idle)
    if len(unsure := _places(~stationary & ended, climb)):
        stationary[unsure] |= _gains_nothing(climb.select(unsure))
        spent[unsure] += len(TRIALS)
    x, squared = climb.x, climb.squared
    if bool(flat.any()):
        x, squared = _sampled(climb, flat)
        spent[flat] += _DRAWS
    return SearchResult(climb.problem.witnesses(x), squared, spent, ended & stationary & ~flat)


def _places(wanted: Bool[Tensor, " b"], climb: Climb) -> Int[Tensor, " c"]:
    """The ascents that are wanted; of several texts all, where one is: they go as many of each."""
    if climb.problem.objective.texts > 1:
        wanted = wanted.any().expand_as(wanted)
    return wanted.nonzero().squeeze(1)


def _gains_nothing(climb: Climb) -> Bool[Tensor, " b"]:
    uphill = torch.nn.functional.normalize(climb.projected_gradient, dim=1)
    still = torch.ones_like(climb.squared, dtype=torch.bool)
    for step in TRIALS:
        ahead = climb.problem.value(climb.problem.into_ball(climb.x + step * uphill))
        still &= ahead - climb.squared <= STEEPNESS * 2 * climb.squared * step
    return still


def _sampled(climb: Climb, flat: Bool[Tensor, " b"]) -> tuple[Flat, Values]:
    """The points of the ascents, those of flat ones replaced by better ones, and the objective
    there.

    Half of the points are uniform on the sphere; the others are the best so far, moved by a random
    fraction of a radius, which climbs the steps of a piecewise constant map.
    """
    best, squared, near = climb.x.clone(), climb.squared.clone(), _AT_ONCE // 2
    members, whole = _places(flat, climb), climb.problem
    problem, ascents = whole.select(members), torch.arange(len(members), device=flat.device)
    for _ in range(_DRAWS // _AT_ONCE):
        # For all places, so that no other one's gradient changes what is drawn for a place.
        drawn = whole.directions(_AT_ONCE, best.dtype)
        share = whole.drawn(
            lambda stream, w: torch.rand(w, near, 1, generator=stream, device=stream.device)
        )
        drawn[:, :near] = whole.unit(best.unsqueeze(1) + share.to(best) * drawn[:, :near])
        tried = drawn[members]
        value, draw = problem.value(tried).max(dim=1)
        better = (value > squared[members]) & flat[members]
        best[members[better]] = tried[ascents, draw][better]
        squared[members[better]] = value[better]
    return best, squared
