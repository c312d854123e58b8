"""The typed spec of the audit of one text by one model."""

import hashlib
import json
from typing import Annotated, Literal

from pydantic import Field, model_validator

from wordsens.errors import InputError, require_choice
from wordsens.experiments.grid.cell_keys import CPU, Device, ModelName, with_kind_of_device
from wordsens.experiments.grid.strict_model import StrictModel
from wordsens.experiments.store.record import hash_identity
from wordsens.maps.transformer.features import POOL_NAMES
from wordsens.sensitivity.removals import WAYS
from wordsens.text.model_files import model_digest

AUDIT_SCHEMA = 3
"""Raised when the meaning of a key, or the way a cell is computed, changes: old records are then not reused."""

DEFAULT_MAX_WORDS = 126

_TOKENS_A_WORD = 1.3
_OVERHEAD = 17
"""Tokens that cost as much as a text does beside its tokens: MiniLM, texts of 16 to 256 tokens."""

OUTPUTS = ("embedding", "probabilities")


class AuditText(StrictModel):
    """A text itself: a worker needs no dataset.

    Attributes:
        content: the characters.
        source: where it came from; changes no value.
        label: +1, -1 or None; changes no value.
    """

    content: str
    source: str = ""
    label: Literal[1, -1] | None = None


class BlackBox(StrictModel):
    """A model that gives vectors and nothing else: a function, or an endpoint.

    Attributes:
        encode: the function's module:name.
        endpoint, endpoint_model, timeout, retries: of an `Endpoint`, in the place of `encode`.
    """

    encode: str | None = None
    endpoint: str | None = None
    endpoint_model: str | None = None
    timeout: float = 60.0
    retries: int = 4


class AuditCell(StrictModel):
    """One text, one model, one record.

    Attributes:
        model: "minilm", a folder (kept as an absolute path: a worker may run in another folder) or a name on the hub;
            the name of a black box.
        black_box: how a black box is asked; changes no value, and neither does `revision`: `content` decides.
        revision: branch, tag or commit of a name on the hub.
        content: digest of the model's files, `wordsens.text.model_files.model_digest`; a cell is only measured with
            these. None: those that are there now. Of a black box the digest of its answers to a few sentences.
        text: what is audited.
        output: "embedding" or "probabilities".
        pool: None: of an embedding the model's own where it has one, else "mean"; of a causal language model's
            probabilities "last".
        max_words: tokens that a text keeps, special ones not counted.
        words_per_text: whole words that are measured: negations first, others drawn at random.
        removal: "delete" or "mask".
        swaps: whether each word is exchanged for others that a writer could have meant.
        seed: of the draw and of the search.
        radius: of every token's ball; None for the token's own row norm.
        starts, steps, generations: of the search. Polishing in the model's own precision gains little
            (docs/transformers.md) and costs as much as the search, so that an audit leaves it out; witnesses are
            evaluated in that precision all the same.
        device: where it is computed; its kind belongs to the identity, its number does not.
        kept_in: folder of the audit, an absolute path: what belongs to the model is read there, or left there for
            others. It changes no value; a worker that does not see the folder measures that itself.
    """

    model: ModelName
    black_box: BlackBox | None = None
    revision: str | None = None
    content: str | None = None
    text: AuditText
    output: str = "embedding"
    pool: str | None = None
    max_words: Annotated[int, Field(ge=2)] = DEFAULT_MAX_WORDS
    words_per_text: Annotated[int, Field(ge=1)] = 4
    removal: str = "delete"
    swaps: bool = False
    seed: int = 0
    radius: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    starts: Annotated[int, Field(ge=1)] = 4
    steps: Annotated[int, Field(ge=0)] = 0
    generations: Annotated[int, Field(ge=0)] = 0
    device: Device = CPU
    kept_in: str | None = None

    @model_validator(mode="after")
    def _valid(self) -> "AuditCell":
        require_choice("output", self.output, OUTPUTS)
        require_choice("removal", self.removal, WAYS)
        if self.pool is not None:
            require_choice("pool", self.pool, POOL_NAMES)
        if self.black_box is not None and self.content is None:
            raise InputError("`content` of a black box must be given: no file says what it computes")
        return self

    @property
    def digest(self) -> str:
        """Of the model's files: the one that was asked for, or that of the files that are there now."""
        return self.content or model_digest(self.model, self.revision)

    @property
    def relative_cost(self) -> float:
        """About how long it takes, beside others of the audit: in tokens, and what a text costs however short it is."""
        return _OVERHEAD + min(float(self.max_words), _TOKENS_A_WORD * len(self.text.content.split()))

    def of_the_model(self) -> dict[str, str | None]:
        """The keys that decide a result about the model: its content, what is read of it, the kind of device."""
        return {"model": self.digest, "output": self.output, "pool": self.pool, "device": self.device.split(":")[0]}

    def audit(self) -> str:
        """The name of everything but the text: cells of one audit share it."""
        return hash_identity(json.dumps(self._fields(), sort_keys=True, separators=(",", ":")))

    def identity(self) -> str:
        """Canonical JSON of what can change the result: the content of the model and of the text for their names."""
        text = hashlib.sha256(self.text.content.encode()).hexdigest()
        return json.dumps({**self._fields(), "text": text}, sort_keys=True, separators=(",", ":"))

    def content_hash(self) -> str:
        """The cell's name in the store."""
        return hash_identity(self.identity())

    def _fields(self) -> dict[str, object]:
        fields = with_kind_of_device(
            self.model_dump(mode="json", exclude={"model", "text", "content", "black_box", "revision", "kept_in"})
        )
        return {"kind": "audit", "schema": AUDIT_SCHEMA, **fields, "model": self.digest}
