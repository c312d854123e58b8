"""Specs that would fill the memory, or run for hours before a word: one line, and at once."""

import time

import pytest

from wordsens.errors import InputError
from wordsens.experiments.spec import load_sweep, parse_sweep
from wordsens.files import MOST_BYTES

SQUARES = "name: a\nexperiment: tests.experiments.squares:SQUARES\n"


def refusal(call, seconds=2.0):
    begin = time.process_time()
    with pytest.raises(InputError) as caught:
        call()
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) < 2000
    assert time.process_time() - begin < seconds
    return message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"{SQUARES}grids: [{{draw: 1{'0' * 30}}}]", "`draw` (=1000000000000000000000000000000) must be a whole"),
        (f"{SQUARES}grids: [{{draw: 1{'0' * 5000}}}]", "s.yaml: Exceeds the limit"),
        (f"{SQUARES}grids: [{{draw: 2024-13-45}}]", "s.yaml: month must be in 1..12; put strings into quotes"),
        (f"{SQUARES}grids: [{{draw: &a [1, 2], seed: *a}}]", "aliases (*name) are not read"),
        (f"{SQUARES}grids: {'[' * 5000}", "s.yaml: nested too deeply"),
        (
            f"{SQUARES}grids: [{{draw: [{'1, ' * 1000}], seed: [{'1, ' * 1000}]}}]",
            "a: 1,000,000 cells, at most 200,000; take fewer values an axis",
        ),
        (SQUARES + "grids:\n" + "- {draw: 0}\n" * 1001, "`grids`"),
        (
            "name: a\ngrids: [{map: rf, n: 1000000000, d: 4, text: orthogonal}]",
            "`n` times `d` (=1000000000 times 4) must be at most 134,217,728",
        ),
        (
            "name: a\ngrids: [{map: drf, n: 4, d: 4, text: orthogonal, depth: 1000000000}]",
            "`depth` (=1000000000) must be at most 10,000",
        ),
    ],
)
def test_a_spec_that_is_too_much(text, message):
    parse_sweep(f"{SQUARES}grids: [{{draw: 0}}]").cells()
    assert message in refusal(lambda: parse_sweep(text, where="s.yaml").cells(), 5.0)


def test_a_file_that_is_too_long(tmp_path):
    path = tmp_path / "a.yaml"
    path.write_text(f"{SQUARES}grids: [{{draw: 0}}]\n{'#' * MOST_BYTES}\n", encoding="utf-8")
    assert f"has more than {MOST_BYTES:,} bytes" in refusal(lambda: load_sweep(path))


@pytest.mark.parametrize("override", ["draw=D: name: " + "x" * 5000, "y" * 5000])
def test_a_long_override_is_not_repeated_whole(override):
    message = refusal(lambda: parse_sweep(f"{SQUARES}grids: [{{draw: [0]}}]\n", [override]))
    assert "..." in message
    assert len(message) < 500
