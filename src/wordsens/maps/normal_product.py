"""Products with J^T J, J the Jacobian at zero of a function that autograd differentiates twice."""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.errors import InputError

Product = Callable[[Float[Tensor, "b d"]], Float[Tensor, "b d"]]


def normal_product(features: Callable[[Tensor], Tensor], name: str) -> Product:
    """y -> J^T J y, row by row: J^T v is a gradient, and J y the gradient in v of (J^T v) . y.

    Args:
        features: from b perturbations to b rows of features, each of its own perturbation.
        name: of the map, for errors.

    Raises:
        InputError: from the product, where the features change and carry no gradient.
    """

    def product(vectors: Float[Tensor, "b d"]) -> Float[Tensor, "b d"]:
        with torch.enable_grad():
            delta = torch.zeros_like(vectors).requires_grad_(True)
            here = features(delta)
            if not here.requires_grad:
                if bool((features(vectors) != here).any()):
                    raise InputError(
                        f"{name} changes with the text, but its features carry no gradient; "
                        "write it with torch operations, without detach or no_grad"
                    )
                return torch.zeros_like(vectors)
            probe = torch.zeros_like(here).requires_grad_(True)
            (pulled,) = torch.autograd.grad(here, delta, probe, create_graph=True)
            (pushed,) = torch.autograd.grad(pulled, probe, vectors)
            (result,) = torch.autograd.grad(here, delta, pushed)
        return result

    return product
