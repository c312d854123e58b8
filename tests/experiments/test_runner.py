"""Running cells: resumed, interrupted, failing."""

import pytest

from wordsens.experiments.generalization.spec import GeneralizationCell
from wordsens.experiments.kinds import CellKind
from wordsens.experiments.run.runner import RemainingTime, run_cells, unfinished
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


def test_remaining_time():
    clock = RemainingTime()
    assert clock.of(CELLS) is None
    clock.observe(CELLS[0], 2.0)
    clock.observe(CELLS[1], 4.0)
    assert clock.of(CELLS[2:]) == pytest.approx(6.0)
    longer, longest, wider = (
        SensitivityCell.parse({"map": "raf", "n": n, "d": d, "text": "gaussian"}) for n, d in ((6, 4), (12, 4), (6, 8))
    )
    assert clock.of([longer]) == pytest.approx(3.0 * 2)
    clock.observe(longer, 3.0 * 2**1.5)
    assert clock.of([longest]) == pytest.approx(3.0 * 4**1.5)
    assert clock.of([wider]) == pytest.approx(3.0 * 2**1.5)
    clock.observe(wider, 1.0)
    assert clock.of([wider]) == 1.0
    assert clock.of([]) == 0


def test_cells_that_share_a_fit_count_when_all_have_finished():
    usual = {"map": "raf", "n": 3, "d": 4, "text": "gaussian", "labels": "linear", "texts": 5, "together": True}
    cells = [
        GeneralizationCell.parse({**usual, "draw": draw, "objective": kind})
        for draw in range(3)
        for kind in ("alignment", "error", "frontier")
    ]
    clock = RemainingTime(cells)
    clock.observe(cells[0], 9.0)
    clock.observe(cells[1], 0.0)
    assert clock.left() is None
    clock.observe(cells[2], 0.0)
    assert clock.left() == pytest.approx(18.0)
    clock.observe(cells[3], 12.0)
    assert clock.left() == pytest.approx(15.0)
