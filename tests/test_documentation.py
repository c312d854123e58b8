"""The documentation: every public name is in the reference, every page in the contents, and every
command parses."""

import json
import re
import shlex
from pathlib import Path
from runpy import run_path
from types import ModuleType

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
