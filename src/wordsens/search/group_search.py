"""One search on w words: climb from several starts, cross the best witnesses within and between words, kick, polish.

The squared change of attention has many local maxima, each drawing other rows to the changed word. Which rows can be
drawn together is nearly the same for every word of a text, so a mixture of two good witnesses, the second perhaps of
another word, is a far better start than a random point (benchmarks/attention_search.py holds the comparison). What is
then still missed are mostly hills next to the one found, which differ by one drawn row: kicks find those.
"""

from dataclasses import replace
from functools import cached_property

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from wordsens.search.ascents import Ascents
from wordsens.search.climb import PATIENCE, Climb
from wordsens.search.noisy import noisily_crossed
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
from wordsens.search.points import SAME, Breeder, SeparateBreeders
from wordsens.search.steady import steadied

_INNER = 0.3
"""The lengths of the starts inside the ball, in radii."""

_LAST_GENERATIONS = 2
"""Of children in all coordinates, where fewer were explored."""

_FEWEST_SOFT = 16
"""Points of a word that are kept, where there are so many, on the way through smoother relatives."""

Found = tuple[Float[Tensor, "w size"], Float[Tensor, " w"], Int[Tensor, " w"], Bool[Tensor, " w"]]


class GroupSearch(Ascents):
    """The search on w words at once, of one text or as many words of each of several."""

    def run(self) -> Found:
        """The best point of every word, its squared change, the evaluations spent on it, and whether it converged."""
        plan = self.plan
        best = self.fittest(self._explored(), plan.finalists)
        if self._exploring is not self.ground:
            best = self._narrowed(best)
            if len(self._candidates):
                best = best.joined(self._direct())
        if plan.noisy:
            best = noisily_crossed(self, best, self._candidates)
        if self.fewer is not None:
            best = self._left(best, self.fewer)
        if plan.steps == 0 and len(best) == len(self.words):
            # Nothing is polished, and nothing left to choose: the map's own precision would only repeat the value.
            converged = torch.zeros_like(best.words, dtype=torch.bool)
        elif self.coarse is self.objective:
            converged = self.polish(best, plan)
        elif plan.tolerance >= self.noise:
            best = self._polished(best, plan, min(2, plan.finalists))
            converged, best = best.idle >= PATIENCE, self.exact(best)
        else:
            # Points that converged in fewer coordinates are compared well enough.
            count = min(2, plan.finalists) if self.fewer is None else 1
            best = self.exact(self._polished(best, replace(self.coarse_plan, steps=plan.climb_steps), count))
            converged = self.polish(best, plan)
        if plan.steps:
            best, converged = self._off_kinks(best, converged)
            if plan.relays:
                best, converged = self._exchanged(best, converged)
            if not self.tiny:
                best, converged = steadied(self, best, converged, self._candidates)
        chosen = self.winners(best)
        points = best.x[chosen].to(self.objective.dtype) * best.radius[chosen].to(self.objective.dtype).unsqueeze(1)
        return points, best.squared[chosen], self.evaluations[self.words], converged[chosen]

    def _exchanged(self, best: Climb, converged: Bool[Tensor, " b"]) -> tuple[Climb, Bool[Tensor, " b"]]:
        """The points, and the other words' best ones where they move a word more, after climbs from there."""
        top = best.select(self.winners(best))
        others = self.best_of(self.breeder.some(top.x, self.plan.relays), 1, self.objective)
        climb = Climb(self.objective, top.words, top.radius, others.flatten(end_dim=1), self.blocks)
        self.spend(top.words)
        better = (climb.squared > top.squared).nonzero().squeeze(1)
        part, ended = climb.select(better), torch.zeros_like(converged[: len(climb)])
        if len(better):
            ended[better] = self.polish(part, self.plan)
            climb.store(better, part)
        return best.joined(climb), torch.cat([converged, ended])

    def _polished(self, best: Climb, plan: Stages, count: int) -> Climb:
        """The fittest points after polishing in the coarse precision, and those that were higher before in truth."""
        before = best.select(torch.arange(len(best), device=best.words.device))
        self.polish(best, plan)
        return self.either_way(best.joined(before), count)

    def _narrowed(self, best: Climb) -> Climb:
        """The points on the ground, after climbs of relatives less and less smooth: at kinks ascents jam."""
        for relative in self.ground.softened(self.radius, [share * self.plan.explored_share for share in NARROWING]):
            best = self.at(relative, best)
            self.polish(best, replace(self.coarse_plan, steps=NARROWING_STEPS))
        return self.at(self.ground, best)

    def _off_kinks(self, best: Climb, converged: Bool[Tensor, " b"]) -> tuple[Climb, Bool[Tensor, " b"]]:
        """The points, and the best ones after climbs of relatives whose kinks are rounded off less and less."""
        relatives = self.objective.rounded(self.radius, ROUNDED)
        if not relatives:
            return best, converged
        chosen = self.winners(best)
        top = best.select(chosen)
        x = top.x
        for relative in relatives:
            climb = Climb(relative, top.words, top.radius, x, self.blocks)
            self.polish(climb, replace(self.plan, steps=min(ROUNDED_STEPS, self.plan.steps)))
            x = climb.x
        moved = Climb(self.objective, top.words, top.radius, x, self.blocks)
        self.spend(moved.words)
        return best.joined(moved), torch.cat([converged, converged[chosen]])

    def _left(self, best: Climb, fewer: ReducedObjective) -> Climb:
        """The best points in all coordinates, converged in the fewer ones before, and what else is found there.

        Real words' rows lie close together, and the span lacks the directions that part them: of 100 words of a review
        16 ended below plain ascent without these starts and children, 2 with them.
        """
        self.polish(best, self.coarse_plan)
        best = Climb(self.coarse, best.words, best.radius, fewer.raised(best.x, best.words), self.blocks)
        breeder = self.breeder.resized(self.coarse.coordinates)
        for _ in range(_LAST_GENERATIONS):
            best = self.fittest(best, self.plan.population)
            best = best.joined(self.climb(breeder.children(self.ranked(best), self.plan.children), self.coarse))
        return self.fittest(best, min(2, self.plan.finalists), SAME)

    def _explored(self) -> Climb:
        """The best points before they are polished, found in fewer coordinates where the objective has such."""
        points, objective, sketch = self._starting_points(), self._exploring, self.sketch
        if sketch is None:
            best = self._relayed(self._crossed(objective, self.breeder, points))
            return self._kicked(best, objective, self.breeder) if self.plan.kicks else best
        breeder = self.breeder.resized(*sketch.shape)
        best = self._crossed(sketch, breeder, breeder.unit(self._lowered(points, sketch)))
        if self.plan.kicks:
            best = self._kicked(best, sketch, breeder)
        best = self.fittest(best, self.plan.finalists)
        best = Climb(objective, best.words, best.radius, sketch.raised(best.x, best.words), self.blocks)
        return self._relayed(best)

    def _crossed(
        self, objective: Objective, breeder: Breeder | SeparateBreeders, points: Float[Tensor, "starts w size"]
    ) -> Climb:
        """Climb from the points, then, generation after generation, from children of the best found so far."""
        best = self.climb(points, objective)
        if self.plan.soft_steps:
            best = best.joined(self._softly_climbed(objective, points))
        for _ in range(self.plan.generations):
            best = self.fittest(best, self.plan.population)
            children = breeder.children(self.ranked(best), self.plan.children)
            best = best.joined(self.climb(children, objective, halved=True))
        return best

    def _softly_climbed(self, objective: Objective, points: Float[Tensor, "starts w size"]) -> Climb:
        """Climb from where much smoother relatives lead, the better half of the points from each to the next."""
        for relative in self.ground.softened(self.radius, SOFT_SHARES):
            led = self.climb(points, relative, self.plan.soft_steps)
            points = self.ranked(self.fittest(led, max(_FEWEST_SOFT, len(points) // 2)))
        return self.climb(points, objective)

    def _relayed(self, best: Climb) -> Climb:
        """Climb also from those of other words' witnesses that move a word most."""
        if not self.plan.relays:
            return best
        best = self.fittest(best, self.plan.finalists)
        winners = self.breeder.some(self.breeder.unit(self.ranked(best)[0]), self.plan.relays)
        highest = self.best_of(winners, self.plan.finalists, self._exploring)
        return best.joined(self.climb(highest, self._exploring))

    def _kicked(self, best: Climb, objective: Objective, breeder: Breeder | SeparateBreeders) -> Climb:
        """Look for better hills next to the ones found; every point is nearly converged before it is compared."""
        plan = self.plan
        best = self.fittest(best, plan.finalists)
        self.polish(best, replace(self.coarse_plan, steps=plan.kick_steps))
        directions = objective.kicking_directions().flatten(start_dim=1)
        for _ in range(plan.kicks):
            best = self.fittest(best, plan.finalists, SAME)
            children = breeder.kicked(self.ranked(best), directions, plan.children)
            best = best.joined(self.climb(children, objective, plan.kick_steps))
        return self.fittest(best, plan.finalists, SAME)

    def _starting_points(self) -> Float[Tensor, "starts w size"]:
        informed = self._grounded(self.coarse.starting_directions(self.words, self.radius)[: self.plan.starts])
        random = self.breeder.random(self.plan.starts - len(informed))
        points = torch.cat([self.breeder.unit(informed), random])
        inner = min(self.plan.inner, len(points) - 1)
        points[len(points) - inner :] *= _INNER
        if self.plan.kept:
            points = self.best_of(points, self.plan.kept, self._exploring)
        if len(self._candidates) == 0:
            return points
        chosen = self._chosen(self._candidates, self._exploring, self.plan.chosen_steps)
        return torch.cat([points, self.ranked(chosen)])

    @cached_property
    def _exploring(self) -> Objective:
        """The objective of all but the last stages: a smoother relative of the ground, where the plan wants one."""
        share = self.plan.explored_share
        return next(iter(self.ground.softened(self.radius, [share]) if share else ()), self.ground)

    @cached_property
    def _candidates(self) -> Float[Tensor, "candidates w size"]:
        """The map's, where the plan wants any."""
        if not self.plan.chosen:
            return self.breeder.random(0)
        return self._grounded(self.coarse.candidates(self.words, self.radius))

    def _grounded(self, points: Float[Tensor, "count w *shape"]) -> Float[Tensor, "count w size"]:
        """Flat points of the objective, in the ground's coordinates."""
        points = points.flatten(start_dim=2)
        return points if self.fewer is None else self._lowered(points, self.fewer)

    def _lowered(self, points: Float[Tensor, "count w size"], fewer: ReducedObjective) -> Float[Tensor, "count w k"]:
        return fewer.lowered(points.flatten(end_dim=1), self.words.repeat(len(points))).unflatten(0, points.shape[:2])

    def _direct(self) -> Climb:
        """The best climbs of the ground itself from its candidates: a relative lacks the narrow hills."""
        chosen = self._chosen(self._candidates, self.ground, DIRECT_STEPS)
        return self.either_way(chosen, self.plan.finalists)

    def _chosen(self, points: Float[Tensor, "count w size"], objective: Objective, steps: int) -> Climb:
        """The points that are best after a few steps, after some more."""
        best = self.fittest(self.climb(points, objective, FIRST_STEPS), self.plan.chosen)
        if steps:
            self.polish(best, replace(self.coarse_plan, steps=steps))
        return best
