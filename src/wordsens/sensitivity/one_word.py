"""Word sensitivity: the definition, measured with witnesses that are mapped again."""

import math
import time
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, SupportsIndex

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from wordsens.certificates.certify import certificate_for
from wordsens.errors import InputError, require_count
from wordsens.maps.arguments import as_feature_map, as_text, radii, word_indices
from wordsens.maps.base import DEFAULT_MEMORY_BUDGET, Change, FeatureMap
from wordsens.maps.mapping import feature_norm, perturbed_texts, restores_state
from wordsens.search.climb import BallProblem
from wordsens.search.maximize import maximize_each
from wordsens.search.objective import Ball, Progress
from wordsens.search.plan import Search, SearchPlan
from wordsens.seeds import Seed, generator
from wordsens.sensitivity.result import Sensitivity
from wordsens.text.matrix import TextMatrix

# No search counts as converged where rounding exceeds this share of its value: its gradient is then
# not known to 1 % either.
_MAX_RELATIVE_ROUNDING = 0.01

# Of a witness, a last digit away, that are mapped with it where phi may jump.
_NEIGHBOURS = 3

# Perturbed texts are mapped in batches of this size: larger ones fall out of the cache.
_MAPPED_BYTES = 64 << 20


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

    `value` is a lower bound of the sup, with a witness for every word: the search proposes
    witnesses, each is mapped through phi again, and that number, less its rounding error, is
    reported. `upper` is an upper bound, for maps with a certificate.

    Args:
        phi: a feature map, or any differentiable function of an (n, d) tensor.
        X: the text, (n, d), at least two words; taken as it is, rows are not rescaled here.
        words: the word indices to search; None for all. Negative indices count from the end.
        radius: of the ball, one number or one per searched word; None for the map's default,
            sqrt(d).
        seed: of the random starts.
        search: the effort: "quick", "normal", "thorough", or a SearchPlan such as
            SearchPlan(starts=64).
        certificate: whether to compute the upper bounds, where phi has a certificate.
        text_depends_on_weights: whether X, words or radius were chosen by phi's weights or outputs;
            `upper` is then None where it would hold only with a probability over the weights (see
            `certify`).
        memory_budget: bytes for intermediate results.
        progress: called with (steps done, steps at most).

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
    """A text under a map, as `word_sensitivity` takes it.

    Or with groups of words that move together, (m, g), which were checked: the radius is then that
    of each of them, (m, g), of balls of their own or of one `joint` ball.
    """

    phi: FeatureMap | Callable[[Tensor], Tensor]
    X: TextMatrix | Tensor | np.ndarray
    words: Iterable[int] | Tensor | np.ndarray | SupportsIndex | None = None
    radius: float | Sequence[float] | np.ndarray | Tensor | None = None
    seed: Seed = 0
    groups: Int[Tensor, "m g"] | None = None
    joint: bool = False

    def prepared(self, memory_budget: int) -> tuple[FeatureMap, TextMatrix, Change, BallProblem]:
        """The map, the text, its change and what is searched; InputError where something does not
        fit."""
        phi, text = as_feature_map(self.phi), as_text(self.X)
        rows, size = phi.accept(text.rows), 1
        if self.groups is None:
            words = word_indices(self.words, len(text)).to(rows.device)
            groups, reach = words.unsqueeze(1), radii(self.radius, phi, rows, words).unsqueeze(1)
        else:
            groups, reach = self.groups.to(rows.device), torch.as_tensor(self.radius)
            size = groups.shape[1]
        purpose = ("starts",) if size == 1 else ("group starts", size)
        change = phi.change(rows, groups, memory_budget=memory_budget)
        places = torch.arange(len(groups), device=rows.device)
        streams = [generator(self.seed, *purpose)]
        return phi, text, change, BallProblem(change, places, reach, streams, self.joint)


def sensitivities(
    problems: Sequence[TextUnderMap],
    search: Search = "normal",
    *,
    certificate: bool = True,
    text_depends_on_weights: bool = False,
    memory_budget: int = DEFAULT_MEMORY_BUDGET,
    progress: Progress | None = None,
) -> list[Sensitivity]:
    """The sensitivity of each text: all are searched, witnesses are mapped again by definition, and
    single words are bounded.

    Texts of one shape under maps of one shape are searched as one problem; the results are the
    same, to rounding, as alone. `seconds` is a text's share.
    """
    started, plan = time.perf_counter(), SearchPlan.of(search)
    require_count("memory_budget", memory_budget)
    prepared = [problem.prepared(memory_budget) for problem in problems]
    found = maximize_each([searched for *_, searched in prepared], plan, progress)
    results = []
    for (phi, text, change, searched), climbed, problem in zip(
        prepared, found, problems, strict=True
    ):
        groups, bounds = change.groups, None
        per_word, rounding = _recomputed(phi, change, searched, climbed.perturbations)
        if certificate and groups.shape[1] == 1:
            bounds = certificate_for(
                phi,
                change.rows,
                groups.squeeze(1),
                searched.radius.squeeze(1),
                text_depends_on_weights=text_depends_on_weights,
            )
        mapped = 1 if phi.continuous else 1 + _NEIGHBOURS
        results.append(
            Sensitivity(
                value=float(per_word.max()),
                groups=tuple(map(tuple, groups.tolist())),
                tokens=tuple(" ".join(map(text.word, group)) for group in groups.tolist()),
                per_word=per_word,
                rounding=rounding,
                perturbations=climbed.perturbations.flatten(end_dim=1),
                radius=searched.radius.amax(dim=1),
                search=str(plan),
                evaluations=climbed.evaluations + mapped * len(groups),
                evaluations_per_word=climbed.spent + mapped,
                converged=climbed.converged & (rounding <= _MAX_RELATIVE_ROUNDING * per_word),
                seconds=(time.perf_counter() - started) / len(problems),
                seed=int(problem.seed),
                map_name=phi.name,
                upper=None if bounds is None else bounds.value,
                upper_per_word=None if bounds is None else bounds.upper,
                rigor=None if bounds is None else bounds.rigor,
                notes=phi.notes,
            )
        )
    return results


def _recomputed(
    phi: FeatureMap, change: Change, problem: BallProblem, perturbations: Float[Tensor, "w g d"]
) -> tuple[Float[Tensor, " w"], Float[Tensor, " w"]]:
    """The relative change at each witness by definition, less an estimate of its rounding error,
    and that estimate.

    phi(X^i(Delta)) and phi(X) are each wrong by `relative_rounding` of their norms, at most 1 +
    value and 1. Where phi may jump, witnesses a last digit away are mapped too. The rounding at the
    best witness is estimated as well, which may make another word best: so on, until the best one
    is checked. Where phi is continuous it counts for every word.
    """
    rows, groups, tried = change.rows, change.groups, [perturbations]
    if not phi.continuous:
        tried += _neighbours(change, problem, perturbations)
    values, *others = relative_change(
        phi,
        rows,
        groups.repeat(len(tried), 1),
        torch.cat(tried),
        memory_budget=change.memory_budget,
    ).view(len(tried), -1)
    rounding, magnified = torch.zeros_like(values), 2 + math.sqrt(rows.numel()) / 8
    for other in others:
        rounding = torch.maximum(rounding, magnified * (values - other).abs())
    rounding = torch.maximum(rounding, phi.relative_rounding(rows) * (2 + values))
    best, checked = int((values - rounding).argmax()), set[int]()
    while best not in checked and float(values[best]) > 0:
        witness = perturbed_texts(rows, groups[best : best + 1], perturbations[best : best + 1])[0]
        # NaN if the map is not finite just outside the ball: max(0.0, nan) is 0.0, in this order
        # only.
        error = max(0.0, phi.relative_rounding(witness)) * (2 + values)
        counted = slice(None) if phi.continuous else best
        rounding[counted] = torch.maximum(rounding[counted], error[counted])
        checked.add(best)
        best = int((values - rounding).argmax())
    return (values - rounding).clamp(min=0), rounding


def _neighbours(
    change: Change, problem: BallProblem, perturbations: Float[Tensor, "w g d"]
) -> list[Float[Tensor, "w g d"]]:
    """Delta + eps s (x_i + Delta) in the balls, for `_NEIGHBOURS` sign patterns s."""
    rows = change.rows
    signs = torch.ones(_NEIGHBOURS, 1, 1, rows.shape[1]).to(rows)
    signs[1, ..., ::2], signs[2, ..., ::3] = -1, -1
    moved = perturbations + torch.finfo(rows.dtype).eps * signs * (
        rows[change.groups] + perturbations
    )
    if not problem.joint:
        # As they are where they lie inside: another rounding could cross the jump that they test.
        return list(Ball(problem.radius).project(moved))
    radius = problem.radius.to(rows).unsqueeze(-1)
    return [problem.witnesses((each / radius).flatten(start_dim=1)) for each in moved]


def relative_change(
    phi: FeatureMap,
    rows: Float[Tensor, "n d"],
    groups: Int[Tensor, "w g"],
    perturbations: Float[Tensor, "w g d"],
    *,
    memory_budget: int = DEFAULT_MEMORY_BUDGET,
) -> Float[Tensor, " w"]:
    """‖phi(X^G(Delta)) - phi(X)‖ / ‖phi(X)‖ by definition: the features of every perturbed text are
    computed.

    One value per group of g words, each moved by its own Delta. Norms are taken in float64.
    """
    with torch.no_grad():
        base = phi(rows).flatten()
        norm = feature_norm(base, phi.name)
        numbers = 3 * (rows.numel() + base.numel() + len(rows) ** 2)
        size = max(1, min(memory_budget, _MAPPED_BYTES) // (numbers * rows.element_size()))
        perturbed = phi.perturbed(rows)
        changes = [
            torch.linalg.vector_norm(perturbed(some, delta) - base, dim=1, dtype=torch.float64)
            for some, delta in zip(groups.split(size), perturbations.split(size), strict=True)
        ]
    relative = torch.cat(changes) / norm
    finite = torch.isfinite(relative)
    if not bool(finite.all()):
        moved = groups[int((~finite).nonzero()[0])].tolist()
        raise InputError(
            f"{phi.name} gives NaN or infinity when word {', '.join(map(str, moved))} is "
            "perturbed; use float64, a smaller radius, or a map that is finite on the whole ball"
        )
    return relative
