"""One search on w words: climb from several starts, cross the best witnesses within and between words, kick, polish.

The squared change of attention has many local maxima, each drawing other rows to the changed word. Which rows can be
drawn together is nearly the same for every word of a text, so a mixture of two good witnesses, the second perhaps of
another word, is a far better start than a random point (benchmarks/attention_search.py holds the comparison). What is
then still missed are mostly hills next to the one found, which differ by one drawn row: kicks find those.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from wordsens.search.climb import PATIENCE, RULES, Climb, Momentum, QuasiNewton
from wordsens.search.noisy import NOISY_STEPS, climb_noisily
from wordsens.search.objective import Objective, ReducedObjective
from wordsens.search.plan import (
    DIRECT_STEPS,
    FIRST_STEPS,
    NARROWING,
    NARROWING_STEPS,
    ROUNDED,
    ROUNDED_STEPS,
    SOFT_SHARES,
    Stages,
)
from wordsens.search.points import ALIKE, SAME, Breeder, fittest
from wordsens.search.separate_points import SeparateBreeders

_INNER = 0.3
"""The lengths of the starts inside the ball, in radii."""

_CACHED_NUMBERS = 1 << 18
"""Coordinates of the points that climb together on a CPU, but for those of one word."""

_BEFORE_HALVING = 4
"""Steps after which the lower half of a word's children is given up, where that was measured: in few coordinates."""

_TINY = 1e-3
"""Radii below this share of the typical length are explored in the objective's own precision: in float32 changes
cancel."""

_FALSE = 1e-3
"""The relative excess of a coarse value over that in the map's own precision from which on it counts as false."""

_LAST_GENERATIONS = 2
"""Of children in all coordinates, where fewer were explored."""

_FEWEST_SOFT = 16
"""Points of a word that are kept, where there are so many, on the way through smoother relatives."""

Found = tuple[Float[Tensor, "w size"], Float[Tensor, " w"], Int[Tensor, " w"], Bool[Tensor, " w"]]


class GroupSearch:
    """The search on w words at once, of one text or as many words of each of several.

    A climb holds its points rank by rank: ascent r * w + j is the r-th of word j.
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
        self._objective, self._words, self._radius, self._blocks = objective, words, radius, blocks
        self._plan, self._tick = plan, tick
        tiny = float(radius.max()) < _TINY * objective.typical_length
        self._coarse = objective if tiny else objective.coarse()
        # A gain below rounding is no gain: in float32 the last digits are noise.
        self._noise = 4 * torch.finfo(self._coarse.dtype).eps
        self._coarse_plan = (
            plan if self._coarse is objective else replace(plan, tolerance=max(plan.tolerance, self._noise))
        )
        reduced = self._coarse.reduced()
        if plan.whole and reduced is not None and reduced.exact:
            reduced = None
        exact = reduced if reduced is not None and reduced.exact else None
        self._ground, self._fewer = (self._coarse if exact is None else exact), exact
        self._sketch = None if exact is reduced else reduced
        softened = self._ground.softened(radius, [plan.explored_share]) if plan.explored_share else []
        self._exploring = softened[0] if softened else self._ground
        size, own = self._ground.coordinates, len(words) // len(generators)
        kind = self._coarse.dtype, self._coarse.device
        breeders = [Breeder(own, blocks, size, generator, *kind) for generator in generators]
        self._breeder = breeders[0] if len(breeders) == 1 else SeparateBreeders(breeders)
        self._evaluations = torch.zeros(int(words.max()) + 1, dtype=torch.long, device=words.device)

    def run(self) -> Found:
        """The best point of every word, its squared change, the evaluations spent on it, and whether it converged."""
        plan = self._plan
        best = self._fittest(self._explored(), plan.finalists)
        if self._exploring is not self._ground:
            best = self._narrowed(best)
            if len(self._candidates):
                best = best.joined(self._direct())
        if self._fewer is not None:
            best = self._left(best, self._fewer)
        if plan.steps == 0 and plan.finalists == 1:
            # Nothing is polished, and nothing left to choose: the map's own precision would only repeat the value.
            converged = torch.zeros_like(best.words, dtype=torch.bool)
        elif self._coarse is self._objective:
            converged = self._polish(best, plan)
        elif plan.tolerance >= self._noise:
            best = self._polished(best, plan, min(2, plan.finalists))
            converged, best = best.idle >= PATIENCE, self._exact(best)
        else:
            # Points that converged in fewer coordinates are compared well enough.
            count = min(2, plan.finalists) if self._fewer is None else 1
            best = self._exact(self._polished(best, replace(self._coarse_plan, steps=plan.climb_steps), count))
            converged = self._polish(best, plan)
        if plan.steps:
            best, converged = self._off_kinks(best, converged)
        winner = best.squared.view(-1, len(self._words)).argmax(dim=0)
        chosen = winner * len(self._words) + torch.arange(len(winner), device=winner.device)
        points = best.x[chosen].to(self._objective.dtype) * best.radius[chosen].to(self._objective.dtype).unsqueeze(1)
        return points, best.squared[chosen], self._evaluations[self._words], converged[chosen]

    def _polished(self, best: Climb, plan: Stages, count: int) -> Climb:
        """The fittest points after polishing in the coarse precision, and those that were higher before in truth."""
        before = best.select(torch.arange(len(best), device=best.words.device))
        self._polish(best, plan)
        return self._either_way(best.joined(before), count)

    def _either_way(self, climb: Climb, count: int) -> Climb:
        """The fittest points; where the map's own precision denies some coarse values, the fittest by it as well.

        Where weights jump, float32 may see a row as empty that is not, and such points took the places of true ones.
        A climb in the map's own precision may lead from either.
        """
        best = self._fittest(climb, count)
        if climb.objective is self._objective or climb.objective is not self._coarse:
            return best
        exact = self._exact(climb).squared.to(climb.squared)
        false = exact < (1 - _FALSE) * climb.squared
        if not bool(false.any()):
            return best
        checked = climb.select(torch.arange(len(climb), device=climb.words.device))
        checked.squared = torch.where(false, exact, climb.squared)
        return best.joined(self._fittest(checked, count))

    def _narrowed(self, best: Climb) -> Climb:
        """The points on the ground, after climbs of relatives less and less smooth: at kinks ascents jam."""
        for relative in self._ground.softened(self._radius, [share * self._plan.explored_share for share in NARROWING]):
            best = Climb(relative, best.words, best.radius, best.x, self._blocks)
            self._polish(best, replace(self._coarse_plan, steps=NARROWING_STEPS))
        return Climb(self._ground, best.words, best.radius, best.x, self._blocks)

    def _off_kinks(self, best: Climb, converged: Bool[Tensor, " b"]) -> tuple[Climb, Bool[Tensor, " b"]]:
        """The points, and the best ones after climbs of relatives whose kinks are rounded off less and less."""
        relatives = self._objective.rounded(self._radius, ROUNDED)
        if not relatives:
            return best, converged
        ranks = fittest(best.squared.view(-1, len(self._words)), self._ranked(best), 1, SAME)
        chosen = (ranks * len(self._words) + torch.arange(len(self._words), device=ranks.device)).flatten()
        top = best.select(chosen)
        x = top.x
        for relative in relatives:
            climb = Climb(relative, top.words, top.radius, x, self._blocks)
            self._polish(climb, replace(self._plan, steps=min(ROUNDED_STEPS, self._plan.steps)))
            x = climb.x
        moved = Climb(self._objective, top.words, top.radius, x, self._blocks)
        self._spend(moved.words)
        return best.joined(moved), torch.cat([converged, converged[chosen]])

    def _left(self, best: Climb, fewer: ReducedObjective) -> Climb:
        """The best points in all coordinates, converged in the fewer ones before, and what else is found there.

        Real words' rows lie close together, and the span lacks the directions that part them: of 100 words of a review
        16 ended below plain ascent without these starts and children, 2 with them.
        """
        self._polish(best, self._coarse_plan)
        best = Climb(self._coarse, best.words, best.radius, fewer.raised(best.x, best.words), self._blocks)
        breeder = self._breeder.resized(self._coarse.coordinates)
        for _ in range(_LAST_GENERATIONS):
            best = self._fittest(best, self._plan.population)
            best = best.joined(self._climb(breeder.children(self._ranked(best), self._plan.children), self._coarse))
        return self._fittest(best, min(2, self._plan.finalists), SAME)

    def _explored(self) -> Climb:
        """The best points before they are polished, found in fewer coordinates where the objective has such."""
        points, objective, sketch = self._starting_points(), self._exploring, self._sketch
        if sketch is None:
            best = self._relayed(self._crossed(objective, self._breeder, points))
            return self._kicked(best, objective, self._breeder) if self._plan.kicks else best
        breeder = self._breeder.resized(*sketch.shape)
        best = self._crossed(sketch, breeder, breeder.unit(self._lowered(points, sketch)))
        if self._plan.kicks:
            best = self._kicked(best, sketch, breeder)
        best = self._fittest(best, self._plan.finalists)
        best = Climb(objective, best.words, best.radius, sketch.raised(best.x, best.words), self._blocks)
        return self._relayed(best)

    def _crossed(
        self, objective: Objective, breeder: Breeder | SeparateBreeders, points: Float[Tensor, "starts w size"]
    ) -> Climb:
        """Climb from the points, then, generation after generation, from children of the best found so far."""
        best = self._climb(points, objective)
        if self._plan.soft_steps:
            best = best.joined(self._softly_climbed(objective, points))
        for _ in range(self._plan.generations):
            best = self._fittest(best, self._plan.population)
            children = breeder.children(self._ranked(best), self._plan.children)
            best = best.joined(self._climb(children, objective, halved=True))
        return best

    def _softly_climbed(self, objective: Objective, points: Float[Tensor, "starts w size"]) -> Climb:
        """Climb from where much smoother relatives lead, the better half of the points from each to the next."""
        for relative in self._ground.softened(self._radius, SOFT_SHARES):
            led = self._climb(points, relative, self._plan.soft_steps)
            points = self._ranked(self._fittest(led, max(_FEWEST_SOFT, len(points) // 2)))
        return self._climb(points, objective)

    def _relayed(self, best: Climb) -> Climb:
        """Climb also from those of other words' witnesses that move a word most."""
        if not self._plan.relays:
            return best
        best = self._fittest(best, self._plan.finalists)
        winners = self._breeder.some(self._breeder.unit(self._ranked(best)[0]), self._plan.relays)
        return best.joined(self._climb(self._best_of(winners, self._plan.finalists), self._exploring))

    def _kicked(self, best: Climb, objective: Objective, breeder: Breeder | SeparateBreeders) -> Climb:
        """Look for better hills next to the ones found; every point is nearly converged before it is compared."""
        plan = self._plan
        best = self._fittest(best, plan.finalists)
        self._polish(best, replace(self._coarse_plan, steps=plan.kick_steps))
        directions = objective.kicking_directions().flatten(start_dim=1)
        for _ in range(plan.kicks):
            best = self._fittest(best, plan.finalists, SAME)
            children = breeder.kicked(self._ranked(best), directions, plan.children)
            best = best.joined(self._climb(children, objective, plan.kick_steps))
        return self._fittest(best, plan.finalists, SAME)

    def _spend(self, words: Int[Tensor, " b"], times: int = 1) -> None:
        self._evaluations.index_add_(0, words, torch.full_like(words, times))

    def _starting_points(self) -> Float[Tensor, "starts w size"]:
        informed = self._grounded(self._coarse.starting_directions(self._words, self._radius)[: self._plan.starts])
        random = self._breeder.random(self._plan.starts - len(informed))
        points = torch.cat([self._breeder.unit(informed), random])
        inner = min(self._plan.inner, len(points) - 1)
        points[len(points) - inner :] *= _INNER
        if self._plan.kept:
            points = self._best_of(points, self._plan.kept)
        if len(self._candidates) == 0:
            return points
        chosen = self._chosen(self._candidates, self._exploring, self._plan.chosen_steps)
        return torch.cat([points, self._ranked(chosen)])

    @cached_property
    def _candidates(self) -> Float[Tensor, "candidates w size"]:
        """The map's, where the plan wants any."""
        if not self._plan.chosen:
            return self._breeder.random(0)
        return self._grounded(self._coarse.candidates(self._words, self._radius))

    def _grounded(self, points: Float[Tensor, "count w *shape"]) -> Float[Tensor, "count w size"]:
        """Flat points of the objective, in the ground's coordinates."""
        points = points.flatten(start_dim=2)
        return points if self._fewer is None else self._lowered(points, self._fewer)

    def _lowered(self, points: Float[Tensor, "count w size"], fewer: ReducedObjective) -> Float[Tensor, "count w k"]:
        return fewer.lowered(points.flatten(end_dim=1), self._words.repeat(len(points))).unflatten(0, points.shape[:2])

    def _chosen(self, points: Float[Tensor, "count w size"], objective: Objective, steps: int) -> Climb:
        """The points that are best after a few steps, after some more."""
        best = self._fittest(self._climb(points, objective, FIRST_STEPS), self._plan.chosen)
        if steps:
            self._polish(best, replace(self._coarse_plan, steps=steps))
        return best

    def _direct(self) -> Climb:
        """The best climbs of the ground itself from its candidates: a relative lacks the narrow hills."""
        chosen = self._chosen(self._candidates, self._ground, DIRECT_STEPS)
        if self._plan.rule == "momentum" and self._plan.chosen_steps:
            ranks = len(self._ranked(chosen))
            climb_noisily(chosen, lambda: self._breeder.random(ranks).flatten(end_dim=1))
            self._spend(chosen.words, NOISY_STEPS)
        return self._either_way(chosen, self._plan.finalists)

    def _ranked(self, climb: Climb) -> Float[Tensor, "ranks w size"]:
        return climb.x.view(-1, len(self._words), climb.x.shape[1])

    def _climb(
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
        steps = self._plan.climb_steps if steps is None else steps
        halved = halved and isinstance(objective, ReducedObjective) and ranks >= 4 and steps >= 2 * _BEFORE_HALVING
        kept, before = (-(-ranks // 2), _BEFORE_HALVING) if halved else (ranks, steps)
        self._spend(self._words, ranks * (1 + before) + kept * (steps - before))
        # On a CPU a few words at a time: what a step keeps of their points then stays in the cache.
        each = max(1, _CACHED_NUMBERS // max(1, size * ranks)) if points.device.type == "cpu" else w
        lots = torch.arange(w, device=points.device).split(each)
        climbs, order = [], []
        for at, some in enumerate(lots):
            words, radius = self._words[some].repeat(ranks), self._radius[some].repeat(ranks)
            climb = Climb(objective, words, radius, points[:, some].flatten(end_dim=1), self._blocks)
            rule = self._rule(objective)(climb)
            for step in range(1, steps + 1):
                rule.step(climb, self._coarse_plan.tolerance)
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
        own = objective in (self._objective, self._coarse, self._ground)
        return RULES[self._plan.rule] if own else QuasiNewton

    def _best_of(self, candidates: Float[Tensor, "c w size"], count: int) -> Float[Tensor, "count w size"]:
        """The candidates of every word that move it most."""
        scale = self._radius.to(candidates.dtype).unsqueeze(1)
        perturbations = (candidates * scale).flatten(end_dim=1).unflatten(1, self._exploring.shape)
        words = self._words.repeat(len(candidates))
        squared = self._exploring.value(perturbations, words)
        self._spend(words)
        squared = squared.nan_to_num(-1.0, torch.inf)
        ranks = squared.view(len(candidates), -1).topk(min(count, len(candidates)), dim=0).indices
        return candidates.gather(0, ranks.unsqueeze(-1).expand(-1, -1, candidates.shape[-1]))

    def _fittest(self, climb: Climb, count: int, alike: float = ALIKE) -> Climb:
        w = len(self._words)
        ranks = fittest(climb.squared.view(-1, w), self._ranked(climb), count, alike)
        return climb.select((ranks * w + torch.arange(w, device=ranks.device)).flatten())

    def _exact(self, climb: Climb) -> Climb:
        """The same points in the map's own precision."""
        self._spend(climb.words)
        return Climb(self._objective, climb.words, climb.radius, climb.x.to(self._objective.dtype), self._blocks)

    def _polish(self, climb: Climb, plan: Stages) -> Bool[Tensor, " b"]:
        """Climb until every ascent idles or the steps run out; ascents that idle drop out of the batch."""
        climb.idle.zero_()
        running = torch.arange(len(climb), device=climb.idle.device)
        part = climb.select(running)
        rule = self._rule(climb.objective)(part, first=0.1)
        for _ in range(plan.steps):
            rule.step(part, plan.tolerance)
            self._spend(part.words)
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
