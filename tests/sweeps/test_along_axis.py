"""Records of any kind along any axis: series, power laws, the commands and the figure."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from wordsens.cli import main
from wordsens.errors import InputError
from wordsens.studies.sensitivity import SERIES, STUDY
from wordsens.sweeps.series import series_along
from wordsens.sweeps.store import as_frame

GUIDES = Path(__file__).parents[2] / "docs" / "guides"


@pytest.fixture
def heated(make_record):
    """S = n^0.5 / temperature, times a factor that the draw decides."""
    return [
        make_record(
            map=name,
            n=n,
            draw=draw,
            source=f"{n} {draw}",
            value=n**0.5 / temperature * (1 + 0.1 * draw),
            asked={"temperature": temperature},
        )
        for name in ("raf", "relu-raf")
        for n in (10, 40)
        for temperature in (1.0, 2.0, 4.0)
        for draw in (0, 1, 2)
    ]


def test_any_axis_has_its_series(heated):
    series = series_along(heated, "temperature", by=["map", "n"])
    assert [dict(one.keys) for one in series] == [
        {"map": m, "n": n} for m in ("raf", "relu-raf") for n in (10, 40)
    ]
    for one in series:
        assert one.exponent.value == pytest.approx(-1)
        assert [x for x, _ in one.points] == [1.0, 2.0, 4.0]
        assert one.points[1][1].value == pytest.approx(dict(one.keys)["n"] ** 0.5 / 2 * 1.1)
        assert (one.texts, one.along, one.points[0][1].n) == (3, (), 3)
        assert one.to_dict()["fit"]["exponent"] == one.exponent.value
    exponent = series_along(heated, "n", by=["map", "temperature"])[0].exponent
    assert exponent.value == pytest.approx(0.5)
    assert [one.keys for one in series_along(heated, "temperature")] == [one.keys for one in series]
    assert series[0].label == "raf, n = 10"


def test_what_would_be_averaged_is_refused_and_what_moves_along_is_told(heated, make_record):
    with pytest.raises(
        InputError, match=r"leaves out n, which has several values at temperature = 1.0 \(10, 40\)"
    ):
        series_along(heated, "temperature", by=["map"])
    with pytest.raises(
        InputError, match=r"`x` \(='temprature'\) must be one of .*did you mean 'temperature'"
    ):
        series_along(heated, "temprature")
    with pytest.raises(InputError, match=r"`y` \(=.text.\) is no number"):
        series_along(heated, "n", "text")
    together = [
        make_record(n=n, d=2 * n, draw=draw, value=1 / n) for n in (4, 8) for draw in (0, 1)
    ]
    (one,) = series_along(together, "n")
    assert one.along == ("d",)


def test_an_experiment_of_ones_own_is_one_file(tmp_path, monkeypatch, capsys):
    shutil.copy(GUIDES / "own_kind.py", tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    page = (GUIDES / "own_kind.md").read_text()
    (tmp_path / "norms.yaml").write_text(page.split("$ cat norms.yaml\n")[1].split("$ wordsens")[0])
    assert main(["sweep", "run", "norms.yaml", "--quiet"]) == 0
    assert "norms: 15 cells done, 0 failed" in capsys.readouterr().out
    assert main(["sweep", "plot", "norms", "--x", "n", "--json"]) == 0
    (series,) = json.loads(capsys.readouterr().out)["series"]
    assert series["fit"]["exponent"] == pytest.approx(0, abs=1e-9)
    assert [point["mean"] for point in series["points"]] == pytest.approx([4.0] * 3)
    assert main(["sweep", "plot", "norms", "n=[2, 4]", "--x", "n", "--file", "norms.svg"]) == 0
    assert (tmp_path / "norms.svg").read_text().startswith("<?xml")
    for command, message in (
        (["norms", "--x", "n", "--file", "norms.xls"], "must end with .pdf, .png, .svg"),
        (["norms.yaml", "--out", "none", "--x", "n"], "holds no results.sqlite"),
    ):
        assert main(["sweep", "plot", *command]) == 2
        said = capsys.readouterr().err
        assert message in said and said.count("\n") == 1


def test_the_guide_s_own_map_is_measured_swept_fitted_and_drawn(
    tmp_path, monkeypatch, capsys, short_searches
):
    shutil.copy(GUIDES / "own_map.py", tmp_path / "own_map.py")
    assert len((GUIDES / "own_map.py").read_text().splitlines()) <= 30
    monkeypatch.chdir(tmp_path)
    page = (GUIDES / "own_map.md").read_text()
    (tmp_path / "own.yaml").write_text(page.split("```yaml\n")[1].split("```")[0])
    measured = [
        "measure",
        "I love her much",
        "--map",
        "own_map:WeightedMeans",
        "--starts",
        "1",
        "--steps",
        "2",
    ]
    assert main([*measured, "--json", "--quiet"]) == 0
    (result,) = json.loads(capsys.readouterr().out)["texts"][0]["results"]
    assert (result["map"], len(result["per_word"])) == ("own_map:WeightedMeans", 4)
    cheap = ["starts=1", "steps=2", "n=[2, 4]", "d=4", "draw=[0, 1]"]
    assert main(["sweep", "run", "own.yaml", *cheap, "--quiet"]) == 0
    capsys.readouterr()
    assert main(["sweep", "plot", "own", "--x", "n", "--by", "map", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [one["keys"] for one in document["series"]] == [
        {"map": "own_map:WeightedMeans"},
        {"map": "raf"},
    ]
    assert (
        (tmp_path / "own" / "figures" / "value-against-n.png").read_bytes().startswith(b"\x89PNG")
    )


def test_plot_and_summary_have_one_interval_whatever_the_order_of_the_rows(make_record):
    stream = np.random.default_rng(5)
    records = [
        make_record(
            n=n,
            draw=draw,
            source=f"{n} {draw}",
            value=n**-0.5 * float(np.exp(0.2 * stream.standard_normal())),
        )
        for n in (5, 10, 20)
        for draw in range(4)
    ]
    frame = as_frame(records)
    intervals = {
        (one.exponent.low, one.exponent.high)
        for seed in range(3)
        for shuffled in [frame.sample(frac=1, random_state=seed)]
        for one in series_along(shuffled, "n")
    }
    (summarized,) = STUDY.tables(frame)[SERIES]["exponent"]
    assert intervals == {(summarized.low, summarized.high)}
