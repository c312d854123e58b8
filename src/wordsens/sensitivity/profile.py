"""All measures of one text under one map in one table: sup, mean, limit and substitution, and
bounds of the sup."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any, SupportsIndex

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from wordsens.certificates.base import CERTIFIED
from wordsens.certificates.certify import certificate_for
from wordsens.display.numbers import number
from wordsens.display.view import Table, View
from wordsens.errors import InputError
from wordsens.maps.arguments import as_feature_map, as_text, radii, word_indices
from wordsens.maps.attention.features import AttentionLayer
from wordsens.maps.base import DEFAULT_MEMORY_BUDGET, FeatureMap
from wordsens.maps.mapping import feature_norm, features_by_text, restores_state
from wordsens.maps.random_transformer import RandomTransformer
from wordsens.maps.registry import map_title
from wordsens.models.function import FunctionModel
from wordsens.results import Result
from wordsens.search.objective import Progress
from wordsens.search.plan import Search
from wordsens.seeds import Seed, derive_seed, generator
from wordsens.sensitivity.jacobian import jacobian_sensitivity
from wordsens.sensitivity.one_word import relative_change, word_sensitivity
from wordsens.sensitivity.result import Sensitivity
from wordsens.sensitivity.substitution import Substitution, substitution_sensitivity
from wordsens.text.matrix import TextMatrix
from wordsens.theory.lipschitz import lipschitz_bounds

# Of the radius, at which the upper bounds are compared, beside the whole of it.
SHARES = (0.01, 0.1)

LOWER, EXACT, ESTIMATE = "lower bound", "exact", "estimate"

# Of substitution: neighbouring words of a block, random rows drawn for each, and how often all are
# drawn: the scatter of the repeats gives the standard error.
_LONGEST_BLOCK, _DRAWS, _REPEATS = 3, 4, 5

# Numbers of substitution and where each is defined.
_SUBSTITUTION = {
    "average": "Hahn et al. 2021",
    "block": "Hahn et al. 2021",
    "random": "Vasudeva et al. 2024",
}

_UNITS = (
    "Radius 0: the limit of small radii, times the radius. Average and block sensitivity are "
    "variances."
)

# Searched words, and random Deltas of each, over which the average case is taken.
_AVERAGE_WORDS, _AVERAGE_DELTAS = 8, 4


@dataclass(frozen=True, eq=False, repr=False)
class Measure(Result):
    """One number of a profile.

    Attributes:
        name: what it measures.
        value: in units of ‖phi(X)‖; variances in those of ‖phi(X)‖²; entropies in nats.
        kind: "lower bound", "exact", "estimate" (from random draws), "certified upper bound",
            "upper bound with probability 1 - x over the weights, for a text chosen without them",
            or "proved upper bound", which is not rounded outward.
        radius: of the ball that it is about; 0: the limit of small radii, times the profile's
            radius; None: no ball.
        source: where it is defined or proved, or what the mean is over.
        error: of an estimate, its standard error over the draws; None of the other kinds.
    """

    name: str
    value: float
    kind: str
    radius: float | None
    source: str
    error: float | None = None


@dataclass(frozen=True, eq=False, repr=False)
class SensitivityProfile(Result):
    """All measures of sensitivity for one text under one map.

    Attributes:
        map_name: the map's name.
        measures: the measures that this map and text have.
        bounds: the upper bounds of S at .01, .1 and 1 times the radius, one per bound and radius;
            () where the map has no bound but its certificate.
    """

    map_name: str
    measures: tuple[Measure, ...]
    bounds: tuple[Measure, ...]

    @property
    def headline(self) -> str:
        """What the table holds."""
        return f"{map_title(self.map_name)}: {len(self.measures)} measures of one text"

    def columns(self) -> dict[str, Any]:
        """One row per measure."""
        return {
            "measure": [row.name for row in self.measures],
            "value": [row.value for row in self.measures],
            "kind": [row.kind for row in self.measures],
            "standard error": [row.error for row in self.measures],
            "radius": [row.radius for row in self.measures],
            "source": [row.source for row in self.measures],
        }

    def view(self) -> View:
        """All measures, and which bound is the lowest."""
        columns = self.columns() | {"value": [number(row.value) for row in self.measures]}
        table = Table("", columns, most=len(self.measures))
        lowest = [f"{bound.name} (at radius {bound.radius:.2g})" for bound in self.lowest]
        notes = [f"Lowest upper bound of S: {', '.join(lowest)}."] if lowest else []
        return View(self.headline, (table,), notes=(*notes, _UNITS))

    @property
    def lowest(self) -> tuple[Measure, ...]:
        """The lowest upper bound at each radius of `bounds`, by radius."""
        return tuple(
            min(
                (bound for bound in self.bounds if bound.radius == radius),
                key=lambda bound: bound.value,
            )
            for radius in dict.fromkeys(bound.radius for bound in self.bounds)
        )


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
    """Word sensitivity beside every other measure of the map, and its known upper bounds.

    S (`word_sensitivity`) and the certificate; Lipschitz bounds (`theory.lipschitz_bounds`) times
    radius / ‖phi(X)‖; the mean over words and Deltas on the sphere; the small-radius limit
    (`jacobian_sensitivity`) times the radius, and beside it the Lipschitz bounds at X; average,
    block and random sensitivity (`substitution_sensitivity`) with rows in the place of words; the
    mean entropy of the attention weights, in nats, and the largest sum over rows of squared weights
    to one word, at most 1 for symmetric attention (docs/theory/symmetry.md); the stable rank ‖F‖_F²
    / ‖F‖² of features F with one row per word. What the map does not have is left out, and so is
    substitution where its features would not fit the budget. For a map that cannot afford all
    words, only S and the certificate are given.

    Args:
        phi, X, words, radius, seed, search, progress: as for word_sensitivity. Substitution covers
            all words.
        alternatives: rows that may replace any word; None: the text's other rows.
        memory_budget: bytes for intermediate results.

    Raises:
        InputError: as word_sensitivity and jacobian_sensitivity do; alternatives that are no rows.

    >>> profile = sensitivity_profile(lambda X: 2 * X, torch.eye(4, dtype=torch.float64))
    >>> [(row.name, round(row.value, 3), row.kind) for row in profile.measures[:3]]        # 2 sqrt(4) / ‖2 X‖ = 1
    [('sup S', 1.0, 'lower bound'), ('average case', 1.0, 'estimate'), ('small-radius limit', 1.0, 'exact')]
    """  # noqa: E501
    phi, text = as_feature_map(phi), as_text(X)
    effort = {"search": search, "memory_budget": memory_budget, "progress": progress}
    sensitivity = word_sensitivity(phi, text, words, radius, seed, **effort)
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
    sup = Measure("sup S", sensitivity.value, LOWER, radius, "paper, eq. 1")
    upper, rigor = sensitivity.upper, sensitivity.rigor
    certified = [] if upper is None else [_certificate(upper, rigor, radius)]
    if phi.affordable_words is not None:
        return SensitivityProfile(phi.name, (sup, *certified), ())
    rows = phi.accept(text.rows)
    unit = radius / feature_norm(phi(rows), phi.name)
    ball, bounds = _lipschitz(phi, rows, words, reach, unit), []
    for share in SHARES if ball else ():
        bound = certificate_for(phi, rows, words, share * reach)
        if bound is not None:
            bounds.append(_certificate(bound.value, bound.rigor, share * radius))
        bounds += _lipschitz(phi, rows, words, share * reach, share * unit)
    bounds += [*certified, *ball] if ball else []
    average, error = average_change(
        phi, text, words, reach, seed=derive_seed(seed, "average"), memory_budget=memory_budget
    )
    over = "evenly spaced words, random Deltas"
    limit = jacobian_sensitivity(phi, text, words, seed).per_word.to(reach) * reach
    measures = (
        sup,
        *certified,
        *ball,
        Measure("average case", average, ESTIMATE, radius, over, error),
        Measure("small-radius limit", float(limit.max()), EXACT, 0.0, "Jacobian's norm"),
        *_lipschitz(phi, rows, words, 0, unit),
        *_substitution(phi, rows, alternatives, seed, memory_budget),
        *_shape(phi, rows),
    )
    return SensitivityProfile(phi.name, measures, tuple(bounds))


def _certificate(value: float, rigor: str | None, radius: float) -> Measure:
    kind = f"{CERTIFIED} upper bound" if rigor == CERTIFIED else f"upper bound {rigor}"
    return Measure("certificate", value, kind, radius, "this package")


def _lipschitz(
    phi: FeatureMap,
    rows: Float[Tensor, "n d"],
    words: Int[Tensor, " w"],
    reach: Float[Tensor, " w"] | int,
    unit: float,
) -> list[Measure]:
    """Lipschitz bounds times `unit`, radius / ‖phi(X)‖: on the ball, or with `reach` 0 of the
    Jacobian at X."""
    radius = float(torch.as_tensor(reach).max())
    where = "" if radius else ", at X"
    return [
        Measure(name + where, constant * unit, "proved upper bound", radius, "lipschitz_bounds")
        for name, constant in lipschitz_bounds(phi, rows, words.tolist(), reach).items()
    ]


def average_change(
    phi: FeatureMap,
    text: TextMatrix,
    words: Sequence[int] | Tensor | None,
    radius: float | Tensor | None,
    *,
    seed: int,
    memory_budget: int = DEFAULT_MEMORY_BUDGET,
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
    stream = generator(seed, "directions")
    deltas = torch.randn(len(places), rows.shape[1], generator=stream, dtype=torch.float64)
    lengths = radii(radius, phi, rows, searched).cpu().double()[places]
    deltas *= (lengths / torch.linalg.vector_norm(deltas, dim=1)).unsqueeze(1)
    groups = searched[places.to(rows.device)].unsqueeze(1)
    changes = relative_change(
        phi, rows, groups, deltas.to(rows).unsqueeze(1), memory_budget=memory_budget
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
    (n, d), table = rows.shape, rows
    if alternatives is not None:
        if alternatives.ndim != 2 or not len(alternatives) or alternatives.shape[1] != d:
            raise InputError(
                f"`alternatives` (shape {tuple(alternatives.shape)}) must be rows of shape (m, "
                f"{d}), m at least 1"
            )
        table = torch.cat([rows, alternatives.to(rows)])
    if 16 * _DRAWS * _LONGEST_BLOCK * n * phi(rows).numel() > memory_budget:
        return []
    words = [str(row) for row in range(len(table))]

    @torch.no_grad()
    def features(texts: list[str]) -> Tensor:
        chosen = torch.tensor([[int(word) for word in text.split()] for text in texts])
        return features_by_text(phi, table[chosen.to(table.device)])

    def measured(repeat: int) -> Substitution:
        return substitution_sensitivity(
            FunctionModel(features, name=phi.name, zero=True),
            " ".join(words[:n]),
            lambda word: words[n:] or [other for other in words if other != word],
            derive_seed(seed, "substitution", repeat),
            draws=_DRAWS,
            enumerated=256,
            longest_block=_LONGEST_BLOCK,
            most_words=n,
        )

    repeats = [measured(0)]
    exact, every_block = repeats[0].exact, repeats[0].every_block
    if not exact:
        repeats += map(measured, range(1, _REPEATS))
    kind = EXACT if exact else ESTIMATE
    kinds = (kind, kind if every_block or not exact else LOWER, kind)
    measures = []
    for (name, source), kind in zip(_SUBSTITUTION.items(), kinds, strict=True):
        values = [getattr(repeat, name) for repeat in repeats]
        error = None if exact else stdev(values) / _REPEATS**0.5
        measures.append(Measure(f"{name} sensitivity", fmean(values), kind, None, source, error))
    return measures


@torch.no_grad()
def _shape(phi: FeatureMap, rows: Float[Tensor, "n d"]) -> list[Measure]:
    """The entropy of the attention weights and their largest column, of maps of one layer of
    attention, and the stable rank of the features, where there are such."""
    shape, features = [], phi(rows).double()
    if (
        isinstance(phi, AttentionLayer | RandomTransformer)
        and phi.attention_layers == 1
        and phi.score.sums_to_one
    ):
        weights = phi.attention_of(rows).double()
        entropies = torch.special.entr(weights).sum(dim=-1)
        entropy, most = float(entropies.mean()), math.log(len(rows))
        column = float(weights.square().sum(dim=-2).max())
        shape = [
            Measure("attention entropy", entropy, EXACT, None, "nats, mean of rows"),
            Measure("log n", most, EXACT, None, "the most it can be"),
            Measure(
                "largest column", column, EXACT, None, "squared weights to one word; n at most"
            ),
        ]
    if features.ndim > 1 and features.shape[-2] == len(rows):
        matrix = features.movedim(-2, 0).flatten(start_dim=1)
        ratio = torch.linalg.matrix_norm(matrix) / torch.linalg.matrix_norm(matrix, ord=2)
        shape.append(Measure("stable rank", float(ratio.square()), EXACT, None, "‖F‖_F² / ‖F‖²"))
    return shape
