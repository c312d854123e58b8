"""Sweeps by name: every example says what it is, is valid, and runs."""

import pytest

from wordsens.experiments.catalogue import examples, included, preset_names
from wordsens.experiments.runner import run_cells
from wordsens.experiments.store import RecordStore
from wordsens.experiments.sweep_file import load_sweep

SMALL = {
    "attention-temperature": ["n=4", "d=4", "steps=2", "draw=0"],
    "dense-width": ["n=4", "d=4", "width=8", "steps=2", "draw=0"],
    "one-word-generalization": ["n=3", "d=4", "texts=4", "held_out=2", "steps=2", "sample=0"],
    "paper-more-seeds": None,
    "rehearsal": ["work=0", "draw=[0, 1]"],
}


def test_every_example_is_here():
    assert set(examples()) == set(SMALL)


@pytest.mark.parametrize("name", SMALL)
def test_an_example_says_what_it_is_and_runs(name, tmp_path):
    head = [line for line in examples()[name].read_text(encoding="utf-8").splitlines() if line.startswith("#")]
    assert "Hardware:" in head[1]
    assert "Expected:" in " ".join(head)
    sweep = load_sweep(examples()[name])
    assert sweep.name == name
    assert len(sweep.cells()) > 10
    if SMALL[name] is None:
        assert {cell.seed for cell in sweep.cells()} == {1, 2}
        return
    cells = load_sweep(examples()[name], overrides=SMALL[name]).cells()
    records = list(run_cells(cells, RecordStore(tmp_path, sweep.cell_kind.record_type)))
    assert [record.error for record in records] == [None] * len(cells)


def test_presets_by_name(tmp_path):
    assert len(preset_names()) == 6
    assert included("paper-sensitivity-quick", tmp_path, load=load_sweep).name == "paper-sensitivity-quick"
