"""The losses that Delta is chosen by, as functions of the change's functionals, and the search that
climbs down many at once."""

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from wordsens.errors import InputError, require_choice
from wordsens.generalization.min_norm import TRAININGS
from wordsens.generalization.result import OBJECTIVE_NAMES
from wordsens.maps.base import Change
from wordsens.maps.functionals import functional_values, nearly_linear
from wordsens.search.climb import PATIENCE, BallProblem, Climb, QuasiNewton
from wordsens.search.maximize import maximize
from wordsens.search.objective import (
    Ball,
    Deltas,
    Evaluated,
    Objective,
    Places,
    Progress,
    SearchResult,
    unit,
)
from wordsens.search.plan import SearchPlan, Stages

# The search aims at limits that are smaller by this much, relative, so that its points end inside
# the true ones.
INSIDE = 1e-4

# Weight of the squared excess of gamma over its limit. A round of multipliers divides the excess by
# 1 + this / 2.
_STIFFNESS = 50.0

# Up to this many groups are searched closely; of more, those that come out best of a first search.
FEW_GROUPS = 4

# Of one loss; and of several, which help each other with the points that they meet.
_ALONE = Stages(
    starts=16, steps=60, generations=3, population=6, children=8, finish=80, tolerance=1e-8
)
_TOGETHER = Stages(
    starts=12, generations=3, population=6, children=8, finalists=1, finish=30, tolerance=1e-7
)

# Coordinates of a text up to which a single loss is climbed from many starts: an evaluation costs
# less there than the calls that make it, and one word moves the features far from what its gradient
# says.
_SHORT_TEXT = 1024
_ALONE_SHORT = replace(_ALONE, starts=64, halvings=(8, 16))

# Of many groups, to choose those that are searched closely.
_FIRST = replace(_TOGETHER, steps=15, generations=2, child_steps=12)

# Of fully connected features of a long text: the first gradient points to the optimum.
_LINEAR = Stages(starts=4, steps=8, finalists=1, finish=10, tolerance=1e-7)
_FIRST_LINEAR = replace(_LINEAR, starts=3, steps=3, finish=0)

# Rounds of multipliers, and the steps of the climb after each.
_ROUNDS, _LINEAR_ROUNDS = (6, 15), (3, 8)


# One number for each loss.
PerLoss = Float[Tensor, " m"]

# The functionals of b pairs.
Values = Float[Tensor, "b f"]


@dataclass(frozen=True)
class Loss:
    """One loss of a model that learns (X, y) by a training.

    Attributes:
        objective: one of OBJECTIVE_NAMES.
        penalty: the weight of gamma² in penalized-error.
        limit: on gamma.
    """

    training: str
    objective: str
    penalty: float = 1.0
    limit: float = math.inf

    def __post_init__(self) -> None:
        require_choice("training", self.training, TRAININGS)
        require_choice("objective", self.objective, OBJECTIVE_NAMES)
        if not (isinstance(self.penalty, (int, float)) and 0 <= self.penalty < math.inf):
            raise InputError(f"`penalty` (={self.penalty!r}) must be a finite number, at least 0")

    @property
    def kind(self) -> str:
        """The training whose alignment F the loss reads."""
        named = self.objective.removesuffix("-alignment")
        return named if named in TRAININGS else self.training

    def at(
        self,
        error: float,
        gamma: float,
        alignment: float,
    ) -> float:
        """The loss of a changed text on which the model has these numbers."""
        if self.objective.endswith("alignment"):
            return (alignment + 1) ** 2
        return error + (self.penalty * gamma**2 if self.objective == "penalized-error" else 0.0)

    def terms(
        self,
        label: float,
        surprise: float,
        at_rest: float,
    ) -> list[float]:
        """c, a, b, w of the loss (c + a delta + b (F - F(X)))² + w delta²; F(X) is `at_rest`."""
        if self.objective.endswith("alignment"):
            return [at_rest + 1, 0.0, 1.0, 0.0]
        weight = self.penalty if self.objective == "penalized-error" else 0.0
        return [2 * label + (at_rest - 1) * surprise, 1.0, surprise, weight]


class Losses(NamedTuple):
    """m losses of f functionals of the change, delta first: (constant + slope . values)² + weight
    delta², where |delta| <= limit. All float64."""

    constant: PerLoss
    slope: Float[Tensor, "m f"]
    weight: PerLoss
    limit: PerLoss

    def of(self, values: Values) -> Float[Tensor, "b m"]:
        """Every loss at every point, its limit aside."""
        values = values.double()
        missed = self.constant + values @ self.slope.T
        return missed.square() + self.weight * values[:, :1].square()


class LossObjective(Objective):
    """1 / (1 + loss) of pairs (item, Delta), an item being a group of words and a loss.

    A loss gets the term max(0, multiplier + stiffness (|delta| - limit))² / (2 stiffness), an
    augmented Lagrangian of its limit, with a multiplier for every item. An item's number is
    group * m + loss.

    Attributes:
        change, thetas, losses: the functionals are those of `change.functionals`.
        count: m.
        groups, points: the best point of each loss that any evaluation met within its limit, (m,)
            and (m, g, d); Delta = 0 before.
        evaluations: the number of pairs (group, Delta) so far.
    """

    inward = True

    def __init__(
        self,
        change: Change,
        thetas: Float[Tensor, "f p"],
        losses: Losses,
    ):
        super().__init__(
            change.shape,
            dtype=change.dtype,
            device=change.device,
            memory_budget=change.memory_budget,
            typical_length=change.typical_length,
        )
        self.kinked = change.kinked
        self.change, self.thetas, self.losses = change, thetas, losses
        self.count = len(losses.limit)
        self._multipliers = losses.limit.new_zeros(len(change.groups) * self.count)
        self._least = losses.of(thetas.new_zeros(1, len(thetas)))[0]
        self.groups = torch.zeros(self.count, dtype=torch.long, device=change.device)
        self.points = change.rows.new_zeros(self.count, *change.shape)
        self.evaluations = 0

    def bytes_per_pair(self) -> int:
        return self.change.bytes_per_pair()

    def items(self, groups: Int[Tensor, " w"]) -> Int[Tensor, "w m"]:
        """The items of each group."""
        return groups.unsqueeze(1) * self.count + torch.arange(self.count, device=groups.device)

    def group_of(self, items: Places) -> Places:
        return items // self.count

    def raise_multipliers(
        self,
        perturbations: Deltas,
        items: Places,
    ) -> None:
        """A step of the multipliers, at one point per item."""
        places = self.group_of(items)
        shift = functional_values(self.change, self.thetas, perturbations, places)[:, 0]
        self._multipliers[items] = self._force(shift.double(), items)

    def starts(
        self,
        places: Int[Tensor, " w"],
        radius: Float[Tensor, "w r"],
    ) -> Float[Tensor, "count w *shape"]:
        """Down the loss at Delta = 0; towards its F with delta unchanged; towards its F; along
        delta; the map's own directions."""
        different, index = self.group_of(places).unique(return_inverse=True)
        zero = self.points.new_zeros(len(different), *self.shape)
        gradients: list[Any] = [
            self.change.functionals(zero, different, self.thetas, row.expand_as)[1]
            for row in torch.eye(len(self.thetas)).to(self.thetas)
        ]
        scaled = torch.stack(gradients)[:, index] * radius.unsqueeze(-1).to(zero)
        at_rest = scaled.new_zeros(len(places), len(scaled))
        uphill = self._pull(at_rest, places).T.unsqueeze(2) * scaled.flatten(start_dim=2)
        aligned = uphill[1:].sum(dim=0)
        shift = unit(scaled[0].flatten(start_dim=1))
        apart = aligned - torch.linalg.vecdot(aligned, shift).unsqueeze(1) * shift
        own = self.change.directions.repeat(1, self.shape[0]).unsqueeze(1)
        points = torch.stack([uphill.sum(dim=0), apart, aligned, uphill[0]])
        points = torch.cat([points, own.expand(-1, len(places), -1)])
        return unit(points).unflatten(2, self.shape)

    def _evaluate(
        self,
        perturbations: Deltas,
        places: Places,
        *,
        gradient: bool,
    ) -> Evaluated:
        groups = self.group_of(places)
        pull = (lambda read: self._pull(read, places)) if gradient else None
        values, slope = self.change.functionals(perturbations, groups, self.thetas, pull)
        self.remember(values, groups, perturbations)
        return self._height(values, places).to(self.dtype), slope

    def remember(
        self,
        values: Values,
        groups: Places,
        perturbations: Deltas,
    ) -> None:
        """Store every evaluated point that has a lower loss than the stored one."""
        self.evaluations += len(groups)
        # A point on the limit itself could lie past it when it is recomputed, and then would not
        # count at all.
        inside = values[:, :1].double().abs() <= self.losses.limit * (1 - INSIDE / 2)
        least, point = self.losses.of(values).masked_fill(~inside, torch.inf).min(dim=0)
        better = least < self._least
        self._least = torch.where(better, least, self._least)
        self.groups = torch.where(better, groups[point], self.groups)
        self.points[better] = perturbations[point[better]]

    def _force(
        self,
        shift: Float[Tensor, " b"],
        items: Places,
    ) -> Float[Tensor, " b"]:
        excess = shift.abs() - self.losses.limit[items % self.count] * (1 - INSIDE)
        return (self._multipliers[items] + _STIFFNESS * excess).clamp(min=0)

    def _height(
        self,
        values: Values,
        items: Places,
    ) -> Float[Tensor, " b"]:
        """1 / (1 + the item's loss), its limit included, in float64."""
        force = self._force(values[:, 0].double(), items)
        of_item = (items % self.count).unsqueeze(1)
        loss = self.losses.of(values).gather(1, of_item).squeeze(1)
        return 1 / (1 + loss + force.square() / (2 * _STIFFNESS))

    # Also where the caller is in inference mode, whose tensors autograd does not take.
    @torch.inference_mode(False)
    @torch.enable_grad()
    def _pull(
        self,
        values: Values,
        items: Places,
    ) -> Values:
        """The derivatives of `_height` in the functionals."""
        values = values.detach().clone().requires_grad_()
        height = self._height(values, items).sum()
        return torch.autograd.grad(height, values)[0]


def search_losses(
    objective: LossObjective,
    radius: Float[Tensor, "G g"],
    plan: SearchPlan,
    stream: torch.Generator,
    progress: Progress | None = None,
    *,
    joint: bool = True,
) -> Bool[Tensor, " m"]:
    """Search the objective's groups for the best point of each loss, which the objective keeps;
    returns which losses were met at a stationary point.

    Of many groups those that come out best of a first search are searched closely. Where a loss has
    a limit, each loss then climbs on from where the search ended, in rounds that raise the
    multipliers.

    Args:
        radius: of each row that moves.
        joint: whether the rows of a group share one ball.
    """
    count, linear = objective.count, nearly_linear(objective.change)
    # Points of the sphere stay inside the ball when their norms are recomputed.
    radius = radius * (1 - 16 * torch.finfo(objective.dtype).eps)

    def searched(
        groups: Int[Tensor, " w"],
        stages: Stages,
    ) -> SearchResult:
        objective.stages = stages
        results = []
        for some in groups.split(1 if linear else len(groups)):
            items = objective.items(some).flatten()
            ball = Ball(radius[objective.group_of(items)])
            results.append(
                maximize(
                    objective, items, ball, plan, joint=joint, generator=stream, progress=progress
                )
            )
        return SearchResult.joined(results)

    def lowest(
        squared: Float[Tensor, " i"],
        settled: Bool[Tensor, " i"],
    ) -> Bool[Tensor, " m"]:
        """Whether each loss was settled in the group where it came lowest."""
        best = squared.view(-1, count).argmax(dim=0, keepdim=True)
        return settled.view(-1, count).gather(0, best)[0]

    groups = torch.arange(len(radius), device=radius.device)
    if len(groups) > FEW_GROUPS:
        first = searched(groups, _FIRST_LINEAR if linear else _FIRST)
        best = first.squared.view(-1, count).topk(max(1, FEW_GROUPS // count), dim=0).indices
        groups = best.unique()
    alone = _ALONE_SHORT if objective.change.rows.numel() <= _SHORT_TEXT else _ALONE
    usual = alone if count == 1 else _TOGETHER
    found = searched(groups, _LINEAR if linear else usual)
    if not bool(objective.losses.limit.isfinite().any()):
        return lowest(found.squared, found.converged)
    items = objective.items(groups).flatten()
    reach = radius[objective.group_of(items)]
    problem = BallProblem(objective, items, reach, (), joint=joint)
    points = found.perturbations / reach.unsqueeze(2).to(found.perturbations)
    climb = Climb(problem, points.flatten(start_dim=1))
    rounds, steps = _LINEAR_ROUNDS if linear else _ROUNDS
    for _ in range(rounds):
        deltas = problem.scaled(climb.x).unflatten(1, objective.shape)
        objective.raise_multipliers(deltas, items)
        climb = Climb(problem, climb.x)
        rule = QuasiNewton(climb, first=0.05)
        for _ in range(steps):
            rule.step(climb, objective.stages.tolerance)
    return lowest(climb.squared, climb.idle >= PATIENCE)
