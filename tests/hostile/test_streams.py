"""Streams and paths that the system refuses, and names that a terminal would obey: one line, the right exit code."""

import json
import os
import subprocess
import sys

import pytest
from rich.table import Table

from wordsens.cli import main, terminal

LONG = "a" * 5000


def ended(command, **streams):
    """The exit code and stderr of `wordsens` in a process of its own."""
    run = subprocess.run(
        [sys.executable, "-m", "wordsens", *command], stderr=subprocess.PIPE, text=True, timeout=120, **streams
    )
    return run.returncode, run.stderr


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a full disk is a file on Linux alone")  # noqa: PTH110
@pytest.mark.parametrize("command", [["--version"], ["sweep", "--help"]])
def test_a_full_disk_under_stdout(command):
    with open("/dev/full", "w") as full:  # noqa: PTH123
        assert ended(command, stdout=full) == (1, "wordsens: the output cannot be written: No space left on device\n")


@pytest.mark.skipif(sys.platform == "win32", reason="needs a POSIX shell's >&-")
def test_a_closed_stdout_or_stderr():
    def told(closed):
        script = f'"{sys.executable}" -m wordsens sweep status nosuch {closed}'
        return subprocess.run(["sh", "-c", script], capture_output=True, text=True, timeout=120)

    run = told(">&-")
    assert (run.returncode, run.stderr) == (
        1,
        "wordsens: there is no stdout to write to: it is closed; give one, such as > /dev/null\n",
    )
    run = told("2>&-")
    assert (run.returncode, run.stdout) == (2, "")


@pytest.mark.parametrize(
    "command",
    [
        ["sweep", "status", LONG],
        ["sweep", "status", f"{LONG}.yaml"],
        ["paper", "attention", "--out", LONG],
        ["measure", "--file", LONG, "--map", "rf"],
        ["measure", "--dataset", LONG, "--map", "rf"],
        ["audit", LONG, "--dataset", "shipped"],
        ["check", "minilm", "--pairs", f"{LONG}.csv"],
        ["check", "minilm", "--baseline", LONG],
        ["report", LONG],
        ["explain", LONG, "a b"],
        ["measure", "--file", "a\0b", "--map", "rf"],
        ["report", "a\0b"],
        ["sweep", "run", "a\0b"],
    ],
)
def test_a_path_that_cannot_be_one(wordsens, command):
    run = wordsens(*command)
    assert (run.code, run.out, run.err.count("\n")) == (2, "", 1)
    assert len(run.err) < 1000
    assert "cannot be used as a path" in run.err


def test_a_sweep_that_is_not_there_is_named_as_it_was_asked_for(wordsens):
    run = wordsens("sweep", "status", "nosuch")
    assert run.code == 2
    assert run.err.startswith("wordsens: `path` (='nosuch')")


def test_the_systems_own_word_is_kept_where_it_refuses_a_path(wordsens, monkeypatch):
    from wordsens.cli import sweep

    def refused(*_, **__):
        raise PermissionError(13, "Permission denied", "/locked/a.yaml")

    monkeypatch.setattr(sweep, "_source", refused)
    run = wordsens("sweep", "status", "a")
    assert run == (2, "", "wordsens: '/locked/a.yaml' cannot be used: Permission denied; give another path\n")


def test_too_little_memory_is_one_line(wordsens, monkeypatch):
    from wordsens.cli import sweep

    def full(*_, **__):
        raise MemoryError

    monkeypatch.setattr(sweep, "_source", full)
    run = wordsens("sweep", "status", "a")
    assert (run.code, run.out, run.err.count("\n")) == (1, "", 1)
    assert "the memory does not suffice" in run.err


def test_a_message_has_no_control_characters_and_an_end(wordsens):
    run = wordsens("sweep", "status", "\x1b[31m\x07\x9b" + "b" * 100_000 + ".yaml\x7f")
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
        [sys.executable, "-c", code], capture_output=True, timeout=120, env={**os.environ, "PYTHONIOENCODING": encoding}
    )
    assert run.returncode == 0, run.stderr
    lines = run.stdout.decode(encoding).splitlines()
    assert json.loads(lines[1]) == {"a": "é漢\ud800"}


def test_main_leaves_the_streams_open(capsys):
    assert main(["--version"]) == 0
    print("still here")
    assert "still here" in capsys.readouterr().out
