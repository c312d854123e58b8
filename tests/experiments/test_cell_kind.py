"""The kinds of cell: each row of the table holds together."""

import pytest
from tests.experiments.small_cells import CELLS

from wordsens.errors import InputError
from wordsens.experiments.kinds import KIND_NAMES, kind_named, kind_of_records
from wordsens.experiments.store.record import Record


@pytest.mark.slow_cases("audit")
@pytest.mark.parametrize("name", KIND_NAMES)
def test_a_kind_measures_records_and_explains_its_failures(name):
    kind = kind_named(name)
    cell = kind.cell_type.parse(CELLS[name])
    kept = []
    record = kind.attempt(cell, keep=kept.append)
    assert isinstance(record, kind.record_type)
    assert record.done, record.error
    assert record.cell == cell.content_hash()
    assert len(kept) == 1
    assert bool(kept[0]) == kind.witnesses
    failed = kind.failed(cell, "out of luck")
    assert (failed.status, failed.error, failed.cell) == ("failed", "out of luck", record.cell)
    assert '"torch"' in record.libraries
    assert cell == kind.cell_type.parse(cell.model_dump(mode="json", exclude_unset=True))
    assert kind_of_records(kind.record_type) is kind


def test_folders_differ():
    assert len({kind_named(name).folder for name in KIND_NAMES}) == len(KIND_NAMES)


def test_what_shares_work():
    cell = kind_named("generalization").cell_type.parse(CELLS["generalization"])
    other = cell.model_copy(update={"sample": 1})
    kind = kind_named("generalization")
    assert kind.shared_by(cell) == kind.shared_by(other) != kind.shared_by(cell.model_copy(update={"texts": 5}))
    assert kind_named("dry-run").shared_by(cell) is None


def test_unknown_kinds():
    with pytest.raises(InputError, match="did you mean 'dry-run'"):
        kind_named("dry-runn")
    with pytest.raises(InputError, match=r"`record` \(=Record\) is no kind of cell"):
        kind_of_records(Record)
