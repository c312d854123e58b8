"""Errors, paths and small files, seeds, and the commit of a checkout."""

import os
import subprocess
import sys
from importlib import metadata

import numpy as np
import pytest
import torch

from wordsens import version
from wordsens.errors import (
    BudgetError,
    InputError,
    MissingExtraError,
    WordsensError,
    ZeroFeaturesError,
    require_positive,
)
from wordsens.files import named_path, require_file, small_text
from wordsens.seeds import derive_seed, gaussian_on, generator


def message(guard, *arguments, **options):
    with pytest.raises(InputError) as caught:
        guard(*arguments, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("value", [1, 0.5, 1e-300, np.float32(2.5), np.float64(3), np.int64(4)])
def test_positive_numbers_pass_as_floats(value):
    passed = require_positive("radius", value)
    assert type(passed) is float
    assert passed == value


def test_the_family():
    assert issubclass(InputError, WordsensError) and issubclass(InputError, ValueError)
    assert issubclass(ZeroFeaturesError, InputError)
    assert issubclass(BudgetError, WordsensError) and issubclass(BudgetError, MemoryError)
    error = MissingExtraError("pandas", "tables", "table()")
    assert isinstance(error, WordsensError) and isinstance(error, ImportError)
    assert str(error) == (
        "table() needs the package 'pandas', which is not installed; install it with: pip "
        "install 'wordsens[tables]'"
    )


no_pipes = pytest.mark.skipif(
    sys.platform == "win32", reason="Windows has no pipes and devices in folders"
)


@pytest.mark.parametrize("value", ["a" * 5000, "a\0b", "~nobody-of-this-name/x"])
def test_a_path_that_cannot_be_looked_at_is_named(value):
    with pytest.raises(
        InputError, match=r"^`model` \(=.* cannot be used as a path: .*; give another one$"
    ) as caught:
        named_path("model", value)
    assert len(str(caught.value)) < 400


@no_pipes
def test_devices_pipes_and_folders_are_no_files(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path, what in ((tmp_path / "pipe", "a device or a pipe"), (tmp_path, "a folder")):
        with pytest.raises(InputError, match=f"is {what}, not a file"):
            require_file(path)
    # A device would never end, a pipe never begin.
    with pytest.raises(InputError, match="'/dev/zero' is a device or a pipe"):
        small_text(named_path("spec", "/dev/zero"), "spec")


def test_a_small_text(tmp_path):
    path = tmp_path / "a.yaml"
    path.write_bytes("\ufeffcafé".encode())
    assert small_text(path, "spec") == "café"
    assert small_text(path, "spec", most=8) == "café"
    with pytest.raises(
        InputError, match=r"`spec` \(=.*a.yaml'\) has more than 7 bytes; give a smaller file"
    ):
        small_text(path, "spec", most=7)
    path.write_bytes(b"\xff")
    with pytest.raises(InputError, match="cannot be read as a text file: 'utf-8' codec"):
        small_text(path, "spec")
    with pytest.raises(InputError, match="cannot be read as a text file: No such file"):
        small_text(tmp_path / "none", "spec")


def test_parts_of_the_purpose_matter_and_so_do_their_types_and_their_order():
    keys = [
        (0,),
        (1,),
        (-1,),
        (0, "a"),
        (0, "b"),
        (0, "a", "b"),
        (0, "b", "a"),
        (0, "ab"),
        (0, "1"),
        (0, 1),
        (1, 0),
    ]
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
    assert torch.equal(
        here.cpu(),
        gaussian_on(4, 2, generator=generator(0, "x"), dtype=torch.float64, device="cpu"),
    )


@pytest.fixture
def placed(monkeypatch):
    """A function that asks for the commit of a package in src/wordsens of a folder."""

    def commit(folder):
        monkeypatch.setattr(version, "__file__", str(folder / "src" / "wordsens" / "version.py"))
        return version.commit.__wrapped__()

    return commit


def git(folder, *arguments):
    command = ["git", "-c", "user.name=n", "-c", "user.email=e@e", *arguments]
    return subprocess.run(
        command, cwd=folder, check=True, capture_output=True, text=True
    ).stdout.strip()


def test_it_is_gits(placed, tmp_path):
    checkout, worktree = tmp_path / "checkout", tmp_path / "worktree"
    checkout.mkdir()
    git(checkout, "init", "--quiet")
    git(checkout, "commit", "--allow-empty", "--message", "one")
    git(checkout, "worktree", "add", "--quiet", "-b", "other", str(worktree))
    git(worktree, "commit", "--allow-empty", "--message", "two")
    assert placed(checkout) == git(checkout, "rev-parse", "HEAD")
    assert placed(worktree) == git(worktree, "rev-parse", "HEAD") != placed(checkout)
    git(checkout, "pack-refs", "--all")
    assert placed(checkout) == git(checkout, "rev-parse", "HEAD")
    git(checkout, "checkout", "--quiet", "--detach")
    assert placed(checkout) == git(checkout, "rev-parse", "HEAD")


def test_a_package_without_one_has_none(placed, tmp_path, monkeypatch):
    monkeypatch.setattr(
        metadata, "distribution", lambda name: (_ for _ in ()).throw(metadata.PackageNotFoundError)
    )
    assert placed(tmp_path) is None
