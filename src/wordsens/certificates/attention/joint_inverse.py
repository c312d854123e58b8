"""The joint Lagrangian's quadratic form Q by the inner products of its vectors alone: its size is no matter.

Q = M - V^T D V with M = [[lam, -shared], [-shared, mu]] in y and b, V the pairs' vectors and D their 2 x 2 multipliers.
With m = M^-1, G = V m V^T = L L^T, Q > 0 where M > 0 and S = I - L^T D L > 0, and

    K = V Q^-1 V^T = L S^-1 L^T,        log det Q = d log det M + log det S.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.certificates.attention.joint_lagrangian import LAM, MU, SHARED, JointMultipliers, JointPairs

_JITTER = 1e-13
"""Of G's diagonal: vectors may depend on each other."""

OF_FORM = {LAM: (1.0, 0.0, 0.0), MU: (0.0, 0.0, 1.0), SHARED: (0.0, -1.0, 0.0)}
"""M's derivative in each: its entries in y y, y b and b b."""


class VectorProducts:
    """Inner products of the 2 k vectors in y and b."""

    def __init__(self, pairs: JointPairs):
        vectors = torch.cat([pairs.first, pairs.second])
        self.half = vectors.shape[1] // 2
        y, b = vectors[:, : self.half], vectors[:, self.half :]
        mixed = y @ b.T
        self.parts = torch.stack([y @ y.T, mixed + mixed.T, b @ b.T])

    def between(self, small: Float[Tensor, "... 2 2"]) -> Float[Tensor, "... a a"]:
        """V (N x I) V^T of a symmetric 2 x 2 matrix N."""
        entries = torch.stack([small[..., 0, 0], small[..., 0, 1], small[..., 1, 1]], dim=-1)
        return torch.einsum("...e,eab->...ab", entries, self.parts)


def _down(by: JointMultipliers, matrix: Float[Tensor, "a ..."]) -> Float[Tensor, "a ..."]:
    """D times a matrix, or a vector, whose rows are those of t and then those of s."""
    t, s = matrix.tensor_split(2)
    hold, pin, cross = (
        part.view(-1, *[1] * (matrix.ndim - 1)) for part in (by.hold, by.pin, by.cross)
    )
    return torch.cat([hold * t + cross * s, cross * t + pin * s])


@dataclass(frozen=True)
class InverseForm:
    """Of one set of multipliers inside the domain.

    Attributes:
        products: of the vectors.
        small: m.
        seen: K = V Q^-1 V^T.
        log_determinant: of Q.
    """

    products: VectorProducts
    by: JointMultipliers
    small: Float[Tensor, "2 2"]
    root: Float[Tensor, "a a"]
    factor: Float[Tensor, "a a"]
    log_determinant: Tensor

    @classmethod
    def of(cls, products: VectorProducts, by: JointMultipliers) -> "InverseForm | None":
        """None where Q is not positive definite."""
        small_determinant = by.lam * by.mu - by.shared.square()
        if not by.positive or not bool(small_determinant > 0):
            return None
        small = torch.stack([by.mu, by.shared, by.shared, by.lam]).view(2, 2) / small_determinant
        gram = products.between(small)
        gram.diagonal().mul_(1 + _JITTER).add_(1e-300)
        root, failed = torch.linalg.cholesky_ex(gram)
        system = -(root.T @ _down(by, root))
        system.diagonal().add_(1)
        factor, failed_too = torch.linalg.cholesky_ex(system)
        if int(failed) or int(failed_too):
            return None
        log_determinant = products.half * small_determinant.log() + 2 * factor.diagonal().log().sum()
        return cls(products, by, small, root, factor, log_determinant)

    def seen(self, push: Float[Tensor, " a"]) -> Float[Tensor, " a"]:
        """V Q^-1 V^T push."""
        inner = torch.cholesky_solve((self.root.T @ push).unsqueeze(1), self.factor)
        return (self.root @ inner).squeeze(1)

    def spent(self) -> tuple[Tensor, Float[Tensor, " a"]]:
        """w . Q^-1 w, and V Q^-1 w: t and s at the worst y and b."""
        push = torch.cat([self.by.alpha, self.by.gamma])
        seen = self.seen(push)
        return push @ seen, seen

    def whole(self) -> Float[Tensor, "a a"]:
        """K = V Q^-1 V^T."""
        half = torch.linalg.solve_triangular(self.factor, self.root.T, upper=False)
        return half.T @ half

    def of_m(self, gram: Float[Tensor, "a a"]) -> "DerivativesInM":
        """Q^-1 = m + m V^T R V m and Q^-1 V^T = m V^T C with C = I + D K, R = C D."""
        by, products, half = self.by, self.products, self.products.half
        k = len(gram) // 2
        whole = _down(by, gram)
        whole.diagonal().add_(1)
        inner = whole @ torch.cat([by.alpha, by.gamma])
        E = whole.new_tensor([[[yy, yb], [yb, bb]] for yy, yb, bb in OF_FORM.values()])
        one = self.small @ E
        two = torch.einsum("aij,bjk->abik", one, one)
        doubled = two @ self.small
        # R times each of the basic products, for its trace.
        held = _down(by, whole.T).T
        basic = (products.parts * held).sum(dim=(1, 2))
        both = products.between(one @ self.small)
        through = both @ whole
        pushed = both @ inner
        turned = pushed @ whole
        down = torch.stack([_down(by, part) for part in through])
        answered = torch.stack([held @ part for part in pushed])
        entries = torch.stack([doubled[..., 0, 0], 0.5 * (doubled[..., 0, 1] + doubled[..., 1, 0]), doubled[..., 1, 1]], -1)
        quadratic = torch.stack([inner @ part @ inner for part in products.parts])
        diagonal = (whole * through).sum(dim=1)
        mixed = (whole[:, :k] * through[:, :, k:]).sum(dim=1)
        traces = half * one.diagonal(dim1=1, dim2=2).sum(dim=1) + down.diagonal(dim1=1, dim2=2).sum(dim=1)
        traces_of_two = half * two.diagonal(dim1=2, dim2=3).sum(dim=2) + 2 * entries @ basic
        traces_of_two = traces_of_two + torch.einsum("aij,bji->ab", down, down)
        return DerivativesInM(
            turned=turned,
            spread=torch.stack([diagonal[:, :k], diagonal[:, k:], mixed], dim=1),
            spent=pushed @ inner,
            turned_twice=entries @ quadratic + pushed @ answered.T,
            traces=traces,
            traces_of_two=traces_of_two,
        )


@dataclass(frozen=True)
class DerivativesInM:
    """What the derivatives in lam, mu and shared are made of; E, E' those of M.

    Attributes:
        turned: V Q^-1 E z, z = Q^-1 w.
        spread: of V Q^-1 E Q^-1 V^T, the diagonals of t with t, s with s and t with s.
        spent: z . E z.
        turned_twice: z . E Q^-1 E' z.
        traces, traces_of_two: of Q^-1 E and of Q^-1 E Q^-1 E'.
    """

    turned: Float[Tensor, "3 a"]
    spread: Float[Tensor, "3 3 k"]
    spent: Float[Tensor, " 3"]
    turned_twice: Float[Tensor, "3 3"]
    traces: Float[Tensor, " 3"]
    traces_of_two: Float[Tensor, "3 3"]
