"""What every command has from its decorator: options, their names in messages, how it ends."""

import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from wordsens.cli.command import FURTHER, Answer, Command, CommandRun, command, option, output_file
from wordsens.cli.commands import COMMANDS, GROUPS, app
from wordsens.errors import InputError, RequirementError, argument, require_count


@dataclass(frozen=True, kw_only=True)
class Size:
    """A group of options."""

    width: Annotated[int, option("Its width.", rule=require_count)] = 3
    unit: Annotated[str, option("Its unit.", panel="Units")] = "cm"


@command("measure-it", first=("width",))
def _measure_it(
    size: Size,
    names: Annotated[list[str] | None, option("A name.", "--name")] = None,
    *,
    run: CommandRun,
) -> Answer:
    """Print a size.

    Its second paragraph
    has a line break.
    """
    if size.width > 9:
        raise InputError(f"{argument('width', 9)}, {argument('names')}, {argument('other')}")
    error = RequirementError("too wide") if size.width > 5 else None
    return Answer(
        document={"width": size.width, "unit": size.unit, "names": names},
        lines=[f"{size.width} {size.unit}"],
        error=error,
    )


def _run(*words: str) -> tuple[str, BaseException | None]:
    one = typer.Typer()
    one.command(cls=Command)(_measure_it)
    ended = CliRunner().invoke(one, list(words))
    return ended.stdout, ended.exception


def test_fields_of_groups_are_options_and_the_answer_is_printed():
    assert _run("--width", "4", "--unit", "m") == ("4 m\n", None)
    out, _ = _run("--json", "--name", "a", "--name", "b")
    head = {"command": "measure-it", "width": 3, "unit": "cm", "names": ["a", "b"]}
    assert {name: json.loads(out)[name] for name in head} == head


def test_the_error_of_an_answer_comes_after_all_is_printed():
    out, error = _run("--width", "6")
    assert (out, str(error)) == ("6 cm\n", "too wide")


def test_messages_name_options_as_they_are_typed():
    """With the value that is proposed; what is no option keeps its name in Python."""
    _, error = _run("--width", "10")
    assert str(error) == "--width 9, --name, `other`"
    _, error = _run("--width", "0")
    assert str(error).startswith("--width (=0) must be a whole number")
    assert argument("width") == "`width`"


def test_a_rule_holds_for_each_value_of_an_option_that_may_be_repeated():
    @command("sizes")
    def sizes(
        widths: Annotated[list[int] | None, option("A width.", "--width", rule=require_count)],
        *,
        run: CommandRun,
    ) -> Answer:
        return Answer(document={}, lines=[str(widths)])

    one = typer.Typer()
    one.command(cls=Command)(sizes)
    assert CliRunner().invoke(one, ["--width", "2", "--width", "3"]).stdout == "[2, 3]\n"
    assert isinstance(
        CliRunner().invoke(one, ["--width", "2", "--width", "0"]).exception, InputError
    )


def test_a_command_that_misses_something_is_refused_where_it_is_written():
    with pytest.raises(TypeError, match="run: CommandRun"):
        command("bare")(lambda: None)
    with pytest.raises(TypeError, match="count: annotate it"):

        @command("plain")
        def plain(count: int = 3, *, run: CommandRun) -> None: ...


def test_the_help_shows_first_what_people_use_first():
    out, _ = _run("--help")
    panels = re.findall(r"╭─ (\w[\w ]*?) ─", out)
    assert panels == ["Options", "Units", FURTHER]
    assert out.index("--width") < out.index("--unit") < out.index("--name")
    assert "Its second paragraph has a line break." in out


def test_the_table_of_commands_is_what_can_be_typed():
    group = typer.main.get_command(app)
    typed = [
        f"{name} {inner}".strip()
        for name, each in group.commands.items()
        for inner in getattr(each, "commands", {"": None})
    ]
    assert sorted(typed) == sorted(COMMANDS)
    assert set(GROUPS) == {name.split()[0] for name in COMMANDS if " " in name}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_prints_json_or_nothing_but_the_answer(name):
    command: object = typer.main.get_command(app)
    for word in name.split():
        command = command.commands[word]
    options = {each for parameter in command.params for each in parameter.opts}
    assert {"--json", "--quiet"} <= options
    assert command.callback.__name__ == name


def test_a_file_that_cannot_be_written_is_refused_before_the_work(tmp_path, monkeypatch):
    assert output_file("html", tmp_path / "page.html") == tmp_path / "page.html"
    monkeypatch.setenv("HOME", str(tmp_path))
    assert output_file("html", Path("~/page.html")) == tmp_path / "page.html"
    for path in (tmp_path, tmp_path / "none" / "page.html"):
        with pytest.raises(InputError, match="must be a file in a folder that exists"):
            output_file("html", path)
    monkeypatch.setattr(os, "access", lambda path, mode: path != tmp_path)
    with pytest.raises(InputError, match="cannot be written"):
        output_file("html", tmp_path / "page.html")


@pytest.mark.parametrize(
    ("number", "said"), [(signal.SIGINT, "interrupted"), (signal.SIGTERM, "terminated")]
)
def test_a_signal_ends_any_command_with_its_code(number, said):
    process = subprocess.Popen(
        [sys.executable, "-m", "wordsens", "guard"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A suite in the background of a shell ignores SIGINT, and its children would too.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write('["a b", "a b"]\n')
    process.stdin.flush()
    assert process.stdout.readline().startswith("same")
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (128 + number, f"wordsens: {said}\n")
