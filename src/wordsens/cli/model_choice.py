"""The model that a command asks: a name, a function, or an endpoint."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from wordsens.cli.options import Device
from wordsens.errors import InputError, require_choice

if TYPE_CHECKING:
    from wordsens.models.black_box import Model
    from wordsens.models.endpoint import Endpoint
    from wordsens.models.pairs import PairModel

_PANEL = "Model"
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
        help="Seconds that a batch of texts may take, retries and waits included. [default: 60]",
        show_default=False,
        rich_help_panel=_PANEL,
    ),
]
EndpointRetries = Annotated[
    int | None,
    typer.Option(
        help="How often a batch is asked for again where that may help. [default: 4]",
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
        from wordsens.models.load import as_model, as_pair_model, is_pair_model

        if self.endpoint is not None:
            return as_model(self.server(), pool=self.pool)
        chosen = self.model if self.encode is None else load_named(self.encode)
        if is_pair_model(chosen, self.revision):
            return as_pair_model(chosen, revision=self.revision, device=self.device)
        return as_model(chosen, pool=self.pool, revision=self.revision, device=self.device)

    def server(self) -> "Endpoint":
        """The endpoint, with what was said of it."""
        from wordsens.models.endpoint import Endpoint

        said = {"model": self.endpoint_model, "timeout": self.endpoint_timeout, "retries": self.endpoint_retries}
        return Endpoint(url=str(self.endpoint), **{name: value for name, value in said.items() if value is not None})
