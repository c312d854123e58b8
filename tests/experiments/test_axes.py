"""Axes: every combination, zips that move together, ranges, and mistakes with their place."""

import pytest

from wordsens.errors import InputError
from wordsens.experiments.grid.axes import combinations


def here(path):
    return "/".join(map(str, path)) or "grid"


def test_a_list_is_an_axis_and_a_value_is_not():
    found = list(combinations({"n": [4, 6], "map": "rf", "words": {"indices": [0]}}, here))
    assert found == [{"n": n, "map": "rf", "words": {"indices": [0]}} for n in (4, 6)]


def test_a_range_includes_its_last_value():
    assert [one["n"] for one in combinations({"n": {"range": [2, 8, 3]}}, here)] == [2, 5, 8]
    assert [one["n"] for one in combinations({"n": {"range": [2, 4]}}, here)] == [2, 3, 4]


def test_zipped_keys_move_together_beside_other_axes():
    grid = {"zip": [{"n": [1, 2], "d": [3, 4]}, {"a": {"range": [0, 1]}, "b": [5, 6]}], "seed": [7, 8]}
    found = [tuple(one[key] for key in ("n", "d", "a", "b", "seed")) for one in combinations(grid, here)]
    assert found == [(n, d, a, b, s) for n, d in ((1, 3), (2, 4)) for a, b in ((0, 5), (1, 6)) for s in (7, 8)]


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        ({"n": []}, "n: `n` is an empty list; give it at least one value"),
        ({"zip": {"n": [1, 2], "d": [1]}}, "zip: `zip` needs lists of one length, but n has 2, d has 1"),
        ({"zip": [{"n": [1]}, 5]}, "zip/1: `zip` (=5) must map keys to lists of one length"),
        ({"zip": {"n": []}}, "zip/n: `n` is an empty list"),
        ({"n": {"range": [5, 2]}}, "n: `n` has the range [5, 2]; give whole numbers [first, last]"),
        ({"n": {"range": 5}}, "n: `n` has the range 5"),
        ({"n": {"range": [0, 1, 0]}}, "step >= 1"),
        ({"n": {"range": [0, 1.5]}}, "give whole numbers"),
        ({"n": {"range": [0, 10**7]}}, "n: `n` has the range [0, 10000000]; at most 200,000 values"),
        ({"n": {"range": [0, 10**4000]}}, "n: `n` has the range [0, 1000"),
        ({"zip": {"n": {"range": [0, 10**4000]}}}, "at most 200,000 values"),
        ({chr(0x100 + at): [0, 1] for at in range(200)}, "grid: more than 10^30 cells; at most 200,000"),
        ({name: list(range(200)) for name in "abc"}, "grid: 8,000,000 cells; at most 200,000"),
    ],
)
def test_mistakes(grid, message):
    with pytest.raises(InputError) as caught:
        list(combinations(grid, here))
    assert message in str(caught.value)
