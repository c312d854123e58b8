"""Running the command line inside the test's own process."""

import re
from pathlib import Path
from typing import NamedTuple

import pytest

from wordsens.cli import main


@pytest.fixture(autouse=True)
def _cheap(short_searches):
    """How good a search is belongs to other tests."""


class Run(NamedTuple):
    """How a run ended, and what it wrote."""

    code: int
    out: str
    err: str


@pytest.fixture
def wordsens(capsys, monkeypatch):
    """A function that runs `wordsens` with its arguments, on a screen of 100 columns."""
    monkeypatch.setenv("COLUMNS", "100")

    def run(*arguments: str) -> Run:
        capsys.readouterr()
        code = main(arguments)
        captured = capsys.readouterr()
        return Run(code, captured.out, captured.err)

    return run


@pytest.fixture
def documented():
    """A function that gives the names which the table under a heading of docs/json.md lists."""

    def names(heading: str) -> list[str]:
        text = (Path(__file__).parents[2] / "docs" / "json.md").read_text(encoding="utf-8")
        section = text.split(f"## {heading}\n")[1].split("\n#")[0]
        first = ["command", "version"] if heading.startswith("The document of") else []
        rows = re.findall(r"^\| ((?:`\w+` )+)\|", section, flags=re.MULTILINE)
        return first + re.findall(r"\w+", " ".join(rows))

    return names
