"""What the commands about a model share: the model, the texts, the seed and the output that they
are given."""

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from xml.etree import ElementTree

import typer

from wordsens.cli.options import AsJson, Device, Quiet, Seed, Threads
from wordsens.cli.terminal import notice, print_json, printing, stdout
from wordsens.display.html import html_page
from wordsens.display.terminal import print_view
from wordsens.display.view import View
from wordsens.errors import InputError, RequirementError, require_choice, require_count
from wordsens.version import __version__

if TYPE_CHECKING:
    from wordsens.models.endpoint import Endpoint
    from wordsens.models.model import Model
    from wordsens.models.pairs import PairModel
    from wordsens.text.document import Document

MODEL, TEXT, EFFORT, GATE = "Model", "Texts", "Effort", "Gate"
"""Panels of the help."""

POOLS = ("own", "mean", "cls", "last", "max")


def unset(help: str, *names: str, panel: str | None = None) -> Any:
    """An option that is None unless it is given."""
    return typer.Option(*names, help=help, show_default=False, rich_help_panel=panel)


MaxWords = Annotated[int | None, unset("A longer text keeps its first words.", panel=TEXT)]
Junit = Annotated[str | None, unset("Write the requirements as JUnit XML.", panel=GATE)]
Html = Annotated[str | None, unset("Write the result as a page.")]


def requirements_option(examples: str) -> Any:
    """The option --require."""
    help = f"Such as {examples}; may be repeated. Exit code 3 when one fails."
    return typer.Option("--require", help=help, rich_help_panel=GATE)


@dataclass(frozen=True, kw_only=True)
class OutputOptions:
    """Threads and output."""

    threads: Threads = 1
    as_json: AsJson = False
    quiet: Quiet = False

    def __post_init__(self) -> None:
        require_count("threads", self.threads)
        logging.getLogger("wordsens").setLevel(logging.ERROR if self.quiet else logging.WARNING)

    def require_files(self, *names: str) -> None:
        """InputError where one of these options names no file in a folder that exists."""
        for name in names:
            value = getattr(self, name)
            path = None if value is None else Path(value).expanduser()
            if path is not None and (not path.parent.is_dir() or path.is_dir()):
                option = name.removesuffix("_file")
                raise InputError(f"`{option}` (={value!r}) must be a file in a folder that exists")

    def print(
        self, command: str, document: dict[str, Any], view: View, *, verbose: bool = False
    ) -> None:
        """The JSON document, or what there is to read."""
        with printing():
            if self.as_json:
                print_json({"command": command, "version": __version__, **document})
            else:
                print_view(view, stdout(), verbose=verbose)


@dataclass(frozen=True, kw_only=True)
class CommandOptions(OutputOptions):
    """Seed, threads and output."""

    seed: Seed = 0


def write_page(path: str, command: str, title: str, view: View) -> None:
    """Write the page of a command."""
    page = html_page(
        view, title=f"{title} · wordsens {command}", heading=title, version=__version__
    )
    Path(path).expanduser().write_text(page, encoding="utf-8")


_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def write_junit(path: str, command: str, subject: str, cases: Mapping[str, Sequence[str]]) -> None:
    """JUnit XML with one test case a requirement, with what fails it."""

    def clean(text: str) -> str:
        return _NOT_IN_XML.sub("", text)  # what XML cannot hold

    name, failed = f"wordsens {command} {subject}", sum(map(bool, cases.values()))
    suite = ElementTree.Element(
        "testsuite", name=clean(name), tests=str(len(cases)), failures=str(failed)
    )
    for requirement, failures in cases.items():
        case = ElementTree.SubElement(
            suite, "testcase", classname=f"wordsens.{command}", name=clean(requirement)
        )
        if failures:
            ElementTree.SubElement(case, "failure", message=clean("; ".join(failures)))
    ElementTree.ElementTree(suite).write(
        Path(path).expanduser(), encoding="utf-8", xml_declaration=True
    )


def require_met(failures: Sequence[str]) -> None:
    """RequirementError, for exit code 3, where there are failures."""
    if failures:
        many = "a requirement is" if len(failures) == 1 else f"{len(failures)} requirements are"
        raise RequirementError(f"{many} not met: {'; '.join(failures)}")


_NAME = "minilm, a folder with a model or CrossEncoder, or a name on the Hugging Face hub."
_ENDPOINT = (
    "An embeddings endpoint, such as https://host/v1, instead of MODEL; the key in "
    "WORDSENS_API_KEY."
)
_TIMEOUT = "Seconds that a batch of texts may take, retries and waits included; default: 60."
_BATCH_SIZE = "Texts per request or call; default: 32."
_ON_ERROR = "At a text that the endpoint refuses: stop (the default) or skip."
_ENCODE = "module:function, from a list of texts to an array with a row for each; instead of MODEL."
_PROMPT = "A SentenceTransformer's prompt, such as query; of two texts, give it twice for one each."

BatchSize = Annotated[int | None, unset(_BATCH_SIZE, panel=MODEL)]
OnError = Annotated[str | None, unset(_ON_ERROR, panel=MODEL)]


@dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """The options that name a model; a command's own are the fields of a subclass.

    Raises:
        InputError: not exactly one of MODEL, --encode and --endpoint, or an option that goes with
            another of them.
    """

    model: Annotated[
        str | None, typer.Argument(metavar="MODEL", help=_NAME, show_default=False)
    ] = None
    encode: Annotated[str | None, unset(_ENCODE, panel=MODEL)] = None
    endpoint: Annotated[str | None, unset(_ENDPOINT, "--endpoint", panel=MODEL)] = None
    endpoint_model: Annotated[
        str | None, unset("The model's name on the endpoint.", panel=MODEL)
    ] = None
    endpoint_timeout: Annotated[float | None, unset(_TIMEOUT, panel=MODEL)] = None
    endpoint_retries: Annotated[
        int | None,
        unset("How often a batch is asked for again where that may help; default: 4.", panel=MODEL),
    ] = None
    batch_size: BatchSize = None
    on_error: OnError = None
    revision: Annotated[
        str | None, unset("Branch, tag or commit of a name on the hub.", panel=MODEL)
    ] = None
    pool: Annotated[
        str | None,
        unset(
            "own, mean, cls, last or max; default: the model's own where it has one.", panel=MODEL
        ),
    ] = None
    prompt_names: Annotated[list[str] | None, unset(_PROMPT, "--prompt-name", panel=MODEL)] = None
    device: Device = "cpu"

    def __post_init__(self) -> None:
        if sum(each is not None for each in (self.model, self.encode, self.endpoint)) != 1:
            raise InputError(
                "give one model: MODEL (such as minilm), --encode module:function, or --endpoint "
                "URL"
            )
        for name in ("endpoint_model", "endpoint_timeout", "endpoint_retries", "on_error"):
            if getattr(self, name) is not None and self.endpoint is None:
                raise InputError(f"--{name.replace('_', '-')} goes with --endpoint; leave it out")
        if self.batch_size is not None and self.model is not None:
            raise InputError("--batch-size goes with --endpoint or --encode; leave it out")
        if self.pool is not None:
            require_choice("pool", self.pool, POOLS)

    def load(self) -> "Model | PairModel":
        """The model, loaded."""
        from wordsens.models.function import load_named
        from wordsens.models.load import load

        if self.endpoint is not None:
            chosen = self.server()
        else:
            chosen = self.model if self.encode is None else load_named(self.encode)
        options = {"pool": self.pool, "revision": self.revision, "batch_size": self.batch_size}
        return load(chosen, device=self.device, **options)

    def server(self) -> "Endpoint":
        """The endpoint, with what was said of it."""
        from wordsens.models.endpoint import Endpoint

        options = {
            "model": self.endpoint_model,
            "timeout": self.endpoint_timeout,
            "retries": self.endpoint_retries,
            "on_error": self.on_error,
        }
        return Endpoint(
            url=str(self.endpoint),
            **{name: value for name, value in options.items() if value is not None},
        )


_TEXTS = "Your texts: a file, CSV or Parquet table, folder, 'shipped', or 'imdb' of the hub."
_COLUMN = "The column of a table that holds the text; default: text, or the only column with texts."


@dataclass(frozen=True, kw_only=True)
class TextOptions:
    """The options that name texts."""

    texts: Annotated[str | None, unset(_TEXTS, "--texts", "--dataset", panel=TEXT)] = None
    text_column: Annotated[str | None, unset(_COLUMN, panel=TEXT)] = None
    limit: Annotated[
        int | None, typer.Option(help="At most this many texts.", rich_help_panel=TEXT)
    ] = None
    encoding: Annotated[
        str, typer.Option(help="Of a text, CSV or JSON lines file.", rich_help_panel=TEXT)
    ] = "utf-8"

    def require_texts(self) -> None:
        """InputError without texts, or for a limit of none."""
        if self.texts is None:
            raise InputError("give your texts: --texts FILE (or a folder, 'shipped', or 'imdb')")
        if self.limit is not None:
            require_count("limit", self.limit)

    def reading(self) -> dict[str, Any]:
        """The options of `read_documents` that say how the texts are read; labels play no part."""
        from wordsens.text.readers import text_column_of

        column = self.text_column or text_column_of(str(self.texts), self.encoding)
        return {
            "text_column": column,
            "labels": False,
            "encoding": self.encoding,
        }

    def notices(self) -> list[str]:
        """What a reader should know of the way in which a table is read."""
        from wordsens.text.tables import delimiter_of

        path = Path(str(self.texts)).expanduser()
        if path.suffix.lower() == ".txt" and path.is_file():
            return [
                f"{path.name} is read as one text; for a text a line save it as CSV or JSON lines"
            ]
        if path.suffix.lower() not in (".csv", ".tsv") or not path.is_file():
            return []
        sign = delimiter_of(path, self.encoding)
        usual = "," if path.suffix.lower() == ".csv" else "\t"
        return [] if sign == usual else [f"the fields of {path.name} are separated by {sign!r}"]

    def documents(self, *, max_words: int | None = None, quiet: bool = False) -> "list[Document]":
        """The texts; longer ones cut to their first words."""
        from wordsens.text.readers import read_documents
        from wordsens.text.whole_words import first_words

        for message in () if quiet else self.notices():
            notice(message)
        documents = read_documents(
            str(self.texts), limit=self.limit, skip_empty=True, **self.reading()
        )
        if max_words is None:
            return documents
        return [
            replace(document, text=first_words(document.text, max_words)) for document in documents
        ]
