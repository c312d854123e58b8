"""Word sensitivity: the definition, attained by a witness that is recomputed through the map."""

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple, SupportsIndex

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from wordsens.certificates.certify import certificate_for
from wordsens.errors import InputError, require_count
from wordsens.maps.arguments import as_feature_map, as_text, radii, word_indices
from wordsens.maps.base import DEFAULT_MEMORY_BUDGET, FeatureMap
from wordsens.maps.mapping import feature_norm, perturbed_texts, restores_state
from wordsens.search.maximize import maximize_each
from wordsens.search.objective import Ball, Progress
from wordsens.search.plan import Search, SearchPlan
from wordsens.seeds import Seed, generator
from wordsens.sensitivity.result import Sensitivity
from wordsens.text.matrix import TextMatrix

_MAX_RELATIVE_ROUNDING = 0.01
"""No search counts as converged where rounding exceeds this share of its value: its gradient is
then not known to 1 % either."""

_NEIGHBOURS = 3
"""Of a witness, a last digit away, that are mapped with it where phi may jump."""

_MAPPED_BYTES = 64 << 20
"""Perturbed texts are mapped in batches of this size: larger ones fall out of the cache and are
slower."""


@restores_state
def word_sensitivity(
    phi: FeatureMap | Callable[[Tensor], Tensor],
    X: TextMatrix | Tensor | np.ndarray,
    words: Iterable[int] | Tensor | np.ndarray | SupportsIndex | None = None,
    radius: float | Sequence[float] | np.ndarray | Tensor | None = None,
    seed: Seed = 0,
    *,
    search: Search = "normal",
    certificate: bool = True,
    text_depends_on_weights: bool = False,
    memory_budget: int = DEFAULT_MEMORY_BUDGET,
    progress: Progress | None = None,
) -> Sensitivity:
    """The word sensitivity of a text under a feature map (paper, eq. 1).

    S_phi(X) = sup over i and ‖Delta‖ <= radius of ‖phi(X^i(Delta)) - phi(X)‖ / ‖phi(X)‖.

    The value is a lower bound of the sup, with a witness for every word: the search proposes
    witnesses, each is mapped through phi again, and that number, less its rounding error, is
    reported. Maps with a certificate also have an upper bound.

    Args:
        phi: a feature map, or any differentiable function of an (n, d) tensor.
        X: the text, (n, d), at least two words; taken as it is, rows are not rescaled here.
        words: the word indices to search; None for all. Negative indices count from the end.
        radius: of the ball, one number or one a searched word; None for the map's default, sqrt(d).
        seed: of the random starts.
        search: what the search spends: "quick", "normal", "thorough", or a SearchPlan such as
            SearchPlan(starts=64).
        certificate: whether to compute the upper bounds, where phi has a certificate.
        text_depends_on_weights: X, words or radius were chosen by phi's weights or answers; `upper`
            is then None where it would hold with a probability over the weights only (see
            `certify`; one call's probability).
        memory_budget: bytes for intermediate results.
        progress: called with (steps done, steps at most).

    Returns:
        A Sensitivity.

    Raises:
        InputError: NaN, infinite or zero rows; one word; an index out of range; a radius that is
            not positive; a map that answers differently each time.
        ZeroFeaturesError: phi(X) = 0.

    >>> from wordsens.maps.function import FunctionFeatures
    >>> phi = FunctionFeatures(lambda X: 2 * X, batched=True)
    >>> round(word_sensitivity(phi, torch.ones(4, 9, dtype=torch.float64)).value, 12)   # sqrt(d) / ‖X‖
    0.5
    """  # noqa: E501
    (result,) = sensitivities(
        [TextUnderMap(phi, X, words, radius, seed)],
        search,
        certificate=certificate,
        text_depends_on_weights=text_depends_on_weights,
        memory_budget=memory_budget,
        progress=progress,
    )
    return result


class TextUnderMap(NamedTuple):
    """A text under a map, as `word_sensitivity` takes it."""

    phi: FeatureMap | Callable[[Tensor], Tensor]
    X: TextMatrix | Tensor | np.ndarray
    words: Iterable[int] | Tensor | np.ndarray | SupportsIndex | None = None
    radius: float | Sequence[float] | np.ndarray | Tensor | None = None
    seed: Seed = 0


def sensitivities(
    problems: Sequence[TextUnderMap],
    search: Search = "normal",
    *,
    certificate: bool = True,
    text_depends_on_weights: bool = False,
    memory_budget: int = DEFAULT_MEMORY_BUDGET,
    progress: Progress | None = None,
) -> list[Sensitivity]:
    """`word_sensitivity` of each problem; texts of one shape under maps of one shape are searched
    as one problem.

    The results are the same, to rounding, as alone. `seconds` is a problem's share.
    """
    started = time.perf_counter()
    plan = SearchPlan.of(search)
    require_count("memory_budget", memory_budget)
    maps, texts, rows, words, balls, streams, changes = [], [], [], [], [], [], []
    for phi, X, chosen, radius, seed in problems:
        maps.append(as_feature_map(phi))
        texts.append(as_text(X))
        streams.append(generator(seed, "starts"))
        rows.append(maps[-1].accept(texts[-1].rows))
        words.append(word_indices(chosen, len(texts[-1])).to(rows[-1].device))
        balls.append(Ball(radii(radius, maps[-1], rows[-1], words[-1])))
        changes.append(maps[-1].word_change(rows[-1], memory_budget=memory_budget))
    searched = maximize_each(changes, words, balls, plan, generators=streams, progress=progress)
    results = []
    for phi, text, X, chosen, ball, climbed, problem in zip(
        maps, texts, rows, words, balls, searched, problems, strict=True
    ):
        per_word, rounding = _recomputed(phi, X, chosen, ball, climbed.perturbations, memory_budget)
        best = int(per_word.argmax())
        bounds = None
        if certificate:
            bounds = certificate_for(
                phi, X, chosen, ball.radius, text_depends_on_weights=text_depends_on_weights
            )
        mapped = 1 if phi.continuous else 1 + _NEIGHBOURS
        results.append(
            Sensitivity(
                value=float(per_word[best]),
                word=int(chosen[best]),
                words=chosen,
                per_word=per_word,
                rounding=rounding,
                perturbations=climbed.perturbations,
                radius=ball.radius,
                tokens=tuple(text.word(word) for word in chosen.tolist()),
                search=str(plan),
                evaluations=climbed.evaluations + mapped * len(chosen),
                evaluations_per_word=climbed.spent + mapped,
                converged=climbed.converged & (rounding <= _MAX_RELATIVE_ROUNDING * per_word),
                seed=int(problem.seed),
                map_name=phi.name,
                upper=None if bounds is None else bounds.value,
                upper_per_word=None if bounds is None else bounds.upper,
                rigor=None if bounds is None else bounds.rigor,
                notes=phi.notes,
            )
        )
    seconds = (time.perf_counter() - started) / len(problems)
    return [replace(result, seconds=seconds) for result in results]


def _recomputed(
    phi: FeatureMap,
    rows: Float[Tensor, "n d"],
    words: Int[Tensor, " w"],
    ball: Ball,
    perturbations: Float[Tensor, "w d"],
    memory_budget: int,
) -> tuple[Float[Tensor, " w"], Float[Tensor, " w"]]:
    """What each witness attains by definition, less an estimate of its rounding error, and that
    estimate.

    phi(X^i(Delta)) and phi(X) are each wrong by `relative_rounding` of their norms, at most 1 +
    value and 1. Where phi may jump, witnesses a last digit away are mapped too. The rounding at the
    best witness is estimated as well, which may make another word best: so on, until the best one
    is checked. Where phi is continuous it counts for every word.
    """

    def change_of(words: Int[Tensor, " b"], moved: Float[Tensor, "b d"]) -> Float[Tensor, " b"]:
        return attained(
            phi, rows, words.unsqueeze(1), moved.unsqueeze(1), memory_budget=memory_budget
        )

    neighbours = 0 if phi.continuous else _NEIGHBOURS
    values, rounding = with_neighbours(change_of, rows, words, perturbations, ball, neighbours)
    rounding = torch.maximum(rounding, phi.relative_rounding(rows) * (2 + values))
    best, checked = int((values - rounding).argmax()), set[int]()
    while best not in checked and float(values[best]) > 0:
        witness = perturbed_texts(rows, words[best].view(1, 1), perturbations[best].view(1, 1, -1))[
            0
        ]
        # NaN if the map is not finite just outside the ball: max(0.0, nan) is 0.0, in this order
        # only.
        error = max(0.0, phi.relative_rounding(witness)) * (2 + values)
        words_meant = slice(None) if phi.continuous else best
        rounding[words_meant] = torch.maximum(rounding[words_meant], error[words_meant])
        checked.add(best)
        best = int((values - rounding).argmax())
    return (values - rounding).clamp(min=0), rounding


def with_neighbours(
    value_of: Callable[[Int[Tensor, " b"], Float[Tensor, "b d"]], Float[Tensor, " b"]],
    rows: Float[Tensor, "n d"],
    words: Int[Tensor, " b"],
    moved: Float[Tensor, "b d"],
    ball: Ball,
    count: int = _NEIGHBOURS,
) -> tuple[Float[Tensor, " b"], Float[Tensor, " b"]]:
    """The perturbations' values, and an estimate of their rounding error where phi jumps or nearly
    does.

    (2 + sqrt(n d) / 8) max over `count` sign patterns s, at most three, of |value_of(Delta + eps s
    (x_i + Delta)) - value_of(Delta)|, the former in the ball, as `FeatureMap.relative_rounding` has
    it for a whole text; 0 for none.
    """
    signs = torch.ones(1 + _NEIGHBOURS, 1, rows.shape[1]).to(rows)
    signs[0], signs[2, :, ::2], signs[3, :, ::3] = 0, -1, -1
    beside = moved + torch.finfo(rows.dtype).eps * signs[: 1 + count] * (rows[words] + moved)
    beside = torch.cat([moved.unsqueeze(0), ball.project(beside[1:])])
    values = value_of(words.repeat(1 + count), beside.flatten(end_dim=1)).view(1 + count, -1)
    return values[0], (2 + math.sqrt(rows.numel()) / 8) * (values - values[0]).abs().amax(dim=0)


def attained(
    phi: FeatureMap,
    rows: Float[Tensor, "n d"],
    words: Int[Tensor, "w g"],
    perturbations: Float[Tensor, "w g d"],
    *,
    memory_budget: int = DEFAULT_MEMORY_BUDGET,
) -> Float[Tensor, " w"]:
    """‖phi(X^i(Delta)) - phi(X)‖ / ‖phi(X)‖ by definition: the features of every perturbed text are
    computed.

    One value a row of `words`, whose g words move together, each by its own Delta. Norms are taken
    in float64.
    """
    with torch.no_grad():
        base = phi(rows).flatten()
        norm = feature_norm(base, phi.name)
        n = len(rows)
        numbers = 3 * (rows.numel() + base.numel() + n * n)
        size = max(1, min(memory_budget, _MAPPED_BYTES) // (numbers * rows.element_size()))
        changes = [
            torch.linalg.vector_norm(features - base, dim=1, dtype=torch.float64)
            for features in phi.perturbed_features(rows, words, perturbations, at_once=size)
        ]
    relative = torch.cat(changes) / norm
    finite = torch.isfinite(relative)
    if not bool(finite.all()):
        moved = words[int((~finite).nonzero()[0])].tolist()
        raise InputError(
            f"{phi.name} gives NaN or infinity when word {', '.join(map(str, moved))} is "
            "perturbed; "
            "use float64, a smaller radius, or a map that is finite on the whole ball"
        )
    return relative
