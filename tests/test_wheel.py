"""The wheel: every file of the package, the marker of types, nothing else, and no more than it must weigh."""

import bz2
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MOST_BYTES = 1_200_000
"""Deflated file by file, as wheels are; the shipped texts and pairs are compressed before that."""


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
    files = [path for path in (source / "wordsens").rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    texts = {path.relative_to(source).as_posix(): path for path in files if path.suffix == ".jsonl"}
    plain = {path.relative_to(source).as_posix() for path in files} - set(texts)
    assert names == plain | {f"{name}.bz2" for name in texts}
    assert {"wordsens/py.typed", "wordsens/__init__.pyi", "wordsens/text/shipped/reviews.jsonl.bz2"} <= names
    with zipfile.ZipFile(wheel) as opened:
        for name, path in texts.items():
            assert bz2.decompress(opened.read(f"{name}.bz2")) == path.read_bytes()
    assert "Classifier: Typing :: Typed" in metadata
    assert wheel.stat().st_size < MOST_BYTES
