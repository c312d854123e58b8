"""The documentation site: `make docs` builds it, and any warning is an error."""

import re
from typing import Any

import typer
from docutils import nodes
from docutils.parsers.rst import Directive

import wordsens
from wordsens.cli.commands import app as cli

project = "wordsens"
author = "The wordsens authors"
copyright = author
release = version = wordsens.__version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx-mathjax-offline",
    "sphinx.ext.viewcode",
]
exclude_patterns = ["_build", "jupyter_execute", "requirements.txt"]
html_theme = "furo"
html_title = f"wordsens {version}"
html_show_sphinx = False

myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 3
nb_execution_mode = "off"  # the notebooks are run by the tests and stored with their output

autodoc_typehints = "none"  # the shapes of jaxtyping are in the signatures and in the text
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "show-inheritance": False}
default_role = "code"
napoleon_google_docstring = True
napoleon_use_rtype = False

_NOT_MARKUP = re.compile(r"(?<!`)(\||(?<=\w)_(?=\W)|\*+)(?!`)")
"""Signs that a formula means as they are and reStructuredText would read as markup."""


def _formulas_as_they_are(
    app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]
) -> None:
    """Escapes what looks like markup outside of literals and examples."""
    for number, line in enumerate(lines):
        if not line.lstrip().startswith(">>>"):
            parts = re.split(r"(``?[^`]+``?)", line)
            lines[number] = "".join(
                p if p.startswith("`") else _NOT_MARKUP.sub(r"\\\1", p) for p in parts
            )


class OptionTable(Directive):
    """The options of a command, from the command line itself: `{wordsens-options} sweep run`."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[Any]:
        command: Any = typer.main.get_command(cli)
        for word in self.arguments[0].split():
            command = command.commands[word]
        items = []
        for parameter in command.params:
            if not getattr(parameter, "help", None):
                continue
            name = nodes.literal("", ", ".join([*parameter.opts, *parameter.secondary_opts]))
            default = (
                ""
                if parameter.default in (None, False, ()) or not parameter.show_default
                else parameter.default
            )
            text = f"{parameter.help} [default: {default}]" if default != "" else parameter.help
            items.append(
                nodes.definition_list_item(
                    "", nodes.term("", "", name), nodes.definition("", nodes.paragraph("", text))
                )
            )
        return [nodes.definition_list("", *items)]


def setup(app: Any) -> None:
    """Sphinx calls this."""
    app.add_directive("wordsens-options", OptionTable)
    app.connect("autodoc-process-docstring", _formulas_as_they_are, priority=100)
