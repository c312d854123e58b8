"""Writes the names of the options into docs/cli.md: python docs/cli_page.py.

The site shows each with its help in their place.
"""

import re
import textwrap
from pathlib import Path
from typing import Any

import typer

from wordsens.cli.commands import app

PAGE = Path(__file__).with_name("cli.md")
_BLOCK = re.compile(r"^(```\{wordsens-options\} (.+)\n)[\s\S]*?^```$", re.MULTILINE)


def options_of(name: str) -> list[Any]:
    """The arguments and options of a command, such as `sweep run`, that have a help text."""
    command: Any = typer.main.get_command(app)
    for word in name.split():
        command = command.commands[word]
    return [one for one in command.params if getattr(one, "help", None) and one.opts != ["--help"]]


def names_of(option: Any) -> str:
    """Its name and its other names; an argument's in capitals."""
    if option.param_type_name == "argument":
        return option.name.upper()
    return "/".join([*option.opts, *option.secondary_opts])


def text() -> str:
    """The page with the options of today."""

    def block(found: re.Match[str]) -> str:
        names = " ".join(map(names_of, options_of(found[2])))
        return f"{found[1]}{textwrap.fill(names, 100, break_on_hyphens=False)}\n```"

    return _BLOCK.sub(block, PAGE.read_text(encoding="utf-8"))


if __name__ == "__main__":
    PAGE.write_text(text(), encoding="utf-8")
