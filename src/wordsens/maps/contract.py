"""The contract of a feature map phi, and of the change that one perturbed word makes to phi(X).

A map must offer `features`, differentiable and batched. It may offer a `WordChange` of its own, when it can evaluate
the change of many perturbed words faster than by mapping each perturbed text; the search uses nothing else.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor

from wordsens.errors import InputError, ZeroFeaturesError
from wordsens.gaussian.lanczos import lanczos
from wordsens.maps.normal_product import normal_product
from wordsens.maps.repeatable import require_equal_answers
from wordsens.search.objective import WordChange
from wordsens.search.plan import SearchPlan
from wordsens.seeds import gaussian_on, generator
from wordsens.text.matrix import TextMatrix

DEFAULT_MEMORY_BUDGET = 1 << 30
"""Bytes that one evaluation may use for intermediate results, unless told otherwise: 1 GiB."""


class FeatureMap(ABC):
    """A differentiable map phi from texts (*batch, n, d) to features (*batch, ...).

    Attributes:
        name: what tables and records call the map.
        dtype, device: where phi computes; texts are converted to them.
        text_shape: the (n, d) that phi accepts; None where any size will do.
        notes: what a reader of a result has to know of the map; results carry them.
    """

    name: str
    dtype: torch.dtype = torch.float64
    device: torch.device = torch.device("cpu")
    text_shape: tuple[int | None, int | None] = (None, None)
    notes: tuple[str, ...] = ()

    @abstractmethod
    def features(self, texts: Float[Tensor, "*batch n d"]) -> Float[Tensor, "..."]:
        """phi(X) for every text of the batch; the axes behind *batch are the features'."""

    def __call__(self, texts: TextMatrix | Tensor) -> Float[Tensor, "..."]:
        """phi(X), after the shape is checked and the texts are converted to the map's dtype and device."""
        rows = texts.rows if isinstance(texts, TextMatrix) else texts
        return self.features(self.accept(rows))

    def accept(self, rows: Tensor) -> Float[Tensor, "*batch n d"]:
        """The rows in the map's dtype and on its device; InputError when their shape is not one phi takes."""
        shape = tuple(rows.shape[-2:])
        if rows.ndim < 2 or any(
            want is not None and want != have for want, have in zip(self.text_shape, shape, strict=True)
        ):
            wanted = tuple("any" if size is None else size for size in self.text_shape)
            raise InputError(
                f"`X` (shape {tuple(rows.shape)}) does not fit {self.name}, which takes (*batch, n, d) with "
                f"(n, d) = ({wanted[0]}, {wanted[1]}); build the map for this size or truncate the text"
            )
        return rows.to(dtype=self.dtype, device=self.device)

    def default_radius(self, rows: Float[Tensor, "n d"]) -> Float[Tensor, " n"]:
        """The radius of each word's ball where the caller names none: sqrt(d) (paper, eq. 1)."""
        return torch.full((rows.shape[0],), math.sqrt(rows.shape[1]), dtype=torch.float64, device=self.device)

    def perturbed_features(
        self, rows: Float[Tensor, "n d"], words: Int[Tensor, "b g"], perturbations: Float[Tensor, "b g d"]
    ) -> Float[Tensor, "b features"]:
        """phi of b perturbed texts, flattened: row words[p, k] of X moved by perturbations[p, k].

        By default each text is built and mapped. A map may spare what the texts share with X, but computes the features
        themselves: this is what reported values are recomputed with.
        """
        return features_by_text(self, perturbed_texts(rows, words, perturbations))

    def relative_rounding(self, text: Float[Tensor, "n d"]) -> float:
        """An estimate of ‖computed phi(X) - phi(X)‖ / ‖phi(X)‖, from what the last digit of X does to the features.

        max over three sign patterns s of ‖phi((1 + eps s) X) - phi(X)‖ / ‖phi(X)‖, times 2 + sqrt(n d) / 8 for sums of
        up to n d terms: three times and more what long doubles show (tests/sensitivity/test_rounding.py). InputError
        for a map that gives the text other features when it is asked again.
        """
        with torch.no_grad():
            signs = torch.tensor([[1.0], [-1.0], [1.0]], dtype=text.dtype, device=text.device).repeat(1, text.numel())
            signs[1, ::2] *= -1
            signs[2, ::3] *= -1
            moved = text * (1 + torch.finfo(text.dtype).eps * signs.view(3, *text.shape))
            once, again = self(text).flatten(), self(text).flatten()
            require_equal_answers(self.name, once, again)
            # Alone and in a batch: at a jump of phi even another order of summation may be a long way off.
            others = features_by_text(self, torch.cat([text.unsqueeze(0), moved]))
        apart = torch.linalg.vector_norm(others - once, dim=1, dtype=torch.float64)
        largest = float(apart.max()) / feature_norm(once, self.name)
        return (2 + math.sqrt(text.numel()) / 8) * max(largest, torch.finfo(text.dtype).eps)

    def word_change(self, rows: Float[Tensor, "n d"], *, memory_budget: int = DEFAULT_MEMORY_BUDGET) -> "WordChange":
        """What evaluates ‖phi(X^i(Delta)) - phi(X)‖² for many (i, Delta) at once."""
        return PlainWordChange(self, rows, memory_budget=memory_budget)

    def texts_at_once(self, n: int, *, memory_budget: int = DEFAULT_MEMORY_BUDGET) -> int:
        """How many texts of n words `texts_change` serves best at once; 1 where each is searched by itself."""
        return 1

    def texts_change(
        self, texts: Sequence[Float[Tensor, "n d"]], *, memory_budget: int = DEFAULT_MEMORY_BUDGET
    ) -> "WordChange":
        """`word_change` of several texts of equal length at once: word i of text t is word t n + i.

        Only for maps whose `texts_at_once` is more than 1.
        """
        raise AssertionError(f"{self.name} does not evaluate several texts at once")

    def group_change(
        self, rows: Float[Tensor, "n d"], groups: Int[Tensor, "m g"], *, memory_budget: int = DEFAULT_MEMORY_BUDGET
    ) -> "WordChange":
        """The same when g words move together: the pairs are (group, Delta), Delta of shape (g, d)."""
        return PlainGroupChange(self, rows, groups, memory_budget=memory_budget)


_MOST_SMALL = 1024
"""Coordinates of a text up to which a map of which nothing is known is searched widely."""

_SMALL_PLAN = SearchPlan(
    starts=24, inner=4, population=8, generations=4, children=16, kick_steps=8, relays=32, finalists=4, steps=150
)


class PlainGroupChange(WordChange):
    """The change by definition: build the perturbed text, map it, differentiate with autograd. O(cost of phi) a pair.

    Args:
        phi: the map.
        rows: X, (n, d).
        groups: (m, g), the words that move together in each of m groups; Delta has shape (g, d).
        memory_budget: bytes for intermediate results.
    """

    plan = SearchPlan(starts=12, inner=4, generations=3, relays=16, steps=150)

    _LANCZOS_STEPS: ClassVar[int] = 8

    # Autograd keeps the activations of every operation: a rough multiple of the text and the features.
    _KEPT_COPIES: ClassVar[int] = 8

    def __init__(self, phi: FeatureMap, rows: Float[Tensor, "n d"], groups: Int[Tensor, "m g"], *, memory_budget: int):
        rows = phi.accept(rows)
        self._phi, self._groups = phi, groups
        self._base = require_repeatable(phi, rows)
        shape = (groups.shape[1], rows.shape[1])
        super().__init__(rows, feature_norm(self._base, phi.name), memory_budget, shape)
        if rows.numel() <= _MOST_SMALL:
            self.plan = _SMALL_PLAN

    def bytes_per_pair(self) -> int:
        n = self.rows.shape[0]
        numbers = self.rows.numel() + self._base.numel() + n * n
        return self._KEPT_COPIES * numbers * self.rows.element_size()

    def starting_directions(self, words: Int[Tensor, " w"]) -> Float[Tensor, "starts w *shape"]:
        """Both signs of the two leading singular vectors of each Jacobian at X, nearly: Lanczos by autograd.

        None for a map that autograd cannot differentiate twice.
        """
        found = []
        size = max(1, self.memory_budget // max(1, 3 * self.bytes_per_pair()))
        for some in words.split(size):
            start = gaussian_on(
                len(some),
                math.prod(self.shape),
                generator=generator(0, "lanczos", int(some[0])),
                dtype=self.rows.dtype,
                device=self.rows.device,
            )

            def features(delta: Tensor, at: Tensor = self._groups[some]) -> Tensor:
                texts = perturbed_texts(self.rows, at, delta.view(*at.shape, -1))
                return features_by_text(self._phi, texts)

            try:
                basis, rotation, _ = lanczos(normal_product(features, self._phi.name), start, self._LANCZOS_STEPS)
            except RuntimeError:
                return super().starting_directions(words)
            leading = rotation[:, :2] @ basis
            found.append(torch.stack([leading, -leading], dim=2).flatten(1, 2).transpose(0, 1))
        return torch.cat(found, dim=1).unflatten(2, self.shape)

    def _evaluate(
        self, perturbations: Float[Tensor, "b *shape"], words: Int[Tensor, " b"], *, gradient: bool
    ) -> tuple[Float[Tensor, " b"], Float[Tensor, "b *shape"] | None]:
        with torch.set_grad_enabled(gradient):
            delta = perturbations.detach().requires_grad_(gradient)
            texts = perturbed_texts(self.rows, self._groups[words], delta.view(len(words), *self._groups.shape[1:], -1))
            squared = (features_by_text(self._phi, texts) - self._base).square().sum(dim=1)
        if not gradient:
            return squared, None
        slope = torch.autograd.grad(squared.sum(), delta, allow_unused=True)[0] if squared.requires_grad else None
        if slope is None:
            if bool((squared != 0).any()):
                raise InputError(
                    f"{self._phi.name} changes with the text, but its features carry no gradient; "
                    "write it with torch operations, without detach or no_grad"
                )
            slope = torch.zeros_like(perturbations)
        return squared.detach(), slope


class PlainWordChange(PlainGroupChange):
    """PlainGroupChange where every word is a group of its own; Delta has shape (d,)."""

    def __init__(self, phi: FeatureMap, rows: Float[Tensor, "n d"], *, memory_budget: int):
        super().__init__(phi, rows, torch.arange(rows.shape[0]).unsqueeze(1), memory_budget=memory_budget)
        self.shape = self.rows.shape[1:]


class FunctionFeatures(FeatureMap):
    """Any differentiable callable as a feature map, a torch module included.

    Args:
        function: takes (n, d), or (*batch, n, d) when `batched`, and returns the features.
        batched: whether the function takes a leading batch axis; if not, texts are mapped one at a time.
        name, dtype, device: see FeatureMap.
    """

    def __init__(
        self,
        function: Callable[[Tensor], Tensor],
        *,
        batched: bool = False,
        name: str = "function",
        dtype: torch.dtype = torch.float64,
        device: torch.device | str = "cpu",
    ):
        self._function = function
        self._batched = batched
        self.name = name
        self.dtype = dtype
        self.device = torch.device(device)

    def features(self, texts: Float[Tensor, "*batch n d"]) -> Float[Tensor, "..."]:
        if self._batched or texts.ndim == 2:
            return self._function(texts)
        batch = texts.shape[:-2]
        mapped = torch.stack([self._function(text) for text in texts.flatten(end_dim=-3)])
        return mapped.unflatten(0, batch)


def perturbed_texts(
    rows: Float[Tensor, "n d"], words: Int[Tensor, "b g"], perturbations: Float[Tensor, "b g d"]
) -> Float[Tensor, "b n d"]:
    """b copies of X, in which row words[p, k] is moved by perturbations[p, k]; differentiable in the perturbations."""
    texts = rows.unsqueeze(0).repeat(len(words), 1, 1)
    where = words.to(rows.device).unsqueeze(-1).expand_as(perturbations)
    return texts.scatter_add(1, where, perturbations)


def features_by_text(phi: FeatureMap, texts: Float[Tensor, "b n d"]) -> Float[Tensor, "b features"]:
    """The features of each of b texts in one row. InputError when phi does not keep the batch axis."""
    features = phi(texts)
    if features.shape[:1] != texts.shape[:1]:
        raise InputError(
            f"{phi.name} maps a batch of shape {tuple(texts.shape)} to features of shape {tuple(features.shape)}; "
            f"their first axis must be the batch's; a FunctionFeatures with batched=False maps one text at a time"
        )
    return features.reshape(len(texts), -1)


def require_repeatable(phi: FeatureMap, rows: Float[Tensor, "n d"]) -> Float[Tensor, " features"]:
    """phi(X), flat; InputError when phi gives X other features beside 2 X than beside itself, in batches of four.

    Batches of one size: sums are taken in the same order, so that a map with a jump at X is not taken for one of these.
    """
    with torch.no_grad():
        once = phi(rows).flatten()
        feature_norm(once, phi.name)
        alike, mixed = (features_by_text(phi, torch.stack([rows, part, rows, rows])) for part in (rows, 2 * rows))
        for at in (0, 2, 3):
            require_equal_answers(phi.name, alike[at], mixed[at])
    return once


def feature_norm(features: Tensor, name: str) -> float:
    """‖phi(X)‖ over all features; ZeroFeaturesError when it is zero, InputError when it is not finite."""
    norm = torch.linalg.vector_norm(features, dtype=torch.float64).item()
    if not math.isfinite(norm):
        raise InputError(f"{name} gives features with norm {norm} on this text; use float64 or rescale the rows")
    if norm == 0:
        raise ZeroFeaturesError(
            f"{name} maps this text to zero, so the relative change of its features is not defined; "
            "use another text, seed or map"
        )
    return norm
