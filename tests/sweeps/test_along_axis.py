"""Records of any kind along any axis: series, power laws, the commands and the figure."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import wordsens as ws
from wordsens.cli import main
from wordsens.errors import InputError
from wordsens.plotting.records import series_along
from wordsens.sweeps.store import as_frame

GUIDES = Path(__file__).parents[2] / "docs" / "guides"


@pytest.fixture
def heated(make_record):
    """S = n^0.5 / temperature, times a factor that the draw decides."""
    rows = [
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
    return as_frame(rows)


def test_any_axis_has_its_series(heated):
    points, series = series_along(heated, "temperature", by=["map", "n"])
    keys = [(name, n) for name in ("raf", "relu-raf") for n in (10, 40)]
    assert list(zip(series["map"], series["n"], strict=True)) == keys
    assert [one.value for one in series["exponent"]] == pytest.approx([-1] * 4)
    assert set(series["texts"]) == {3} and (series["from"].min(), series["to"].max()) == (1, 4)
    for (_, n), part in points.groupby(["map", "n"]):
        assert list(part["temperature"]) == [1.0, 2.0, 4.0]
        assert [mean.value * t for mean, t in zip(part["value"], (1, 2, 4), strict=True)] == (
            pytest.approx([n**0.5 * 1.1] * 3)
        )
        assert {mean.n for mean in part["value"]} == {3}
        values = [mean.value for mean in part["value"]]
        assert part["fit"].tolist() == pytest.approx(values, rel=0.01)  # that of its own series
    by_n = series_along(heated, "n", by=["map", "temperature"])[1]
    assert by_n["exponent"][0].value == pytest.approx(0.5)
    usual = series_along(heated, "temperature")[1]
    assert sorted(zip(usual["map"], usual["n"], strict=True)) == keys


def test_what_would_be_averaged_is_refused_and_what_moves_along_is_not(heated, make_record):
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
    assert len(series_along(as_frame(together), "n")[1]) == 1  # d moves along with n


def test_a_study_of_ones_own_is_one_file(tmp_path, monkeypatch, capsys):
    shutil.copy(GUIDES / "own_kind.py", tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    page = (GUIDES / "own_kind.md").read_text()
    (tmp_path / "norms.yaml").write_text(page.split("$ cat norms.yaml\n")[1].split("$ wordsens")[0])
    assert main(["sweep", "run", "norms.yaml", "--quiet"]) == 0
    assert "norms: 15 cells done, 0 failed" in capsys.readouterr().out
    assert main(["sweep", "plot", "norms", "--x", "n", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    points = document["points"]
    frame = ws.read_records("norms")
    by_n = frame.groupby("n")["value"].mean()
    assert [point["value"] for point in points] == pytest.approx(list(by_n))
    summary = ws.summarize(frame)
    assert list(summary.table()["norm"]) == pytest.approx(list(by_n))
    (finding,) = summary.findings
    assert set(finding.rows) == set(frame["cell"]) and "falls" in finding.sentence
    assert list(ws.plotting.of_experiment(frame)) == ["mean-norm"]
    assert len((GUIDES / "own_kind.py").read_text().splitlines()) < 120
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
    assert [one["map"] for one in document["series"]] == ["own_map:WeightedMeans", "raf"]
    assert (
        (tmp_path / "own" / "figures" / "value-against-n.png").read_bytes().startswith(b"\x89PNG")
    )


def test_an_interval_does_not_depend_on_the_order_of_the_rows(make_record):
    stream = np.random.default_rng(5)
    rows = [
        make_record(
            n=n,
            draw=draw,
            source=f"{n} {draw}",
            value=n**-0.5 * float(np.exp(0.2 * stream.standard_normal())),
        )
        for n in (5, 10, 20)
        for draw in range(4)
    ]
    shuffled = [as_frame(rows).sample(frac=1, random_state=seed) for seed in range(3)]
    exponents = [series_along(frame, "n")[1]["exponent"][0] for frame in shuffled]
    assert len(set(exponents)) == 1
