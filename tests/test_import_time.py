"""Importing, asking for help and a first measurement stay light: none of the heavy packages is
loaded."""

import subprocess
import sys

HEAVY = (
    "transformers",
    "sentence_transformers",
    "httpx2",
    "matplotlib",
    "pandas",
    "datasets",
    "pyarrow",
    "pydantic",
    "yaml",
    "dask",
    "distributed",
)


def loaded_of(names, code):
    """Which of the packages are loaded after the code ran."""
    report = (
        f"import sys; print('loaded:', *[name for name in {tuple(names)!r} if name in sys.modules])"
    )
    process = subprocess.run(
        [sys.executable, "-c", f"{code}\n{report}"],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    return process.stdout.rsplit("loaded:", 1)[1].split()


HELP = """
import contextlib, io
from wordsens.cli import main
with contextlib.redirect_stdout(io.StringIO()) as out:
    assert main(["--help"]) == 0
assert "measure" in out.getvalue()
"""


def test_importing_the_package_loads_nothing_heavy():
    assert loaded_of(("torch", *HEAVY), "import wordsens") == []


def test_using_the_core_loads_torch_and_no_extra():
    names = (
        "word_sensitivity",
        "RandomFeatures",
        "DeepRandomFeatures",
        "RandomAttentionFeatures",
        "TextMatrix",
    )
    code = (
        "import wordsens; [getattr(wordsens, name) for name in "
        f"{names}]"
    )  # nothing is ever unloaded
    assert loaded_of(("torch", *HEAVY), code) == ["torch"]


def test_a_measurement_of_word_embeddings_loads_torch_and_nothing_else_heavy():
    code = (
        "from wordsens.cli import main; assert main(['measure', 'I love her', '--map', 'rf']) == 0"
    )
    without_typers = [name for name in HEAVY if name != "pydantic"]
    assert loaded_of(("torch", "sympy", "torch._dynamo", *without_typers), code) == ["torch"]


def test_help_loads_no_torch():
    assert loaded_of(("torch", "numpy", *HEAVY), HELP) == []


def test_a_wrong_option_loads_no_torch():
    code = "from wordsens.cli import main; main(['measure', '--mpa'])"
    assert loaded_of(("torch", "numpy", "transformers", "matplotlib", "pandas"), code) == []
