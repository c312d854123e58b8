"""What a worker does with what it is handed."""

import threading

import pytest
import torch

from wordsens import __version__
from wordsens.experiments.dry_run.cell import DryRunCell
from wordsens.experiments.generalization.spec import GeneralizationCell
from wordsens.experiments.kinds import CellKind, kind_named
from wordsens.experiments.run.task import (
    Job,
    OtherVersionError,
    Outcome,
    bundles,
    measure,
    measure_payloads,
    payload_of,
)
from wordsens.experiments.sensitivity.spec import SensitivityCell

RAF = SensitivityCell.parse({"map": "raf", "n": 3, "d": 4, "text": "gaussian", "steps": 2})


def test_a_payload_is_the_cell():
    drf = SensitivityCell.parse(
        {"map": "drf", "n": 3, "d": 4, "depth": 2, "text": {"kind": "correlated", "mean_cosine": 0.5}, "words": "all"}
    )
    for cell in (RAF, drf, DryRunCell(draw=3, pause=0.5)):
        again = type(cell).parse(payload_of(cell))
        assert again == cell
        assert again.content_hash() == cell.content_hash()


def test_the_path_of_a_dataset_goes_as_an_absolute_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.txt").write_text("a good film")
    cell = SensitivityCell.parse({"map": "raf", "n": 3, "d": 4, "text": {"kind": "dataset", "path": "t.txt"}})
    sent = payload_of(cell)
    assert sent["text"]["path"] == str(tmp_path / "t.txt")
    assert SensitivityCell.parse(sent).content_hash() == cell.content_hash()
    assert (
        payload_of(cell.model_copy(update={"text": cell.text.model_copy(update={"path": "imdb"})}))["text"]["path"]
        == "imdb"
    )


def test_a_worker_gives_outcomes_and_errors():
    found = measure_payloads(Job("dry-run"), [{"draw": 1}, {"draw": -1}, {"fail": True}], __version__)
    assert isinstance(found[0], Outcome)
    assert found[0].record.value == measure(Job("dry-run"), DryRunCell(draw=1)).record.value
    assert "`draw` (=-1) must be greater" in found[1]
    assert found[2].record.error == "WordsensError: this cell of the dry run was told to fail"


def test_a_worker_of_another_version_refuses():
    with pytest.raises(OtherVersionError, match=f"has wordsens {__version__}, but the sweep is run by 9.9"):
        measure_payloads(Job("dry-run"), [{}], "9.9")


def test_cells_of_one_process_take_turns(monkeypatch):
    inside, most = [], []

    def attempt(kind, cell, **options):
        inside.append(1)
        most.append(len(inside))
        threading.Event().wait(0.02)
        inside.pop()
        return kind.failed(cell, "x")

    monkeypatch.setattr(CellKind, "attempt", attempt)
    payload = payload_of(RAF)
    threads = [
        threading.Thread(target=measure_payloads, args=(Job("sensitivity"), [payload], __version__)) for _ in range(4)
    ]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert most == [1, 1, 1, 1]


def test_the_threads_of_torch(monkeypatch):
    seen, before = [], torch.get_num_threads()

    def attempt(kind, cell, **options):
        seen.append(torch.get_num_threads())
        return kind.failed(cell, "x")

    # Two threads of a small cell wait for each other on a busy machine: half a minute, for nothing that is asked here.
    monkeypatch.setattr(CellKind, "attempt", attempt)
    try:
        measure(Job("sensitivity", threads=2), RAF)
        assert torch.get_num_threads() == 2
        measure(Job("sensitivity"), RAF)
        assert torch.get_num_threads() == 2
        assert seen == [2, 2]
    finally:
        torch.set_num_threads(before)


def test_cells_that_share_a_fit_go_together():
    usual = {"map": "raf", "n": 3, "d": 4, "text": "gaussian", "labels": "linear", "held_out": 200}
    most = kind_named("generalization").most_together
    cells = [
        GeneralizationCell.parse({**usual, "texts": texts, "sample": sample})
        for texts in (4, 5)
        for sample in range(most + 4)
    ]
    found = list(bundles(kind_named("generalization"), cells))
    assert [len(one) for one in found] == [most, 4, most, 4]
    assert [place for one in found for place in one] == list(range(len(cells)))
    assert list(bundles(kind_named("sensitivity"), [RAF, RAF])) == [[0], [1]]


def test_a_witness_is_kept_only_when_asked_for_and_only_of_what_is_done():
    assert measure(Job("sensitivity"), RAF).witness is None
    assert measure(Job("sensitivity", witnesses=True), RAF).witness is not None
    broken = SensitivityCell.parse({"map": "raf", "n": 3, "d": 2, "text": "orthogonal"})
    assert measure(Job("sensitivity", witnesses=True), broken).witness is None
    assert measure(Job("dry-run", witnesses=True), DryRunCell()).witness is None
