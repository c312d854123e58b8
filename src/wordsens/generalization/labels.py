"""Labels that texts do not bring along: a linear function's sign, and coin tosses."""

import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.regression.features import Texts, as_equal_texts
from wordsens.seeds import Seed, gaussian_on, generator


def linear_labels(texts: Texts, seed: Seed = 0) -> Float[Tensor, " N"]:
    """The sign of a linear function of each text: sign(<G, X>), G iid N(0, 1), fixed by the seed; 0 gives +1.

    >>> linear_labels(torch.ones(2, 3, 4)).tolist() in ([1.0, 1.0], [-1.0, -1.0])
    True
    """
    rows = as_equal_texts(texts)
    direction = gaussian_on(
        *rows[0].shape, generator=generator(seed, "linear labels"), dtype=torch.float64, device=rows[0].device
    )
    products = torch.stack([(text.double() * direction).sum() for text in rows])
    return torch.where(products >= 0, 1.0, -1.0).double()


def random_labels(count: int, seed: Seed = 0) -> Float[Tensor, " N"]:
    """+1 and -1 with equal chances.

    >>> sorted(set(random_labels(100).tolist()))
    [-1.0, 1.0]
    """
    drawn = torch.rand(count, generator=generator(seed, "random labels"), dtype=torch.float64)
    return torch.where(drawn < 0.5, -1.0, 1.0).double()
