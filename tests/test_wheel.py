"""The wheel holds every file of the package, and the package reads its texts from it."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import wordsens as ws
from wordsens.text.readers import shipped_reviews

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    builder = pytest.importorskip("hatchling.builders.wheel").WheelBuilder(str(ROOT))
    (path,) = builder.build(directory=str(tmp_path_factory.mktemp("dist")), versions=["standard"])
    return Path(path)


def test_what_is_in_it(wheel):
    with zipfile.ZipFile(wheel) as opened:
        names = {name for name in opened.namelist() if ".dist-info/" not in name}
    files = (path for path in (ROOT / "src" / "wordsens").rglob("*") if path.is_file())
    assert names == {
        str(path.relative_to(ROOT / "src")) for path in files if "__pycache__" not in path.parts
    }
    assert {"wordsens/py.typed", "wordsens/text/shipped/reviews.jsonl"} <= names


def test_its_texts_are_read(wheel, tmp_path):
    """In a process that sees the wheel's files alone."""
    with zipfile.ZipFile(wheel) as opened:
        opened.extractall(tmp_path)
    code = (
        "import wordsens; from wordsens.text.readers import shipped_reviews; "
        "from wordsens.app import parts; assert parts.Field.component.path.read_bytes(); "
        "from wordsens.display.view import View; from wordsens.display.html import html_page; "
        "assert html_page(View('a'), title='t', heading='h', version='1').endswith('</html>\\n'); "
        "print(wordsens.__file__, len(shipped_reviews()), len(wordsens.read_pairs()))"
    )
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    output = subprocess.run(
        [sys.executable, "-c", code], env=environment, cwd=tmp_path, check=True, capture_output=True
    )
    file, reviews, pairs = output.stdout.decode().split()
    assert file.startswith(str(tmp_path))
    assert (int(reviews), int(pairs)) == (len(shipped_reviews()), len(ws.read_pairs()))
