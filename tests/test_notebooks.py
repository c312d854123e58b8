"""The notebooks of docs/notebooks run from beginning to end, and are stored small."""

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOKS = sorted((Path(__file__).parents[1] / "docs" / "notebooks").glob("*.ipynb"))
SMALL = 300_000


def test_there_are_two():
    assert [path.stem for path in NOTEBOOKS] == ["my_embedding_model_in_ten_minutes", "the_paper_in_ten_minutes"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_stored_small_with_its_outputs(path):
    assert path.stat().st_size < SMALL
    assert sum(bool(cell.outputs) for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code") >= 6


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
@pytest.mark.timeout(300)
def test_a_notebook_runs(path):
    book = nbformat.read(path, as_version=4)
    NotebookClient(book, timeout=240, resources={"metadata": {"path": str(path.parent)}}).execute()
