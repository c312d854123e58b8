"""The documentation site: `make docs` builds it, and any warning is an error."""

import re
from typing import Any

import wordsens

project = "wordsens"
author = "The wordsens authors"
copyright = author
release = version = wordsens.__version__

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx-mathjax-offline", "sphinx.ext.viewcode"]
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


def _formulas_as_they_are(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Escapes what looks like markup outside of literals and examples."""
    for number, line in enumerate(lines):
        if not line.lstrip().startswith(">>>"):
            parts = re.split(r"(``?[^`]+``?)", line)
            lines[number] = "".join(p if p.startswith("`") else _NOT_MARKUP.sub(r"\\\1", p) for p in parts)


def setup(app: Any) -> None:
    """Sphinx calls this."""
    app.connect("autodoc-process-docstring", _formulas_as_they_are, priority=100)
