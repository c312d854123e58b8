"""Conjugate gradients on the sphere, with exact line searches along great circles.

The search for one layer: few products with the layer's matrix, many free trials in the space that
they span.

The squared change has many local maxima, each near a mixture of the leading singular vectors of the
active half of V_i, whose singular values crowd together when the text is long. So (1) Lanczos steps
on the linearised change, t products with V_i and t with its transpose, give a space that holds
those vectors; (2) in that space, where every product is a combination of known ones, many starts
climb for free; (3) the best climb on with true products.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from wordsens.gaussian.vectors import lanczos
from wordsens.search.climb import PATIENCE, BallProblem, Climb, verified
from wordsens.search.objective import (
    LinearEntry,
    LinearEntryObjective,
    Progress,
    SearchResult,
    part_of,
    unit,
)
from wordsens.search.plan import Stages
from wordsens.seeds import gaussian_on

# Angles that a line search tries: beside a kink the steps that gain are short; of a free one, the
# next step mends what it leaves.
TURNS, _FREE_TURNS = 8, 3

# A larger Polak-Ribiere coefficient restarts the run along the gradient.
_MAX_BETA = 1e6

# A run stops after this many steps in a row that gained less than the tolerance.
_CIRCLE_PATIENCE = 3

# Steps that a device other than the CPU is given before it is waited for.
_LOOK_EVERY = 5

# Words whose climbs have ended are left out once no more than this share goes on: that copies what
# is known of it.
_FEW = 0.75

# Products with V_i, and as many with its transpose, before the free trials.
LANCZOS_STEPS = 24

# The inner product of two unit vectors from which on they count as on one hill.
_SAME_HILL = 0.95

# Vectors of a layer's width that a climb takes beside what it keeps.
_TEMPORARIES = 6


def krylov_search(
    problem: BallProblem, stages: Stages, progress: Progress | None = None
) -> SearchResult:
    """Maximise ‖psi(A_i Delta)‖² over the sphere of each word: on it the maximum lies where act is
    monotone.

    Of the stages, `starts` is the number of free starts, `steps` of their steps, `finalists` of
    those that go on, `finish` of their steps at most, and `tolerance` their end. Cost a word:
    LANCZOS_STEPS + finalists * finish products with A_i, and as many with A_i^T.
    """
    objective = problem.objective
    assert isinstance(objective, LinearEntryObjective)
    steps = LANCZOS_STEPS + stages.finalists * stages.finish
    numbers = 3 * steps + _TEMPORARIES * stages.starts + objective.coordinates
    size = max(1, objective.memory_budget // (numbers * objective.width * objective.dtype.itemsize))
    batches = torch.arange(len(problem.places), device=problem.places.device).split(size)
    results = []
    for batch, chosen in enumerate(batches):
        report = part_of(progress, batch, len(batches))
        results.append(_search(objective, problem.select(chosen), stages, report))
    return SearchResult.joined(results)


def _search(
    objective: LinearEntryObjective, problem: BallProblem, stages: Stages, progress: Progress | None
) -> SearchResult:
    """The search of one batch, in the coordinates a = Delta / radius: Lanczos steps, climbs without
    products in the space that these steps span, then climbs with products from the best points."""
    rounds = LANCZOS_STEPS + stages.finish

    def tick(step: int) -> None:
        if progress is not None:
            progress(step, rounds)

    entry = objective.entry(problem.places, problem.radius.squeeze(1))
    products: list[Float[Tensor, "w 1 k"]] = []

    def linearized(point: Float[Tensor, "w d"]) -> Float[Tensor, "w d"]:
        products.append(entry.forward(point.unsqueeze(1)))
        tick(len(products))
        return entry.transposed(objective.linearized(products[-1])).squeeze(1)

    first = problem.directions(1, objective.dtype).squeeze(1)
    basis, rotation, _ = lanczos(linearized, first, LANCZOS_STEPS)
    entered = torch.cat(products, dim=1)

    start = _free_starts(rotation, entered, stages.starts, problem.streams[0])
    look_every = 1 if objective.device.type == "cpu" else _LOOK_EVERY
    limits = CircleLimits(stages.steps, stages.tolerance, _FREE_TURNS, look_every)
    free = climb_great_circles(objective, LinearEntry.of(entered), start, start @ entered, limits)
    chosen = _finalists(free, stages.finalists)
    climbed = climb_great_circles(
        objective,
        entry,
        _take(free.point, chosen) @ basis,
        _take(free.entered, chosen),
        CircleLimits(stages.finish, stages.tolerance, TURNS, look_every),
        tick=lambda steps: tick(len(products) + steps),
    )
    tick(rounds)
    winner = climbed.squared.argmax(dim=1, keepdim=True)
    climb = Climb(problem, _take(climbed.point, winner).squeeze(1))
    # Where steps run out they gain ever less, from kink to kink: the point decides.
    climb.idle += PATIENCE
    result = verified(climb)
    spent = result.spent + len(products) + climbed.steps.sum(dim=1) + 1
    return replace(result, spent=spent)


def _free_starts(
    rotation: Float[Tensor, "w t t"],
    entered: Float[Tensor, "w t k"],
    count: int,
    stream: torch.Generator,
) -> Float[Tensor, "w count t"]:
    """Unit coordinates in the basis: both signs of the leading Ritz vectors, mixtures that favour
    these, and, half of the rest, what comes nearest to random patterns of signs of the units."""
    w, t, k = entered.shape
    kind = {"generator": stream, "dtype": entered.dtype, "device": entered.device}
    leading = rotation[:, : max(1, count // 8)]
    signed = torch.stack([leading, -leading], dim=2).flatten(1, 2)[:, :count]
    left = count - signed.shape[1]
    decay = torch.exp(-4 * torch.arange(t, dtype=entered.dtype, device=entered.device) / t)
    mixed = (gaussian_on(w, left - left // 2, t, **kind) * decay) @ rotation
    patterned = gaussian_on(w, left // 2, k, **kind).sign() @ entered.mT
    return torch.cat([signed, unit(torch.cat([mixed, patterned], dim=1))], dim=1)


def _finalists(free: "Circles", count: int) -> Int[Tensor, "w finalists"]:
    """The best climbs of each word, each as far from the better ones as another hill would be."""
    chosen, left = [], free.squared.clone()
    for _ in range(min(count, left.shape[1])):
        best = left.argmax(dim=1, keepdim=True)
        chosen.append(best)
        near = (free.point @ _take(free.point, best).mT).squeeze(2) > _SAME_HILL
        left = torch.where(near, left - 2 * left.amax(dim=1, keepdim=True), left)
    return torch.cat(chosen, dim=1)


def _take(vectors: Float[Tensor, "w r m"], chosen: Int[Tensor, "w c"]) -> Float[Tensor, "w c m"]:
    """The chosen vectors of each word."""
    return vectors.gather(1, chosen.unsqueeze(2).expand(-1, -1, vectors.shape[2]))


@dataclass(frozen=True)
class CircleLimits:
    """When a climb ends, and how it looks for a step.

    Attributes:
        steps: at most; a few in a row with a relative gain in the square below `tolerance` end it
            earlier.
        turns: how many angles a line search tries.
        look_every: after how many steps the host asks which climbs have ended; no value depends on
            it.
    """

    steps: int
    tolerance: float
    turns: int = TURNS
    look_every: int = 1


class Circles(NamedTuple):
    """Climbs from r points of each of w words.

    Attributes:
        point, entered: the unit vectors a reached, and A a.
        squared: the objective there.
        gradient, direction, image: of the last step, and A times the direction.
        idle: how many steps in a row gained less than the tolerance; from _CIRCLE_PATIENCE on a
            climb stands still.
        steps: how many steps it took until then.
    """

    point: Float[Tensor, "w r m"]
    entered: Float[Tensor, "w r k"]
    squared: Float[Tensor, "w r"]
    gradient: Float[Tensor, "w r m"]
    direction: Float[Tensor, "w r m"]
    image: Float[Tensor, "w r k"]
    idle: Int[Tensor, "w r"]
    steps: Int[Tensor, "w r"]

    @property
    def ended(self) -> Bool[Tensor, "w r"]:
        return self.idle >= _CIRCLE_PATIENCE


def climb_great_circles(
    objective: LinearEntryObjective,
    entry: LinearEntry,
    point: Float[Tensor, "w r m"],
    entered: Float[Tensor, "w r k"],
    limits: CircleLimits,
    *,
    tick: Callable[[int], None] = lambda taken: None,
) -> Circles:
    """Maximise ‖psi(A a)‖² over unit vectors a, from r points of each word: a product with A and
    A^T each a step.

    Polak-Ribiere directions. A direction p = g + beta p_before enters as A p = A g + beta A
    p_before, so only the gradient g is multiplied; the line search needs no product at all. The
    value never falls. Words whose climbs have all ended are left out of the batch.

    Args:
        point, entered: where to start, unit vectors (a zero vector stays where it is), and A of
            them.
        tick: called after every step with how many were taken.
    """
    squared = objective.along(entered, entered, torch.zeros_like(point[..., 0]))[0]
    idle = torch.zeros_like(squared, dtype=torch.long)
    zero, nothing = torch.zeros_like(point), torch.zeros_like(entered)
    words = torch.arange(len(point), device=point.device)
    circles = Circles(point, entered.clone(), squared, zero, zero, nothing, idle, idle)
    everyone = Circles(*(part.clone() for part in circles))
    for step in range(limits.steps):
        if step % limits.look_every == 0:
            going = ~circles.ended.all(dim=1)
            count = int(going.sum())
            if count == 0:
                break
            if count <= _FEW * len(words):
                _put(everyone, words, circles)
                chosen = going.nonzero().squeeze(1)
                words, circles = words[chosen], Circles(*(part[chosen] for part in circles))
                entry = entry.select(chosen)
        circles = _step(objective, entry, circles, limits)
        tick(step + 1)
    _put(everyone, words, circles)
    return everyone


def _put(everyone: Circles, words: Int[Tensor, " v"], circles: Circles) -> None:
    for whole, part in zip(everyone, circles, strict=True):
        whole[words] = part


def _step(
    objective: LinearEntryObjective, entry: LinearEntry, circles: Circles, limits: CircleLimits
) -> Circles:
    """Every climb a step on, but for those that have ended. The vectors that enter are long:
    updated in place."""
    point, entered, squared, previous, direction, image, idle, steps = circles
    gradient = entry.transposed(objective.slope(entered))
    gradient = gradient - _dot(gradient, point) * point
    entering = entry.forward(gradient)
    size = _dot(previous, previous)
    transported = previous - _dot(previous, point) * point
    tiny = torch.finfo(size.dtype).tiny
    beta = _dot(gradient, gradient - transported).clamp(min=0) / size.clamp(min=tiny)
    downhill = _dot(gradient, gradient + beta * direction) <= 0
    # A gradient whose square underflows has no direction to go on in: its quotients are infinite or
    # NaN.
    beta = beta.masked_fill(downhill | ~(beta < _MAX_BETA), 0.0)
    terms = _length(gradient) + beta * _length(direction)
    direction, image = gradient + beta * direction, image.mul_(beta).add_(entering)
    outward = _dot(direction, point)
    direction, image = direction - outward * point, image.addcmul_(outward, entered, value=-1)
    length = _length(direction)
    # Where the direction is what rounding left of its terms, its image is not A times it.
    lost = length <= torch.finfo(length.dtype).eps ** 0.5 * terms
    scale = (1 / length.clamp(min=tiny)).masked_fill(lost, 0.0)
    direction, image, length = direction * scale, image.mul_(scale), length.masked_fill(lost, 0.0)
    angle, best = _best_angle(
        objective, entered, image, squared, circles.ended | lost.squeeze(-1), limits
    )
    cosine, sine = angle.cos().unsqueeze(-1), angle.sin().unsqueeze(-1)
    turned = (cosine * length) * image
    turned.addcmul_(sine * length, entered, value=-1)
    entered.mul_(cosine).addcmul_(sine, image)
    point, direction = (
        cosine * point + sine * direction,
        length * (cosine * direction - sine * point),
    )
    idle = torch.where(best > squared * (1 + limits.tolerance), 0, idle + 1)
    return Circles(point, entered, best, gradient, direction, turned, idle, steps + ~circles.ended)


def _best_angle(
    objective: LinearEntryObjective,
    entered: Float[Tensor, "w r k"],
    across: Float[Tensor, "w r k"],
    squared: Float[Tensor, "w r"],
    stays: Bool[Tensor, "w r"],
    limits: CircleLimits,
) -> tuple[Float[Tensor, "w r"], Float[Tensor, "w r"]]:
    """The angle with the largest value among those tried, 0 included, and that value; 0 on circles
    that stay.

    For a psi that is linear, f(t) = alpha + beta cos 2t + gamma sin 2t with f'(0)/2 = gamma and
    f''(0)/2 = -2 beta, largest at t = atan2(gamma, beta) / 2. For others the same correction is
    repeated from the angle reached until f' has changed sign, and then false position closes in on
    its root. Kinks of act bend f more than f'' knows. A circle is settled where a Newton step would
    gain less than a tenth of the tolerance, about f'^2 / (2 |f''|): no later angle counts on it.
    """
    zero = torch.zeros_like(squared)
    best_angle, best = zero, squared
    low, high, rise, fall = zero, torch.full_like(zero, torch.inf), zero, zero
    angle, settled = zero, stays
    for turn in range(limits.turns + 1):
        value, first, second = objective.along(entered, across, angle)
        better = (value > best) & ~settled
        best_angle, best = torch.where(better, angle, best_angle), torch.where(better, value, best)
        if turn > 0:
            settled = settled | (first.square() <= 0.1 * limits.tolerance * second.abs() * value)
        rising = (first > 0) | (turn == 0)
        low, rise = torch.where(rising, angle, low), torch.where(rising, first, rise)
        high, fall = torch.where(rising, high, angle), torch.where(rising, fall, first)
        onward = angle + 0.5 * torch.atan2(2 * first, -second)
        share = (rise / (rise - fall).clamp(min=torch.finfo(rise.dtype).tiny)).clamp(0.1, 0.9)
        angle = torch.where(
            high.isinf(), onward, torch.lerp(low, high.nan_to_num(posinf=0.0), share)
        )
    return best_angle, best


def _length(vectors: Float[Tensor, "w r m"]) -> Float[Tensor, "w r 1"]:
    return torch.linalg.vector_norm(vectors, dim=-1, keepdim=True)


def _dot(first: Float[Tensor, "w r m"], second: Float[Tensor, "w r m"]) -> Float[Tensor, "w r 1"]:
    return torch.linalg.vecdot(first, second).unsqueeze(-1)
