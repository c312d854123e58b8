"""Sweeps by name: every example says what it is, is valid, and runs."""

import pytest

from wordsens.experiments.grid.catalogue import examples, included, preset_names
from wordsens.experiments.grid.sweep_file import load_sweep
from wordsens.experiments.run.runner import run_cells
from wordsens.experiments.store.store import RecordStore

SMALL = {
    "attention-temperature": ["n=4", "d=4", "steps=2", "draw=0"],
    "dense-width": ["n=4", "d=4", "width=8", "steps=2", "draw=0"],
    "one-word-generalization": ["n=3", "d=4", "texts=4", "held_out=2", "steps=2", "sample=0"],
    "paper-more-seeds": None,
    "paper-on-a-gpu": None,
    "dry-run": ["work=0", "draw=[0, 1]"],
}


def test_every_example_is_here():
    assert set(examples()) == set(SMALL)


@pytest.mark.parametrize("name", SMALL)
def test_an_example_says_what_it_is_and_runs(name, tmp_path):
    head = [line for line in examples()[name].read_text(encoding="utf-8").splitlines() if line.startswith("#")]
    assert "Hardware:" in head[1]
    assert "Time:" in " ".join(head)
    assert "Expected:" in " ".join(head)
    sweep = load_sweep(examples()[name])
    assert sweep.name == name
    assert len(sweep.cells()) > 10
    if SMALL[name] is None:
        kinds = {(cell.seed, cell.device) for cell in sweep.cells()}
        assert kinds == ({(0, "cuda")} if name == "paper-on-a-gpu" else {(1, "cpu"), (2, "cpu")})
        return
    cells = load_sweep(examples()[name], overrides=SMALL[name]).cells()
    records = list(run_cells(cells, RecordStore(tmp_path, sweep.cell_kind.record_type)))
    assert [record.error for record in records] == [None] * len(cells)


def values(name, tmp_path):
    """What the example gives, as a table."""
    sweep = load_sweep(examples()[name])
    store = RecordStore(tmp_path, sweep.cell_kind.record_type)
    assert all(record.done for record in run_cells(sweep.cells(), store))
    return store.to_pandas()


@pytest.mark.slow
def test_what_attention_temperature_expects(tmp_path):
    means = values("attention-temperature", tmp_path).groupby(["n", "temperature"])["value"].mean().unstack()
    assert (means.diff(axis="columns").iloc[:, 1:] < 0).all(axis=None)
    assert means.loc[20].round(2).tolist()[::2] == pytest.approx([2.19, 1.26], abs=0.02)


@pytest.mark.slow
def test_what_dense_width_expects(tmp_path):
    means = values("dense-width", tmp_path).groupby(["n", "width"])["value"].mean().unstack()
    falls = 1 - means.iloc[1:].to_numpy() / means.iloc[:-1].to_numpy()
    assert ((falls > 0.155) & (falls < 0.245)).all()
    lower = 1 - means[1024] / means[256]
    assert lower.between(0.13, 0.25).all()


@pytest.mark.slow
def test_what_one_word_generalization_expects(tmp_path):
    found = values("one-word-generalization", tmp_path)
    assert (found["value"] >= found["bound"] * (1 - 1e-14)).all()
    assert (found["value"][found["map"] == "rf"] > 1).all()
    assert (found["value"][found["map"] == "raf"] < 0.5).all()


def test_presets_by_name(tmp_path):
    assert len(preset_names()) == 21
    for name in ("paper-sensitivity-quick", "paper-departures-full", "paper-several-words-laptop"):
        assert included(name, tmp_path, load=load_sweep).name == name
