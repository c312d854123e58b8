"""The rooms of the package stand one above the other: a module imports its room and lower ones; no
circles of files."""

import ast
from pathlib import Path

import wordsens

ROOMS = (
    "errors",
    "version",
    "files",
    "workers",
    "seeds",
    "display",
    "saved",
    "results",
    "activations",
    "intervals",
    "gaussian",
    "text",
    "models",
    "search",
    "maps",
    "certificates",
    "theory",
    "sensitivity",
    "generalization",
    "sweeps",
    "evaluation",
    "training",
    "findings",
    "integrations",
    "plotting",
    "studies",
    "report",
    "app",
    "cli",
    "__main__",
)
"""Lowest first. A room is a module or a package of the root, with all that is in it."""

UPWARD = {
    ("results", "plotting"),
    ("evaluation.audit", "findings.audit"),
    ("evaluation.calibrate", "findings.calibrate"),
    ("evaluation.carry", "findings.carry"),
    ("evaluation.check", "findings.check"),
    ("evaluation.collisions", "findings.collisions"),
    ("evaluation.compare", "findings.compare"),
    ("evaluation.explain", "findings.explain"),
    ("evaluation.classes", "findings.classes"),
    ("evaluation.length", "findings.length"),
    ("training.tuning", "findings.tune"),
}
"""The imports that may go up, each inside a method: a result shows itself. Those of `findings` go
when the sentences move to their classes."""

ONLY_IN = {
    "transformers": ("models", "training"),
    "tokenizers": ("models",),
    "sentence_transformers": ("models", "training", "integrations"),
    "httpx2": ("models",),
    "datasets": ("text", "training", "integrations"),
    "matplotlib": ("plotting", "studies"),
    "jinja2": ("display",),
    "nicegui": ("app",),
    "uvicorn": ("app",),
    "fastapi": ("app",),
    "typer": ("cli",),
    "rich": ("display", "cli"),
    "pydantic": ("sweeps", "studies", "evaluation", "app"),
    "distributed": ("sweeps",),
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
                    package if alias.name == "__version__" else f"{package}.{alias.name}"
                    for alias in node.names
                )
            else:
                yield str(node.module)


def modules(root):
    """Every module's name, from the package's root, and its file."""
    for path in sorted(root.rglob("*.py")):
        yield (
            ".".join(path.relative_to(root).with_suffix("").parts)
            .removesuffix("__init__")
            .rstrip("."),
            path,
        )


def is_upward(module, target):
    """True for an import that UPWARD names."""
    return any(
        module == source and (target == allowed or target.startswith(f"{allowed}."))
        for source, allowed in UPWARD
    )


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
            elif is_upward(module, rest):
                continue
            elif top == package and rest and ROOMS.index(other) > ROOMS.index(room):
                found.append(f"{module} -> {rest}: {room} lies below {other}")
    return found


def circles(root):
    """The modules that import each other in a circle, by imports that run when a module is loaded
    or later."""
    package = root.name
    files = dict(modules(root))
    names = set(files)
    imports = {}
    for module, path in files.items():
        targets = set()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if (
                isinstance(node, ast.ImportFrom)
                and node.module
                and node.module.startswith(f"{package}.")
            ):
                home = node.module.removeprefix(f"{package}.")
                targets |= {
                    f"{home}.{alias.name}" if f"{home}.{alias.name}" in names else home
                    for alias in node.names
                }
            elif isinstance(node, ast.Import):
                targets |= {alias.name.removeprefix(f"{package}.") for alias in node.names}
        upward = {target for target in targets if is_upward(module, target)}
        imports[module] = (targets & names) - {module, ""} - upward
    left = dict(imports)
    while free := [module for module, targets in left.items() if not targets & left.keys()]:
        for module in free:
            del left[module]
    while free := [
        module for module in left if not any(module in targets for targets in left.values())
    ]:
        for module in free:
            del left[module]
    return sorted(left)


def test_every_module_imports_its_own_room_and_lower_ones():
    assert violations(Path(wordsens.__file__).parent) == []


def test_no_files_import_each_other_in_a_circle():
    assert circles(Path(wordsens.__file__).parent) == []
