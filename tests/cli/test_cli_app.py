"""How a run ends: exit codes, and what is said where."""

import os
import subprocess
import sys

import pytest
import torch
import typer

from wordsens import __version__
from wordsens.cli.app import app
from wordsens.cli.measure import run as measure_run
from wordsens.cli.option_names import in_options, options_of
from wordsens.errors import BudgetError


def test_help_and_version(wordsens):
    assert wordsens("--version") == (0, f"wordsens {__version__}\n", "")
    bare, asked = wordsens(), wordsens("--help")
    assert bare.code == asked.code == 0
    assert "measure" in bare.out
    assert "paper" in asked.out
    assert bare.err == asked.err == ""


@pytest.mark.parametrize("command", ["measure", "paper"])
def test_every_command_has_the_shared_options(wordsens, command):
    run = wordsens(command, "--help")
    assert run.code == 0
    assert all(option in run.out for option in ("--json", "--seed", "--device", "--quiet", "--encoder"))


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (BudgetError("too large"), 1, "wordsens: too large\n"),
        (KeyboardInterrupt(), 130, "wordsens: interrupted\n"),
        (RuntimeError("odd\nthing"), 1, "wordsens: unexpected RuntimeError: odd thing; please report it"),
    ],
)
def test_failures(wordsens, monkeypatch, error, code, said):
    def raised(*_, **__):
        raise error

    monkeypatch.setattr(measure_run, "run_measure", raised)
    run = wordsens("measure", "a b")
    assert run.code == code
    assert run.out == ""
    assert said in run.err


def test_only_an_unexpected_error_shows_a_traceback(wordsens, monkeypatch):
    def raised(*_, **__):
        raise RuntimeError

    monkeypatch.setattr(measure_run, "run_measure", raised)
    assert "Traceback" in wordsens("measure", "a b").err


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
    monkeypatch.setattr(measure_run, "run_measure", lambda *_, **__: seen.append(torch.get_num_threads()))
    before = torch.get_num_threads()
    wordsens("measure", "a b")
    wordsens("measure", "a b", "--threads", "2")
    assert seen == [1, 2]
    assert torch.get_num_threads() == before


def test_the_librarys_names_become_options():
    told = "`words` has 3; pass max_words=510, name the column with text_column, `X` is short, encoding='utf-16'"
    assert in_options(told, options_of(typer.main.get_command(app), ["measure"])) == (
        "--word has 3; pass --max-words 510, name the column with --text-column, the text is short, --encoding 'utf-16'"
    )


@pytest.mark.parametrize("typed", [["measure"], ["audit"], ["paper"], ["sweep", "run"], ["sweep", "export"]])
def test_every_option_of_a_command_is_named_as_it_is_typed(typed):
    command = typer.main.get_command(app)
    for word in typed:
        command = command.commands[word]
    options = options_of(typer.main.get_command(app), typed)
    for parameter in command.params:
        option = max(parameter.opts, key=len)
        known = option if option.startswith("--") else f"`{parameter.name}`"
        assert in_options(f"`{parameter.name}` (=-1) must be 0", options) == f"{known} (=-1) must be 0"


def test_a_count_that_is_none_is_reported_under_its_option(wordsens):
    run = wordsens("audit", "minilm", "--dataset", "shipped", "--layer-texts", "-1")
    assert run.code == 2
    assert run.err == "wordsens: --layer-texts (=-1) must be a whole number, at least 0\n"


def test_a_value_that_is_spelled_like_an_option_stays_as_it_is():
    options = options_of(typer.main.get_command(app), ["measure"])
    told = "`file` (='a/max_words/b'): there is no 'text_column'"
    assert in_options(told, options) == "--file (='a/max_words/b'): there is no 'text_column'"
