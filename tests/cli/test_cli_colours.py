"""Words are coloured where a terminal shows colours, and plain in a pipe and with NO_COLOR."""

import re

import pytest

from wordsens.cli.check import print_near_misses
from wordsens.cli.terminal import print_display
from wordsens.display.content import Display
from wordsens.evaluation.audit.summary import AuditSummary, Reaction
from wordsens.findings.audit import reactions
from wordsens.text.pairs import Pair

COLOUR = re.compile(r"\x1b\[[0-9;]*48;")


@pytest.fixture
def terminal(monkeypatch):
    """A stdout that shows colours, as rich takes it."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLORTERM", "truecolor")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)


def audited():
    reaction = Reaction(word="really", ratio=2.0, low=1.5, high=2.5, texts=9, count=9)
    return AuditSummary(3, 9, (), 5, 9, (reaction,), (reaction,), {})


def print_words():
    print_display(Display((), (reactions("Reacts to", audited().overreacts, audited()),)))


def print_pairs():
    print_near_misses([Pair(kind="switch", first="turn it on", second="turn it off", same=False)])


def plain(text):
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


@pytest.mark.parametrize("shown", [print_words, print_pairs])
def test_words_of_audits_and_checks(shown, capsys, monkeypatch, terminal):
    shown()
    coloured = capsys.readouterr().out
    assert COLOUR.search(coloured)
    monkeypatch.setenv("NO_COLOR", "1")
    shown()
    assert not COLOUR.search(capsys.readouterr().out)
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name)
    shown()
    assert capsys.readouterr().out == plain(coloured)
