"""The wheel: every file of the package, the marker of types, nothing else, and no more than it must weigh."""

import io
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import wordsens as ws

ROOT = Path(__file__).parents[1]
MOST_BYTES = 1_225_000
"""Deflated file by file, as wheels are; texts, word lists and a report's styles are compressed before that."""

ARCHIVE = "wordsens/texts.tar.bz2"


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
    package = ROOT / "src" / "wordsens"
    files = [path for path in package.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    texts = {
        path.relative_to(package).as_posix(): path
        for path in files
        if path.suffix in (".jsonl", ".yaml")
        or path.parent.name in ("words", "templates")
        or path.parent.match("report/static")
        or path.parent.match("app/static")
    }
    plain = {f"wordsens/{path.relative_to(package).as_posix()}" for path in files if path not in texts.values()}
    assert names == plain | {ARCHIVE}
    assert {"wordsens/py.typed", "wordsens/__init__.pyi"} <= names
    assert {"text/shipped/reviews.jsonl", "training/adapter/words/opposites.txt"} <= set(texts)
    with zipfile.ZipFile(wheel) as opened, tarfile.open(fileobj=io.BytesIO(opened.read(ARCHIVE))) as archive:
        # JSON lines are packed by column, of which the next test makes lines again.
        as_lines = {
            name.removesuffix(".json.columns") + ".jsonl": name for name in archive.getnames() if ".json." in name
        }
        assert sorted([*as_lines, *(name for name in archive.getnames() if ".json." not in name)]) == sorted(texts)
        for name, path in texts.items():
            if name not in as_lines:
                packed = archive.extractfile(name)
                assert packed is not None and packed.read() == path.read_bytes()
    assert "Classifier: Typing :: Typed" in metadata
    assert wheel.stat().st_size < MOST_BYTES


def test_its_texts_are_read(wheel, tmp_path):
    """From the archive, in a process that sees the wheel's files alone."""
    with zipfile.ZipFile(wheel) as opened:
        opened.extractall(tmp_path)
    code = (
        "import wordsens; from wordsens.text.shipped_data import shipped_reviews; "
        "from wordsens.training.adapter.word_lists import antonyms; "
        "from wordsens.app.view import parts; assert parts.Control.component.path.read_bytes(); "
        "from wordsens.report.assets import static; assert 'var(' in static(('report.css',)); "
        "from wordsens.files import packaged_text; from pathlib import Path; "
        f"[print(n, packaged_text(n).encode() == (Path({str(ROOT / 'src' / 'wordsens')!r}) / n).read_bytes()) "
        "for n in ('text/shipped/meaning_pairs.jsonl', 'text/shipped/meaning_pages.jsonl', "
        "'text/shipped/minimal_pairs.jsonl', 'text/shipped/reviews.jsonl')]; "
        "from wordsens.app.view import shell; "
        "print(wordsens.__file__, len(shipped_reviews()), len(wordsens.read_pairs()), antonyms()['accept'][0])"
    )
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    run = [sys.executable, "-c", code]
    said = subprocess.run(run, env=environment, cwd=tmp_path, check=True, capture_output=True, text=True).stdout.split()
    assert said[1:8:2] == ["True"] * 4 and len(list((ROOT / "src/wordsens/text/shipped").glob("*.jsonl"))) == 4
    said = said[8:]
    assert said[0].startswith(str(tmp_path))
    from wordsens.text.shipped_data import shipped_reviews

    assert (int(said[1]), int(said[2]), said[3]) == (len(shipped_reviews()), len(ws.read_pairs()), "reject")
