"""YAML with lines: what is read, what is refused, and where it is said to stand."""

import pytest

from wordsens.errors import InputError
from wordsens.experiments.grid.yaml_text import MOST_VALUES, read_yaml

TEXT = """\
name: a
common: &usual
  d: 8
  tolerance: 1e-3
grids:
  - map: rf
    n:
      - 4
      - 6
  - <<: *usual
    day: 2026-01-01
    none:
"""


def test_data_and_lines():
    placed = read_yaml(TEXT, where="s.yaml")
    assert placed.data == {
        "name": "a",
        "common": {"d": 8, "tolerance": 0.001},
        "grids": [{"map": "rf", "n": [4, 6]}, {"d": 8, "tolerance": 0.001, "day": "2026-01-01", "none": None}],
    }
    lines = {
        ("name",): 1,
        ("common",): 2,
        ("common", "tolerance"): 4,
        ("grids", 0): 6,
        ("grids", 0, "n"): 7,
        ("grids", 0, "n", 1): 9,
        ("grids", 0, "n", 1, "deeper"): 9,
        ("grids", 1, "none"): 12,
        ("grids", 7): 5,
    }
    for path, line in lines.items():
        assert placed.at(path) == f"s.yaml:{line}", path
    assert placed.at(()) == "s.yaml:1"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\nb: 2\na: 3", "s.yaml:3: the key 'a' stands twice (first on line 1); keep one"),
        ("a:\n  - [", "s.yaml:2: not valid YAML:"),
        ("a: 1\n  b: 2", "s.yaml:2: not valid YAML: mapping values are not allowed"),
        ("1: a", "s.yaml:1: a key (=1) must be a word"),
        ("a: &x [*x]", "s.yaml:1: an alias stands inside its own anchor"),
        ("a: !!python/object:os.system {}", "s.yaml:1: not valid YAML"),
        ("a: \x00", "s.yaml: not valid YAML"),
        ("[" * 5000, "s.yaml: not a spec: it is nested too deeply"),
    ],
)
def test_what_is_refused(text, message):
    with pytest.raises(InputError) as caught:
        read_yaml(text, where="s.yaml")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_aliases_that_unfold_without_end_are_refused():
    layers = ["a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    layers += [f"a{at}: &a{at} [{', '.join([f'*a{at - 1}'] * 10)}]" for at in range(1, 7)]
    with pytest.raises(InputError, match=f"more than {MOST_VALUES:,} values"):
        read_yaml("\n".join(layers), where="s.yaml")


def test_nothing_is_nothing():
    assert read_yaml("", where="s.yaml").data is None
