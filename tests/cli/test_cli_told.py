"""`wordsens paper departures`, `correlations`, `several-words`, `similarity`, `control`: what they write and say."""

import json

import pytest

from wordsens.experiments.control import preset as control
from wordsens.experiments.correlations import preset as correlations
from wordsens.experiments.departures import preset as departures
from wordsens.experiments.grid.sweep_file import load_sweep
from wordsens.experiments.kinds import kind_named
from wordsens.experiments.several_words import preset as several_words
from wordsens.experiments.similarity import preset as similarity
from wordsens.experiments.store.store import RecordStore
from wordsens.report.findings.of_runs import run_findings
from wordsens.report.load import load_runs
from wordsens.report.tables import run_tables

NAMES = ("departures", "correlations", "several-words", "similarity", "control")
FIGURES = {
    "departures": ["departures", "departures-error"],
    "similarity": ["similarity", "similarity-check", "similarity-sensitivity"],
    "control": [
        f"control-{name}"
        for name in ("accuracy", "along", "along-sensitivity", "layers", "sensitivity", "target", "tradeoff")
    ],
}


@pytest.fixture(autouse=True)
def small_scales(monkeypatch):
    few = {"starts": 1, "steps": 3, "generations": 0}
    monkeypatch.setitem(departures.SCALES, "quick", departures.Scale({"raf": 8}, (3, 4), {"raf": (3, 8)}, 4, 1))
    monkeypatch.setitem(departures._SEARCHES, "raf", few)
    monkeypatch.setitem(correlations.SCALES, "quick", (1, (correlations.Part(("rf", "raf"), 8, 12, few),)))
    one = {"layers": ("softmax",), "held": ("softmax",)}
    small = control.Scale(1, (6, 8), 2, 6, (0.5, 1.0), ((6,), 2), (8, 8), others=("none",), stacks=({},), **one)
    monkeypatch.setitem(control.SCALES, "quick", small)
    alike = similarity.Scale((8,), 1, 2, ("question",), 2, 1, {"raf": few}, {"pool": "mean", "words": 0}, every=6)
    monkeypatch.setitem(similarity.SCALES, "quick", alike)
    monkeypatch.setitem(several_words.SCALES, "quick", several_words.Scale(4, 8, 1, {"rf": few, "raf": few}))


@pytest.mark.slow_cases("correlations")
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow if name in ("control", "departures", "similarity") else ())
        for name in NAMES
    ],
)
def test_records_figures_tables_and_the_document(wordsens, tmp_path, documented, name):
    run = wordsens("paper", name, "--out", str(tmp_path), "--quiet")
    assert run.code == 0, run.err
    cells = load_sweep(tmp_path / f"{name}.yaml").cells()
    kind = kind_named(name)
    records = RecordStore(tmp_path / kind.folder, kind.record_type).read()
    assert len(records) == len(cells)
    assert all(record.done for record in records)
    files = FIGURES.get(name, [name])
    assert sorted(path.name for path in (tmp_path / "figures").iterdir()) == sorted(
        f"{file}.{end}" for file in files for end in ("pdf", "png", "svg")
    )
    document = json.loads(wordsens("paper", name, "--out", str(tmp_path), "--json", "--quiet").out)
    assert list(document) == documented("The document of `paper`")
    (summary,) = document["series"]
    assert list(summary) == documented("Each of the told `series`")
    assert document["findings"] == [claim["sentence"] for claim in summary["claims"]]
    for table in summary["tables"]:
        assert table["rows"]
        assert table["title"] in run.out
    (loaded,) = load_runs([tmp_path])
    assert [finding.known for finding in run_findings(loaded)] == [claim["known"] for claim in summary["claims"]]
    shown = {table.title for table in run_tables([loaded])}
    assert {table["title"] for table in summary["tables"]} <= shown
