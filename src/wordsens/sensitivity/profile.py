"""All measures of one text under one map in one table: sup, mean, limit and substitution, and
bounds of the sup."""

import math
from collections.abc import Callable, Iterable, Sequence
from statistics import fmean, stdev
from typing import SupportsIndex

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from wordsens.certificates.base import CERTIFIED
from wordsens.certificates.certify import certificate_for
from wordsens.errors import InputError
from wordsens.maps.arguments import as_feature_map, as_text, radii, word_indices
from wordsens.maps.attention.features import AttentionLayer
from wordsens.maps.base import DEFAULT_MEMORY_BUDGET, FeatureMap
from wordsens.maps.mapping import feature_norm, features_by_text, restores_state
from wordsens.models.function import FunctionModel
from wordsens.search.objective import Progress
from wordsens.search.plan import Search
from wordsens.seeds import Seed, derive_seed, generator
from wordsens.sensitivity.jacobian import jacobian_sensitivity
from wordsens.sensitivity.one_word import relative_change, word_sensitivity
from wordsens.sensitivity.result import Measure, Sensitivity, SensitivityProfile
from wordsens.sensitivity.substitution import TextSubstitution, substitution_sensitivity
from wordsens.text.matrix import TextMatrix
from wordsens.theory.lipschitz import lipschitz_bounds

SHARES = (0.01, 0.1)
"""Of the radius, at which the upper bounds are compared, beside the whole of it."""

LOWER, EXACT, ESTIMATE = "lower bound", "exact", "estimate"
_LONGEST_BLOCK, _DRAWS, _REPEATS = 3, 4, 5
"""Of substitution: neighbouring words of a block, random rows drawn for each, and how often all are
drawn: the scatter of the repeats gives the standard error."""

_AVERAGE_WORDS, _AVERAGE_DELTAS = 8, 4
"""Searched words, and random Deltas of each, over which the average case is taken."""


def sensitivity_profile(
    phi: FeatureMap | Callable[[Tensor], Tensor],
    X: TextMatrix | Tensor | np.ndarray,
    words: Iterable[int] | Tensor | np.ndarray | SupportsIndex | None = None,
    radius: float | Sequence[float] | np.ndarray | Tensor | None = None,
    seed: Seed = 0,
    *,
    search: Search = "normal",
    alternatives: Float[Tensor, "m d"] | None = None,
    memory_budget: int = DEFAULT_MEMORY_BUDGET,
    progress: Progress | None = None,
) -> SensitivityProfile:
    """Word sensitivity beside every other measure that the map has, and the upper bounds of it that
    are known.

    S (`word_sensitivity`) and the certificate; Lipschitz bounds (`theory.lipschitz_bounds`) times
    radius / ‖phi(X)‖; the mean over words and Deltas on the sphere; the small-radius limit
    (`jacobian_sensitivity`) times the radius, and beside it the Lipschitz bounds at X; average,
    block and random sensitivity (`substitution_sensitivity`) with rows in the place of words; the
    mean entropy of the attention weights, in nats; the stable rank ‖F‖_F² / ‖F‖² of features F with
    a row a word. What the map does not have is left out, and so is substitution where its features
    would not fit the budget; of a map whose weights are sampled on demand there are S and the
    certificate only.

    Args:
        phi, X, words, radius, seed, search, progress: as for word_sensitivity. Substitution is of
            all words.
        alternatives: rows that may stand in the place of any word; None: the text's other rows.
        memory_budget: bytes for intermediate results.

    Raises:
        InputError: as word_sensitivity and jacobian_sensitivity do; alternatives that are no rows.

    >>> profile = sensitivity_profile(lambda X: 2 * X, torch.eye(4, dtype=torch.float64))
    >>> [(row.name, round(row.value, 3), row.kind) for row in profile.measures[:3]]        # 2 sqrt(4) / ‖2 X‖ = 1
    [('sup S', 1.0, 'lower bound'), ('average case', 1.0, 'estimate'), ('small-radius limit', 1.0, 'exact')]
    """  # noqa: E501
    phi, text = as_feature_map(phi), as_text(X)
    chosen = {"search": search, "memory_budget": memory_budget, "progress": progress}
    sensitivity = word_sensitivity(phi, text, words, radius, seed, **chosen)
    return profile_of(
        phi, text, sensitivity, alternatives=alternatives, memory_budget=memory_budget
    )


@restores_state
def profile_of(
    phi: FeatureMap,
    text: TextMatrix,
    sensitivity: Sensitivity,
    *,
    alternatives: Float[Tensor, "m d"] | None = None,
    memory_budget: int = DEFAULT_MEMORY_BUDGET,
) -> SensitivityProfile:
    """`sensitivity_profile` of a text whose word sensitivity is known."""
    words, reach, seed = sensitivity.words, sensitivity.radius, sensitivity.seed
    radius = float(reach.max())
    measures = [Measure("sup S", sensitivity.value, LOWER, radius, "paper, eq. 1")]
    upper = sensitivity.upper
    certified = [] if upper is None else [_certificate(upper, str(sensitivity.rigor), radius)]
    if phi.affordable_words is not None:
        return SensitivityProfile(phi.name, (*measures, *certified), ())
    rows = phi.accept(text.rows)
    ball = _lipschitz(phi, rows, words, reach)
    slopes = jacobian_sensitivity(phi, text, words, seed).per_word.to(reach)
    average = average_change(phi, text, words, reach, seed=derive_seed(seed, "average"))
    measures += [
        *certified,
        *ball,
        Measure(
            "average case",
            average[0],
            ESTIMATE,
            radius,
            "evenly spaced words, random Deltas",
            average[1],
        ),
        Measure("small-radius limit", float((slopes * reach).max()), EXACT, 0.0, "Jacobian's norm"),
        *_lipschitz(phi, rows, words, reach, local=True),
        *_substitution(phi, rows, alternatives, seed, memory_budget),
        *_shape(phi, rows),
    ]
    bounds = []
    for share in SHARES if ball else ():
        bound = certificate_for(phi, rows, words, share * reach)
        if bound is not None:
            bounds.append(_certificate(bound.value, bound.rigor, share * radius))
            bounds += _lipschitz(phi, rows, words, share * reach)
    bounds += [*certified, *ball] if bounds else []
    return SensitivityProfile(phi.name, tuple(measures), tuple(bounds))


def _certificate(value: float, rigor: str, radius: float) -> Measure:
    kind = f"{CERTIFIED} upper bound" if rigor == CERTIFIED else f"upper bound {rigor}"
    return Measure("certificate", value, kind, radius, "this package")


def _lipschitz(
    phi: FeatureMap,
    rows: Float[Tensor, "n d"],
    words: Int[Tensor, " w"],
    reach: Float[Tensor, " w"],
    *,
    local: bool = False,
) -> list[Measure]:
    """Lipschitz bounds times radius / ‖phi(X)‖: on the ball, or of the Jacobian at X."""
    radius = float(reach.max())
    return [
        Measure(
            f"{bound.name}, at X" if local else bound.name,
            bound.value * radius / feature_norm(phi(rows), phi.name),
            "proved upper bound",
            0.0 if local else radius,
            bound.source,
        )
        for bound in lipschitz_bounds(phi, rows, words.tolist(), 0 if local else reach)
    ]


def average_change(
    phi: FeatureMap,
    text: TextMatrix,
    words: Sequence[int] | Tensor | None,
    radius: float | Tensor | None,
    *,
    seed: int,
) -> tuple[float, float]:
    """The average case beside the sup, with its standard error: the mean of ‖phi(X^i(Delta)) -
    phi(X)‖ / ‖phi(X)‖ over a few searched words i, evenly spaced, and Deltas uniform on the sphere
    of the word's radius.

    The standard error is that over Deltas, for these words.
    """
    rows = phi.accept(text.rows)
    searched = word_indices(words, len(rows)).to(rows.device)
    places = torch.linspace(0, len(searched) - 1, min(len(searched), _AVERAGE_WORDS)).long()
    places = places.repeat_interleave(_AVERAGE_DELTAS)
    directions = torch.randn(
        len(places), rows.shape[1], generator=generator(seed, "directions"), dtype=torch.float64
    )
    lengths = radii(radius, phi, rows, searched).cpu().double()[places] / torch.linalg.vector_norm(
        directions, dim=1
    )
    deltas = (directions * lengths.unsqueeze(1)).to(rows)
    changes = relative_change(
        phi, rows, searched[places.to(rows.device)].unsqueeze(1), deltas.unsqueeze(1)
    )
    error = changes.view(-1, _AVERAGE_DELTAS).var(dim=1).mean() / len(places)
    return float(changes.mean()), float(error.sqrt())


def _substitution(
    phi: FeatureMap,
    rows: Float[Tensor, "n d"],
    alternatives: Float[Tensor, "m d"] | None,
    seed: int,
    memory_budget: int,
) -> list[Measure]:
    """Substitution in a text whose words are the numbers of rows; [] where the features would not
    fit the budget."""
    n, d = rows.shape
    others = rows[:0] if alternatives is None else alternatives.to(rows)
    if others.ndim != 2 or others.shape[1] != d or (alternatives is not None and not len(others)):
        raise InputError(
            f"`alternatives` (shape {tuple(others.shape)}) must be rows of shape (m, {d}), m at "
            "least 1"
        )
    table = torch.cat([rows, others])
    numbers = [str(row) for row in range(len(table))]
    if 16 * _DRAWS * _LONGEST_BLOCK * n * phi(rows).numel() > memory_budget:
        return []

    def features(texts: list[str]) -> Tensor:
        with torch.no_grad():
            return features_by_text(
                phi, torch.stack([table[[int(word) for word in text.split()]] for text in texts])
            )

    def offered(word: str) -> list[str]:
        return numbers[n:] if len(others) else [number for number in numbers[:n] if number != word]

    def measured(repeat: int) -> TextSubstitution:
        return substitution_sensitivity(
            FunctionModel(features, name=phi.name, zero=True),
            [" ".join(numbers[:n])],
            offered,
            derive_seed(seed, "substitution", repeat),
            draws=_DRAWS,
            enumerated=256,
            longest_block=_LONGEST_BLOCK,
            most_words=n,
        ).texts[0]

    repeats = [measured(0)]
    drawn = not repeats[0].exact
    if drawn:
        repeats += [measured(repeat) for repeat in range(1, _REPEATS)]
    kind = ESTIMATE if drawn else EXACT
    of_blocks = LOWER if kind == EXACT and not repeats[0].every_block else kind

    def measure(name: str, values: list[float], kind: str, source: str) -> Measure:
        error = stdev(values) / math.sqrt(len(values)) if drawn else None
        return Measure(name, fmean(values), kind, None, source, error)

    return [
        measure("average sensitivity", [x.average for x in repeats], kind, "Hahn et al. 2021"),
        measure("block sensitivity", [x.block for x in repeats], of_blocks, "Hahn et al. 2021"),
        measure("random sensitivity", [x.random for x in repeats], kind, "Vasudeva et al. 2024"),
    ]


def _shape(phi: FeatureMap, rows: Float[Tensor, "n d"]) -> list[Measure]:
    """The entropy of the attention weights and the stable rank of the features, where there are
    such."""
    shape = []
    with torch.no_grad():
        if isinstance(phi, AttentionLayer) and phi.score.sums_to_one:
            entropy = float(torch.special.entr(phi.attention(rows).double()).sum(dim=-1).mean())
            shape.append(Measure("attention entropy", entropy, EXACT, None, "nats, mean of rows"))
            shape.append(
                Measure("log n", float(np.log(len(rows))), EXACT, None, "the most it can be")
            )
        features = phi(rows).double()
    if features.ndim > 1 and features.shape[-2] == len(rows):
        matrix = features.movedim(-2, 0).flatten(start_dim=1)
        rank = float(
            (torch.linalg.matrix_norm(matrix) / torch.linalg.matrix_norm(matrix, ord=2)).square()
        )
        shape.append(Measure("stable rank", rank, EXACT, None, "‖F‖_F² / ‖F‖²"))
    return shape
