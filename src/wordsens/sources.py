"""The Python files that a module's results can depend on: itself and what it imports, read and not
run."""

import ast
import hashlib
from collections.abc import Collection, Mapping
from contextlib import suppress
from functools import cache
from importlib.util import resolve_name
from pathlib import Path

_PACKAGE = Path(__file__).parent

_NOT_COMPUTING = (
    "app",
    "cli",
    "display",
    "findings",
    "integrations",
    "looks",
    "plotting",
    "report",
    "sources",
    "version",
)
"""Parts of the package that compute no value: they show values, or say which code computed them."""


def source_digest(
    files: Mapping[str, Path], *, package: bool = True, apart: Collection[str] = ()
) -> str:
    """SHA-256 of these modules' code and of what they import, directly or not, wherever the import
    stands; comments on lines of their own, docstrings and empty lines do not count.

    Of the package they are the modules that compute; of anything else those in the folder from
    which a module is imported, but not what is installed. Data files and modules that are imported
    by a computed name are not among them.

    Args:
        files: by the full names of the modules.
        package: whether modules of the package count.
        apart: modules that do not count, nor what is imported by them alone.

    >>> digest = source_digest({"wordsens.seeds": _PACKAGE / "seeds.py"})
    >>> digest == source_digest({"wordsens.search.objective": _PACKAGE / "search" / "objective.py"})
    False
    """
    roots = {"wordsens": _PACKAGE.parent}
    for name, path in files.items():
        roots[name.partition(".")[0]] = path.absolute().parents[
            name.count(".") + (path.stem == "__init__")
        ]
    # Among installed packages only a module's own counts.
    folders = {root for root in roots.values() if not any(root.glob("*.dist-info"))}
    found, waiting = (
        dict(files),
        [*files, *(name for path in files.items() for name in _imported(*path))],
    )
    while waiting:
        name = waiting.pop()
        top, _, rest = name.partition(".")
        if (
            top != "wordsens"
        ):  # the packages around a module run too; those of this package only name their modules
            waiting += [name[:at] for at, character in enumerate(name) if character == "."]
        if (
            name in found
            or name in apart
            or (top == "wordsens" and (not package or rest.partition(".")[0] in _NOT_COMPUTING))
        ):
            continue
        for root in [roots[top]] if top in roots else folders:
            place = root.joinpath(*name.split("."))
            for path in (place.with_suffix(".py"), place / "__init__.py"):
                if path.is_file():
                    found[name] = path
                    waiting += _imported(name, path)
    code = (
        _read(path.read_bytes(), _package_of(name, path))[1] for name, path in sorted(found.items())
    )
    return hashlib.sha256(b"".join(code)).hexdigest()


def _package_of(name: str, path: Path) -> str:
    """The package whose names a module's relative imports start from."""
    return name if path.stem == "__init__" else name.rpartition(".")[0]


def _imported(name: str, path: Path) -> tuple[str, ...]:
    """The full names of what a file imports, where a name may also be one of a module's contents; a
    package that loads its modules on first use lists them in a stub."""
    home, stub = _package_of(name, path), path.with_suffix(".pyi")
    return tuple(
        other
        for file in (path, stub)
        if file.is_file()
        for other in _read(file.read_bytes(), home)[0]
    )


@cache
def _read(content: bytes, home: str) -> tuple[tuple[str, ...], bytes]:
    """The names that a file of the package `home` imports; and its lines but for docstrings, other
    strings that stand alone, and lines that are empty or a comment."""
    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError):  # a compiled module, say
        return (), content
    imported: list[str] = []
    prose: list[tuple[int, int, int, int]] = []
    within: set[int] = set()  # lines inside a string, where an empty line is part of its value
    for node in ast.walk(tree):
        match node:
            case ast.Import():
                imported += (alias.name for alias in node.names)
            case ast.ImportFrom():
                above = (
                    home.split(".")[: len(home.split(".")) - node.level + 1] if node.level else []
                )
                module = ".".join([*above, *([node.module] if node.module else [])])
                imported += [module, *(f"{module}.{alias.name}" for alias in node.names)]
            case ast.Call(args=[ast.Constant(value=str(name)), *_]):
                if getattr(node.func, "attr", getattr(node.func, "id", None)) in (
                    "import_module",
                    "__import__",
                ):
                    with suppress(ImportError):  # a relative name that leads out of the package
                        imported.append(resolve_name(name, home))
            case ast.Expr(value=ast.Constant(value=str())):
                prose.append(
                    (
                        node.lineno - 1,
                        node.col_offset,
                        node.end_lineno or 0,
                        node.end_col_offset or 0,
                    )
                )
            case ast.Constant() | ast.JoinedStr():
                within.update(range(node.lineno, node.end_lineno or 0))
    lines = [
        line if row in within or line.strip()[:1] not in (b"", b"#") else b""
        for row, line in enumerate(content.splitlines(keepends=True))
    ]
    for first, start, after, stop in sorted(prose, reverse=True):
        rest = lines[first][:start] + lines[after - 1][stop:]
        lines[first:after] = [rest if rest.strip() else b""]
    return tuple(imported), b"".join(lines)
