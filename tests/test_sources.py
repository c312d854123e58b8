"""Which files a value depends on: what computes it, and nothing that shows it."""

import shutil
from pathlib import Path

import pytest

import wordsens
from wordsens.sources import source_digest
from wordsens.sweeps.sweep import experiment_named


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """A copy of the package."""
    root = tmp_path_factory.mktemp("copy") / "wordsens"
    shutil.copytree(Path(wordsens.__file__).parent, root, ignore=shutil.ignore_patterns("*.pyc"))
    return root


@pytest.mark.parametrize("experiment", ["sensitivity", "similarity", "control"])
@pytest.mark.parametrize(
    ("changed", "counts"),
    [
        ("display/style.css", False),
        ("display/html.py", False),
        ("evaluation/words/guard/antonyms.txt", False),
        ("evaluation/guard/judge.py", False),
        ("plotting/style.py", False),
        ("report/tables.py", False),
        ("cli/paper.py", False),
        ("studies/correlations.py", False),
        ("maps/attention/change.py", True),
        ("models/embedding.py", True),
        ("seeds.py", True),
    ],
)
def test_a_shipped_experiment_depends_on_what_it_imports(package, experiment, changed, counts):
    module = experiment_named(experiment).Cell.__module__
    files = {module: package.parent.joinpath(*module.split(".")).with_suffix(".py")}
    before = source_digest(files)
    content = (package / changed).read_bytes()
    (package / changed).write_bytes(content + b"\nADDED = 1\n")
    try:
        assert (source_digest(files) != before) == counts
    finally:
        (package / changed).write_bytes(content)


@pytest.mark.parametrize(
    "line",
    [
        "import own.helper",
        "from own import helper",
        "from . import helper",
        "from .helper import f",
        "import importlib; importlib.import_module('own.helper')",
        "import importlib; importlib.import_module('.helper', __package__)",
    ],
)
@pytest.mark.parametrize("inside", ["", "def measure(cell):\n    "])
def test_a_file_of_ones_own_depends_on_the_files_that_it_imports(tmp_path, line, inside):
    folder = tmp_path / "own"
    folder.mkdir()
    for name, content in {
        "__init__": "",
        "study": inside + line,
        "helper": "import further",
        "unused": "",
    }.items():
        (folder / f"{name}.py").write_text(content)
    (tmp_path / "further.py").write_text("FURTHER = 1")
    files = {"own.study": folder / "study.py"}
    digests = [source_digest(files)]
    for path in ("own/unused.py", "own/study.py", "own/helper.py", "own/__init__.py", "further.py"):
        (tmp_path / path).write_text((tmp_path / path).read_text() + "\nADDED = 1\n")
        digests.append(source_digest(files))
    assert digests[0] == digests[1]
    assert len(set(digests)) == 5


def test_installed_packages_are_not_read(tmp_path):
    for name in ("study", "numpy"):
        (tmp_path / f"{name}.py").write_text("import numpy")
    (tmp_path / "study-1.0.dist-info").mkdir()
    before = source_digest({"study": tmp_path / "study.py"})
    (tmp_path / "numpy.py").write_text("changed = True")
    assert source_digest({"study": tmp_path / "study.py"}) == before


@pytest.mark.parametrize(
    ("content", "same"),
    [
        (
            '"""It."""\n\nimport numpy\n\n\ndef f(x):\n    """f."""\n    # twice\n    return '
            '"""a\n\n# b""" * x\n',
            True,
        ),
        ('import numpy\ndef f(x):\n    "f."; return """a\n\n# b""" * x\n', False),
        ('import numpy\ndef f(x):\n    return """a\n\n# b""" * x\n', True),
        ('import numpy\ndef f(x):\n    return """a\n# b""" * x\n', False),
        ('import numpy\ndef f(x):\n    return """a\n\n""" * x\n', False),
        ('import numpy\ndef f(x):\n    return """a\n\n# b""" * -x\n', False),
    ],
)
def test_comments_docstrings_and_empty_lines_do_not_count(tmp_path, content, same):
    path = tmp_path / "study.py"
    path.write_text(
        'import numpy\ndef f(x):\n    """What f gives:\n\n    twice x."""\n    return """a\n\n# '
        'b""" * x\n'
    )
    before = source_digest({"study": path})
    path.write_text(content)
    assert (source_digest({"study": path}) == before) == same
