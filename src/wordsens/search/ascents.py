"""The ascents of w words at once: what every stage of a search is made of."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from wordsens.search.climb import PATIENCE, RULES, Climb, Momentum, QuasiNewton
from wordsens.search.objective import Objective, ReducedObjective
from wordsens.search.plan import Stages
from wordsens.search.points import ALIKE, Breeder, SeparateBreeders, fittest

_CACHED_NUMBERS = 1 << 18
"""Coordinates of the points that climb together on a CPU, but for those of one word."""

_BEFORE_HALVING = 4
"""Steps after which the lower half of a word's children is given up, where that was measured: in few coordinates."""

_TINY = 1e-3
"""Radii below this share of the typical length are explored in the objective's own precision: in float32 changes
cancel."""

FALSE_EXCESS = 1e-3
"""The relative excess of a coarse value over that in the map's own precision from which on it counts as false."""


class Ascents:
    """Climbs of w words, and their points compared. A climb holds them rank by rank: r w + j is the r-th of word j.

    Attributes:
        objective, coarse, ground: what is climbed; its cheaper relative; that, in fewer coordinates where it has an
            exact relative of such.
        fewer, sketch: that relative, and another one that is not exact; None where there is none.
        words, radius: (w,).
        blocks: balls a point.
        plan, coarse_plan: of the search; with a tolerance above the coarse relative's rounding.
        tiny: whether the radii are: nothing is then explored in a lower precision.
        noise: the relative rounding of a coarse value: a smaller gain is none.
        breeder: draws and crosses points.
        evaluations: of every word so far, by its number.
    """

    def __init__(
        self,
        objective: Objective,
        words: Int[Tensor, " w"],
        radius: Float[Tensor, " w"],
        blocks: int,
        plan: Stages,
        generators: Sequence[torch.Generator],
        tick: Callable[[], None],
    ):
        self.objective, self.words, self.radius, self.blocks = objective, words, radius, blocks
        self.plan, self._tick = plan, tick
        self.tiny = float(radius.max()) < _TINY * objective.typical_length
        self.coarse = objective if self.tiny else objective.coarse()
        self.noise = 4 * torch.finfo(self.coarse.dtype).eps
        self.coarse_plan = (
            plan if self.coarse is objective else replace(plan, tolerance=max(plan.tolerance, self.noise))
        )
        reduced = self.coarse.reduced()
        if plan.whole and reduced is not None and reduced.exact:
            reduced = None
        exact = reduced if reduced is not None and reduced.exact else None
        self.ground, self.fewer = (self.coarse if exact is None else exact), exact
        self.sketch = None if exact is reduced else reduced
        size, own = self.ground.coordinates, len(words) // len(generators)
        kind = self.coarse.dtype, self.coarse.device
        breeders = [Breeder(own, blocks, size, generator, *kind) for generator in generators]
        self.breeder = breeders[0] if len(breeders) == 1 else SeparateBreeders(breeders)
        self.evaluations = torch.zeros(int(words.max()) + 1, dtype=torch.long, device=words.device)

    def at(self, objective: Objective, climb: Climb) -> Climb:
        """The points of a climb, on another objective of as many coordinates."""
        return Climb(objective, climb.words, climb.radius, climb.x.to(objective.dtype), self.blocks)

    def climb(
        self,
        points: Float[Tensor, "ranks w size"],
        objective: Objective,
        steps: int | None = None,
        *,
        halved: bool = False,
    ) -> Climb:
        """Climb from every point for `steps`, the plan's climb_steps by default.

        `halved`: in few coordinates the worse half of each word's points is given up after _BEFORE_HALVING steps.
        """
        ranks, w, size = points.shape
        steps = self.plan.climb_steps if steps is None else steps
        halved = halved and isinstance(objective, ReducedObjective) and ranks >= 4 and steps >= 2 * _BEFORE_HALVING
        kept, before = (-(-ranks // 2), _BEFORE_HALVING) if halved else (ranks, steps)
        self.spend(self.words, ranks * (1 + before) + kept * (steps - before))
        # On a CPU a few words at a time: what a step keeps of their points then stays in the cache.
        each = max(1, _CACHED_NUMBERS // max(1, size * ranks)) if points.device.type == "cpu" else w
        lots = torch.arange(w, device=points.device).split(each)
        climbs, order = [], []
        for at, some in enumerate(lots):
            words, radius = self.words[some].repeat(ranks), self.radius[some].repeat(ranks)
            climb = Climb(objective, words, radius, points[:, some].flatten(end_dim=1), self.blocks)
            rule = self._rule(objective)(climb)
            for step in range(1, steps + 1):
                rule.step(climb, self.coarse_plan.tolerance)
                if halved and step == before:
                    best = climb.squared.view(ranks, -1).topk(kept, dim=0).indices
                    chosen = (best * len(some) + torch.arange(len(some), device=best.device)).flatten()
                    climb = climb.select(chosen)
                    rule.select(chosen)
                if (at * steps + step) % len(lots) == 0:
                    self._tick()
            climbs.append(climb)
            order.append(kept * some[0] + torch.arange(len(climb), device=some.device).view(kept, -1))
        return Climb.of(climbs).select(torch.cat(order, dim=1).flatten())

    def _rule(self, objective: Objective) -> type[Momentum] | type[QuasiNewton]:
        """The plan's rule; smoother relatives are smooth."""
        own = objective in (self.objective, self.coarse, self.ground)
        return RULES[self.plan.rule] if own else QuasiNewton

    def polish(self, climb: Climb, plan: Stages) -> Bool[Tensor, " b"]:
        """Climb until every ascent idles or the steps run out; ascents that idle drop out of the batch."""
        climb.idle.zero_()
        running = torch.arange(len(climb), device=climb.idle.device)
        part = climb.select(running)
        rule = self._rule(climb.objective)(part, first=0.1)
        for _ in range(plan.steps):
            rule.step(part, plan.tolerance)
            self.spend(part.words)
            self._tick()
            going = part.idle < PATIENCE
            if not bool(going.all()):
                climb.store(running, part)
                kept = going.nonzero().squeeze(1)
                running, part = running[kept], part.select(kept)
                rule.select(kept)
                if len(running) == 0:
                    break
        climb.store(running, part)
        return climb.idle >= PATIENCE

    def exact(self, climb: Climb) -> Climb:
        """The same points in the map's own precision."""
        self.spend(climb.words)
        return self.at(self.objective, climb)

    def either_way(self, climb: Climb, count: int) -> Climb:
        """The fittest points; where the map's own precision denies some coarse values, the fittest by it as well.

        Where weights jump, float32 may see a row as empty that is not, and such points took the places of true ones.
        A climb in the map's own precision may lead from either.
        """
        best = self.fittest(climb, count)
        if climb.objective is self.objective or climb.objective is not self.coarse:
            return best
        exact = self.exact(climb).squared.to(climb.squared)
        false = exact < (1 - FALSE_EXCESS) * climb.squared
        if not bool(false.any()):
            return best
        checked = climb.select(torch.arange(len(climb), device=climb.words.device))
        checked.squared = torch.where(false, exact, climb.squared)
        return best.joined(self.fittest(checked, count))

    def best_of(
        self, candidates: Float[Tensor, "c w size"], count: int, objective: Objective
    ) -> Float[Tensor, "count w size"]:
        """The candidates of every word that move it most."""
        scale = self.radius.to(candidates.dtype).unsqueeze(1)
        perturbations = (candidates * scale).flatten(end_dim=1).unflatten(1, objective.shape)
        words = self.words.repeat(len(candidates))
        squared = objective.value(perturbations, words)
        self.spend(words)
        squared = squared.nan_to_num(-1.0, torch.inf)
        ranks = squared.view(len(candidates), -1).topk(min(count, len(candidates)), dim=0).indices
        return candidates.gather(0, ranks.unsqueeze(-1).expand(-1, -1, candidates.shape[-1]))

    def fittest(self, climb: Climb, count: int, alike: float = ALIKE) -> Climb:
        """The best points of every word, those like a better one after all others (`points.fittest`)."""
        w = len(self.words)
        ranks = fittest(climb.squared.view(-1, w), self.ranked(climb), count, alike)
        return climb.select((ranks * w + torch.arange(w, device=ranks.device)).flatten())

    def ranked(self, climb: Climb) -> Float[Tensor, "ranks w size"]:
        """The points, rank by rank."""
        return climb.x.view(-1, len(self.words), climb.x.shape[1])

    def winners(self, climb: Climb) -> Int[Tensor, " w"]:
        """Every word's best point."""
        winner = climb.squared.view(-1, len(self.words)).argmax(dim=0)
        return winner * len(self.words) + torch.arange(len(winner), device=winner.device)

    def spend(self, words: Int[Tensor, " b"], times: int = 1) -> None:
        """Count evaluations, so many of each word that is named."""
        self.evaluations.index_add_(0, words, torch.full_like(words, times))
