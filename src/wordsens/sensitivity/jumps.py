"""Witnesses at the edge of a jump: moved back from it where the map itself does not attain what the search saw.

Under divided ReLU a row with one positive score goes to that word whole, however small the score. A search is then
drawn to a score of zero, on whose other side rounding may put it: a word was at 5e-5 of the text, found at .5.
"""

from collections.abc import Callable
from dataclasses import replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from wordsens.search.ball import Ball
from wordsens.search.result import SearchResult
from wordsens.seeds import Seed, gaussian_on, generator

_ATTAINED = 1 - 1e-3
"""Of what the search saw, less is an edge missed."""

_DISTANCES, _EACH = (1e-12, 1e-10, 1e-8, 1e-6, 1e-4), 16
"""How far witnesses are moved, in radii, and how many directions are tried at each distance: a half of them lead back
from one edge, a quarter from two."""


def moved_back(
    attained: Callable[[Int[Tensor, " b"], Float[Tensor, "b d"]], Float[Tensor, " b"]],
    words: Int[Tensor, " w"],
    ball: Ball,
    found: SearchResult,
    per_word: Float[Tensor, " w"],
    seen: Float[Tensor, " w"],
    seed: Seed,
) -> tuple[SearchResult, Float[Tensor, " w"]]:
    """The findings and what they attain, with better witnesses next to those that attain less than was `seen`.

    Args:
        attained: what some words' perturbations attain, by the map itself.
        per_word: that of `found`.
        seen: what the search saw of the same.
        seed: of the directions.
    """
    missed = ((per_word < _ATTAINED * seen) & seen.isfinite()).nonzero().squeeze(1)
    if not len(missed):
        return found, per_word
    witnesses, per_word, spent = found.perturbations.clone(), per_word.clone(), found.spent.clone()
    distances = witnesses.new_tensor(_DISTANCES).repeat_interleave(_EACH).unsqueeze(1)
    for at in missed.tolist():
        one, stream = Ball(ball.radius[[at]]), generator(seed, "edges", int(words[at]))
        ways = gaussian_on(
            len(distances), witnesses.shape[1], generator=stream, dtype=witnesses.dtype, device=witnesses.device
        )
        steps = distances * one.radius.to(witnesses.dtype) * torch.nn.functional.normalize(ways, dim=1)
        tried = one.project((witnesses[at] + steps).unsqueeze(1)).squeeze(1)
        values = attained(words[[at]].expand(len(tried)), tried)
        best = int(values.argmax())
        spent[at] += len(tried)
        if values[best] > per_word[at]:
            witnesses[at], per_word[at] = tried[best], values[best]
    return replace(found, perturbations=witnesses, spent=spent), per_word
