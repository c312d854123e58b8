"""The wheel: every file of the package, the marker of types, nothing else, and no more than it must weigh."""

import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MOST_BYTES = 1_200_000
"""Deflated file by file, as wheels are: 557 modules in 1,010 kB, the shipped texts and pairs in 120."""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel as a build of the checkout makes it."""
    builder = pytest.importorskip("hatchling.builders.wheel").WheelBuilder(str(ROOT))
    (path,) = builder.build(directory=str(tmp_path_factory.mktemp("dist")), versions=["standard"])
    return Path(path)


def test_what_is_in_it(wheel):
    with zipfile.ZipFile(wheel) as opened:
        names = {name for name in opened.namelist() if ".dist-info/" not in name}
        metadata = opened.read(next(name for name in opened.namelist() if name.endswith("/METADATA"))).decode()
    source = ROOT / "src"
    files = (path for path in (source / "wordsens").rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    assert names == {path.relative_to(source).as_posix() for path in files}
    assert {"wordsens/py.typed", "wordsens/__init__.pyi", "wordsens/text/shipped/reviews.jsonl"} <= names
    assert "Classifier: Typing :: Typed" in metadata
    assert wheel.stat().st_size < MOST_BYTES
