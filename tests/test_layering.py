"""The layers of the package: a module imports lower layers only, and of its own layer what its row allows.

The table is the one of the design. A row covers the module or package of its name, and every module whose name goes on
from there (`maps.attention` covers `maps.attention_change`); modules of one row may import each other.
"""

import ast
from dataclasses import dataclass
from pathlib import Path

import pytest

import wordsens


@dataclass(frozen=True)
class Row:
    """A layer's module, and the modules of the same layer that it may import."""

    layer: int
    also: tuple[str, ...] = ()


TABLE = {
    "errors": Row(0),
    "seeds": Row(0, also=("errors",)),
    "ball": Row(1),
    "activations": Row(1),
    "gaussian": Row(1),
    "lanczos": Row(1),
    "power_law": Row(1),
    "linear_entry": Row(1, also=("feature_map", "search_plan")),
    "search_plan": Row(1),
    "repeatable": Row(1),
    "normal_product": Row(1),
    "text_matrix": Row(1),
    "swap_vocabulary": Row(1),
    "feature_map": Row(1, also=("text_matrix", "search_plan", "repeatable", "lanczos", "normal_product")),
    "maps.scores": Row(2),
    "maps.functionals": Row(2, also=("maps.attention", "maps.dense", "maps.scores")),
    "maps.dense": Row(2, also=("maps.functionals",)),
    "maps.attention": Row(2, also=("maps.scores", "maps.functionals")),
    "maps.transformer": Row(2, also=("text",)),
    "text": Row(2),
    "search": Row(3),
    "sensitivity": Row(3, also=("search", "certificates")),
    "certificates": Row(3, also=("sensitivity",)),
    "jacobian": Row(3, also=("sensitivity",)),
    "groups": Row(3, also=("sensitivity", "search")),
    "several_texts": Row(3, also=("sensitivity", "search")),
    "swaps": Row(3, also=("sensitivity", "search")),
    "whole_words": Row(3, also=("sensitivity", "search")),
    "theory": Row(3),
    "regression": Row(4),
    "generalization": Row(4, also=("regression",)),
    "training": Row(4),
    "removals": Row(3),
    "decay": Row(3, also=("removals",)),
    "attention_views": Row(3),
    "models": Row(3),
    "audit": Row(4),
    "experiments": Row(5),
    "figures": Row(6),
    "report": Row(6, also=("figures",)),
    "app": Row(6, also=("figures",)),
    "cli": Row(7),
    "__main__": Row(7, also=("cli",)),
}
# The package itself and packages that only list names belong to no layer.
FACADES = {"", "maps"}
ONLY_IN = {
    "transformers": ("text", "maps.transformer"),
    "tokenizers": ("text", "maps.transformer"),
    "sentence_transformers": ("models",),
    "httpx2": ("models",),
    "datasets": ("text",),
    "matplotlib": ("figures",),
    "typer": ("cli",),
    "rich": ("cli",),
    "pydantic": ("experiments",),
    "distributed": ("experiments",),
    "dask_jobqueue": ("experiments",),
}


def row_of(module):
    """The table's key for a module named from the package's root, or None."""
    keys = [key for key in TABLE if module == key or module.startswith((f"{key}.", f"{key}_"))]
    return max(keys, key=len, default=None)


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


def violations(root):
    """Every import that the table does not allow, as `importer -> imported: why`."""
    package = root.name
    found = []
    for path in sorted(root.rglob("*.py")):
        module = ".".join(path.relative_to(root).with_suffix("").parts).removesuffix("__init__").rstrip(".")
        own = row_of(module)
        if module in FACADES:
            continue
        if own is None:
            found.append(f"{module}: not in the table of layers")
            continue
        for name in imported(path, module, package):
            top, _, rest = name.partition(".")
            if name.startswith("relative"):
                found.append(f"{module} -> {name}: import by the full name")
            elif top in ONLY_IN and own not in ONLY_IN[top]:
                found.append(f"{module} -> {top}: only {', '.join(ONLY_IN[top])} may import it")
            elif top == package and rest and rest not in FACADES:
                other = row_of(rest)
                if other is None:
                    found.append(f"{module} -> {rest}: not in the table of layers")
                elif other != own and TABLE[other].layer > TABLE[own].layer:
                    found.append(f"{module} -> {rest}: layer {TABLE[own].layer} imports layer {TABLE[other].layer}")
                elif other != own and TABLE[other].layer == TABLE[own].layer and other not in TABLE[own].also:
                    found.append(f"{module} -> {rest}: same layer, not allowed by the table")
    return found


def test_the_package_keeps_to_its_layers():
    assert violations(Path(wordsens.__file__).parent) == []


@pytest.fixture
def planted(tmp_path):
    """A function that writes a tiny package of that name with the given modules, and returns its violations."""

    def plant(**modules):
        root = tmp_path / "wordsens"
        root.mkdir()
        for name, source in {"__init__": "", **modules}.items():
            path = root.joinpath(*name.split("__dot__")).with_suffix(".py")
            path.parent.mkdir(exist_ok=True)
            path.write_text(source)
        return violations(root)

    return plant


def test_what_is_allowed_is_no_violation(planted):
    assert (
        planted(
            errors="import math",
            seeds="from wordsens.errors import InputError",
            ball="import torch\nfrom wordsens.seeds import generator",
            cli__dot__app="import typer\nfrom wordsens import __version__\nfrom wordsens.cli.measure import measure",
            sensitivity="from wordsens.search.climb import Climb",
        )
        == []
    )


@pytest.mark.parametrize(
    ("module", "source", "why"),
    [
        ("errors", "from wordsens.cli import main", "errors -> cli: layer 0 imports layer 7"),
        ("ball", "def late():\n    import wordsens.sensitivity", "ball -> sensitivity: layer 1 imports layer 3"),
        ("ball", "from wordsens import word_sensitivity", "ball -> word_sensitivity: not in the table of layers"),
        ("ball", "from wordsens import sensitivity", "ball -> sensitivity: layer 1 imports layer 3"),
        ("ball", "import wordsens.activations", "ball -> activations: same layer, not allowed by the table"),
        ("theory", "from wordsens.sensitivity import attained", "theory -> sensitivity: same layer"),
        ("ball", "from . import seeds", "import by the full name"),
        ("helpers", "", "helpers: not in the table of layers"),
        (
            "sensitivity",
            "import transformers",
            "sensitivity -> transformers: only text, maps.transformer may import it",
        ),
        ("experiments__dot__cell", "import matplotlib.pyplot", "experiments.cell -> matplotlib: only figures"),
    ],
)
def test_a_planted_violation_is_found(planted, module, source, why):
    found = planted(**{module: source})
    assert len(found) == 1
    assert why in found[0]
