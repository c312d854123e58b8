"""Help and tables on a screen of 80 columns: sentences wrap between words, and no word or number is
broken."""

import itertools
import re

import pytest
import typer

from wordsens.cli.app import app
from wordsens.cli.columns import columns_on_screen
from wordsens.cli.options import FURTHER
from wordsens.cli.terminal import print_display
from wordsens.display.content import Display, Shade, Table, Words

COMMANDS = typer.main.get_command(app).commands
LED = ("calibrate", "check", "compare", "explain", "flips", "guard", "measure", "paper", "tune")


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


def test_a_wide_table_goes_on_below_with_every_word_and_number_whole(capsys):
    headings = ("", "word", *(f"{name} of long standing" for name in "abcdefg"), "reads")
    rows = tuple(
        (row, "internationalization", *(f"1.{row}2 securities",) * 7, "and so on, to the end")
        for row in range(3)
    )
    print_display(Display((), (Table("", headings, rows),)))
    printed = capsys.readouterr().out
    assert max(map(len, printed.splitlines())) <= 80
    assert printed.count("internationalization") > 3
    assert printed.count("1.12 securities") == 7
    assert {word for heading in headings for word in heading.split()} <= set(printed.split())


def test_a_column_gets_no_less_than_its_longest_word_where_the_screen_allows():
    columns = [
        ["word", "subscription"],
        ["change", "0.25", "-0.125"],
        ["for example", "a b c " * 20],
        ["with", "membership"],
    ]
    for width in (30, 40, 80, 200):
        for part in columns_on_screen(columns, [False, True, False, False], screen=width, gap=1):
            assert sum(part.values()) + len(part) - 1 <= width
            assert next(iter(part)) == 0
            for place, wide in part.items():
                assert wide >= max(map(len, " ".join(columns[place]).split()))


def test_colours_are_not_spoken_of_where_there_are_none(capsys, monkeypatch):
    text = Display((), (Words("", ("a ", Shade("b", 3, "")), ("0", "1", "change")),))
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    print_display(text)
    assert "Colours" not in capsys.readouterr().out
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    print_display(text)
    assert "Colours" in capsys.readouterr().out
