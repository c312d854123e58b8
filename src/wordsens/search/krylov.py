"""The search for one layer: few products with the layer's matrix, many free trials in the space that they span.

The squared change has many local maxima, each near a mixture of the leading singular vectors of the active half of V_i,
whose singular values crowd together when the text is long. So (1) Lanczos steps on the linearised change, t products
with V_i and t with its transpose, give a space that holds those vectors; (2) in that space, where every product is a
combination of known ones, many starts climb for free; (3) the best climb on with true products.
benchmarks/random_features.py compares this with power iteration, momentum and plain restarts.
"""

from collections.abc import Callable
from functools import partial

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from wordsens.gaussian.vectors import lanczos
from wordsens.search.ball import Ball, unit
from wordsens.search.great_circle import CircleLimits, LinearEntry, climb_great_circles
from wordsens.search.linear_entry import LinearEntryObjective
from wordsens.search.plan import Stages
from wordsens.search.result import Progress, SearchResult
from wordsens.search.stationary import STEEPNESS, TRIALS
from wordsens.seeds import gaussian_on

LANCZOS_STEPS = 24
"""Products with V_i, and as many with its transpose, before the free trials."""

_FREE_TURNS = 3
"""Angles that a free line search tries: the next step mends what it leaves."""

_SAME_HILL = 0.95
_TEMPORARIES = 6


def krylov_search(
    objective: LinearEntryObjective,
    words: Int[Tensor, " w"],
    ball: Ball,
    stages: Stages,
    *,
    generator: torch.Generator,
    progress: Progress | None = None,
) -> SearchResult:
    """Maximise ‖psi(A_i Delta)‖² over the sphere of each word: on it the maximum lies where act is monotone.

    Of the stages, `starts` is the number of free starts, `steps` of their steps, `finalists` of those that go on,
    `finish` of their steps at most, and `tolerance` their end. Cost a word: LANCZOS_STEPS + finalists * finish products
    with A_i, and as many with A_i^T.
    """
    numbers = 3 * (LANCZOS_STEPS + stages.finalists * stages.finish) + _TEMPORARIES * stages.starts
    size = max(1, objective.memory_budget // (numbers * objective.width * objective.dtype.itemsize))
    groups = list(zip(words.split(size), ball.radius.split(size), strict=True))
    rounds = LANCZOS_STEPS + stages.steps + stages.finish
    results = []
    for done, (group, radius) in enumerate(groups):
        search = _SphereSearch(objective, group, radius, stages, generator)

        def tick(step: int, done: int = done) -> None:
            if progress is not None:
                progress(done * rounds + step, rounds * len(groups))

        result = search.run(tick)
        objective.release(group, result.perturbations)
        results.append(result)
    if progress is not None:
        progress(rounds * len(groups), rounds * len(groups))
    return SearchResult(
        perturbations=torch.cat([result.perturbations for result in results]),
        squared=torch.cat([result.squared for result in results]),
        spent=torch.cat([result.spent for result in results]),
        converged=torch.cat([result.converged for result in results]),
    )


class _SphereSearch:
    """The search on w words at once, in the coordinates a = Delta / radius."""

    def __init__(
        self,
        objective: LinearEntryObjective,
        words: Int[Tensor, " w"],
        radius: Float[Tensor, " w"],
        stages: Stages,
        generator: torch.Generator,
    ):
        self._objective, self._words, self._stages, self._generator = objective, words, stages, generator
        # The witness is rounded once more when it is scaled: a few units of the last place inside the ball.
        self._radius = Ball(radius)
        self._scale = radius.to(objective.dtype).unsqueeze(1)

    def run(self, tick: Callable[[int], None]) -> SearchResult:
        stages, w = self._stages, len(self._words)
        seen = []

        def linearized(point: Tensor) -> Tensor:
            seen.append(self._objective.enter(self._scale * point, self._words))
            tick(len(seen))
            return self._scale * self._objective.enter_transposed(self._objective.linearized(seen[-1]), self._words)

        first = gaussian_on(
            w,
            self._objective.coordinates,
            generator=self._generator,
            dtype=self._objective.dtype,
            device=self._objective.device,
        )
        basis, rotation, _ = lanczos(linearized, first, LANCZOS_STEPS)
        entered = torch.stack(seen, dim=1)
        seen.clear()
        coordinates = self._free_starts(rotation, entered)
        free = climb_great_circles(
            self._objective,
            LinearEntry(
                lambda c: (c.unflatten(0, (w, -1)) @ entered).flatten(end_dim=1),
                lambda u: (u.unflatten(0, (w, -1)) @ entered.mT).flatten(end_dim=1),
            ),
            coordinates.flatten(end_dim=1),
            (coordinates @ entered).flatten(end_dim=1),
            CircleLimits(stages.steps, stages.tolerance, _FREE_TURNS),
        )
        chosen = self._finalists(free.squared.view(w, -1), free.point.unflatten(0, (w, -1)))
        point = (free.point.unflatten(0, (w, -1)).gather(1, _across(chosen, free.point)) @ basis).flatten(end_dim=1)
        start = free.entered.unflatten(0, (w, -1)).gather(1, _across(chosen, free.entered)).flatten(end_dim=1)
        free = None
        finalists = chosen.shape[1]
        words = self._words.repeat_interleave(finalists)
        scale = self._scale.repeat_interleave(finalists, dim=0)
        steps = iter(range(basis.shape[1] + 1, basis.shape[1] + stages.finish + 1))
        best = climb_great_circles(
            self._objective,
            LinearEntry(
                lambda a: self._objective.enter(scale * a, words),
                lambda u: scale * self._objective.enter_transposed(u, words),
            ),
            point,
            start,
            CircleLimits(stages.finish, stages.tolerance),
            tick=lambda: tick(next(steps)),
        )
        winner = best.squared.view(w, -1).argmax(dim=1) + torch.arange(w, device=words.device) * finalists
        return SearchResult(
            perturbations=self._radius.linear_maximizer(best.point[winner]),
            squared=best.squared[winner],
            spent=torch.full_like(self._words, basis.shape[1] + finalists * best.steps + 1),
            converged=best.converged[winner] & self._stationary(best.point[winner], best.entered[winner]),
        )

    def _stationary(self, point: Float[Tensor, "w d"], entered: Float[Tensor, "w k"]) -> Bool[Tensor, " w"]:
        """True where the squared change rises along its gradient on the sphere within what search.stationary allows."""
        gradient = self._scale * self._objective.enter_transposed(self._objective.slope(entered), self._words)
        flat = (gradient == 0).all(dim=1)
        gradient = gradient - torch.linalg.vecdot(gradient, point).unsqueeze(1) * point
        length = torch.linalg.vector_norm(gradient, dim=1)
        # A length of zero is stationary; the direction is then zero, and the trials gain nothing.
        direction = unit(gradient)
        across = self._objective.enter(self._scale * direction, self._words)
        squared = self._objective.along(entered, across, torch.zeros_like(length))[0]
        still = torch.ones_like(flat)
        for angle in TRIALS:
            ahead = self._objective.along(entered, across, torch.full_like(length, angle))[0]
            still &= ahead - squared <= STEEPNESS * 2 * squared * angle
        return ((length <= STEEPNESS * squared) | still) & ~flat

    def _finalists(
        self, squared: Float[Tensor, "w starts"], points: Float[Tensor, "w starts t"]
    ) -> Int[Tensor, "w finalists"]:
        """The best free starts of each word, each as far from the better ones as another hill would be."""
        chosen, left = [], squared.clone()
        for _ in range(min(self._stages.finalists, squared.shape[1])):
            best = left.argmax(dim=1, keepdim=True)
            chosen.append(best)
            near = (points @ points.gather(1, _across(best, points.flatten(end_dim=1))).mT).squeeze(2) > _SAME_HILL
            left = torch.where(near, left - 2 * left.amax(dim=1, keepdim=True), left)
        return torch.cat(chosen, dim=1)

    def _free_starts(
        self, rotation: Float[Tensor, "w t t"], entered: Float[Tensor, "w t k"]
    ) -> Float[Tensor, "w starts t"]:
        """Unit coordinates in the basis: both signs of the leading Ritz vectors, mixtures that favour these, and, half
        of the rest, what comes nearest to random patterns of signs of the units.
        """
        w, t, _ = rotation.shape
        draw = partial(gaussian_on, generator=self._generator, dtype=rotation.dtype, device=rotation.device)
        leading = rotation[:, : max(1, self._stages.starts // 8)]
        signed = torch.stack([leading, -leading], dim=2).flatten(1, 2)[:, : self._stages.starts]
        left = self._stages.starts - signed.shape[1]
        decay = torch.exp(-4 * torch.arange(t, device=rotation.device) / t).to(rotation.dtype)
        mixed = (draw(w, left - left // 2, t) * decay) @ rotation
        patterned = draw(w, left // 2, entered.shape[2]).sign() @ entered.mT
        return torch.cat([signed, unit(torch.cat([mixed, patterned], dim=1))], dim=1)


def _across(chosen: Int[Tensor, "w c"], rows: Float[Tensor, "b m"]) -> Int[Tensor, "w c m"]:
    """The index that gathers the chosen rows of each word."""
    return chosen.unsqueeze(2).expand(-1, -1, rows.shape[1])
