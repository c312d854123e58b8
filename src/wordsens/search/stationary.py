"""The end of a search: a check that its best points are stationary, and sampling where there is no gradient."""

from dataclasses import replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from wordsens.search.ball import Ball, unit
from wordsens.search.climb import Climb
from wordsens.search.objective import Objective
from wordsens.search.result import SearchResult
from wordsens.seeds import gaussian_on

STEEPNESS = 0.01
"""A point is stationary where the squared change f rises along its feasible gradient g by less than this times 2 f a
radius. At the end of default searches of random maps |g| / 2 f was at most .0003 where
phi is smooth (attention, one to three layers)."""

TRIALS = (1e-2, 1e-3)
"""The steps, in radii, along g after which f decides where |g| says nothing: at a kink g belongs to one side of it."""

_DRAWS, _AT_ONCE = 2000, 50
"""Points that are tried for a word at which the gradient vanishes, and how many a round."""


def settled(
    objective: Objective,
    words: Int[Tensor, " w"],
    ball: Ball,
    found: SearchResult,
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
    climb = Climb(objective, words, ball.radius, _coordinates(found.perturbations, ball, blocks), blocks)
    flat = (climb.slope == 0).all(dim=1)
    steep = torch.linalg.vector_norm(climb.uphill(), dim=1)
    stationary = steep <= STEEPNESS * 2 * climb.squared
    unsure = (~stationary & found.converged).nonzero().squeeze(1)
    if len(unsure):
        stationary[unsure] = _gains_nothing(climb.select(unsure), steep[unsure])
    spent = found.spent + 1
    spent[unsure] += len(TRIALS)
    found = replace(found, converged=found.converged & stationary & ~flat, spent=spent)
    return _sampled(found, climb, flat.nonzero().squeeze(1), ball, generator) if bool(flat.any()) else found


def _gains_nothing(climb: Climb, steep: Float[Tensor, " b"]) -> Bool[Tensor, " b"]:
    uphill = climb.uphill() / steep.unsqueeze(1)
    still = torch.ones_like(climb.squared, dtype=torch.bool)
    for step in TRIALS:
        ahead, _ = climb.evaluate(climb.into_ball(climb.x + step * uphill))
        still &= ahead - climb.squared <= STEEPNESS * 2 * climb.squared * step
    return still


def _sampled(
    found: SearchResult, climb: Climb, flat: Int[Tensor, " f"], ball: Ball, generator: torch.Generator
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
        tried = climb.objective.value(moved, words.repeat(_AT_ONCE)).view(_AT_ONCE, -1)
        value, at = tried.max(dim=0)
        better = value > squared
        best = torch.where(better.unsqueeze(1), drawn[at, torch.arange(len(flat), device=at.device)], best)
        squared = torch.where(better, value, squared)
    perturbations, values, spent = found.perturbations.clone(), found.squared.clone(), found.spent.clone()
    blocks = (best.unflatten(1, (climb.blocks, -1))).transpose(0, 1)
    inside = Ball(ball.radius[flat]).project(blocks * scale).transpose(0, 1)
    perturbations[flat], values[flat] = inside.reshape(len(flat), *climb.objective.shape), squared
    spent[flat] += _DRAWS
    return replace(found, perturbations=perturbations, squared=values, spent=spent)


def _coordinates(perturbations: Tensor, ball: Ball, blocks: int) -> Float[Tensor, "w size"]:
    """Delta / radius, flat; with points a rounding inside a sphere put on it, as a Climb has them."""
    x = perturbations.flatten(start_dim=1) / ball.radius.to(perturbations.dtype).unsqueeze(1)
    unit, length = _unit(x, blocks), torch.linalg.vector_norm(x.unflatten(1, (blocks, -1)), dim=-1)
    on_sphere = (length > 1 - 64 * torch.finfo(x.dtype).eps).repeat_interleave(x.shape[1] // blocks, dim=1)
    return torch.where(on_sphere, unit, x)


def _unit(points: Float[Tensor, "*ranks size"], blocks: int) -> Float[Tensor, "*ranks size"]:
    split = points.unflatten(-1, (blocks, -1))
    return unit(split).flatten(start_dim=-2)
