"""Which files a value depends on: what computes it, and nothing that shows it."""

import shutil
from pathlib import Path

import pytest

import wordsens
from wordsens.files import own_sources
from wordsens.sweeps import spec
from wordsens.sweeps.sweep import study_named


@pytest.mark.parametrize(
    ("changed", "counts"),
    [
        ("display/style.css", False),
        ("evaluation/words/guard/antonyms.txt", False),
        ("evaluation/guard/judge.py", False),
        ("plotting/style.py", False),
        ("cli/paper.py", False),
        ("maps/attention/change.py", True),
        ("models/embedding.py", True),
        ("seeds.py", True),
    ],
)
def test_a_value_depends_on_the_packages_that_compute(tmp_path, monkeypatch, changed, counts):
    root = tmp_path / "wordsens"
    shutil.copytree(Path(wordsens.__file__).parent, root, ignore=shutil.ignore_patterns("*.pyc"))
    monkeypatch.setattr(spec, "_PACKAGE", root)
    before = spec.code_version.__wrapped__()
    (root / changed).write_bytes((root / changed).read_bytes() + b"\nADDED = 1\n")
    assert (spec.code_version.__wrapped__() != before) == counts


def test_studies_differ_in_their_own_files():
    cells = [study_named(name).Cell for name in ("sensitivity", "similarity", "control", "depth")]
    assert len({spec.code_version(cell) for cell in cells}) == 4


@pytest.mark.parametrize(
    "line", ["import own.helper", "from own import helper", "from . import helper"]
)
@pytest.mark.parametrize("inside", ["", "def measure(cell):\n    "])
def test_a_file_of_ones_own_depends_on_the_files_beside_it_that_it_imports(tmp_path, line, inside):
    contents = {"study": inside + line, "helper": "from .further import f", "further": "", "no": ""}
    for name, content in contents.items():
        (tmp_path / f"{name}.py").write_text(content)
    files = own_sources("own.study", tmp_path / "study.py")
    assert {path.stem for path in files} == {"study", "helper", "further"}
    (tmp_path / "study.py").write_text("import helper, numpy")
    assert len(own_sources("study", tmp_path / "study.py")) == 3
