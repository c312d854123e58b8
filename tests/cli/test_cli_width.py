"""Help on a screen of 80 columns: sentences wrap between words, and no word is broken."""

import itertools
import re

import pytest
import typer

from wordsens.cli.command import FURTHER
from wordsens.cli.commands import app

COMMANDS = typer.main.get_command(app).commands
LED = ("calibrate", "check", "compare", "explain", "guard", "measure", "paper", "tune")


@pytest.fixture(autouse=True)
def screen(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERMINAL_WIDTH", "80")


def words_of(text):
    """What stands between blanks, without the frames of panels."""
    return set(re.sub("[\u2500-\u257f]", " ", text).split())


@pytest.mark.parametrize("command", sorted(set(COMMANDS) - {"sweep"}))
def test_help_breaks_no_word_and_fills_its_lines(wordsens, command):
    printed = wordsens(command, "--help").out
    known = " ".join(
        [COMMANDS[command].help, *(parameter.help or "" for parameter in COMMANDS[command].params)]
    )
    assert {word for word in known.split() if len(word) < 40} <= words_of(printed)
    # A line of prose ends where the next word does not fit, or with its paragraph.
    prose = printed.partition("\u256d")[0].splitlines()
    for line, following in itertools.pairwise(prose):
        if line.strip() and following.strip() and "Usage" not in line:
            assert len(line.rstrip()) + 1 + len(following.split()[0]) > 79, line


@pytest.mark.parametrize("command", LED)
def test_help_leads_with_five_options(wordsens, command):
    panels = re.split("\u256d\u2500 (.*?) \u2500+\u256e", wordsens(command, "--help").out)
    titles, contents = panels[1::2], panels[2::2]
    leading = set(re.findall(r"\u2502 (--[a-z-]+)", contents[titles.index("Options")])) - {"--help"}
    assert (len(leading), titles[-1]) == (5, FURTHER)
