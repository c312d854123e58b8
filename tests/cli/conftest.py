"""Running the command line inside the test's own process."""

import json
from pathlib import Path
from typing import NamedTuple

import pytest
from jsonschema import Draft202012Validator

from wordsens.cli import main


@pytest.fixture(autouse=True)
def _cheap(short_searches):
    """How good a search is belongs to other tests."""


class Run(NamedTuple):
    """How a run ended, and what it wrote."""

    code: int
    out: str
    err: str


@pytest.fixture(scope="session")
def validator():
    """Checks what the commands print with `--json` against the schema."""
    schema = Path(__file__).parents[2] / "docs" / "json.schema.json"
    return Draft202012Validator(json.loads(schema.read_text(encoding="utf-8")))


@pytest.fixture
def wordsens(capsys, monkeypatch, validator):
    """A function that runs `wordsens` with its arguments, on a screen of 100 columns.

    Whatever it prints with `--json` is as the schema says.
    """
    monkeypatch.setenv("COLUMNS", "100")

    def run(*arguments: str) -> Run:
        capsys.readouterr()
        code = main(arguments)
        captured = capsys.readouterr()
        for line in captured.out.splitlines() if "--json" in arguments else ():
            validator.validate(json.loads(line))
        return Run(code, captured.out, captured.err)

    return run
