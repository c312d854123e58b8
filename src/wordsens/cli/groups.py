"""Options that commands share, and the pages and JUnit files that they write."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from xml.etree import ElementTree

import typer

import wordsens as ws
from wordsens.cli.command import MODEL, TEXT, Device, option
from wordsens.display.html import html_page
from wordsens.display.view import View
from wordsens.errors import InputError, argument, require_choice, require_count
from wordsens.files import replace_file
from wordsens.version import __version__

if TYPE_CHECKING:
    from wordsens.models.model import Model
    from wordsens.models.pairs import PairModel

POOLS = ("own", "mean", "cls", "last", "max")

_of_model, _of_text = partial(option, panel=MODEL), partial(option, panel=TEXT)

Pool = Annotated[
    str | None,
    _of_model(
        "How token vectors become one: own, mean, cls, last or max; default: the model's own if "
        "it has one.",
        rule=partial(require_choice, choices=POOLS),
    ),
]
BatchSize = Annotated[int | None, _of_model("Texts per request or call; default: 32.")]
OnError = Annotated[
    str | None, _of_model("If the endpoint refuses a text: stop (the default) or skip.")
]


@dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """The options that name a model.

    Raises:
        InputError: not exactly one of MODEL, --encode and --endpoint, or an option that goes with
            another of them.
    """

    model: Annotated[
        str | None,
        typer.Argument(
            metavar="MODEL",
            help="minilm, a folder with a model or CrossEncoder, or a name on the Hugging Face "
            "hub.",
            show_default=False,
        ),
    ] = None
    encode: Annotated[
        str | None,
        _of_model(
            "module:function, a function that takes a list of texts and returns an array with one "
            "row per text; used instead of MODEL."
        ),
    ] = None
    endpoint: Annotated[
        str | None,
        _of_model(
            "An embeddings endpoint, such as https://host/v1, instead of MODEL. The API key is "
            "read from the environment variable WORDSENS_API_KEY."
        ),
    ] = None
    endpoint_model: Annotated[str | None, _of_model("The model's name on the endpoint.")] = None
    timeout: Annotated[
        float | None,
        _of_model(
            "Seconds that a batch of texts may take, retries and waits included; default: 60.",
            "--endpoint-timeout",
        ),
    ] = None
    retries: Annotated[
        int | None,
        _of_model(
            "How many times a batch is retried after a temporary error; default: 4.",
            "--endpoint-retries",
        ),
    ] = None
    batch_size: BatchSize = None
    on_error: OnError = None
    revision: Annotated[
        str | None, _of_model("Branch, tag or commit of a model on the Hugging Face hub.")
    ] = None
    pool: Pool = None
    prompt_names: Annotated[
        list[str] | None,
        _of_model(
            "Name of a SentenceTransformer's prompt, such as query; give it twice for one prompt "
            "per text of a pair.",
            "--prompt-name",
        ),
    ] = None
    device: Device = "cpu"

    def __post_init__(self) -> None:
        if sum(each is not None for each in (self.model, self.encode, self.endpoint)) != 1:
            raise InputError(
                "give one model: MODEL (such as minilm), --encode module:function, or --endpoint "
                "URL"
            )
        for name, value in () if self.endpoint is not None else self._of_endpoint().items():
            raise InputError(f"{argument(name)} (={value!r}) goes with --endpoint; leave it out")
        if self.batch_size is not None and self.model is not None:
            raise InputError("--batch-size goes with --endpoint or --encode; leave it out")

    def _of_endpoint(self) -> dict[str, Any]:
        names = ("endpoint_model", "timeout", "retries", "on_error")
        values = {name: getattr(self, name) for name in names}
        return {name: value for name, value in values.items() if value is not None}

    def load(self) -> "Model | PairModel":
        """The model, loaded."""
        from wordsens.models.function import load_named
        from wordsens.models.load import load

        chosen: Any = self.model
        if self.encode is not None:
            chosen = load_named(self.encode)
        elif self.endpoint is not None:
            options = self._of_endpoint()
            model = options.pop("endpoint_model", None)
            chosen = ws.Endpoint(url=self.endpoint, model=model, **options)
        return load(
            chosen,
            pool=self.pool,
            revision=self.revision,
            batch_size=self.batch_size,
            device=self.device,
        )


MaxWords = Annotated[
    int | None,
    _of_text("Cut longer texts after this many words.", rule=partial(require_count, least=2)),
]
Encoding = Annotated[str, _of_text("Encoding of text, CSV and JSON lines files.")]


Texts = Annotated[
    str | None,
    _of_text(
        "Your texts: a file, CSV or Parquet table, folder, 'shipped', or 'imdb' from the hub.",
        "--texts",
        "--dataset",
    ),
]


@dataclass(frozen=True, kw_only=True)
class TextOptions:
    """The options that say how texts are read."""

    text_column: Annotated[
        str | None,
        _of_text(
            "The column of a table that holds the text; default: text, or the only column with "
            "texts."
        ),
    ] = None
    limit: Annotated[int | None, _of_text("Use at most this many texts.", rule=require_count)] = (
        None
    )
    encoding: Encoding = "utf-8"

    def read(
        self,
        texts: str | None,
        notice: Callable[[str], None],
        *,
        skip_empty: bool = True,
        by_line: bool = False,
    ) -> "list[ws.Document]":
        """The texts of --texts; a reader is told how a file is read that has several readings. A
        .txt file is one text, or one text per line.

        Raises:
            InputError: there are none, or they cannot be read.
        """
        from wordsens.text.readers import text_column_of
        from wordsens.text.tables import delimiter_of

        if texts is None:
            raise InputError("give your texts: --texts FILE (or a folder, 'shipped', or 'imdb')")
        path = Path(texts).expanduser()
        suffix = path.suffix.lower() if path.is_file() else ""
        if suffix == ".txt":
            one = "one text; for one text per line save it as CSV or JSON lines"
            notice(f"{path.name} is read as {'one text per line' if by_line else one}")
        if suffix in (".csv", ".tsv"):
            sign = delimiter_of(path, self.encoding)
            if sign != {".csv": ",", ".tsv": "\t"}[suffix]:
                notice(f"the fields of {path.name} are separated by {sign!r}")
        documents = ws.read_documents(
            texts,
            limit=self.limit,
            skip_empty=skip_empty,
            text_column=self.text_column or text_column_of(texts, self.encoding),
            labels=False,
            encoding=self.encoding,
        )
        if suffix == ".txt" and by_line:
            lines = filter(str.strip, documents[0].text.splitlines())
            return [ws.Document(line) for line in islice(lines, self.limit)]
        return documents


def shortened(documents: "list[ws.Document]", max_words: int | None) -> "list[ws.Document]":
    """The texts, each with its first words alone; None for all words."""
    from wordsens.text.whole_words import first_words

    if max_words is None:
        return documents
    return [replace(each, text=first_words(each.text, max_words)) for each in documents]


def write_page(path: Path | None, command: str, title: str, view: View) -> None:
    """Write the page of a command, where one is wanted."""
    if path is not None:
        page = html_page(
            view, title=f"{title} · wordsens {command}", heading=title, version=__version__
        )
        replace_file(path, page.encode())


_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def write_junit(
    path: Path | None, command: str, subject: str, cases: Mapping[str, Sequence[str]]
) -> None:
    """Write JUnit XML with one test case per requirement, where it is wanted: what fails it."""
    if path is None:
        return

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
    replace_file(path, ElementTree.tostring(suite, encoding="utf-8", xml_declaration=True))
