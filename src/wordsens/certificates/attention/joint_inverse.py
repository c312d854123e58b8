"""The joint Lagrangian's quadratic form Q: as a matrix where it is small, else by its vectors' inner products alone.

Q = M - V^T D V with M = [[lam, -shared], [-shared, mu]] in y and b, V the pairs' vectors and D their 2 x 2 multipliers.
With m = M^-1, G = V m V^T = L L^T, Q > 0 where M > 0 and S = I - L^T D L > 0, and

    K = V Q^-1 V^T = L S^-1 L^T,        log det Q = d log det M + log det S.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.certificates.attention.joint_lagrangian import LAM, MU, SHARED, JointMultipliers, JointPairs, form

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
    hold, pin, cross = (part.view(-1, *[1] * (matrix.ndim - 1)) for part in (by.hold, by.pin, by.cross))
    return torch.cat([hold * t + cross * s, cross * t + pin * s])


@dataclass(frozen=True)
class InverseForm:
    """Q^-1 at one set of multipliers inside the domain.

    Attributes:
        products: of the vectors.
        small: m.
        root, factor: L, and the Cholesky factor of S.
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
        determinant = by.lam * by.mu - by.shared.square()
        if not by.positive or not bool(determinant > 0):
            return None
        small = torch.stack([by.mu, by.shared, by.shared, by.lam]).view(2, 2) / determinant
        gram = products.between(small)
        gram.diagonal().mul_(1 + _JITTER).add_(1e-300)
        root, singular = torch.linalg.cholesky_ex(gram)
        system = -(root.T @ _down(by, root))
        system.diagonal().add_(1)
        factor, outside = torch.linalg.cholesky_ex(system)
        if int(singular) or int(outside):
            return None
        logs = products.half * determinant.log() + 2 * factor.diagonal().log().sum()
        return cls(products, by, small, root, factor, logs)

    @property
    def push(self) -> Float[Tensor, " a"]:
        """w = V^T push."""
        return torch.cat([self.by.alpha, self.by.gamma])

    def drawn(self) -> Float[Tensor, " a"]:
        """V Q^-1 w: t and s at the worst y and b."""
        inner = torch.cholesky_solve((self.root.T @ self.push).unsqueeze(1), self.factor)
        return (self.root @ inner).squeeze(1)

    def seen(self) -> Float[Tensor, "a a"]:
        """K."""
        half = torch.linalg.solve_triangular(self.factor, self.root.T, upper=False)
        return half.T @ half

    def in_m(self, seen: Float[Tensor, "a a"]) -> "DerivativesInM":
        """Of K: Q^-1 V^T = m V^T C, C = I + D K, and Q^-1 = m + m V^T C D V m."""
        by, products = self.by, self.products
        through = _down(by, seen)
        through.diagonal().add_(1)
        inner = through @ self.push
        E = seen.new_tensor([[[yy, yb], [yb, bb]] for yy, yb, bb in OF_FORM.values()])
        once = self.small @ E
        twice = torch.einsum("aij,bjk->abik", once, once)
        # V m E m V^T, and V m E m E' m V^T as a sum of the parts.
        around = products.between(once @ self.small)
        apart = twice @ self.small
        entries = torch.stack([apart[..., 0, 0], 0.5 * (apart[..., 0, 1] + apart[..., 1, 0]), apart[..., 1, 1]], -1)
        passed, pulled = around @ through, around @ inner
        k = len(seen) // 2
        diagonal, mixed = (through * passed).sum(dim=1), (through[:, :k] * passed[:, :, k:]).sum(dim=1)
        quadratic = torch.stack([inner @ part @ inner for part in products.parts])
        answered = torch.stack([through @ _down(by, part) for part in pulled])
        # Of C D V m E m V^T, cyclically.
        down = torch.stack([_down(by, part) for part in passed])
        parts = (products.parts * _down(by, through.T)).sum(dim=(1, 2))
        traces_of_two = products.half * twice.diagonal(dim1=2, dim2=3).sum(dim=2) + 2 * entries @ parts
        return DerivativesInM(
            turned=pulled @ through,
            spread=torch.stack([diagonal[:, :k], diagonal[:, k:], mixed], dim=1),
            spent=pulled @ inner,
            turned_twice=entries @ quadratic + pulled @ answered.T,
            traces=products.half * once.diagonal(dim1=1, dim2=2).sum(dim=1) + down.diagonal(dim1=1, dim2=2).sum(dim=1),
            traces_of_two=traces_of_two + torch.einsum("aij,bji->ab", down, down),
        )


@dataclass(frozen=True)
class DerivativesInM:
    """The parts of the derivatives in lam, mu and shared, with E, E' those of M and z = Q^-1 w.

    Attributes:
        turned: V Q^-1 E z.
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


@dataclass(frozen=True)
class DirectForm:
    """Q^-1 at one set of multipliers inside the domain; V Q^-1 and the rest as in `InverseForm`.

    Attributes:
        factor: R, Q = R R^T.
        half: R^-1 V^T.
    """

    by: JointMultipliers
    factor: Float[Tensor, "size size"]
    half: Float[Tensor, "size a"]

    @classmethod
    def of(cls, pairs: JointPairs, by: JointMultipliers) -> "DirectForm | None":
        """None where Q is not positive definite. O(size² a)."""
        if not by.positive:
            return None
        factor, outside = torch.linalg.cholesky_ex(form(pairs, by))
        if int(outside):
            return None
        vectors = torch.cat([pairs.first, pairs.second])
        return cls(by, factor, torch.linalg.solve_triangular(factor, vectors.T, upper=False))

    @property
    def log_determinant(self) -> Tensor:
        return 2 * self.factor.diagonal().log().sum()

    push = InverseForm.push

    def drawn(self) -> Float[Tensor, " a"]:
        return self.half.T @ (self.half @ self.push)

    def seen(self) -> Float[Tensor, "a a"]:
        return self.half.T @ self.half

    def in_m(self, seen: Float[Tensor, "a a"]) -> DerivativesInM:
        """From Q^-1 and V Q^-1; K is not used."""
        answers = torch.linalg.solve_triangular(self.factor.T, self.half, upper=True)
        z = answers @ self.push
        t, s = answers.tensor_split(2, dim=1)
        turned = torch.stack(_of_m(z))
        inverse = torch.cholesky_inverse(self.factor)
        moved = torch.stack(_of_m(inverse))
        two = [[(one * other).sum(dim=0) for other in _of_m(last)] for one, last in ((t, t), (s, s), (t, s))]
        return DerivativesInM(
            turned=turned @ answers,
            spread=torch.stack([torch.stack(part) for part in two], dim=1),
            spent=turned @ z,
            turned_twice=turned @ inverse @ turned.T,
            traces=moved.diagonal(dim1=1, dim2=2).sum(dim=1),
            traces_of_two=torch.einsum("aij,bji->ab", moved, moved),
        )


def _of_m(part: Float[Tensor, "size ..."]) -> list[Float[Tensor, "size ..."]]:
    """E times it, E M's derivative in each of lam, mu and shared."""
    y, b = part.tensor_split(2)
    none = torch.zeros_like(y)
    return [torch.cat([y, none]), torch.cat([none, b]), -torch.cat([b, y])]
