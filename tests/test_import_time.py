"""Importing stays light, in what is loaded and in seconds. Each check is shown to be able to fail.

Seconds are the process's own: those of the clock depend on what else the machine does.
"""

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
REPEATS = 3


def run(code, repeats=REPEATS):
    """The least processor time of a few runs of the code, and what the last one printed."""
    timed = f"import atexit, time; atexit.register(lambda: print('\\n', time.process_time()))\n{code}"
    best = float("inf")
    output = ""
    for _ in range(repeats):
        process = subprocess.run([sys.executable, "-c", timed], capture_output=True, text=True, check=True, timeout=120)
        output, seconds = process.stdout.rstrip().rsplit("\n", 1)
        best = min(best, float(seconds))
    return best, output


def loaded_of(names, code):
    """Which of the packages are loaded after the code ran."""
    report = f"import sys; print('loaded:', *[name for name in {tuple(names)!r} if name in sys.modules])"
    _, output = run(f"{code}\n{report}", repeats=1)
    return output.rsplit("loaded:", 1)[1].split()


HELP = """
import contextlib, io
from wordsens.cli import main
with contextlib.redirect_stdout(io.StringIO()) as out:
    assert main(["--help"]) == 0
assert "measure" in out.getvalue()
"""


def test_importing_the_package_takes_under_1_5_seconds():
    seconds, _ = run("import wordsens")
    assert seconds < 1.5


def test_importing_the_package_loads_nothing_heavy():
    assert loaded_of(("torch", *HEAVY), "import wordsens") == []


def test_using_the_core_loads_torch_and_no_extra():
    names = ("word_sensitivity", "RandomFeatures", "DeepRandomFeatures", "RandomAttentionFeatures", "TextMatrix")
    code = f"import wordsens; [getattr(wordsens, name) for name in {names}]"  # nothing is ever unloaded
    assert loaded_of(("torch", *HEAVY), code) == ["torch"]


def test_help_takes_under_a_second():
    seconds, output = run("import sys; from wordsens.cli import main; sys.exit(main(['--help']))")
    assert "measure" in output
    assert seconds < 1.0


def test_help_loads_no_torch():
    assert loaded_of(("torch", "numpy", *HEAVY), HELP) == []


def test_a_wrong_option_loads_no_torch():
    code = "from wordsens.cli import main; main(['measure', '--mpa'])"
    assert loaded_of(("torch", "numpy", "transformers", "matplotlib", "pandas"), code) == []


def test_the_check_sees_what_is_loaded():
    assert loaded_of(
        ("torch", "matplotlib", "pydantic", "transformers"),
        "import wordsens.figures.scaling, wordsens.experiments.sensitivity",
    ) == [
        "torch",
        "matplotlib",
        "pydantic",
    ]


def test_the_clock_sees_a_slow_import():
    seconds, _ = run("import time\nwhile time.process_time() < 0.3: pass")
    assert seconds > 0.3
