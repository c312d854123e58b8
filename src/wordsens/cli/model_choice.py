"""The model that a command asks: a name, a function, or an endpoint."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from wordsens.errors import InputError

if TYPE_CHECKING:
    from wordsens.models.contract import Model
    from wordsens.models.pairs import PairModel

_PANEL = "Model"

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
class ModelRequest:
    """The options of this module, as they were given.

    Raises:
        InputError: not exactly one of name, encode and endpoint.
    """

    name: str | None
    encode: str | None
    endpoint: str | None
    endpoint_model: str | None
    revision: str | None
    pool: str | None
    device: str

    def __post_init__(self) -> None:
        given = [each for each in (self.name, self.encode, self.endpoint) if each is not None]
        if len(given) != 1:
            raise InputError("give one model: MODEL (such as minilm), --encode module:function, or --endpoint URL")
        if self.endpoint_model is not None and self.endpoint is None:
            raise InputError("--endpoint-model goes with --endpoint; leave it out")

    def load(self) -> "Model | PairModel":
        """The model, loaded."""
        from wordsens.models.choice import as_model, as_pair_model, is_pair_model
        from wordsens.models.endpoint import Endpoint
        from wordsens.models.function import load_named

        if self.endpoint is not None:
            return as_model(Endpoint(url=self.endpoint, model=self.endpoint_model), pool=self.pool)
        chosen = self.name if self.encode is None else load_named(self.encode)
        if is_pair_model(chosen, self.revision):
            return as_pair_model(chosen, revision=self.revision, device=self.device)
        return as_model(chosen, pool=self.pool, revision=self.revision, device=self.device)
