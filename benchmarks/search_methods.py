"""Ways to maximise the change of one random layer, traced by the products with V_i and V_i^T that they spend."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from wordsens.search.ball import Ball
from wordsens.search.great_circle import CircleLimits, LinearEntry, climb_great_circles
from wordsens.search.krylov import LANCZOS_STEPS, krylov_search
from wordsens.search.linear_entry import LinearEntryObjective

WORD = 0


@dataclass(frozen=True)
class Trace:
    """The best value of ‖phi(X^i(Delta)) - phi(X)‖ after so many products."""

    products: list[int]
    values: list[float]

    def products_to(self, value: float) -> int | None:
        """How many products it took to reach the value; None where it never did."""
        return next((spent for spent, at in zip(self.products, self.values, strict=True) if at >= value), None)


Method = Callable[[LinearEntryObjective, int], Iterator[tuple[int, float]]]
"""From a seed of its start, yields (products so far, value there)."""


def traces(method: Method, change: LinearEntryObjective, *, seeds: int) -> list[Trace]:
    """The method's traces from as many random starts."""
    found = []
    for seed in range(seeds):
        spent, values = zip(*method(change, seed), strict=True)
        found.append(Trace(list(spent), [max(values[: at + 1]) for at in range(len(values))]))
    return found


def power_iteration(change: LinearEntryObjective, seed: int) -> Iterator[tuple[int, float]]:
    """Every step to the ball's linear maximiser in the gradient's direction."""
    return _heavy_ball(change, seed, steps=150, keep=0.0)


def momentum(keep: float) -> Method:
    """Power iteration that adds `keep` times its last move."""
    return lambda change, seed: _heavy_ball(change, seed, steps=100, keep=keep)


def _heavy_ball(change: LinearEntryObjective, seed: int, *, steps: int, keep: float) -> Iterator[tuple[int, float]]:
    word, radius = torch.tensor([WORD]), math.sqrt(change.rows.shape[1])
    before = point = _start(change, seed)
    for step in range(steps):
        entered = change.enter(radius * point, word)
        yield 2 * step + 1, float(_value(change, entered))
        gradient = change.enter_transposed(change.slope(entered), word)
        onward = gradient / gradient.norm() + keep * (point - before)
        before, point = point, onward / onward.norm()


def conjugate_gradients(change: LinearEntryObjective, seed: int) -> Iterator[tuple[int, float]]:
    """Great circles with exact line searches, from the random start."""
    entry, start = _products(change), _start(change, seed)
    for steps in (0, 2, 4, 6, 8, 10, 13, 16, 20, 25, 30, 40, 60):
        # Every run repeats a shorter one, whose products are known, and goes on.
        end = climb_great_circles(change, entry, start, entry.forward(start), CircleLimits(steps, 0.0))
        yield 1 + 2 * steps, math.sqrt(float(end.squared))


def block_power(starts: int) -> Method:
    """Power iteration from several random starts side by side, the best of them at every step."""

    def trace(change: LinearEntryObjective, seed: int) -> Iterator[tuple[int, float]]:
        runs = [list(_heavy_ball(change, starts * seed + at, steps=40, keep=0.0)) for at in range(starts)]
        for step in zip(*runs, strict=True):
            yield starts * step[0][0], max(value for _, value in step)

    return trace


def block_lanczos(block: int) -> Method:
    """The leading Ritz vector of a (block) Krylov space of the linearised change, then conjugate gradients from it."""

    def trace(change: LinearEntryObjective, seed: int) -> Iterator[tuple[int, float]]:
        entry = _products(change)
        points, entered = [_orthonormal(_start(change, seed, block))], []
        while len(entered) < LANCZOS_STEPS // block:
            entered.append(entry.forward(points[-1]))
            onward, known = entry.transposed(change.linearized(entered[-1])), torch.cat(points)
            for _ in range(2):
                onward = onward - (onward @ known.T) @ known
            points.append(_orthonormal(onward))
        basis, seen = torch.cat(points[:-1]), torch.cat(entered)
        leading = torch.linalg.eigh(seen @ change.linearized(seen).T).eigenvectors[:, -1:].T
        for steps in (0, 2, 4, 6, 8, 12, 16, 24):
            ends = [
                climb_great_circles(
                    change,
                    entry,
                    sign * leading @ basis,
                    sign * leading @ seen,
                    CircleLimits(steps, 0.0),
                )
                for sign in (1, -1)
            ]
            best = math.sqrt(max(float(end.squared) for end in ends))
            yield 2 * len(basis) + 4 * steps, best

    return trace


def krylov(change: LinearEntryObjective, seed: int) -> Iterator[tuple[int, float]]:
    """The library's search: Lanczos steps, free trials in their span, conjugate gradients."""
    for steps in (0, 2, 4, 6, 8, 12, 16, 24):
        found = krylov_search(
            change,
            torch.tensor([WORD]),
            Ball(torch.tensor([math.sqrt(change.rows.shape[1])], dtype=torch.float64)),
            replace(change.plan, steps=steps, tolerance=0.0),
            generator=torch.Generator().manual_seed(seed),
        )
        yield 2 * (LANCZOS_STEPS + steps), math.sqrt(float(found.squared))


def _start(change: LinearEntryObjective, seed: int, count: int = 1) -> Tensor:
    stream = torch.Generator().manual_seed(seed)
    start = torch.randn(count, change.rows.shape[1], generator=stream, dtype=torch.float64).to(change.rows)
    return start / start.norm(dim=1, keepdim=True)


def _orthonormal(rows: Tensor) -> Tensor:
    return torch.linalg.qr(rows.T).Q.T


def _products(change: LinearEntryObjective) -> LinearEntry:
    radius = math.sqrt(change.rows.shape[1])
    return LinearEntry(
        lambda point: change.enter(radius * point, torch.full((len(point),), WORD)),
        lambda slopes: radius * change.enter_transposed(slopes, torch.full((len(slopes),), WORD)),
    )


def _value(change: LinearEntryObjective, entered: Tensor) -> Tensor:
    return change.along(entered, entered, torch.zeros_like(entered[:, 0]))[0].sqrt()


METHODS: dict[str, Method] = {
    "power iteration": power_iteration,
    "momentum 0.5": momentum(0.5),
    "momentum 0.8": momentum(0.8),
    "momentum 0.9": momentum(0.9),
    "power iteration, 4 starts": block_power(4),
    "conjugate gradients": conjugate_gradients,
    "Lanczos, conjugate gradients": block_lanczos(1),
    "block Lanczos of 4, the same": block_lanczos(4),
    "Krylov (ours)": krylov,
}
