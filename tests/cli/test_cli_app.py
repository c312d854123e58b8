"""How a run ends: exit codes, and what is said where."""

import os
import subprocess
import sys

import pytest
import torch

from wordsens import __version__
from wordsens.errors import BudgetError


def test_help_and_version(wordsens):
    assert wordsens("--version") == (0, f"wordsens {__version__}\n", "")
    bare, asked = wordsens(), wordsens("--help")
    assert bare.code == asked.code == 0
    assert "measure" in bare.out
    assert "paper" in asked.out
    assert bare.err == asked.err == ""


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (BudgetError("too large"), 1, "wordsens: too large\n"),
        (KeyboardInterrupt(), 130, "wordsens: interrupted\n"),
    ],
)
def test_failures(wordsens, monkeypatch, error, code, said):
    def raised(*_, **__):
        raise error

    monkeypatch.setattr("wordsens.cli.measure._measured", raised)
    run = wordsens("measure", "a b")
    assert run.code == code
    assert run.out == ""
    assert said in run.err


def test_a_fault_of_the_package_asks_for_a_report(wordsens, monkeypatch):
    monkeypatch.setattr("wordsens.cli.measure._measured", None)
    run = wordsens("measure", "a b")
    assert (run.code, run.out) == (1, "")
    assert (
        "wordsens: unexpected TypeError: 'NoneType' object is not callable; please report it"
        in run.err
    )


def test_a_reader_that_goes_away_is_no_error():
    process = subprocess.Popen(
        [sys.executable, "-m", "wordsens", "measure", "--help"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "COLUMNS": "80"},
    )
    assert process.stdout is not None
    process.stdout.close()
    _, err = process.communicate(timeout=60)
    assert process.returncode == 0
    assert err == b""


def test_a_command_uses_the_threads_asked_for_and_then_those_of_before(wordsens, monkeypatch):
    seen = []

    def stop(*_, **__):
        seen.append(torch.get_num_threads())
        raise KeyboardInterrupt

    monkeypatch.setattr("wordsens.cli.measure._measured", stop)
    before = torch.get_num_threads()
    wordsens("measure", "a b")
    wordsens("measure", "a b", "--threads", "2")
    assert seen == [1, 2]
    assert torch.get_num_threads() == before
