"""Shapes and types are checked in every call: in all of `make test-all`; in `make test`, here, in a few of the laws."""

import subprocess
import sys
from pathlib import Path

import jaxtyping
import pytest
import torch

from wordsens.maps.mapping import perturbed_texts

OPTION = "--jaxtyping-packages"
LAWS = ("TestRandomFeatures", "TestSoftmaxAttention")
CHOSEN = "wrong_shape or batch or word_change or witnesses and not SoftmaxAttention"  # its bounds are slow to check


def _checked(config: pytest.Config) -> bool:
    """Whether this process checks them."""
    return bool(config.getoption(OPTION))


def test_a_wrong_shape_is_refused_however_often_a_function_was_called(pytestconfig):
    if not _checked(pytestconfig):
        pytest.skip("runs where shapes are checked: in the process of the test below, and in make test-all")
    rows, words, delta = torch.zeros(3, 2), torch.zeros(1, 1, dtype=torch.long), torch.zeros(1, 1, 2)
    for _ in range(20):
        assert perturbed_texts(rows, words, delta).shape == (1, 3, 2)
        with pytest.raises(jaxtyping.TypeCheckError, match="rows"):
            perturbed_texts(rows[0], words, delta)


@pytest.mark.slow
def test_laws_hold_with_every_shape_and_type_checked(pytestconfig):
    """Checks take a quarter of the suite's time; a process of their own, since they are set at the first import."""
    if _checked(pytestconfig):
        pytest.skip("the laws themselves run here with checks")
    tests = Path(__file__).parent
    laws = [f"{tests / 'laws' / 'test_maps.py'}::{law}" for law in LAWS]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"{OPTION}=wordsens,beartype.beartype"]
    command += ["-k", CHOSEN, __file__, *laws]
    run = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=tests.parent)
    assert run.returncode == 0, run.stdout
    assert " passed" in run.stdout.splitlines()[-1] and "skipped" not in run.stdout
