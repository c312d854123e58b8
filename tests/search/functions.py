"""Functions on balls whose maxima are known, for the tests of the search."""

import torch

from wordsens.maps.function import FunctionFeatures
from wordsens.search.objective import Objective
from wordsens.search.plan import Stages
from wordsens.seeds import gaussian_on


class Function(Objective):
    """f(Delta) by torch operations, the same for every word; gradients by autograd."""

    def __init__(self, f, shape, *, dtype=torch.float64, stages=None, kinked=False):
        super().__init__(shape, dtype=dtype, device=torch.device("cpu"), memory_budget=1 << 28)
        self._f, self.kinked = f, kinked
        self.stages = Stages(starts=16, steps=20, generations=2) if stages is None else stages
        self.evaluated = 0

    def bytes_per_pair(self):
        return 8 * self.coordinates

    def _evaluate(self, perturbations, words, *, gradient):
        self.evaluated += len(words)
        with torch.set_grad_enabled(gradient):
            delta = perturbations.detach().requires_grad_(gradient)
            values = self._f(delta)
        slope = torch.autograd.grad(values.sum(), delta)[0] if gradient else None
        return values.detach(), slope


def quadratic(size, seed, *, linear=0.0, dtype=torch.float64):
    """(Delta^T A Delta + 2 b . Delta as a function, A, b) with A positive semidefinite and b of
    size `linear`."""
    stream = torch.Generator().manual_seed(seed)
    root = torch.randn(size, size, dtype=torch.float64, generator=stream)
    A, b = (
        (root @ root.T).to(dtype),
        (linear * torch.randn(size, dtype=torch.float64, generator=stream)).to(dtype),
    )

    def f(delta):
        flat = delta.flatten(start_dim=1)
        return ((flat @ A) * flat).sum(dim=1) + 2 * flat @ b

    return f, A, b


def on_spheres(ball, *starts, dimension, generator, dtype=torch.float64):
    """Uniform points on the spheres that bound the balls, (*starts, w, dimension)."""
    shape, device = (*starts, len(ball.radius), dimension), ball.radius.device
    directions = gaussian_on(*shape, generator=generator, dtype=dtype, device=device)
    return ball.linear_maximizer(directions)


def word_change(phi, rows, **options):
    """The change of every word alone, a group of one."""
    return phi.change(rows, torch.arange(len(rows)).unsqueeze(1), **options)


def plain_change(phi, rows, groups=None):
    """The change by the plain definition: every perturbed text is built and mapped."""
    plain = FunctionFeatures(phi.features, batched=True, dtype=phi.dtype, device=phi.device)
    groups = torch.arange(len(rows)).unsqueeze(1) if groups is None else groups
    return plain.change(rows, groups)
