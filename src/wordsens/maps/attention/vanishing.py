"""Points near which a word's own scores vanish: there homogeneous weights jump, and ordinary steps see no hill.

relu(s) / sum relu(s), as any weights that a common factor of the scores leaves as they are, depends on their direction
alone. So next to a row y = x_i + Delta whose scores are all zero (y = 0, or a y that the keys K leave out) the smallest
step sends the whole row to any word that a direction can single out, under one head or all. Such places are looked
at through views: y = D y', D = a (a + K^T K)^-1, which shrinks what the keys see and leaves the rest as it is. Without
them words were down to .941 of an attack's value, under squared scores of one's own to .528.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from wordsens.maps.attention.spread import ScoredHead
from wordsens.search.ball import unit
from wordsens.search.group_search import GroupSearch
from wordsens.search.objective import Objective
from wordsens.search.plan import Stages

_SHARES = 1e-2, 1e-5
"""a, in squares of the largest singular value of K. Below, float32 would see the scores' rounding."""

_MOST_VIEWS, _LOOKS = 3, 32
"""Views that are searched, a word: those with the highest of as many random points."""

_FARTHEST = 10.0
"""Radii of y': from x_i alone, one radius would not reach the directions at right angles to it."""

_INSIDE = 1e-7
"""The points' distance inside the ball, relative: rounding in float32."""

_PLAN = Stages(
    starts=24, population=8, generations=2, children=24, finalists=2, steps=60, tolerance=1e-6, rule="momentum"
)


class _Viewed(Objective):
    """An objective at Delta = D (x_i + t z) - x_i, t the largest number up to _FARTHEST that keeps Delta in the ball.

    Word v w + j stands for the j-th of w words through view v. Not a number where no t does.
    """

    smooth = False

    def __init__(
        self,
        objective: Objective,
        words: Int[Tensor, " w"],
        own: Float[Tensor, "w d"],
        radius: Float[Tensor, " w"],
        views: Float[Tensor, "v d d"],
    ):
        of = {"dtype": objective.dtype, "device": objective.device, "memory_budget": objective.memory_budget}
        super().__init__(objective.shape, **of)
        self._objective, self._words, self._views = objective, words, views
        self._reach = radius.to(objective.dtype).unsqueeze(1)
        self._home = (own @ views - own) / self._reach

    def bytes_per_pair(self) -> int:
        return self._objective.bytes_per_pair()

    def points(self, z: Float[Tensor, "b d"], words: Int[Tensor, " b"]) -> Float[Tensor, "b d"]:
        """Delta in units of the radius."""
        view, home = words // len(self._words), self._home.flatten(end_dim=1)[words]
        turned = torch.zeros_like(z)
        for one in view.unique().tolist():
            at = (view == one).nonzero().squeeze(1)
            turned = turned.index_copy(0, at, z[at] @ self._views[one])
        along = torch.linalg.vecdot(home, turned).unsqueeze(1)
        squared = torch.linalg.vecdot(turned, turned).unsqueeze(1)
        room = 1 - torch.linalg.vecdot(home, home).unsqueeze(1)
        # Of a quadratic equation for the sphere; z of length 1 or less is as far as t z goes.
        length = torch.linalg.vector_norm(z, dim=1, keepdim=True)
        t = length * ((along.square() + squared * room).sqrt() - along) / squared
        t = torch.where(room >= -_INSIDE, t.clamp(max=_FARTHEST), torch.nan)
        return (home + t * turned) * (1 - _INSIDE)

    def _evaluate(
        self, perturbations: Float[Tensor, "b d"], words: Int[Tensor, " b"], *, gradient: bool
    ) -> tuple[Float[Tensor, " b"], Float[Tensor, "b d"] | None]:
        at = words % len(self._words)
        reach, word = self._reach[at], self._words[at]
        if not gradient:
            return self._objective.value(self.points(perturbations, words) * reach, word), None
        z = perturbations.detach().requires_grad_()
        with torch.enable_grad():
            points = self.points(z, words)
        value, slope = self._objective.value_and_gradient(points.detach() * reach, word)
        return value, torch.autograd.grad(points, z, slope * reach)[0]


def vanishing(
    objective: Objective,
    rows: Float[Tensor, "n d"],
    heads: Sequence[ScoredHead],
    words: Int[Tensor, " w"],
    radius: Float[Tensor, " w"],
) -> Float[Tensor, "views w d"]:
    """For each word the best points found through a few views, in units of its radius; none if none is in reach."""
    views = _views(heads)
    viewed = _Viewed(objective, words, rows[words], radius, views)
    stream = torch.Generator().manual_seed(len(rows))
    looks = torch.randn(_LOOKS, rows.shape[1], generator=stream, dtype=torch.float64).to(rows)
    looks = unit(looks)
    everyone = torch.arange(len(views) * len(words), device=words.device)
    seen = viewed.value(looks.repeat(len(everyone), 1), everyone.repeat_interleave(_LOOKS)).nan_to_num(-1.0)
    best = seen.view(len(views), len(words), _LOOKS).amax(dim=2)
    if bool((best < 0).all()):
        return rows.new_empty(0, len(words), rows.shape[1])
    chosen = best.topk(min(_MOST_VIEWS, len(views)), dim=0).indices * len(words)
    pairs = (chosen + torch.arange(len(words), device=words.device)).flatten()
    ones = torch.ones_like(radius).repeat(len(chosen))
    z = GroupSearch(viewed, pairs, ones, 1, _PLAN, [stream], lambda: None).run()[0]
    return viewed.points(z, pairs).nan_to_num().unflatten(0, chosen.shape)


def _views(heads: Sequence[ScoredHead]) -> Float[Tensor, "v d d"]:
    """D of every head's keys, and of all heads' together."""
    found = []
    for some in [[head] for head in heads] + ([heads] if len(heads) > 1 else []):
        keys = torch.cat([head.keys for head in some]).double()
        keys = keys / torch.linalg.matrix_norm(keys, ord=2).clamp(min=torch.finfo(keys.dtype).tiny)
        values, axes = torch.linalg.eigh(keys.T @ keys)
        for share in _SHARES:
            found.append((axes * (share / (share + values.clamp(min=0)))) @ axes.T)
    return torch.stack(found).to(heads[0].rows.dtype)
