"""The notebooks of docs/notebooks run from beginning to end."""

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOKS = sorted((Path(__file__).parents[1] / "docs" / "notebooks").glob("*.ipynb"))


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
@pytest.mark.timeout(300)
def test_a_notebook_runs(path):
    book = nbformat.read(path, as_version=4)
    NotebookClient(book, timeout=240, resources={"metadata": {"path": str(path.parent)}}).execute()
