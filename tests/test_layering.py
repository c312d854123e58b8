"""The rooms of the package stand one above the other: a module imports its room and lower ones; no circles of files."""

import ast
from pathlib import Path

import pytest

import wordsens

ROOMS = (
    "errors",
    "files",
    "seeds",
    "results",
    "signatures",
    "activations",
    "statistics",
    "gaussian",
    "text",
    "search",
    "maps",
    "models",
    "certificates",
    "theory",
    "sensitivity",
    "regression",
    "generalization",
    "audit",
    "evaluation",
    "training",
    "experiments",
    "figures",
    "report",
    "app",
    "cli",
    "__main__",
)
"""Lowest first. A room is a module or a package of the root, with all that is in it."""

ONLY_IN = {
    "transformers": ("text", "maps"),
    "tokenizers": ("text", "maps"),
    "sentence_transformers": ("models",),
    "httpx2": ("models",),
    "datasets": ("text",),
    "matplotlib": ("figures",),
    "jinja2": ("report",),
    "nicegui": ("app",),
    "uvicorn": ("app",),
    "fastapi": ("app",),
    "typer": ("cli",),
    "rich": ("cli",),
    "pydantic": ("experiments",),
    "distributed": ("experiments",),
}


def imported(path, module, package):
    """The absolute names that a file imports, wherever in it the import stands."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                yield f"relative import in {module}"
            elif node.module == package:
                yield from (
                    package if alias.name == "__version__" else f"{package}.{alias.name}" for alias in node.names
                )
            else:
                yield str(node.module)


def modules(root):
    """Every module's name, from the package's root, and its file."""
    for path in sorted(root.rglob("*.py")):
        yield ".".join(path.relative_to(root).with_suffix("").parts).removesuffix("__init__").rstrip("."), path


def violations(root):
    """Every import that the order of the rooms does not allow, as `importer -> imported: why`."""
    package = root.name
    found = []
    for module, path in modules(root):
        room = module.partition(".")[0]
        if not module:
            continue
        if room not in ROOMS:
            found.append(f"{module}: no room of this table")
            continue
        for name in imported(path, module, package):
            top, _, rest = name.partition(".")
            other = rest.partition(".")[0]
            if name.startswith("relative"):
                found.append(f"{module} -> {name}: import by the full name")
            elif top in ONLY_IN and room not in ONLY_IN[top]:
                found.append(f"{module} -> {top}: only {', '.join(ONLY_IN[top])} may import it")
            elif top == package and rest and other not in ROOMS:
                found.append(f"{module} -> {rest}: no room of this table")
            elif top == package and rest and ROOMS.index(other) > ROOMS.index(room):
                found.append(f"{module} -> {rest}: {room} lies below {other}")
    return found


def circles(root):
    """The modules that import each other in a circle, by imports that run when a module is loaded or later."""
    package = root.name
    files = dict(modules(root))
    names = set(files)
    imports = {}
    for module, path in files.items():
        targets = set()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith(f"{package}."):
                home = node.module.removeprefix(f"{package}.")
                targets |= {f"{home}.{alias.name}" if f"{home}.{alias.name}" in names else home for alias in node.names}
            elif isinstance(node, ast.Import):
                targets |= {alias.name.removeprefix(f"{package}.") for alias in node.names}
        imports[module] = (targets & names) - {module, ""}
    left = dict(imports)
    while free := [module for module, targets in left.items() if not targets & left.keys()]:
        for module in free:
            del left[module]
    while free := [module for module in left if not any(module in targets for targets in left.values())]:
        for module in free:
            del left[module]
    return sorted(left)


def test_every_module_imports_its_own_room_and_lower_ones():
    assert violations(Path(wordsens.__file__).parent) == []


def test_no_files_import_each_other_in_a_circle():
    assert circles(Path(wordsens.__file__).parent) == []


@pytest.fixture
def package(tmp_path):
    """A function that writes a tiny package with the given modules, and returns its root."""

    def write(**sources):
        root = tmp_path / "wordsens"
        root.mkdir()
        for name, source in {"__init__": "", **sources}.items():
            path = root.joinpath(*name.split("__dot__")).with_suffix(".py")
            path.parent.mkdir(exist_ok=True)
            path.write_text(source)
        return root

    return write


def test_what_is_allowed_is_no_violation(package):
    root = package(
        errors="import math",
        seeds="from wordsens.errors import InputError",
        search__dot__ball="import torch\nfrom wordsens.seeds import generator\nfrom wordsens.search.plan import Plan",
        search__dot__plan="",
        cli__dot__app="import typer\nfrom wordsens import __version__\nfrom wordsens.search.ball import Ball",
    )
    assert violations(root) == []
    assert circles(root) == []


@pytest.mark.parametrize(
    ("module", "source", "why"),
    [
        ("errors", "from wordsens.cli import main", "errors -> cli: errors lies below cli"),
        ("search", "def late():\n    import wordsens.maps.contract", "search -> maps.contract: search lies below maps"),
        ("search", "from wordsens import word_sensitivity", "search -> word_sensitivity: no room of this table"),
        ("theory", "from wordsens import sensitivity", "theory -> sensitivity: theory lies below sensitivity"),
        ("search", "from . import seeds", "import by the full name"),
        ("helpers", "", "helpers: no room of this table"),
        ("sensitivity", "import transformers", "sensitivity -> transformers: only text, maps may import it"),
        ("experiments__dot__cell", "import matplotlib.pyplot", "experiments.cell -> matplotlib: only figures"),
    ],
)
def test_a_planted_violation_is_found(package, module, source, why):
    found = violations(package(**{module: source}))
    assert len(found) == 1
    assert why in found[0]


def test_a_planted_circle_is_found(package):
    root = package(
        search__dot__ball="from wordsens.search.plan import Plan",
        search__dot__plan="def late():\n    from wordsens.search import climb",
        search__dot__climb="from wordsens.search.ball import Ball",
        seeds="from wordsens.search.ball import Ball",
    )
    assert circles(root) == ["search.ball", "search.climb", "search.plan"]
