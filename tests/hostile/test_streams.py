"""Streams and paths that the system refuses, and names that a terminal would obey: one line, the
right exit code."""

import json
import os
import subprocess
import sys
from unittest.mock import Mock

import pytest
from rich.table import Table

from wordsens.cli import main, terminal

LONG = "a" * 5000


def ended(command, **streams):
    """The exit code and stderr of `wordsens` in a process of its own."""
    run = subprocess.run(
        [sys.executable, "-m", "wordsens", *command],
        stderr=subprocess.PIPE,
        text=True,
        timeout=120,
        **streams,
    )
    return run.returncode, run.stderr


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a full disk is a file on Linux alone")  # noqa: PTH110
def test_a_full_disk_under_stdout():
    with open("/dev/full", "w") as full:  # noqa: PTH123
        code, said = ended(["--version"], stdout=full)
    assert (code, said) == (1, "wordsens: the output cannot be written: No space left on device\n")


@pytest.mark.skipif(sys.platform == "win32", reason="needs a POSIX shell's >&-")
@pytest.mark.parametrize(("closed", "code"), [(">&-", 1), ("2>&-", 2)])
def test_a_closed_stdout_or_stderr(closed, code):
    script = f'"{sys.executable}" -m wordsens nosuch {closed}'
    run = subprocess.run(["sh", "-c", script], capture_output=True, text=True, timeout=120)
    assert (run.returncode, run.stdout) == (code, "")
    assert run.stderr.count("\n") == (closed == ">&-")


@pytest.mark.parametrize(
    "command",
    [
        ["measure", "--file", LONG, "--map", "rf"],
        ["measure", "--texts", LONG, "--map", "rf"],
        ["audit", LONG, "--dataset", "shipped"],
        ["check", "minilm", "--pairs", f"{LONG}.csv"],
        ["check", "minilm", "--baseline", LONG],
        ["report", LONG],
        ["explain", LONG, "a b"],
        ["report", "a\0b"],
    ],
)
def test_a_path_that_cannot_be_one(wordsens, command):
    run = wordsens(*command)
    assert (run.code, run.out, run.err.count("\n")) == (2, "", 1)
    assert len(run.err) < 1000
    assert "cannot be used as a path" in run.err


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (
            PermissionError(13, "Permission denied", "/locked/a"),
            2,
            "'/locked/a' cannot be used: Permission denied",
        ),
        (MemoryError(), 1, "the memory does not suffice"),
    ],
)
def test_an_error_of_the_system_is_one_line(wordsens, monkeypatch, error, code, message):
    # A mock: an error that went through a file outside of the package is the user's to mend.
    monkeypatch.setattr("wordsens.report.load.load_runs", Mock(side_effect=error))
    run = wordsens("report", "a")
    assert (run.code, run.out, run.err.count("\n")) == (code, "", 1)
    assert message in run.err


def test_a_message_has_no_control_characters_and_an_end(wordsens):
    run = wordsens("report", "\x1b[31m\x07\x9b" + "b" * 100_000 + "\x7f")
    assert run.code == 2
    assert run.err.count("\n") == 1
    assert run.err.rstrip("\n").isprintable()
    assert len(run.err) < 2100


def test_what_is_shown_is_text_alone(capsys):
    terminal.stdout().print("[red]word[/red] :smile: \x1b[31mred\x07\x9b2J\x7f")
    made = Table(box=None)
    made.add_column("\x1b]0;title\x07word")
    made.add_row("[bold]\x1b[2J[/x]")
    terminal.stdout().print(made)
    terminal.notice("\x1b[31m[bold]x[/nosuch]")
    shown = capsys.readouterr()
    assert "[red]word[/red] :smile: [31mred2J\n" in shown.out
    assert "[bold][2J[/x]" in shown.out
    assert shown.err == "wordsens: [31m[bold]x[/nosuch]\n"
    assert not any(sign in shown.out + shown.err for sign in "\x1b\x07\x9b\x7f")


def test_json_escapes_what_a_terminal_would_obey(capsys):
    main(["--version"])
    capsys.readouterr()
    document = {"word": "\x1b[31m\x7f\x9b2J café \ud800"}
    terminal.print_json(document)
    said = capsys.readouterr().out
    assert json.loads(said) == document
    assert not any(sign in said for sign in "\x1b\x7f\x9b")


@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "cp1252"])
def test_a_narrow_stdout_is_written_to(encoding):
    code = "from wordsens.cli import terminal, main; main(['--version'])"
    code += "; terminal.print_json({'a': 'é漢\\ud800'}); terminal.stdout().print('é漢')"
    run = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        timeout=120,
        env={**os.environ, "PYTHONIOENCODING": encoding},
    )
    assert run.returncode == 0, run.stderr
    lines = run.stdout.decode(encoding).splitlines()
    assert json.loads(lines[1]) == {"a": "é漢\ud800"}
