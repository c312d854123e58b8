"""A seed and a purpose give an independent stream of random numbers."""

import hashlib
from numbers import Integral

import numpy as np
import torch

from wordsens.errors import InputError, argument

Seed = int | np.integer
"""A whole number, of Python or of NumPy: equal ones give equal streams."""


def derive_seed(seed: Seed, *purpose: str | int) -> int:
    """A 63-bit seed that depends on the seed and on every part of the purpose.

    The first 63 bits of SHA-256 over the parts; distinct parts give unrelated seeds.

    >>> derive_seed(0, "weights") == derive_seed(0, "weights"), derive_seed(0, "weights") == derive_seed(0, "start")
    (True, False)
    """  # noqa: E501
    if isinstance(seed, bool) or not isinstance(seed, Integral):
        raise InputError(f"{argument('seed')} (={seed!r}) must be a whole number")
    text = "\x1f".join(f"{type(part).__name__}:{part}" for part in (int(seed), *purpose))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def generator(
    seed: Seed, *purpose: str | int, device: torch.device | str = "cpu"
) -> torch.Generator:
    """A fresh generator for one purpose. Never touches torch's global state.

    >>> torch.randn(1, generator=generator(0, "a")) == torch.randn(1, generator=generator(0, "a"))
    tensor([True])
    """
    return torch.Generator(device=device).manual_seed(derive_seed(seed, *purpose))


def gaussian_on(
    *shape: int, generator: torch.Generator, dtype: torch.dtype, device: torch.device | str
) -> torch.Tensor:
    """Standard Gaussian numbers, drawn on the generator's own device and moved to `device`.

    With a CPU generator the numbers are the same whatever the device.
    """
    return torch.randn(shape, generator=generator, dtype=dtype, device=generator.device).to(device)
