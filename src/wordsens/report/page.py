"""A word as a page's script reads it."""

from typing import Any

<<<<<<< HEAD
from wordsens.report.texts import Word
=======
from wordsens.errors import MissingExtraError
from wordsens.files import packaged_text
from wordsens.report.assets import static
from wordsens.report.attention import ShownPair
from wordsens.report.figures import ReportFigure
from wordsens.report.findings.finding import SURETIES, Finding
from wordsens.report.provenance import Origin
from wordsens.report.tables import Table
from wordsens.report.texts import Shown, Word
from wordsens.version import __version__

try:
    from jinja2 import Environment, FunctionLoader, StrictUndefined
    from markupsafe import Markup, escape
except ImportError as error:
    raise MissingExtraError("jinja2", "report", "a report") from error

_SCRIPTS = ("colours.js", "page.js", "words.js", "texts.js", "scales.js", "plots.js", "figures.js")
_UNSAFE = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
"""Characters that could end a script tag, or a line of JavaScript, inside of JSON."""


@dataclass(frozen=True)
class Content:
    """The content of a report, in its order.

    Attributes:
        title: of the page.
        lead: a line under the heading.
        found: the findings under the name of their run.
        figures, pairs, shown, tables, origins: the parts after them.
        several: whether there are several runs.
    """

    title: str
    lead: str
    found: list[tuple[str, list[Finding]]]
    figures: list[ReportFigure]
    pairs: list[ShownPair]
    shown: Shown
    tables: list[Table]
    origins: list[Origin]
    several: bool


def html_page(content: Content) -> str:
    """The whole page. Text is escaped wherever it stands; styles and scripts are named by their hash in the policy."""
    style, script = static(("report.css",)), static(_SCRIPTS)
    data = {
        "figures": [{"title": one.data.title, **one.script_data} for one in content.figures],
        "texts": [[word_data(word) for word in text.words] for text in content.shown.texts],
    }
    return (
        _environment()
        .get_template("report.html.jinja")
        .render(
            **vars(content),
            version=__version__,
            sureties={name: meaning for name, meaning in SURETIES.items() if name in _used(content)},
            policy=_policy(style, script),
            style=Markup(style),
            script=Markup(script),
            data=script_json(data),
        )
    )


def _used(content: Content) -> set[str]:
    return {surety for _, findings in content.found for finding in findings for surety in finding.surety}


def script_json(value: Any) -> Markup:
    """JSON that can stand inside a script tag, whatever it holds.

    >>> print(script_json("</script>"))
    "\\u003c/script\\u003e"
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Markup("".join(_UNSAFE.get(letter, letter) for letter in text))


@cache
def _environment() -> Any:
    made = Environment(
        loader=FunctionLoader(lambda name: packaged_text(f"report/templates/{name}")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["raised"] = raised
    return made


def raised(text: str) -> Markup:
    """The text, escaped, with its exponents raised.

    >>> print(raised("n^−0.5 < 1"))
    n<sup>−0.5</sup> &lt; 1
    """
    return Markup(re.sub(r"\^([\d.\N{MINUS SIGN}]*\d)", r"<sup>\1</sup>", str(escape(text))))


def _policy(style: str, script: str) -> str:
    """Nothing is loaded; only this style and this script apply."""
    return (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
>>>>>>> main


def word_data(word: Word) -> dict[str, Any]:
    """The word as the page's script reads it."""
    return {
        "text": word.text,
        "attained": word.attained,
        "upper": word.upper,
        "removal": word.removal,
        "swap": word.swap,
        "swappedFor": word.swapped_for,
        "moved": word.moved,
    }
