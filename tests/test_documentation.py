"""The documentation: every public name is in the reference, every page in the contents, and every
command parses."""

import doctest
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from runpy import run_path
from types import ModuleType
from typing import Any

import pytest
import typer
from jsonschema import Draft202012Validator

import wordsens as ws
from wordsens.cli import commands
from wordsens.cli.commands import app
from wordsens.maps.registry import MAPS
from wordsens.sweeps.map_cell import MapCell

DOCS = Path(__file__).parent.parent / "docs"
PAGES = sorted(
    page for page in [*DOCS.rglob("*.md"), DOCS.parent / "README.md"] if "_build" not in page.parts
)
REFERENCE = "".join(page.read_text(encoding="utf-8") for page in (DOCS / "api").glob("*.md"))
EXAMPLES = "\n".join(re.findall(r"^(?:>>>|\.\.\.) .*", REFERENCE, re.MULTILINE))
ROOMS = pytest.mark.parametrize(
    "room",
    [ws, ws.theory, ws.plotting, ws.training, ws.studies.control],
    ids=lambda room: room.__name__,
)
COMMANDS = [
    pytest.param(line.split("#")[0].strip(" $&"), id=f"{page.name}: {line.strip(' $')[:60]}")
    for page in PAGES
    for line in re.findall(
        r"^(?:\$ | {4}\.venv/bin/)(wordsens .*)$", page.read_text(encoding="utf-8"), re.MULTILINE
    )
]


def _missing(names: list[str], reference: str) -> list[str]:
    """The names that no directive of the reference has."""
    return [
        name for name in names if not re.search(rf"\.\. auto\w+:: {name}$", reference, re.MULTILINE)
    ]


def _without_example(room: ModuleType, examples: str) -> list[str]:
    """The callables of the room that neither their docstring nor a line of the examples has at
    work."""
    place = re.escape(room.__name__.replace("wordsens", "ws"))
    names = [name for name in dir(room) if name[0] != "_" and callable(getattr(room, name))]
    silent = [name for name in names if ">>> " not in (getattr(room, name).__doc__ or "")]
    return [name for name in silent if not re.search(rf"\b{place}\.{name}\b", examples)]


@ROOMS
def test_every_public_name_is_in_the_reference(room: ModuleType) -> None:
    names = [
        name
        for name in dir(room)
        if name[0] != "_" and not isinstance(getattr(room, name), ModuleType)
    ]
    assert names
    assert not _missing(names, REFERENCE)


@ROOMS
def test_every_public_name_has_an_example(room: ModuleType) -> None:
    """In its docstring or on a page of docs/api, as `ws.certify`; both are run by the tests."""
    lacking = _without_example(room, EXAMPLES)
    assert not lacking, f"{room.__name__}: no >>> line for {', '.join(lacking)}"


@pytest.mark.parametrize("page", ["cli.md", "sweeps.md"])
def test_every_map_has_a_row_and_in_sweeps_its_keys(page: str) -> None:
    rows = [line for line in (DOCS / page).read_text(encoding="utf-8").splitlines() if "|" in line]
    for entry in MAPS.values():
        said = [
            row.partition(" |")[2] for row in rows if f"`{entry.name}`" in row[: row.find(" |")]
        ]
        assert said, f"{page}: no row for {entry.name}"
        if page == "sweeps.md":
            keys = entry.options.keys() & MapCell.model_fields.keys()
            missing = [key for key in keys if f"`{key}`" not in said[0]]
            assert not missing, f"{page}: {entry.name} without {missing}"


def test_every_page_is_in_the_contents() -> None:
    contents = (DOCS / "index.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"^[\w/-]+$", contents, re.MULTILINE))
    pages = [
        path.relative_to(DOCS).with_suffix("").as_posix()
        for path in [*DOCS.rglob("*.md"), *DOCS.rglob("*.ipynb")]
    ]
    assert {page for page in pages if not page.startswith(("_build", "jupyter_execute"))} - {
        "index"
    } == listed


def test_links_to_this_repository_name_its_files_and_readme_has_no_others() -> None:
    """The index page of a package shows README, where relative links lead nowhere."""
    root, name = DOCS.parent, "wordsens/wordsens"
    hosts = rf"github\.com/{name}/(?:blob|tree)|raw\.githubusercontent\.com/{name}"
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        links = re.findall(rf"https://(?:{hosts})/main/([^\s)#\"'>]+)", text)
        lost = [link for link in links if not (root / link).exists()]
        assert not lost, f"{page.name}: no file {', '.join(lost)}"
    readme = (root / "README.md").read_text(encoding="utf-8")
    assert all(
        target.startswith(("https://", "#")) for target in re.findall(r"\]\(([^)]+)", readme)
    )


def test_every_command_has_its_options_in_the_reference() -> None:
    """`python docs/cli_page.py` renews them."""
    page = (DOCS / "cli.md").read_text(encoding="utf-8")
    assert run_path(str(DOCS / "cli_page.py"))["text"]() == page
    for name in commands.COMMANDS:
        assert f"```{{wordsens-options}} {name}\n" in page
    assert "\nSPEC OVERRIDES --out --workers " in page


def _consoles() -> Iterator[Any]:
    """The console blocks that show what commands print; `cat FILE` shows a file that is read
    later."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for block in re.findall(r"^```console\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
            steps = re.findall(r"^\$ (.+)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE)
            first = next((line for line, shown in steps if shown), None)
            if first and not any(file in block for file in OF_THE_READER):
                yield pytest.param(steps, id=f"{page.name}: {first[:60]}")


# Files of a reader that no page shows, and pages of a server.
OF_THE_READER = ("pairs.csv --out judged.csv", "my_layers", "letters.csv", "spec.yaml", "--open")


@pytest.mark.slow
@pytest.mark.parametrize("steps", [*_consoles()])
def test_console_blocks_show_what_the_commands_print(
    steps: list[tuple[str, str]], tmp_path: Path
) -> None:
    (tmp_path / "examples").symlink_to(DOCS.parent / "examples")
    for guide in (DOCS / "guides").glob("*.py"):
        shutil.copy(guide, tmp_path)
    (tmp_path / "candidates.csv").write_text("first,second\nmw-3,MW 3\nmw-3,mw-2\ngpt-4,gpt-4o\n")
    environment = {**os.environ, "COLUMNS": "120", "NO_COLOR": "1", "OMP_NUM_THREADS": "1"}
    for line, shown in steps:
        words = shlex.split(line, comments=True)
        if words[0] == "cat" and not (tmp_path / words[1]).exists():
            (tmp_path / words[1]).write_text(shown, encoding="utf-8")
        if not shown or words[0] not in ("wordsens", "cat"):
            continue
        words[0] = shutil.which(words[0], path=f"{Path(sys.executable).parent}:/bin") or words[0]
        done = subprocess.run(
            words, cwd=tmp_path, env=environment, capture_output=True, encoding="utf-8"
        )
        how = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
        printed = done.stdout or done.stderr
        assert doctest.OutputChecker().check_output(shown, printed, how), f"{line}\n{printed}"


@pytest.mark.parametrize("line", COMMANDS)
def test_every_command_in_the_documentation_parses(line: str) -> None:
    """Its command and options exist, and their values are of the right type; it is not run."""
    group = command = typer.main.get_command(app)
    words = shlex.split(re.sub(r"[\[\]]|\.\.\.", "", line))[1:]
    while hasattr(command, "commands"):
        command = command.commands[words.pop(0)]
    if "--help" not in words:
        command.make_context("wordsens", words, parent=typer.Context(group))


def test_the_schema_of_json_documents_says_what_the_classes_say() -> None:
    """`python docs/json_page.py` renews it."""
    schema = (DOCS / "json.schema.json").read_text(encoding="utf-8")
    assert run_path(str(DOCS / "json_page.py"))["text"]() == schema
    Draft202012Validator.check_schema(json.loads(schema))
