"""The notebooks of docs/notebooks run from beginning to end, and are stored small."""

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOKS = sorted((Path(__file__).parents[1] / "docs" / "notebooks").glob("*.ipynb"))
SMALL = 300_000


def test_there_are_two():
    assert [path.stem for path in NOTEBOOKS] == ["my_embedding_model_in_ten_minutes", "the_paper_in_ten_minutes"]


@pytest.mark.parametrize(
    "path",
    [pytest.param(path, marks=pytest.mark.slow if "model" in path.stem else ()) for path in NOTEBOOKS],
    ids=lambda path: path.stem,
)
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
@pytest.mark.timeout(300)
def test_a_notebook_runs_and_is_small(path):
    assert path.stat().st_size < SMALL
    book = nbformat.read(path, as_version=4)
    assert sum(bool(cell.outputs) for cell in book.cells if cell.cell_type == "code") >= 6
    NotebookClient(book, timeout=240, resources={"metadata": {"path": str(path.parent)}}).execute()
