"""The paper's experiments: every map on real and on Gaussian texts, fitted to the data at hand."""

import pytest

from wordsens.cli.paper.options import SCALE_NAMES
from wordsens.errors import InputError
from wordsens.experiments.generalization.preset import paper_generalization
from wordsens.experiments.sensitivity.preset import SCALES, paper_sensitivity
from wordsens.experiments.texts.source import DatasetText
from wordsens.search.plan import SearchPlan


@pytest.mark.parametrize("scale", SCALES)
def test_every_map_on_real_and_gaussian_texts(scale):
    cells = paper_sensitivity(scale).sweep.cells()
    measured = {(cell.map, cell.depth if cell.map == "drf" else None, cell.text.kind) for cell in cells}
    maps = [("rf", None), ("drf", 2), ("drf", 4), ("drf", 8), ("raf", None), ("relu-raf", None)]
    assert measured == {(*one, kind) for one in maps for kind in ("reviews", "gaussian")}
    for name in ("rf", "drf", "raf", "relu-raf"):
        own = [cell for cell in cells if cell.map == name]
        assert len({cell.draw for cell in own}) >= 3
        assert len({cell.n for cell in own}) >= 4
        # A word sample bounds the cost of the dense maps; attention gets every word for the price of one.
        assert all((cell.words.sample is None) == name.endswith("raf") for cell in own)


def test_the_scales_are_those_of_the_command_line():
    assert tuple(SCALES) == SCALE_NAMES


def test_full_has_the_papers_sizes():
    cells = paper_sensitivity("full").sweep.cells()
    sizes = {
        (cell.map, cell.text.kind): (
            sorted({c.n for c in cells if (c.map, c.text.kind) == (cell.map, cell.text.kind)}),
            sorted({c.d for c in cells if (c.map, c.text.kind) == (cell.map, cell.text.kind)}),
        )
        for cell in cells
    }
    assert sizes["rf", "gaussian"] == ([90, 100, 110, 120, 130, 140, 150], [192, 384, 768])
    assert sizes["drf", "gaussian"] == ([50, 60, 70, 80], [768])
    assert sizes["raf", "gaussian"] == ([10, 20, 50, 100, 150, 200, 250], [192, 384, 768])


def test_real_texts_stay_within_the_encoders_width_and_the_user_is_told():
    preset = paper_sensitivity("full")
    real = [cell for cell in preset.sweep.cells() if cell.text.kind == "reviews"]
    assert {cell.d for cell in real if cell.map == "raf"} == {192, 384}
    assert {cell.d for cell in real if cell.map == "drf"} == {384}
    assert any("larger d are measured on Gaussian texts only" in line for line in preset.notices)
    assert any("are measured with d = 384 under" in line for line in preset.notices)
    assert paper_sensitivity("quick").notices == ()


def test_sizes_that_no_text_has_are_left_out_and_named(tmp_path):
    (tmp_path / "text.txt").write_text("good film " * 60)
    preset = paper_sensitivity("quick", DatasetText(path=str(tmp_path / "text.txt")))
    real = [cell for cell in preset.sweep.cells() if cell.text.kind == "dataset"]
    assert {cell.n for cell in real if cell.map == "raf"} == {10, 20, 50, 100}
    assert any("no text has 150, 200, 250 words" in line for line in preset.notices)


def test_data_that_cannot_be_used(tmp_path):
    (tmp_path / "short.txt").write_text("good film")
    with pytest.raises(InputError, match="has no text of 20 words or more"):
        paper_sensitivity("quick", DatasetText(path=str(tmp_path / "short.txt")))
    with pytest.raises(InputError, match="there is no file or folder"):
        paper_sensitivity("quick", DatasetText(path=str(tmp_path / "none.parquet")))
    with pytest.raises(
        InputError, match=r"`scale` \(='quik'\) must be one of quick, laptop, full; did you mean 'quick'"
    ):
        paper_sensitivity("quik")


def test_the_seed_reaches_every_cell():
    assert {cell.seed for cell in paper_sensitivity("quick", seed=5).sweep.cells()} == {5}


@pytest.mark.parametrize("preset", [paper_sensitivity, paper_generalization])
def test_an_effort_takes_the_place_of_the_scale_s_own_counts(preset):
    usual, thorough = (preset("quick", search=search).sweep.cells() for search in (None, "thorough"))
    assert {(one.map, one.n, one.dtype) for one in thorough} == {(one.map, one.n, one.dtype) for one in usual}
    assert {(one.search, one.starts, one.steps, one.generations) for one in thorough} == {
        ("thorough", None, None, None)
    }
    assert {one.search for one in usual} == {"normal"}
    assert all(one.search_plan == SearchPlan("thorough") for one in thorough)
