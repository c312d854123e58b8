"""Sweep files: includes, overrides, and mistakes with their line."""

import pytest

from wordsens.errors import InputError
from wordsens.experiments.grid.sweep import Sweep
from wordsens.experiments.grid.sweep_file import load_sweep, overridden, parse_sweep
from wordsens.experiments.sensitivity import preset as presets
from wordsens.experiments.sensitivity.preset import Part

YAML = """\
name: demo
seeds: 2
common: {d: 8, text: gaussian}
grids:
  - map: [rf, raf]
    zip: {n: [4, 6], words: [all, {sample: 2}]}
  - map: drf
    n: 5
    depth: [2, 3]
    text: {kind: reviews, layer: 0}
"""


def cells(*overrides):
    return parse_sweep(YAML, where="s.yaml", overrides=overrides).cells()


def test_seeds_zips_and_common_keys():
    found = [(cell.map, cell.n, cell.words.sample, cell.depth, cell.seed) for cell in cells()]
    assert found == [
        *((name, n, sample, 4, seed) for seed in (0, 1) for name in ("rf", "raf") for n, sample in ((4, None), (6, 2))),
        *(("drf", 5, None, depth, seed) for seed in (0, 1) for depth in (2, 3)),
    ]
    assert {cell.d for cell in cells()} == {8}


@pytest.mark.parametrize(
    ("override", "get", "expected"),
    [
        ("d=[8, 16]", lambda cell: cell.d, {8, 16}),
        ("seed=7", lambda cell: cell.seed, {7}),
        ("seeds=[3]", lambda cell: cell.seed, {3}),
        ("n=9", lambda cell: cell.n, {9}),
        ("grids.1.depth=7", lambda cell: cell.depth if cell.map == "drf" else None, {7, None}),
        ("depth=7", lambda cell: cell.depth if cell.map == "drf" else None, {7, None}),
        ("text.layer=3", lambda cell: getattr(cell.text, "layer", None), {3, None}),
        ("common.radius=0.5", lambda cell: cell.radius, {0.5}),
        ("tolerance=1e-3", lambda cell: cell.tolerance, {0.001}),
        ("grids.0.words=all", lambda cell: cell.words.sample, {None}),
    ],
)
def test_overrides(override, get, expected):
    if override == "text.layer=3":
        text = YAML.replace("common: {d: 8, text: gaussian}", "common: {d: 8}").replace("map: [rf, raf]", "map: rf")
        text = text.replace("  - map: rf\n", "  - map: rf\n    text: {kind: reviews}\n")
        found = parse_sweep(text, where="s.yaml", overrides=[override]).cells()
        assert {get(cell) for cell in found} == {3}
        return
    assert {get(cell) for cell in cells(override)} == expected


def test_an_override_frees_a_key_from_its_zip():
    assert sorted({(cell.n, cell.words.sample) for cell in cells("grids.0.n=9") if cell.map == "rf"}, key=str) == [
        (9, 2),
        (9, None),
    ]


def test_the_last_override_wins_and_the_name_can_change():
    sweep = parse_sweep(YAML, where="s.yaml", overrides=["name=other", "d=3", "d=4"])
    assert sweep.name == "other"
    assert {cell.d for cell in sweep.cells()} == {4}


def test_a_sweep_written_and_read_is_the_same(tmp_path):
    sweep = parse_sweep(YAML, where="s.yaml")
    sweep.save(tmp_path / "sweep.yaml")
    assert load_sweep(tmp_path / "sweep.yaml").cells() == sweep.cells()
    assert overridden(sweep, []).cells() == sweep.cells()


def test_files_and_presets_are_included(tmp_path, monkeypatch):
    monkeypatch.setitem(presets.SCALES, "quick", (Part(("raf",), (4, 6), (8,), 2, {"steps": 3}),))
    (tmp_path / "base.yaml").write_text(YAML)
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "more.yaml").write_text("include: ../base.yaml\nname: more\n")
    (tmp_path / "top.yaml").write_text(
        "include: [deep/more.yaml, paper-sensitivity-quick, {preset: paper-sensitivity, seed: 9}]\n"
        "name: top\n"
        "common: {radius: 0.5, map: raf, d: 4, text: gaussian}\n"
        "grids:\n"
        "  - n: 3\n"
        "override: {steps: 1}\n"
    )
    sweep = load_sweep(tmp_path / "top.yaml", overrides=["starts=2"])
    found = sweep.cells()
    assert sweep.name == "top"
    # The preset's grids have steps, the others none.
    assert {cell.steps for cell in found} == {1, None}
    assert {cell.starts for cell in found} == {2}
    assert {cell.seed for cell in found} == {0, 1, 9}
    # `common` is for the file's own grids.
    assert [(cell.n, cell.map) for cell in found if cell.radius == 0.5] == [(3, "raf")]
    assert len(found) == len(cells()) + 2 * 2 * 2 * 2 + 1
    assert (
        load_sweep(tmp_path / "top.yaml").to_yaml()
        == parse_sweep(load_sweep(tmp_path / "top.yaml").to_yaml(), where="again").to_yaml()
    )


@pytest.mark.parametrize(
    ("text", "overrides", "message"),
    [
        (YAML.replace("depth", "dpeth"), (), "s.yaml:9: `key` (='dpeth') must be one of map, n, d,"),
        (YAML.replace("depth", "dpeth"), (), "did you mean 'depth'?"),
        (YAML.replace("grids", "grid"), (), "s.yaml:4: `key` (='grid') must be one of name, kind,"),
        (YAML.replace("n: 5", "n: five"), (), "s.yaml:8: `n` (='five') must be a valid integer"),
        (YAML.replace("n: 5", "n: 1"), (), "s.yaml:8: `n` (=1) must be greater than or equal to 2"),
        (YAML.replace("n: 5", "n: []"), (), "s.yaml:8: `n` is an empty list"),
        (YAML.replace("[2, 3]", "\n      - 2\n      - 0"), (), "s.yaml:9: `depth` (=0) must be greater than"),
        (YAML.replace("d: 8,", "d: 0,"), (), "s.yaml:3: `d` (=0) must be greater than or equal to 1"),
        (YAML.replace("seeds: 2", "seeds: 0"), (), "s.yaml:2: `seeds"),
        (YAML.replace("layer: 0", "layr: 0"), (), "s.yaml:10: text.reviews: `key` (='layr')"),
        (YAML.replace("kind: reviews", "kind: review"), (), "s.yaml:10: text: `kind` (='review') must be one of"),
        (YAML.replace("map: drf", "map: raf"), (), "s.yaml:9: `depth` (=2) is not an option of the map 'raf'"),
        (YAML.replace("n: [4, 6]", "n: [4]"), (), "s.yaml:6: `zip` needs lists of one length, but n has 1"),
        (YAML.replace("zip: {n", "zip: {nn"), (), "s.yaml:6: `key` (='nn') must be one of"),
        (YAML.replace("map: [rf, raf]", "n: 3"), (), "s.yaml:6: `n` is given twice in this grid"),
        (YAML + "kind: sensitivty\n", (), "s.yaml:11: kind: `kind` (='sensitivty') must be one of sensitivity,"),
        (YAML + "kind: generalization\n", (), "s.yaml:6: `key` (='words') must be one of map, n, d, texts"),
        ("name: a\ngrids: []\n", (), "s.yaml:2: `grids` (=[])"),
        ("name: a\ngrids: 5\n", (), "s.yaml:2: `grids` (=5)"),
        ("name: a\ngrids: [5]\n", (), "s.yaml:2: `grids.0` (=5) must be a valid dictionary"),
        ("grids: [{n: 4}]\n", (), "s.yaml:1: `name` is missing"),
        ("", (), "s.yaml: a sweep is a mapping with the keys name, kind,"),
        (YAML, ("dpeth=3",), "override dpeth=3: `key` (='dpeth') must be one of"),
        (YAML, ("n",), "`override` (='n') must be key=value, for example n=[10, 20]"),
        (YAML, ("n=[",), "override n=[:1: not valid YAML"),
        (YAML, ("n=1",), "override n=1: `n` (=1) must be greater than or equal to 2"),
        (YAML, ("grids.7.n=4",), "override grids.7.n=4: there is no grid 7; the grids are 0 to 1"),
        (YAML, ("d.x=4",), "override d.x=4: `d` (=8) has no parts; set it as a whole"),
        ("include: papr-sensitivity-quick\n", (), "s.yaml:1: `include` (='papr-sensitivity-quick') must be one of"),
        ("include: none.yaml\n", (), "s.yaml:1: `path` (='none.yaml') cannot be read"),
        ("include: {preset: dry-run}\n", (), "s.yaml:1: `preset` (='dry-run') must be one of paper-sensitivity"),
        ("include: {scale: quick}\n", (), "names no preset; give one of paper-sensitivity"),
        ("include: {presett: a}\n", (), "did you mean 'preset'?"),
        ("include: 5\n", (), "s.yaml:1: `include` (=5) must be a name, a file, or a mapping"),
        ("include: dry-run\ncommon: {work: 1}\n", (), "s.yaml:2: `common` is for the grids of this file"),
        ("include: dry-run\nkind: sensitivity\n", (), "cells of several kinds (dry-run, sensitivity)"),
        ("include: dry-run\noverride: 5\n", (), "s.yaml:2: `override` (=5) must map keys to values"),
        ("include: dry-run\noverride:\n  wrk: 5\n", (), "s.yaml:3: `key` (='wrk') must be one of draw,"),
    ],
)
def test_a_mistake_is_one_line_with_its_line(text, overrides, message):
    with pytest.raises(InputError) as caught:
        parse_sweep(text, where="s.yaml", overrides=overrides).cells()
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_files_that_include_each_other(tmp_path):
    (tmp_path / "a.yaml").write_text("include: b.yaml")
    (tmp_path / "b.yaml").write_text("include: a.yaml")
    with pytest.raises(InputError, match="files include each other; break the ring"):
        load_sweep(tmp_path / "a.yaml")


def test_a_mistake_in_an_included_file_names_that_file(tmp_path):
    (tmp_path / "base.yaml").write_text(YAML.replace("n: 5", "n: 1"))
    (tmp_path / "top.yaml").write_text("include: base.yaml\n")
    with pytest.raises(InputError) as caught:
        load_sweep(tmp_path / "top.yaml").cells()
    assert str(caught.value).startswith(f"{tmp_path / 'base.yaml'}:8: `n` (=1)")


def test_a_sweep_made_in_python_names_its_grid():
    sweep = Sweep.parse({"name": "a", "kind": "dry-run", "grids": [{"draw": -1}]})
    with pytest.raises(InputError, match=r"^a: grids.0: `draw` \(=-1\) must be greater"):
        sweep.cells()
