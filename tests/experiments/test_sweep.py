"""Sweeps: grids to cells, YAML there and back, and mistakes in one line."""

import pytest

from wordsens.errors import InputError
from wordsens.experiments.grid.sweep import Sweep
from wordsens.experiments.grid.sweep_file import load_sweep, parse_sweep

YAML = """
name: demo
common: {d: 8, text: gaussian, seed: 3}
grids:
  - {map: [rf, drf], n: [4, 6], draw: [0, 1]}
  - {map: raf, n: 5, text: [gaussian, {kind: correlated, mean_cosine: 0.5}]}
"""


def test_every_combination_is_a_cell_draw_after_draw():
    cells = parse_sweep(YAML, where="s.yaml").cells()
    assert [(cell.map, cell.n, cell.draw) for cell in cells] == [
        ("rf", 4, 0),
        ("rf", 6, 0),
        ("drf", 4, 0),
        ("drf", 6, 0),
        ("raf", 5, 0),
        ("raf", 5, 0),
        ("rf", 4, 1),
        ("rf", 6, 1),
        ("drf", 4, 1),
        ("drf", 6, 1),
    ]
    assert {cell.seed for cell in cells} == {3}
    assert len({cell.content_hash() for cell in cells}) == len(cells)


def test_equal_cells_are_measured_once():
    twice = Sweep.parse(
        {"name": "a", "common": {"map": "raf", "d": 8, "text": "gaussian"}, "grids": [{"n": [4, 4]}, {"n": 4}]}
    )
    assert len(twice.cells()) == 1


def test_a_sweep_survives_a_file(tmp_path):
    sweep = parse_sweep(YAML, where="s.yaml")
    sweep.save(tmp_path / "sweep.yaml")
    assert load_sweep(tmp_path / "sweep.yaml").cells() == sweep.cells()


@pytest.mark.parametrize(
    ("yaml", "message"),
    [
        (
            "name: a\ngrid: []",
            "s.yaml:2: `key` (='grid') must be one of name, kind, seeds, common, grids, include, override",
        ),
        ("name: a\ngrids: []", "s.yaml:2: `grids` (=[])"),
        ("name: a", "s.yaml:1: `grids` is missing"),
        ("- a", "s.yaml: a sweep is a mapping with the keys name, kind, seeds,"),
        ("name: [", "s.yaml:1: not valid YAML"),
    ],
)
def test_a_file_that_is_no_sweep(yaml, message):
    with pytest.raises(InputError) as caught:
        parse_sweep(yaml, where="s.yaml")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        ({"n": []}, "a: grids.0: `n` is an empty list; give it at least one value"),
        ({"n": 4, "dpeth": 2}, "a: grids.0: `key` (='dpeth') must be one of map, n, d,"),
        ({"n": [4, 1]}, "a: grids.0: `n` (=1) must be greater than or equal to 2"),
        ({"n": 4, "depth": 2}, "a: grids.0: `depth` (=2) is not an option of the map 'raf'"),
    ],
)
def test_a_grid_with_a_mistake(grid, message):
    sweep = Sweep.parse({"name": "a", "common": {"map": "raf", "d": 8, "text": "gaussian"}, "grids": [grid]})
    with pytest.raises(InputError) as caught:
        sweep.cells()
    assert message in str(caught.value)


def test_a_file_that_is_not_there_or_not_text(tmp_path):
    with pytest.raises(InputError, match="cannot be read as a text file"):
        load_sweep(tmp_path / "none.yaml")
    (tmp_path / "bytes.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="cannot be read as a text file"):
        load_sweep(tmp_path / "bytes.yaml")


@pytest.mark.parametrize("name", ["..", ".", "...", " ", ". .", "a/b", "../up", "a\\b", "line\nbreak", "bell\a", "\0"])
def test_a_name_that_is_no_folder_of_its_own_is_refused(name):
    with pytest.raises(InputError) as caught:
        Sweep.parse({"name": name, "kind": "dry-run", "grids": [{"draw": 0}]})
    assert "becomes a folder" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["paper-sensitivity-quick", "a b", "v1.2", "a+b", "größe", ".hidden"])
def test_other_names_stay_as_they_are(name):
    assert Sweep.parse({"name": name, "kind": "dry-run", "grids": [{"draw": 0}]}).name == name
