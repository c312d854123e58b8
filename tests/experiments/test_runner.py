"""Running cells: resumed, interrupted, failing."""

import pytest

from wordsens.experiments.kinds import CellKind
from wordsens.experiments.run.runner import run_cells, unfinished
from wordsens.experiments.sensitivity.record import SensitivityRecord
from wordsens.experiments.sensitivity.spec import SensitivityCell
from wordsens.experiments.store.store import RecordStore

CELLS = [
    SensitivityCell.parse({"map": "raf", "n": 3, "d": 4, "text": "gaussian", "steps": 2, "draw": draw})
    for draw in range(4)
]
BROKEN = SensitivityCell.parse({"map": "raf", "n": 3, "d": 2, "text": "orthogonal"})


def test_each_record_is_on_disk_when_it_is_yielded(tmp_path):
    store = RecordStore(tmp_path, SensitivityRecord)
    for count, record in enumerate(run_cells(CELLS, store), start=1):
        assert len(store.read()) == count
        assert store.read([record.cell]) == [record]
    assert unfinished(CELLS, store) == []


def test_a_resumed_run_gives_the_values_of_an_undisturbed_one(tmp_path):
    undisturbed = [record.value for record in run_cells(CELLS, RecordStore(tmp_path / "a", SensitivityRecord))]
    store = RecordStore(tmp_path / "b", SensitivityRecord)
    stopped = run_cells(CELLS, store)
    next(stopped), next(stopped)
    stopped.close()
    left = unfinished(CELLS, store)
    assert left == CELLS[2:]
    assert len(list(run_cells(left, store))) == 2
    values = {record.cell: record.value for record in store.read()}
    assert [values[cell.content_hash()] for cell in CELLS] == undisturbed


def test_an_interrupt_goes_through_and_keeps_what_is_finished(tmp_path, monkeypatch):
    attempt = CellKind.attempt

    def interrupted(kind, cell, **options):
        if cell is CELLS[2]:
            raise KeyboardInterrupt
        return attempt(kind, cell, **options)

    monkeypatch.setattr(CellKind, "attempt", interrupted)
    store = RecordStore(tmp_path, SensitivityRecord)
    with pytest.raises(KeyboardInterrupt):
        list(run_cells(CELLS, store))
    assert unfinished(CELLS, store) == CELLS[2:]


def test_a_failing_cell_does_not_stop_the_others_and_is_tried_again(tmp_path):
    store = RecordStore(tmp_path, SensitivityRecord)
    statuses = [record.status for record in run_cells([BROKEN, *CELLS[:2]], store)]
    assert statuses == ["failed", "done", "done"]
    assert unfinished([BROKEN, *CELLS[:2]], store) == [BROKEN]
