"""The contract of a model of texts: every text gets a vector."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from jaxtyping import Float
from torch import Tensor

from wordsens.errors import InputError, argument
from wordsens.models.identity import UNKNOWN
from wordsens.text.whole_words import Span

PROBES = (
    "The service is not available on Sundays.",
    "a",
    "Please turn the alarm on before you leave, and do not open the second door until the light "
    "has gone out.",
)
"""Sentences of one word to twenty, on which two ways to compute an embedding are compared."""

COSINE = "cosine"
SIMILARITIES = {
    COSINE: "cosine",
    "dot": "dot product",
    "euclidean": "negative Euclidean distance",
    "manhattan": "negative Manhattan distance",
}
"""How two vectors are compared: the names in sentence-transformers, and their meaning."""


class Model(ABC):
    """Anything that gives every text a vector.

    Attributes:
        name: for tables and records.
        similarity: how the model's vectors are compared, a name of SIMILARITIES.
        no_rows: why the model cannot be run from rows and so has no gradients and no layers; None
            if it can.
    """

    name: str
    similarity: str = COSINE
    no_rows: str | None = (
        "it gives one vector per text, for pairs, removals, swaps and lengths; pass the "
        "transformer (a name, a folder, or a pair (model, tokenizer))"
    )

    @abstractmethod
    def encode(self, texts: Sequence[str]) -> Float[Tensor, "m d"]:
        """One vector per text: float64 on the CPU, finite, none of them zero, and d the same in
        every call.

        Raises:
            InputError: `texts` is not a list of strings, or the model's answer is not such an
                array.
        """

    def identity(self) -> str:
        """A digest of what decides the numbers: weights, configuration, tokenizer, pooling,
        prompts; UNKNOWN if they cannot be read."""
        return UNKNOWN

    def probes(self) -> Sequence[str]:
        """Texts to try the model on."""
        return PROBES

    def read_span(self, text: str) -> Span:
        """Start and end of the part of the text that the model reads; the whole text if no limit is
        known."""
        return 0, len(text)

    def unreadable(self, text: str) -> str | None:
        """Why the model refuses the text; None if it does not, or if that is unknown."""
        return None

    def refusals(self, texts: Sequence[str]) -> dict[str, str]:
        """The texts that the model refuses, each with the reason."""
        reasons = {text: self.unreadable(text) for text in texts}
        return {text: reason for text, reason in reasons.items() if reason}

    def prompted(self, name: str) -> "Model":
        """The model that puts its prompt of that name before every text.

        Raises:
            InputError: a model without prompts, or without this one.
        """
        raise InputError(
            f"{argument('prompt_name')} (={name!r}) needs a SentenceTransformer; {self.name} has "
            "no prompts"
        )

    def text_model(self) -> Any:
        """The TextModel, which is run from rows; InputError if there is none."""
        raise InputError(
            f"where gradients or layers are needed {self.name} cannot be used: {self.no_rows}"
        )


def require_cosines(model: Model, what: str) -> None:
    """InputError for a model whose vectors are not compared by cosines.

    Args:
        model: its `similarity` decides.
        what: what is measured, in the plural, for the message.
    """
    if model.similarity != COSINE:
        raise InputError(
            f"{what} are measured by cosines, and {model.name} compares by the "
            f"{SIMILARITIES[model.similarity]} (similarity_fn_name); for cosines pass the model "
            "with similarity_fn_name='cosine'"
        )
