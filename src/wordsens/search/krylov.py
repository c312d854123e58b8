"""The search for one layer: few products with the layer's matrix, many free trials in the space that they span.

The squared change has many local maxima, each near a mixture of the leading singular vectors of the active half of V_i,
whose singular values crowd together when the text is long. So (1) Lanczos steps on the linearised change, t products
with V_i and t with its transpose, give a space that holds those vectors; (2) in that space, where every product is a
combination of known ones, many starts climb for free; (3) the best climbs on with true products.
benchmarks/random_features.py compares this with power iteration, momentum and plain restarts.
"""

from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from wordsens.ball import Ball
from wordsens.lanczos import lanczos
from wordsens.linear_entry import LinearEntryChange
from wordsens.search.great_circle import climb_great_circles
from wordsens.search.population import Progress, SearchResult
from wordsens.search_plan import SearchPlan
from wordsens.seeds import gaussian_on

LANCZOS_STEPS = 24
"""Products with V_i, and as many with its transpose, before the free trials."""

_TEMPORARIES = 6


def krylov_search(
    change: LinearEntryChange,
    words: Int[Tensor, " w"],
    ball: Ball,
    plan: SearchPlan,
    *,
    generator: torch.Generator,
    progress: Progress | None = None,
) -> SearchResult:
    """Maximise ‖psi(A_i Delta)‖² over the sphere of each word: on it the maximum lies where act is monotone.

    Of the plan, `starts` is the number of free starts, `climb_steps` of their steps, `steps` of those with true products
    at most, and `tolerance` their end. Cost a word: LANCZOS_STEPS + steps products with A_i, and as many with A_i^T.
    """
    numbers = 3 * (LANCZOS_STEPS + plan.steps) + _TEMPORARIES * plan.starts
    size = max(1, change.memory_budget // (numbers * change.width * change.rows.element_size()))
    groups = list(zip(words.split(size), ball.radius.split(size), strict=True))
    rounds = LANCZOS_STEPS + plan.climb_steps + plan.steps
    results = []
    for done, (group, radius) in enumerate(groups):
        search = _SphereSearch(change, group, radius, plan, generator)

        def tick(step: int, done: int = done) -> None:
            if progress is not None:
                progress(done * rounds + step, rounds * len(groups))

        result = search.run(tick)
        change.release(group, result.perturbations)
        results.append(result)
    if progress is not None:
        progress(rounds * len(groups), rounds * len(groups))
    return SearchResult(
        perturbations=torch.cat([result.perturbations for result in results]),
        squared=torch.cat([result.squared for result in results]),
        evaluations=sum(result.evaluations for result in results),
        converged=torch.cat([result.converged for result in results]),
    )


class _SphereSearch:
    """The search on w words at once, in the coordinates a = Delta / radius."""

    def __init__(
        self,
        change: LinearEntryChange,
        words: Int[Tensor, " w"],
        radius: Float[Tensor, " w"],
        plan: SearchPlan,
        generator: torch.Generator,
    ):
        self._change, self._words, self._plan, self._generator = change, words, plan, generator
        # The witness is rounded once more when it is scaled: a few units of the last place inside the ball.
        self._radius = Ball(radius)
        self._scale = radius.to(change.rows.dtype).unsqueeze(1)

    def run(self, tick: Callable[[int], None]) -> SearchResult:
        plan, w = self._plan, len(self._words)
        seen = []

        def linearized(point: Tensor) -> Tensor:
            seen.append(self._enter(point))
            tick(len(seen))
            return self._enter_transposed(self._change.linearized(seen[-1]))

        basis, rotation, _ = lanczos(linearized, self._gaussian(1).squeeze(1), LANCZOS_STEPS)
        entered = torch.stack(seen, dim=1)
        seen.clear()
        coordinates = self._free_starts(rotation)
        free = climb_great_circles(
            self._change,
            lambda c: (c.unflatten(0, (w, -1)) @ entered).flatten(end_dim=1),
            lambda u: (u.unflatten(0, (w, -1)) @ entered.mT).flatten(end_dim=1),
            coordinates.flatten(end_dim=1),
            (coordinates @ entered).flatten(end_dim=1),
            steps=plan.climb_steps,
            tolerance=plan.tolerance,
        )
        winner = free.squared.view(w, -1).argmax(dim=1) + torch.arange(w, device=self._words.device) * plan.starts
        point, start = (free.point[winner].unsqueeze(1) @ basis).squeeze(1), free.entered[winner]
        # Shorter than 1 only where the Krylov space was exhausted, and the basis ends in zeros.
        length = torch.linalg.vector_norm(point, dim=1, keepdim=True)
        point, start, free = point / length, start / length, None
        taken = LANCZOS_STEPS + plan.climb_steps
        steps = iter(range(taken + 1, taken + plan.steps + 1))
        best = climb_great_circles(
            self._change,
            self._enter,
            self._enter_transposed,
            point,
            start,
            steps=plan.steps,
            tolerance=plan.tolerance,
            tick=lambda: tick(next(steps)),
        )
        return SearchResult(
            perturbations=self._radius.linear_maximizer(best.point),
            squared=best.squared,
            evaluations=w * (basis.shape[1] + best.steps),
            converged=best.converged,
        )

    def _free_starts(self, rotation: Float[Tensor, "w t t"]) -> Float[Tensor, "w starts t"]:
        """Unit coordinates in the basis: both signs of the leading Ritz vectors, then mixtures that favour these."""
        w, t, _ = rotation.shape
        leading = rotation[:, : max(1, self._plan.starts // 4)]
        signed = torch.stack([leading, -leading], dim=2).flatten(1, 2)[:, : self._plan.starts]
        drawn = gaussian_on(
            w,
            self._plan.starts - signed.shape[1],
            t,
            generator=self._generator,
            dtype=rotation.dtype,
            device=rotation.device,
        )
        fading = torch.exp(-4 * torch.arange(t, device=drawn.device) / t).to(drawn.dtype)
        mixed = torch.nn.functional.normalize((drawn * fading) @ rotation, dim=2)
        return torch.cat([signed, mixed], dim=1)

    def _gaussian(self, count: int) -> Float[Tensor, "w count d"]:
        rows = self._change.rows
        return gaussian_on(
            len(self._words),
            count,
            rows.shape[1],
            generator=self._generator,
            dtype=rows.dtype,
            device=rows.device,
        )

    def _enter(self, point: Float[Tensor, "w d"]) -> Float[Tensor, "w k"]:
        return self._change.enter(self._scale * point, self._words)

    def _enter_transposed(self, slopes: Float[Tensor, "w k"]) -> Float[Tensor, "w d"]:
        return self._scale * self._change.enter_transposed(slopes, self._words)
