"""The set of allowed perturbations: for each word, the vectors Delta with ‖Delta‖₂ <= radius."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.errors import InputError
from wordsens.results import Result
from wordsens.seeds import gaussian_on


@dataclass(frozen=True, eq=False, repr=False)
class Ball(Result):
    """Euclidean balls around the origin, one for each of w words.

    Projected vectors end inside the ball after rounding: the target radius is a few units of the last place
    smaller, so that ‖Delta‖₂ <= radius holds when the norm is recomputed in float64.
    """

    radius: Float[Tensor, " w"]

    def __post_init__(self) -> None:
        if not bool(torch.isfinite(self.radius).all()) or bool((self.radius <= 0).any()):
            raise InputError(
                f"`radius` (={self.radius.tolist()!r}) must be positive and finite for every word; "
                "pass None for the map's default"
            )

    def project(self, perturbations: Float[Tensor, "*starts w d"]) -> Float[Tensor, "*starts w d"]:
        """The nearest points of the balls: vectors outside are scaled to the sphere, others stay; idempotent."""
        # Nearer to the sphere than the target is: what was projected is not projected again for its rounding.
        outside = _lengths(perturbations) > self.radius.double() * (1 - torch.finfo(perturbations.dtype).eps)
        return torch.where(outside.unsqueeze(-1), self.linear_maximizer(perturbations), perturbations)

    def linear_maximizer(self, direction: Float[Tensor, "*starts w d"]) -> Float[Tensor, "*starts w d"]:
        """The Delta in the ball with the largest inner product with `direction`: radius * direction / ‖direction‖.

        A zero direction gives a zero Delta.
        """
        largest = direction.abs().amax(dim=-1, keepdim=True)
        # Divide by the largest entry first: a tiny direction would underflow when squared.
        bounded = direction / torch.where(largest > 0, largest, torch.ones_like(largest))
        norms = torch.linalg.vector_norm(bounded, dim=-1, dtype=torch.float64)
        scale = self._inner_radius(direction.dtype) / torch.where(norms > 0, norms, torch.ones_like(norms))
        return bounded * scale.unsqueeze(-1).to(direction.dtype)

    def sample(
        self, *starts: int, dimension: int, generator: torch.Generator, dtype: torch.dtype
    ) -> Float[Tensor, "*starts w d"]:
        """Uniform directions on the spheres that bound the balls."""
        directions = gaussian_on(
            *starts, len(self.radius), dimension, generator=generator, dtype=dtype, device=self.radius.device
        )
        return self.linear_maximizer(directions)

    def contains(self, perturbations: Float[Tensor, "*starts w d"], *, relative_slack: float = 1e-12) -> bool:
        """True where every perturbation has norm at most radius * (1 + relative_slack), computed in float64."""
        norms = _lengths(perturbations)
        return bool((norms <= self.radius.double() * (1 + relative_slack)).all())

    def _inner_radius(self, dtype: torch.dtype) -> Float[Tensor, " w"]:
        return self.radius.double() * (1 - 4 * torch.finfo(dtype).eps)


def _lengths(vectors: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch"]:
    """‖.‖₂ of each vector in float64, where squares of the entries may under- or overflow."""
    vectors = vectors.double()
    largest = vectors.abs().amax(dim=-1, keepdim=True)
    bounded = vectors / torch.where(largest > 0, largest, torch.ones_like(largest))
    return torch.linalg.vector_norm(bounded, dim=-1) * largest.squeeze(-1)


def unit(vectors: Tensor) -> Tensor:
    """Each of length 1; zero stays zero."""
    return torch.nn.functional.normalize(vectors, dim=-1, eps=torch.finfo(vectors.dtype).tiny)


def into_ball(points: Tensor) -> Tensor:
    """The nearest points of the unit ball; NaN becomes 0. `Ball.project` and `Climb.into_ball` allow for rounding."""
    length = torch.linalg.vector_norm(points, dim=-1, keepdim=True)
    return torch.nan_to_num(torch.where(length > 1, points / length, points))
