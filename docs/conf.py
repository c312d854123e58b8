"""The documentation site: `make docs` builds it, and any warning is an error."""

import re
import sys
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive

import wordsens

sys.path.insert(0, str(Path(__file__).parent))
from cli_page import names_of, options_of

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
html_static_path = ["_static"]
html_css_files = ["figures.css"]

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


def _types_as_they_are(
    app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]
) -> None:
    """Escapes the stars of shapes, such as "*batch n d", in what napoleon writes."""
    for number, line in enumerate(lines):
        if line.lstrip().startswith((":type ", ":type:", ":vartype ")):
            lines[number] = line.replace("*", r"\*")


class OptionTable(Directive):
    """The options of a command with their help: `{wordsens-options} sweep run`. Its content, their
    names, is what a code host shows instead (cli_page.py)."""

    required_arguments = 1
    final_argument_whitespace = True
    has_content = True

    def run(self) -> list[Any]:
        items = []
        for option in options_of(self.arguments[0]):
            shown = option.show_default and option.default not in (None, False, ())
            text = f"{option.help} [default: {option.default}]" if shown else option.help
            term = nodes.term("", "", nodes.literal("", names_of(option)))
            meaning = nodes.definition("", nodes.paragraph("", text))
            items.append(nodes.definition_list_item("", term, meaning))
        return [nodes.definition_list("", *items)]


def setup(app: Any) -> None:
    """Sphinx calls this."""
    app.add_directive("wordsens-options", OptionTable)
    app.connect("autodoc-process-docstring", _formulas_as_they_are, priority=100)
    app.connect("autodoc-process-docstring", _types_as_they_are, priority=600)
