"""The Python files that a module's results can depend on: itself and what it imports, read and not run."""

import ast
import hashlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from importlib.util import resolve_name
from pathlib import Path

_PACKAGE = Path(__file__).parent

_SHOWING = ("app", "cli", "display", "findings", "integrations", "looks", "plotting", "report")
"""Parts of the package that show values and compute none."""


def source_digest(files: Mapping[str, Path], *, package: bool = True) -> str:
    """SHA-256 of these modules' files and of those that they import, directly or not, wherever the import stands.

    Of the package they are the modules that compute; of anything else those in the folder from which a module is
    imported, but not what is installed. Data files and modules that are imported by a computed name are not among them.

    Args:
        files: by the full names of the modules.
        package: whether modules of the package count.

    >>> digest = source_digest({"wordsens.seeds": _PACKAGE / "seeds.py"})
    >>> digest == source_digest({"wordsens.search.objective": _PACKAGE / "search" / "objective.py"})
    False
    """
    roots = {"wordsens": _PACKAGE.parent}
    for name, path in files.items():
        roots[name.partition(".")[0]] = path.absolute().parents[name.count(".") + (path.stem == "__init__")]
    # Among installed packages only a module's own counts.
    folders = {root for root in roots.values() if not any(root.glob("*.dist-info"))}
    found, waiting = dict(files), [*files, *(name for path in files.items() for name in _imported(*path))]
    while waiting:
        name = waiting.pop()
        top, _, rest = name.partition(".")
        if top != "wordsens":  # the packages around a module run too; those of this package only name their modules
            waiting += [name[:at] for at, character in enumerate(name) if character == "."]
        if name in found or (top == "wordsens" and (not package or rest.partition(".")[0] in _SHOWING)):
            continue
        for root in [roots[top]] if top in roots else folders:
            place = root.joinpath(*name.split("."))
            for path in (place.with_suffix(".py"), place / "__init__.py"):
                if path.is_file():
                    found[name] = path
                    waiting += _imported(name, path)
    return hashlib.sha256(b"".join(found[name].read_bytes() for name in sorted(found))).hexdigest()


@cache
def _imported(name: str, path: Path) -> tuple[str, ...]:
    """The full names of what a file imports, where a name may also be one of a module's contents; a package that loads
    its modules on first use lists them in a stub."""
    home = name if path.stem == "__init__" else name.rpartition(".")[0]
    stub = path.with_suffix(".pyi")
    return tuple(imported for file in (path, stub) if file.is_file() for imported in _of_file(file, home))


def _of_file(path: Path, home: str) -> Iterator[str]:
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):  # a compiled module, say
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = home.split(".")[: len(home.split(".")) - node.level + 1] if node.level else []
            module = ".".join([*above, *([node.module] if node.module else [])])
            yield module
            yield from (f"{module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            name, called = node.args[0].value, getattr(node.func, "attr", getattr(node.func, "id", None))
            if called in ("import_module", "__import__") and isinstance(name, str):
                with suppress(ImportError):  # a relative name that leads out of the package
                    yield resolve_name(name, home)
