"""The model and the texts that a command is given."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import typer

from wordsens.cli.options import Device
from wordsens.errors import InputError, require_choice, require_count

if TYPE_CHECKING:
    from wordsens.models.black_box import Model
    from wordsens.models.endpoint import Endpoint
    from wordsens.models.pairs import PairModel
    from wordsens.text.document import Document
    from wordsens.text.readers import Reading

_PANEL, _TEXT = "Model", "Texts"
POOLS = ("own", "mean", "cls", "last", "max")

Name = Annotated[
    str | None,
    typer.Argument(
        metavar="[MODEL]",
        help="minilm, a folder with a model or CrossEncoder, or a name on the Hugging Face hub.",
        show_default=False,
    ),
]
Encode = Annotated[
    str | None,
    typer.Option(
        help="module:function, from a list of texts to an array with a row for each; instead of MODEL.",
        show_default=False,
        rich_help_panel=_PANEL,
    ),
]
EndpointUrl = Annotated[
    str | None,
    typer.Option(
        "--endpoint",
        help="An embeddings endpoint, such as https://host/v1, instead of MODEL; the key in WORDSENS_API_KEY.",
        show_default=False,
        rich_help_panel=_PANEL,
    ),
]
EndpointModel = Annotated[
    str | None,
    typer.Option(help="The model's name on the endpoint.", show_default=False, rich_help_panel=_PANEL),
]
EndpointTimeout = Annotated[
    float | None,
    typer.Option(
        help="Seconds that a batch of texts may take, retries and waits included; default: 60.",
        show_default=False,
        rich_help_panel=_PANEL,
    ),
]
EndpointRetries = Annotated[
    int | None,
    typer.Option(
        help="How often a batch is asked for again where that may help; default: 4.",
        show_default=False,
        rich_help_panel=_PANEL,
    ),
]
Revision = Annotated[
    str | None,
    typer.Option(help="Branch, tag or commit of a name on the hub.", show_default=False, rich_help_panel=_PANEL),
]
Pool = Annotated[
    str | None,
    typer.Option(
        help="own, mean, cls, last or max; default: the model's own where it has one.",
        show_default=False,
        rich_help_panel=_PANEL,
    ),
]


PromptNames = Annotated[
    list[str] | None,
    typer.Option(
        "--prompt-name",
        help="A SentenceTransformer's prompt, such as query; of two texts, give it twice for one each.",
        show_default=False,
        rich_help_panel=_PANEL,
    ),
]
Encoding = Annotated[str, typer.Option(help="Of a text, CSV or JSON lines file.", rich_help_panel=_TEXT)]


@dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """The options that name a model; a command's own are the fields of a subclass.

    Raises:
        InputError: not exactly one of MODEL, --encode and --endpoint, or an option that goes with another of them.
    """

    model: Name = None
    encode: Encode = None
    endpoint: EndpointUrl = None
    endpoint_model: EndpointModel = None
    endpoint_timeout: EndpointTimeout = None
    endpoint_retries: EndpointRetries = None
    revision: Revision = None
    pool: Pool = None
    prompt_names: PromptNames = None
    device: Device = "cpu"

    def __post_init__(self) -> None:
        given = [each for each in (self.model, self.encode, self.endpoint) if each is not None]
        if len(given) != 1:
            raise InputError("give one model: MODEL (such as minilm), --encode module:function, or --endpoint URL")
        for name in ("endpoint_model", "endpoint_timeout", "endpoint_retries"):
            if getattr(self, name) is not None and self.endpoint is None:
                raise InputError(f"--{name.replace('_', '-')} goes with --endpoint; leave it out")
        if self.pool is not None:
            require_choice("pool", self.pool, POOLS)

    def load(self) -> "Model | PairModel":
        """The model, loaded."""
        from wordsens.models.black_box import load_named
        from wordsens.models.load import as_model, load

        if self.endpoint is not None:
            return as_model(self.server(), pool=self.pool)
        chosen = self.model if self.encode is None else load_named(self.encode)
        return load(chosen, pool=self.pool, revision=self.revision, device=self.device)

    def server(self) -> "Endpoint":
        """The endpoint, with what was said of it."""
        from wordsens.models.endpoint import Endpoint

        said = {"model": self.endpoint_model, "timeout": self.endpoint_timeout, "retries": self.endpoint_retries}
        return Endpoint(url=str(self.endpoint), **{name: value for name, value in said.items() if value is not None})


@dataclass(frozen=True, kw_only=True)
class TextOptions:
    """The options that name texts."""

    texts: Annotated[
        str | None,
        typer.Option(
            "--texts",
            "--dataset",
            help="Your texts: a file, CSV or Parquet table, folder, 'shipped', or 'imdb' of the hub.",
            show_default=False,
            rich_help_panel=_TEXT,
        ),
    ] = None
    text_column: Annotated[
        str | None,
        typer.Option(
            help="The column of a table that holds the text; default: text, or the only column with texts.",
            show_default=False,
            rich_help_panel=_TEXT,
        ),
    ] = None
    limit: Annotated[int | None, typer.Option(help="At most this many texts.", rich_help_panel=_TEXT)] = None
    encoding: Encoding = "utf-8"

    def require_texts(self) -> None:
        """InputError without texts, or for a limit of none."""
        if self.texts is None:
            raise InputError("give your texts: --texts FILE (or a folder, 'shipped', or 'imdb')")
        if self.limit is not None:
            require_count("limit", self.limit)

    def reading(self) -> "Reading":
        """The way in which the texts are read; labels play no part."""
        from wordsens.text.readers import Reading
        from wordsens.text.text_column import text_column_of

        column = self.text_column or text_column_of(str(self.texts), self.encoding)
        return Reading(text_column=column, labels=False, encoding=self.encoding, skip_empty=True)

    def notices(self) -> list[str]:
        """What a reader should know of the way in which a table is read."""
        from pathlib import Path

        from wordsens.text.plain_files import delimiter_of

        path = Path(str(self.texts)).expanduser()
        if path.suffix.lower() == ".txt" and path.is_file():
            return [f"{path.name} is read as one text; for a text a line save it as CSV or JSON lines"]
        if path.suffix.lower() not in (".csv", ".tsv") or not path.is_file():
            return []
        sign = delimiter_of(path, self.encoding)
        usual = "," if path.suffix.lower() == ".csv" else "\t"
        return [] if sign == usual else [f"the fields of {path.name} are separated by {sign!r}"]

    def documents(self, *, max_words: int | None = None, quiet: bool = False) -> "list[Document]":
        """The texts; longer ones cut to their first words."""
        from wordsens.cli.terminal import notice
        from wordsens.text.readers import read_documents
        from wordsens.text.whole_words import first_words

        for message in () if quiet else self.notices():
            notice(message)
        documents = read_documents(str(self.texts), limit=self.limit, **vars(self.reading()))
        if max_words is None:
            return documents
        return [replace(document, text=first_words(document.text, max_words)) for document in documents]
