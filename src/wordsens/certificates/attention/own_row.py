"""Row i, whose query, key and value all move: bounds of its change, apart from the other rows."""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from wordsens.certificates.attention.rounding import RoundingErrors
from wordsens.certificates.attention.text import AttentionText
from wordsens.certificates.verified import UNIT_ROUNDOFF, gram_norm_bound, rounding
from wordsens.maps.attention.scores.bounds import RowSteps


@dataclass(frozen=True)
class OwnRow:
    """Two bounds of the squared change of row i, over all heads, in units of (radius unit)².

    Attributes:
        unit: (w,), positive.
        fixed: (w,), holds for every z.
        constant, along, across: (heads, w): also max(far, constant + 2 (along z + across sqrt(1 - z²))), summed.
        far: (heads, w).
    """

    unit: Float[Tensor, " w"]
    fixed: Float[Tensor, " w"]
    constant: Float[Tensor, "heads w"] | None = None
    along: Float[Tensor, "heads w"] | None = None
    across: Float[Tensor, "heads w"] | None = None
    far: Float[Tensor, "heads w"] | None = None

    def of(self, chosen: Int[Tensor, " c"]) -> "OwnRow":
        """The bounds of some of the words."""
        arrays = (self.constant, self.along, self.across, self.far)
        return OwnRow(
            self.unit[chosen], self.fixed[chosen], *(None if array is None else array[:, chosen] for array in arrays)
        )

    def in_units(self, unit: Float[Tensor, " w"]) -> "OwnRow":
        """The same bounds in another unit."""
        share = (self.unit / unit).square()

        def scaled(array: Tensor) -> Tensor:
            """Zero stays zero where the unit is so small that the share overflows."""
            return torch.where(array == 0, array, array * share)

        arrays = (self.constant, self.along, self.across, self.far)
        return OwnRow(unit, scaled(self.fixed), *(None if array is None else scaled(array) for array in arrays))

    def at_most(self, change: Float[Tensor, " w"]) -> "OwnRow":
        """With another bound that holds for every z: of the change, over all heads, in units of the radius."""
        return replace(self, fixed=torch.minimum(self.fixed, (change / self.unit).square()))

    def at(self, z: Float[Tensor, " w"], across: Float[Tensor, " w"]) -> Float[Tensor, " w"] | None:
        """The bound that depends on z, convex in z for a fixed bound `across` of sqrt(1 - z²). None without one."""
        if self.constant is None or self.along is None or self.across is None or self.far is None:
            return None
        return torch.maximum(self.far, self.constant + 2 * (self.along * z + self.across * across)).sum(dim=0)


def own_row(
    text: AttentionText,
    words: Int[Tensor, " w"],
    radius: Float[Tensor, " w"],
    direction: Float[Tensor, "w d"],
    errors: RoundingErrors,
) -> OwnRow:
    """The bounds of row i for some words i, rounding included.

    Normalized scores: the new output is a mean of the x_l, l != i, and of x_i + Delta (or zero, for relu), so its
    distance from o_i is at most the largest of theirs. Small radii: Lipschitz bounds of the weights.
    """
    own = text.own_rows(words)
    x = text.values[words]
    speeds = (torch.linalg.vector_norm(text.keys, dim=1) * (1 + 1e-12) + errors.key).view(text.heads, -1)
    # |change of the word's score with itself| <= ‖u_i + k_i‖ radius + ‖W + W^T‖/(2 scale) radius²
    tilt = torch.linalg.vector_norm(text.queries[own] + text.keys[own], dim=2) + errors.speed[own] + errors.key[own]
    itself = radius * (tilt + 0.5 * radius * _norms(text, sharp=not text.score.normalized).unsqueeze(1)) * (1 + 1e-12)
    moves = (radius.unsqueeze(1) * speeds.unsqueeze(1)).scatter(
        2, words.view(1, -1, 1).expand(text.heads, -1, -1), itself.unsqueeze(2)
    )  # (heads, w, n): how far each score of the own row can move
    scores = text.scores[own]
    moves = moves.masked_fill(text.hidden[own], 0.0)
    score_error = errors.score[own].unsqueeze(2)
    if not text.score.normalized:
        return _in_own_unit(_undivided(text, words, radius, text.score.row_steps(scores, moves, score_error)))
    error = errors.output[own] + 16 * UNIT_ROUNDOFF * errors.longest
    distances = text.distances[own] + error.unsqueeze(2)
    mine = words.view(1, -1, 1).expand(text.heads, -1, 1)
    far = distances.masked_fill(text.hidden[own], 0.0).scatter(2, mine, 0.0).amax(dim=2)
    outputs = text.outputs[own]
    apart = x - outputs
    if not text.score.sums_to_one:
        far = torch.maximum(far, torch.linalg.vector_norm(outputs, dim=2) + error)
    lifted = text.lifted(apart)
    along = (lifted * direction).sum(dim=2)
    across = torch.linalg.vector_norm(lifted - along.unsqueeze(2) * direction, dim=2) + 2 * error
    steps = text.score.row_steps(scores, moves, score_error)
    lipschitz = (steps.change * distances).sum(dim=2) / radius + steps.after.gather(2, mine).squeeze(2)
    nearest = torch.where(torch.isfinite(lipschitz), lipschitz, torch.full_like(lipschitz, torch.inf))
    far = far / radius
    length = torch.linalg.vector_norm(apart, dim=2) + error
    hull = torch.maximum(far, 1 + length / radius)
    own = _in_own_unit(torch.minimum(nearest, hull))
    return replace(
        own,
        constant=(1 / own.unit).square()
        + (length / radius / own.unit).square()
        + 8 * text.value_error / radius / own.unit.square(),
        along=along / radius / own.unit.square(),
        across=across / radius / own.unit.square(),
        far=(far / own.unit).square(),
    )


def _in_own_unit(lengths: Float[Tensor, "heads w"]) -> OwnRow:
    """The bound `fixed` of rows that change by these lengths, over the radius, in units of the longest."""
    longest = lengths.amax(dim=0)
    unit = torch.where((longest > 0) & longest.isfinite(), longest, torch.ones_like(longest))
    return OwnRow(unit, (lengths / unit).square().sum(dim=0))


def _undivided(
    text: AttentionText,
    words: Int[Tensor, " w"],
    radius: Float[Tensor, " w"],
    steps: RowSteps,
) -> Float[Tensor, "heads w"]:
    """(‖sum over l != i of (change of weight) v_l‖ + |change of weight i| ‖v_i‖ + |new weight i| radius) / radius.

    v_l = V^T x_l. The first term is at most ‖X V‖_op times the length of the weights' changes, which is at most the
    Lipschitz constant times ‖K‖_op radius, and at most the length of their largest changes.
    """
    mine = words.view(1, -1, 1).expand(text.heads, -1, 1)
    # Over the radius before anything is squared, which would underflow.
    change = steps.change / radius.unsqueeze(1)
    itself, after = (array.gather(2, mine).squeeze(2) for array in (change, steps.after))
    one_by_one = torch.linalg.vector_norm(change.scatter(2, mine, 0.0), dim=2)
    n, d = text.rows.shape
    keys = text.keys.view(text.heads, n, d)
    together = torch.stack(
        [torch.tensor(gram_norm_bound(_gram(head), inner=max(n, d)), dtype=radius.dtype).sqrt() for head in keys]
    ).to(radius.device)
    spread = torch.minimum(one_by_one, text.score.lipschitz * together.unsqueeze(1))
    longest = gram_norm_bound(_gram(text.values), inner=max(text.values.shape)) ** 0.5 + n * text.value_error
    own_length = torch.linalg.vector_norm(text.values[words], dim=1) + text.value_error
    return longest * spread + itself * own_length + after


def _gram(matrix: Tensor) -> Tensor:
    return matrix @ matrix.T if len(matrix) <= matrix.shape[1] else matrix.T @ matrix


def _norms(text: AttentionText, *, sharp: bool) -> Float[Tensor, " heads"]:
    """Upper bounds of ‖W + W^T‖_op / scale; the Frobenius norm where only small radii need them."""
    if sharp:
        return 2 * twists(text)
    return text.rows.new_tensor([float(torch.linalg.matrix_norm(head.symmetric)) for head in text.weights])


def twists(text: AttentionText) -> Float[Tensor, " heads"]:
    """Upper bounds of |Delta^T W Delta| / (scale ‖Delta‖²) for each head."""
    norms = []
    for head in text.weights:
        size = gram_norm_bound(head.symmetric @ head.symmetric, inner=len(head.matrix)) ** 0.5
        norms.append(0.5 * size * (1 + 1e-12) + rounding(head.norms.terms + 8) * head.norms.matrix / head.scale)
    return text.rows.new_tensor(norms)
