"""The numbers of the documentation: what is old is named, and a page shows what its command
printed."""

from dataclasses import replace

import pytest

from benchmarks import numbers
from benchmarks.numbers import NUMBERS, Stamp, renew, stamps, why_old, without_number, write_stamps

ROOT = numbers.ROOT


def test_every_number_has_its_code_its_places_and_a_row():
    rows = stamps()
    assert {number.name for number in NUMBERS} <= set(rows)
    for number in NUMBERS:
        assert len(number.digest()) == 12
        assert all((ROOT / place).is_file() for place in number.shown), number.shown
    assert not list(without_number())


def test_a_number_is_old_when_its_code_is_another():
    number = NUMBERS[0]
    today = Stamp("abc1234", "2026-01-01", "a processor", number.digest())
    assert why_old(number, today) == ""
    assert "never" in why_old(number, None)
    assert "abc1234" in why_old(number, replace(today, code="0" * 12))
    assert number.digest() != replace(number, code=("README.md",)).digest()
    assert number.digest() != replace(number, data=()).digest()


def test_the_file_gives_back_what_was_written(tmp_path, monkeypatch):
    monkeypatch.setattr(numbers, "STAMPS", tmp_path / "numbers.json")
    stamp = Stamp("abc1234", "2026-01-01", "a processor, Python 3.11.7", "0123456789ab")
    write_stamps({NUMBERS[0].name: stamp, "a number of earlier": stamp})
    assert stamps() == {NUMBERS[0].name: stamp}


@pytest.mark.parametrize(
    ("shown", "right"),
    [
        ("S = 0.8\nS = 0.9", True),
        ("S = 0.8\n...", True),
        ("S   = 0.8\nS = 0.9", True),
        ("S = 0.8", False),
    ],
)
def test_a_console_block_shows_what_was_printed(tmp_path, monkeypatch, shown, right):
    monkeypatch.setattr(numbers, "ROOT", tmp_path)
    page = tmp_path / "page.md"
    page.write_text(f"Words.\n\n```console\n$ {NUMBERS[0].command}\n{shown}\n```\n")
    before = page.read_text()
    assert (not list(renew(page, NUMBERS[0], "S = 0.8\nS = 0.9\n", tmp_path))) == right
    assert page.read_text() == before


def test_a_measured_block_is_replaced(tmp_path, monkeypatch):
    monkeypatch.setattr(numbers, "ROOT", tmp_path)
    page = tmp_path / "page.md"
    other = "<!-- measured: another -->\nstays\n<!-- end of measured -->\n"
    page.write_text(
        f"A.\n<!-- measured: {NUMBERS[0].command} -->\nold\n<!-- end of measured -->\nB.\n{other}"
    )
    printed = "Title\n=====\ncommand x\n\n| a |\n| - |\n| \\1 |\n"
    assert not list(renew(page, NUMBERS[0], printed, tmp_path))
    text = page.read_text()
    assert "old" not in text
    assert "command x" in text
    assert "| \\1 |" in text
    assert text.endswith(f"B.\n{other}")
