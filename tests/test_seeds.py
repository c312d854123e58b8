"""Seeds: one seed and purpose, one stream; others, other streams."""

import numpy as np
import pytest
import torch

from wordsens.errors import InputError
from wordsens.seeds import derive_seed, gaussian_on, generator


def test_parts_of_the_purpose_matter_and_so_do_their_types_and_their_order():
    keys = [(0,), (1,), (-1,), (0, "a"), (0, "b"), (0, "a", "b"), (0, "b", "a"), (0, "ab"), (0, "1"), (0, 1), (1, 0)]
    seeds = [derive_seed(*key) for key in keys]
    assert len(set(seeds)) == len(keys)
    assert all(0 <= seed < 2**63 for seed in seeds)


def test_seeds_stay_what_they_are_from_version_to_version():
    """Published results name a seed."""
    assert derive_seed(0, "weights") == 0x509C460A6CDB3424
    assert derive_seed(7, "starts", 3) == 0x20C12504678600B5


@pytest.mark.parametrize("seed", [1.0, "0", None, True, np.float64(1)])
def test_a_seed_is_a_whole_number(seed, unchecked_types):
    with pytest.raises(InputError) as caught:
        derive_seed(seed)
    assert str(caught.value) == f"`seed` (={seed!r}) must be a whole number"


def test_streams_repeat_and_leave_torchs_state_alone():
    before = torch.random.get_rng_state()
    first, second = (torch.randn(5, generator=generator(3, "x")) for _ in range(2))
    assert torch.equal(first, second)
    assert torch.equal(before, torch.random.get_rng_state())


def test_numbers_are_the_same_on_every_device(device):
    here = gaussian_on(4, 2, generator=generator(0, "x"), dtype=torch.float64, device=device)
    assert here.device.type == device
    assert torch.equal(here.cpu(), gaussian_on(4, 2, generator=generator(0, "x"), dtype=torch.float64, device="cpu"))
