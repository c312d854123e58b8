"""Which files a value depends on: what computes it, and nothing that shows it."""

import ast
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
        ("evaluation/check.py", False),
        ("evaluation/word_lists.py", True),
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


class _WithoutStrings(ast.NodeTransformer):
    """Statements that are only a string become `pass`."""

    def visit_Expr(self, node):
        alone = isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        return ast.Pass() if alone else node


def test_a_value_depends_on_all_but_the_docstrings():
    root = Path(wordsens.__file__).parent
    assert b"unrelated seeds" not in spec.without_docstrings(root / "seeds.py")
    for path in root.rglob("*.py"):
        source = path.read_text("utf-8")
        passes = spec._DOCSTRING.sub(
            lambda found: found[0] if found[1] is None else f"{found[1].rstrip('r')}pass", source
        )
        wanted = _WithoutStrings().visit(ast.parse(source))
        assert ast.dump(ast.parse(passes)) == ast.dump(wanted), path


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
