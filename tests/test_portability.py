"""Linux, macOS and Windows, as far as can be told on one of them: modules, encodings, processes."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import wordsens

ROOT = Path(wordsens.__file__).parent
POSIX = {"fcntl", "grp", "posix", "pty", "pwd", "resource", "syslog", "termios", "tty"}
"""Modules of the standard library that Windows lacks."""


def unguarded(tree):
    """The imports of POSIX modules outside of a `try` that expects them to fail."""
    guarded = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Try) and any("ImportError" in ast.unparse(one.type or one) for one in node.handlers):
            guarded |= {id(inner) for one in node.body for inner in ast.walk(one)}
    for node in ast.walk(tree):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [str(node.module)] if isinstance(node, ast.ImportFrom) else []
        yield from (f"import {name}" for name in names if name in POSIX and id(node) not in guarded)


def without_encoding(tree):
    """The calls that open a file as text in whatever encoding the machine prefers; processes that are forked."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        spelled = ast.unparse(node)
        binary = any(isinstance(one, ast.Constant) and isinstance(one.value, str) and "b" in one.value for one in
                     [*node.args, *(key.value for key in node.keywords if key.arg == "mode")])  # fmt: skip
        own = isinstance(node.func, ast.Name) or spelled.split(".")[0] not in ("os", "webbrowser", "self")
        text = name in ("read_text", "write_text") or (name in ("open", "fdopen") and own and not binary)
        if text and not any(key.arg == "encoding" for key in node.keywords):
            yield spelled
        started = name in ("get_context", "set_start_method") and "fork" in spelled
        if started or spelled.startswith(("os.fork(", "os.forkpty(")):
            yield spelled


@pytest.mark.parametrize("rule", [unguarded, without_encoding])
def test_no_file_depends_on_one_system(rule):
    found = {
        f"{path.relative_to(ROOT)}: {line}"
        for path in ROOT.rglob("*.py")
        for line in rule(ast.parse(path.read_text(encoding="utf-8")))
    }
    assert found == set()


@pytest.mark.parametrize(
    ("rule", "lines"),
    [
        (unguarded, "import fcntl"),
        (unguarded, "def f():\n    from resource import getrusage"),
        (unguarded, "try:\n    import pwd\nexcept OSError:\n    pass"),
        (without_encoding, "path.read_text()"),
        (without_encoding, "open('a', 'w')"),
        (without_encoding, "path.open(newline='')"),
        (without_encoding, "multiprocessing.get_context('fork')"),
        (without_encoding, "os.fork()"),
    ],
)
def test_the_rules_see_violations(rule, lines):
    assert list(rule(ast.parse(lines)))


HIDDEN = f"""
import builtins, importlib, pkgutil, sys
found = builtins.__import__

def hiding(name, globals=None, *rest, **named):
    if name in {sorted(POSIX)!r} and str((globals or {{}}).get("__name__")).startswith("wordsens"):
        raise ImportError(name)
    return found(name, globals, *rest, **named)

builtins.__import__ = hiding  # `encodings` calls it by keyword
import wordsens
names = [one.name for one in pkgutil.walk_packages(wordsens.__path__, "wordsens.")]
for name in names:
    if not name.endswith("__main__"):
        importlib.import_module(name)
from wordsens.experiments.provenance import peak_memory_mb
print(len(names), peak_memory_mb())
"""


def test_every_module_is_imported_without_the_modules_that_windows_lacks():
    run = subprocess.run([sys.executable, "-c", HIDDEN], capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr
    count, lacking = run.stdout.split()
    assert int(count) > 200
    assert lacking == "None"
