"""Cells and sweeps: what they spell out, what names them, and one line for each mistake."""

import json

import numpy as np
import pytest
import torch

import wordsens as ws
from tests.made_records import CELLS
from tests.maps.tiny_models import save_tiny
from wordsens.errors import InputError
from wordsens.sweeps import STUDIES
from wordsens.sweeps.measurement import SensitivityCell
from wordsens.sweeps.sweep import Sweep, load_sweep, paper_sweep, parse_sweep, study_named
from wordsens.sweeps.texts import (
    CorrelatedText,
    DatasetText,
    IndependentText,
    ShippedText,
    load_text,
    texts_at_least,
)

RAF = {"map": "raf", "n": 4, "d": 6, "text": "gaussian"}
RF = {**RAF, "map": "rf"}
GRIDS = """name: two
common: {text: gaussian, d: 6}
grids:
- {map: [raf, relu-raf], n: [4, 8]}
- {map: rf, n: 5, width: 9}
"""


def cell(keys=RAF, **changes):
    return SensitivityCell.parse({**keys, **changes})


def key(keys=RAF, **changes):
    return cell(keys, **changes).key()


def test_lists_are_axes_and_draws_come_one_after_the_other():
    sweep = parse_sweep(
        "name: a\ngrids: [{map: raf, text: gaussian, n: [4, 6], d: 8, draw: [0, 1]}]"
    )
    assert [(one.draw, one.n) for one in sweep.cells()] == [(0, 4), (0, 6), (1, 4), (1, 6)]
    assert len(parse_sweep(GRIDS).cells()) == 5
    assert parse_sweep(parse_sweep(GRIDS).to_yaml()).cells() == parse_sweep(GRIDS).cells()


@pytest.mark.parametrize(
    ("override", "seen"),
    [
        (
            "n=[10, 20]",
            {("raf", 10), ("raf", 20), ("relu-raf", 10), ("relu-raf", 20), ("rf", 10), ("rf", 20)},
        ),
        ("map=raf", {("raf", 4), ("raf", 8)}),
        ("map=[rf, raf]", {("raf", 4), ("raf", 8), ("rf", 5)}),
    ],
)
def test_overrides_do_what_one_would_guess(override, seen):
    cells = parse_sweep(GRIDS, [override]).cells()
    assert {(one.map, one.n) for one in cells} == seen
    assert {one.d for one in cells} == {6}


@pytest.mark.parametrize(
    ("text", "overrides", "message"),
    [
        (GRIDS.replace("width", "widht"), [], "two, grid 1: `key` (='widht') must be one of"),
        (GRIDS.replace("n: 5", "n: []"), [], "`n` is an empty list"),
        (
            GRIDS.replace("n: 5", "n: five"),
            [],
            "two, grid 1: `n` (='five') must be a valid integer",
        ),
        (
            GRIDS.replace("n: 5", "temperature: 2.0, n: 5"),
            [],
            "`temperature` (=2.0) is not an option of the map 'rf'",
        ),
        (GRIDS.replace("two", "a/b"), [], "becomes a folder"),
        (GRIDS + "experiment: sensitvity\n", [], "did you mean 'sensitivity'?"),
        ("- a\n- b\n", [], "a sweep is a mapping with the keys name, experiment"),
        ("name: [", [], "a.yaml, line 1: not valid YAML"),
        (GRIDS.replace("n: 5", "n: !!int five"), [], "a.yaml: not valid YAML"),
        ("a: " + "[" * 5000, [], "a.yaml"),
        (GRIDS.replace("n: 5", "n: 5, n: 6"), [], "a.yaml, line 5: not valid YAML: the key 'n' is"),
        (GRIDS + "common: {d: 8}\n", [], "line 6: not valid YAML: the key 'common' is given twice"),
        (GRIDS.replace("n: 5", "text: {kind: x, kind: y}"), [], "the key 'kind' is given twice"),
        (GRIDS, ["text={kind: x, kind: y}"], "the key 'kind' is given twice"),
        (
            GRIDS.replace("n: 5", "n: &a 5, d: *a"),
            [],
            "a.yaml, line 5: not valid YAML: aliases (*name) are not read",
        ),
        (GRIDS, ["nn=3"], "`override` (='nn') must be one of name, device"),
        (GRIDS, [f"seed={2**63}"], "must be a whole number of 64 bits"),
        (GRIDS, [f"draw={list(range(100_000))}"], "500,000 cells, at most 200,000"),
    ],
)
def test_a_mistake_is_one_line_with_the_key_and_the_rule(tmp_path, text, overrides, message):
    (tmp_path / "a.yaml").write_text(text)
    with pytest.raises(InputError) as error:
        load_sweep(tmp_path / "a.yaml", overrides).cells()
    assert message in str(error.value)
    assert "\n" not in str(error.value) and len(str(error.value)) < 1000


def test_a_grid_too_large_to_be_meant_is_refused_before_a_cell_is_built(monkeypatch):
    grids = [
        {**RAF, "n": list(range(2, 2000)), "d": list(range(2, 2000)), "draw": list(range(2000))}
    ]
    monkeypatch.setattr(SensitivityCell, "parse", None)
    with pytest.raises(InputError, match="7,984,008,000 cells"):
        Sweep.parse({"name": "a", "grids": grids}).cells()


@pytest.mark.parametrize("name", STUDIES)
def test_small_cells_are_named_by_what_can_change_them(name):
    kind = study_named(name).Cell
    one = kind.parse(CELLS[name])
    assert one.key() == kind.parse(CELLS[name]).key() != one.key("another version")
    gpus = [kind.parse({**CELLS[name], "device": device}) for device in ("cuda", "cuda:1")]
    assert gpus[0].key() == gpus[1].key() != one.key()
    json.dumps(one.spec())


def test_the_name_is_of_what_the_map_reads():
    for usual in ({"activation": "relu"}, {"text": {"kind": "gaussian"}}, {"words": "all"}):
        assert key(RF) == key(RF, **usual)
    assert key(RF) == key(RF, radius=None)
    assert key(RF, radius=2) == key(RF, radius=2.0)
    assert set(cell().spec()).isdisjoint({"depth", "width", "activation", "gaussian", "model"})
    others = ({}, {"seed": 1}, {"draw": 1}, {"words": {"sample": 2}}, {"steps": 3})
    assert len({key(RF, **keys) for keys in others}) == 5


def test_real_texts_are_known_by_their_content(tmp_path):
    for folder, text in (("a", "good film"), ("b", "good film"), ("c", "bad film")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "one.txt").write_text(text)
    a, b, c = (
        key(text={"kind": "dataset", "path": str(tmp_path / name / "one.txt")}) for name in "abc"
    )
    assert a == b != c

    def given(content, **keys):
        return key(text={"kind": "given", "content": content, **keys})

    assert (
        given("a film")
        == given("a film", source="my.txt", label=1)
        == given("a film", encoder="minilm")
    )
    assert len({given("a film"), given("A film"), given("a film", layer=1)}) == 3


def test_models_are_known_by_their_files(tmp_path):
    for folder in ("a", "b", "c"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "config.json").write_text("other" if folder == "c" else "{}")

    def of(folder, **keys):
        return cell(
            {"map": "model", "model": str(tmp_path / folder), "n": 4, "d": 8, "text": "reviews"},
            **keys,
        )

    assert of("a").key() == of("b").key() != of("c").key()
    assert not {"encoder", "layer", "keep_special_tokens"} & set(of("a").spec()["text"])
    with pytest.raises(InputError, match="`layer` is not for the map 'model'"):
        of("a", text={"kind": "reviews", "layer": 2})


def test_encoders_are_known_by_their_files(tmp_path):
    def of(content, *, own=False):
        (tmp_path / "config.json").write_text(content)
        text = {"kind": "reviews"} | ({} if own else {"encoder": str(tmp_path)})
        maps = {"map": "model", "model": str(tmp_path)} if own else {}
        return cell({**RAF, **maps}, text=text)

    first, second = of("{}").key(), of("other").key()
    assert first != second and first == of("{}").key()
    assert "encoder_content" not in of("{}", own=True).spec()["text"]


def test_another_model_saved_into_the_folder_is_measured(tmp_path):
    """What a record holds is what a new store and the model itself give: S of the files as they
    are."""
    model, texts = tmp_path / "model", tmp_path / "texts.csv"
    texts.write_text("text\nthe film was very good and not bad\n")
    text = {"kind": "dataset", "path": str(texts), "encoder": str(model)}
    spec = {"name": "s", "grids": [{"map": "raf", "n": 4, "d": 16, "steps": 2, "text": text}]}
    values = []
    for number, spread in enumerate((0.3, 0.6)):
        save_tiny(model, initializer_range=spread)
        values.append(ws.run_sweep(spec, tmp_path / "out")["value"].iloc[-1])
        assert values[-1] == ws.run_sweep(spec, tmp_path / f"new{number}")["value"].item()
    assert values[0] != values[1]
    texts.write_text("text\nthe film was short and not bad\n")
    assert ws.run_sweep(spec, tmp_path / "out")["value"].iloc[-1] not in values


@pytest.mark.parametrize(
    "spelled", ["1e-5", "1E5", "1e+1", "-2e3", ".5", "5.", "1.5e-3", "12", "-0"]
)
def test_numbers_of_a_spec_are_those_of_python(spelled):
    spec = parse_sweep(f"name: a\ngrids: [{{n: {spelled}, d: [{spelled}]}}]")
    assert spec.grids[0] == {"n": float(spelled), "d": [float(spelled)]}
    assert parse_sweep(spec.to_yaml()) == spec
    named = parse_sweep(f"name: 'a{spelled}'\ngrids: [{{n: '{spelled}'}}]")
    assert named.grids[0]["n"] == spelled
    assert parse_sweep(named.to_yaml()) == named


def test_dates_are_texts():
    sweep = parse_sweep("name: 2020-01-01\ngrids: [{n: 4}]")
    assert sweep.name == "2020-01-01" and parse_sweep(sweep.to_yaml()) == sweep


def test_words_are_chosen_in_one_way():
    with pytest.raises(InputError, match="give sample or indices"):
        cell(words={"sample": 2, "indices": [0]})


@pytest.mark.parametrize("spelled", ["010", "1_0", "0x10", "1:20", "0o10"])
def test_numbers_that_readers_of_yaml_take_differently_are_refused(spelled):
    with pytest.raises(InputError, match=f"`n` .='{spelled}'. must be a valid integer"):
        parse_sweep(f"name: a\ngrids: [{{map: raf, text: gaussian, d: 8, n: {spelled}}}]").cells()


def test_numbers_of_numpy_and_torch_are_those_of_python():
    def cells(**grid):
        grid = {**RAF, "text": {"kind": "correlated", "mean_cosine": 0.5}, **grid}
        return Sweep.parse({"name": "a", "grids": [grid]}).cells()

    plain = cells(n=[4, 5], temperature=[0.25, 0.5], draw=[0, 1, 2], d=6)
    text = {"kind": "correlated", "mean_cosine": np.float32(0.5)}
    for kind in (np.array, torch.tensor):
        assert plain == cells(
            n=[*kind([4, 5])], temperature=kind([0.25, 0.5]), draw=range(3), d=kind(6), text=text
        )
    with pytest.raises(InputError, match=r"`n` .=True. must be a valid integer"):
        cells(n=np.bool_(True))


@pytest.mark.parametrize("scale", ["quick", "laptop", "full"])
@pytest.mark.parametrize("name", STUDIES)
def test_presets_are_valid_at_every_scale(name, scale):
    sweep, notices = paper_sweep(name, scale, seed=5)
    cells = sweep.cells()
    assert len({one.key() for one in cells}) == len(cells) >= 1
    assert {getattr(one, "seed", 5) for one in cells} == {5}
    assert all("\n" not in line for line in notices)


def test_presets_follow_the_data(tmp_path):
    real = {
        one.d
        for one in paper_sweep("sensitivity", "full")[0].cells()
        if (one.map, one.text.kind) == ("raf", "reviews")
    }
    assert real == {192, 384}
    (tmp_path / "text.txt").write_text("good film " * 60)
    source = cell(text={"kind": "dataset", "path": str(tmp_path)}).text
    sweep, notices = paper_sweep("sensitivity", "quick", source)
    assert {one.n for one in sweep.cells() if (one.map, one.text.kind) == ("raf", "dataset")} == {
        10,
        20,
        50,
        100,
    }
    assert any("no text has 150, 200, 250 words" in line for line in notices)
    (tmp_path / "text.txt").write_text("good film")
    with pytest.raises(InputError, match="has no text of 20 words or more"):
        paper_sweep("sensitivity", "quick", source.model_copy(update={"limit": 1}))


@pytest.fixture
def three_texts(tmp_path):
    for name, words in (("a", 3), ("b", 6), ("c", 8)):
        (tmp_path / f"{name}.txt").write_text("good film " * words)
    return DatasetText(path=str(tmp_path))


@pytest.mark.parametrize(
    "source",
    [
        IndependentText(),
        IndependentText(kind="orthogonal"),
        CorrelatedText(mean_cosine=0.5),
        ShippedText(),
    ],
)
def test_a_text_has_the_size_asked_for_and_rows_of_length_sqrt_d(source):
    text = load_text(source, 6, 16, draw=0, seed=0)
    assert text.rows.shape == (6, 16)
    torch.testing.assert_close(text.rows.norm(dim=1), torch.full((6,), 4.0, dtype=torch.float64))


@pytest.mark.parametrize("source", [IndependentText(), ShippedText()])
def test_draws_and_seeds_differ_and_repeat(source):
    first = load_text(source, 6, 16, draw=0, seed=0)
    assert torch.equal(first.rows, load_text(source, 6, 16, draw=0, seed=0).rows)
    assert first.source != load_text(source, 6, 16, draw=1, seed=0).source
    assert first.source != load_text(source, 6, 16, draw=0, seed=1).source


def test_draws_of_real_texts_are_distinct_until_there_are_no_more(three_texts):
    held = {load_text(three_texts, 12, 8, draw=draw, seed=0).source for draw in range(4)}
    assert held == {"b.txt", "c.txt"}
    assert len({load_text(three_texts, 12, 8, draw=draw, seed=0).source for draw in range(2)}) == 2


def test_texts_that_are_too_short_are_passed_over(three_texts):
    assert [one.source for one in texts_at_least(three_texts, 13, seed=0, most=9)] == ["c.txt"]
    assert texts_at_least(three_texts, 17, seed=0, most=9) == ()
    with pytest.raises(InputError, match=r"none of the 3 texts has `n` \(=17\) words"):
        load_text(three_texts, 17, 8, draw=0, seed=0)


def test_every_draw_and_seed_has_weights_and_searches_of_its_own():
    """Of which maps that differ in nothing else have the same."""
    repetitions = ({}, {"draw": 1}, {"seed": 1})
    purposes = ("map", "search")
    seeds, dense = (
        [cell(keys, **more).seed_of(purpose) for more in repetitions for purpose in purposes]
        for keys in (RAF, RF)
    )
    assert len(set(seeds)) == 6 and seeds == dense
    assert len({cell(**keys).build().weight.sum().item() for keys in repetitions}) == 3


def test_every_option_of_a_model_is_part_of_the_name():
    model = {"map": "model", "n": 4, "d": 384, "text": "reviews"}
    others = ({}, {"pool": "mean"}, {"pool": "last"}, {"model_layer": 2})
    assert len({key(model, **keys) for keys in others}) == len(others)


def test_labels_that_are_learned_are_part_of_the_name(tmp_path):
    def learned(*marks):
        path = tmp_path / f"{marks}.csv"
        path.write_text("text,label\n" + "".join(f"a film,{mark}\n" for mark in marks))
        text = {"kind": "dataset", "path": str(path)}
        keys = {**CELLS["generalization"], "text": text, "labels": "sentiment"}
        return study_named("generalization").Cell.parse(keys).key()

    assert len({learned(*marks) for marks in ((0, 1), (1, 0), (0, 0))}) == 3


def test_rows_of_the_encoders_own_width_are_scaled_like_all_others():
    (document,) = texts_at_least(ShippedText(), 6, seed=0, most=1)
    (embedded,) = ws.embed([document], max_words=6, dtype=torch.float64)
    text = load_text(ShippedText(), 6, embedded.rows.shape[1], draw=0, seed=0)
    assert torch.equal(text.rows, embedded.truncated(6, embedded.rows.shape[1]).rows)
