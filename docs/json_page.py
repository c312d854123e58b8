"""Renews docs/json.md: python docs/json_page.py.

A table below `<!-- module.Class -->` takes type and meaning of its keys from the class, where its
docstring has them among the attributes; keys of one meaning share a row. Written by hand are the
rows of keys that no class documents, and of those named behind "but".
"""

import importlib
import re
import types
import typing
from pathlib import Path

PAGE = Path(__file__).with_name("json.md")
_TABLE = re.compile(
    r"(<!-- ([\w.]+)\.(\w+)(?: but ([\w ]+))? -->\n\n(?:[^|\n].*\n\n)?(?:\|.*\n){2})((?:\|.*\n)+)"
)
_ROW = re.compile(r"^\| ((?:`\w+` )+)\|(.*)\|$", re.MULTILINE)
_NAMES = {bool: "boolean", int: "integer", float: "number", str: "text"}


def renewed(page: str) -> str:
    """The page with today's types and meanings."""

    def table(match: re.Match[str]) -> str:
        head, module, name, by_hand, rows = match.groups()
        return head + _rows(
            rows, getattr(importlib.import_module(module), name), (by_hand or "").split()
        )

    return _TABLE.sub(table, page)


def _rows(table: str, cls: type, by_hand: list[str]) -> str:
    meanings, annotations = {}, {}
    for base in reversed(cls.__mro__):
        meanings |= _meanings(base.__doc__ or "")
        annotations |= getattr(base, "__annotations__", {})
    rows: list[tuple[list[str], list[str], str]] = []  # keys, types, meaning
    for match in _ROW.finditer(table):
        keys = re.findall(r"\w+", match[1])
        if not all(key in meanings and key in annotations and key not in by_hand for key in keys):
            kind, meaning = match[2].strip().split(" | ", 1)
            rows.append((keys, [kind], meaning))
            continue
        for key in keys:
            kind, meaning = _type(annotations[key]), meanings[key]
            if not rows or rows[-1][2] != meaning:
                rows.append(([], [], meaning))
            rows[-1][0].append(key)
            if kind not in rows[-1][1]:
                rows[-1][1].append(kind)
    return "".join(
        f"| {' '.join(f'`{key}`' for key in keys)} | {', '.join(kinds)} | {text} |\n"
        for keys, kinds, text in rows
    )


def _meanings(docstring: str) -> dict[str, str]:
    """The first sentence on each attribute."""
    block = re.search(r"^    Attributes:\n(.*?)(?:\n\n|\Z)", docstring, re.DOTALL | re.MULTILINE)
    if block is None:
        return {}
    entries = re.findall(
        r"^        (\w[\w, ]*): (.*?)(?=\n        \w[\w, ]*: |\Z)",
        block[1].rstrip(),
        re.DOTALL | re.MULTILINE,
    )
    sentences = {
        names: re.split(r"(?<!e\.g)\. (?=[A-Z])", " ".join(text.split()))[0].rstrip(".")
        for names, text in entries
    }
    return {
        name.strip(): text.replace("|", "\\|").replace("None", "null")
        for names, text in sentences.items()
        for name in names.split(",")
    }


def _type(annotation: typing.Any) -> str:
    """What JSON makes of it."""
    if isinstance(annotation, types.UnionType) or typing.get_origin(annotation) is typing.Union:
        parts = typing.get_args(annotation)
        kinds = " or ".join(_type(part) for part in parts if part is not type(None))
        return f"{kinds}?" if type(None) in parts else kinds
    if annotation in _NAMES:
        return _NAMES[annotation]
    origin = typing.get_origin(annotation) or annotation
    is_list = hasattr(annotation, "dim_str") or (
        isinstance(origin, type) and issubclass(origin, (list, tuple))
    )
    return "list" if is_list else "object"


if __name__ == "__main__":
    PAGE.write_text(renewed(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
