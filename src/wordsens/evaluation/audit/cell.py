"""One text of an audited model: how far its words move the model's output, whatever the model
is."""

import hashlib
import json
import math
from dataclasses import replace
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from wordsens.errors import InputError, require_choice
from wordsens.evaluation.audit.text import (
    AUDIT_SEARCH,
    AuditedText,
    AuditedWord,
    audit_black_box,
    audit_text,
)
from wordsens.evaluation.substitutes import substitutes
from wordsens.maps.transformer.features import TransformerFeatures, map_of
from wordsens.models.endpoint import Endpoint
from wordsens.models.function import load_named
from wordsens.models.load import as_model
from wordsens.models.model import Model
from wordsens.models.model_files import model_digest
from wordsens.models.text_model import POOL_NAMES
from wordsens.sensitivity.replacements import WAYS
from wordsens.sweeps.spec import Cell, ModelName, Strict
from wordsens.sweeps.store import Row, json_text
from wordsens.sweeps.study import Study
from wordsens.text.document import Document

OUTPUTS = ("embedding", "probabilities")
DEFAULT_MAX_WORDS = 126

_COLUMNS = ("tokens", "words", "words_lost", "negations_lost", "evaluations")
"""Numbers of a text that a record holds as they are."""


class AuditText(Strict, frozen=True):
    """A text itself: a worker needs no dataset.

    Attributes:
        content: the characters.
        source: where it came from; changes no value.
        label: +1, -1 or None; changes no value.
    """

    content: str
    source: str = ""
    label: Literal[1, -1] | None = None


class BlackBox(Strict, frozen=True):
    """A model that gives vectors and nothing else: a function, or an endpoint.

    Attributes:
        encode: the function's module:name.
        endpoint, endpoint_model, timeout, retries, on_error: of an `Endpoint`, in the place of
            `encode`.
        batch_size: texts per call or request.
    """

    encode: str | None = None
    endpoint: str | None = None
    endpoint_model: str | None = None
    timeout: float = 60.0
    retries: int = 4
    on_error: str = "stop"
    batch_size: int = 32


class AuditCell(Cell, frozen=True):
    """One text, one model.

    Attributes:
        model: "minilm", a folder or a name on the hub; the name of a black box.
        black_box: how a black box is asked; changes no value, and neither does `revision`:
            `content` decides.
        revision: branch, tag or commit of a name on the hub.
        content: digest of the model's files, `wordsens.models.model_files.model_digest`; a cell is
            only measured with these. None: those that are there now. Of a black box the digest of
            its answers to a few sentences.
        text: what is audited.
        output: "embedding" or "probabilities".
        pool: None: of an embedding the model's own where it has one, else "mean"; of a causal
            language model's probabilities "last".
        max_words: tokens that a text keeps, special ones not counted.
        words_per_text: whole words that are measured: negations first, others drawn at random.
        removal: "delete" or "mask".
        swaps: whether each word is exchanged for others that a writer could have meant.
        seed: of the draw and of the search.
        searched: whether sensitivities are searched, which takes most of the time.
        radius: of every token's ball; None for the token's own row norm.
        starts, steps: of the search, a quick one.
    """

    experiment: ClassVar[str] = "audit"

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
    searched: bool = True
    radius: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    starts: Annotated[int, Field(ge=1)] = AUDIT_SEARCH.starts or 1
    steps: Annotated[int, Field(ge=1)] = AUDIT_SEARCH.steps or 1

    @model_validator(mode="after")
    def _valid(self) -> "AuditCell":
        require_choice("output", self.output, OUTPUTS)
        require_choice("removal", self.removal, WAYS)
        if self.pool is not None:
            require_choice("pool", self.pool, POOL_NAMES)
        if self.black_box is not None and self.content is None:
            raise InputError(
                "`content` of a black box must be given: no file says what it computes"
            )
        return self

    def of_the_model(self) -> dict[str, str | None]:
        """The keys that decide a result about the model: its content, what is read of it, the kind
        of device."""
        content = self.content or model_digest(self.model, self.revision)
        return {
            "model": content,
            "output": self.output,
            "pool": self.pool,
            "device": self.device.split(":")[0],
        }

    def spec(self) -> dict[str, Any]:
        """The content of the model and of the text stand for their names."""
        named = {"model", "text", "content", "black_box", "revision"}
        keys = self.model_dump(mode="json", exclude=named) | self.of_the_model()
        return {**keys, "text_content": hashlib.sha256(self.text.content.encode()).hexdigest()}

    def described(self) -> dict[str, Any]:
        """`audit` names everything but the text: records of one audit share it."""
        shared = {
            name: value
            for name, value in self.spec().items()
            if name not in ("text_content", "searched")
        }
        named = {
            "model": self.model,
            "source": self.text.source,
            "label": self.text.label,
            "map": "",
        }
        return {"audit": digest(shared), **named}


def digest(keys: Any) -> str:
    """32 hexadecimal digits of SHA-256 over the keys as JSON."""
    return hashlib.sha256(json.dumps(keys, sort_keys=True).encode()).hexdigest()[:32]


def measure_audit(cell: AuditCell) -> dict[str, Any]:
    """The columns of an audited text: `value` is the largest sensitivity; of a black box, which has
    none, the largest removal. Tuples have an entry a measured word; read, measured, rows and
    swapped_for are lists as JSON.
    """
    phi, document = (
        audited_model(cell),
        Document(cell.text.content, cell.text.label, cell.text.source),
    )
    offered = substitutes if cell.swaps else None
    effort = {"max_words": cell.max_words, "words_per_text": cell.words_per_text, "seed": cell.seed}
    if isinstance(phi, TransformerFeatures):
        search = (
            replace(AUDIT_SEARCH, starts=cell.starts, steps=cell.steps) if cell.searched else None
        )
        text = audit_text(
            phi,
            document,
            offered,
            removal=cell.removal,
            radius=cell.radius,
            search=search,
            **effort,
        )
    else:
        text = audit_black_box(phi, document, offered, **effort)
    words = text.measured
    return {name: getattr(text, name) for name in ("value", *_COLUMNS)} | {
        "map": phi.name,
        "read": json_text(text.read),
        "measured": json_text([word.word for word in words]),
        "rows": json.dumps([word.tokens for word in words]),
        "places": tuple(word.place for word in words),
        "sensitivity": tuple(
            word.sensitivity for word in words if not math.isnan(word.sensitivity)
        ),
        "removal": tuple(word.removal for word in words),
        "swap": tuple(word.swap for word in words) if cell.swaps else (),
        "swapped_for": json_text([word.swapped_for for word in words] if cell.swaps else []),
    }


def audited(record: Row) -> AuditedText:
    """The measured words of a record as `audit_text` gave them."""
    names, rows, swapped = (
        json.loads(text) for text in (record["measured"], record["rows"], record["swapped_for"])
    )
    unknown = (math.nan,) * len(names)
    columns = {
        "word": names,
        "tokens": rows,
        "place": record["places"],
        "sensitivity": record["sensitivity"] or unknown,
        "removal": record["removal"],
        "swap": record["swap"] or unknown,
        "swapped_for": swapped or ("",) * len(names),
    }
    words = (
        dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)
    )
    return AuditedText(
        **{name: record[name] for name in ("source", *_COLUMNS)},
        measured=tuple(AuditedWord(**word) for word in words),
        read=tuple(json.loads(record["read"])),
    )


def audited_model(cell: AuditCell) -> TransformerFeatures | Model:
    """The cell's model, of the files that the cell asks for; the one asked for last is kept.

    A map, for transformers whose parts are known; other models only give vectors.

    Raises:
        InputError: the model's files are not those, or change while they are read; a black box that
            answers otherwise than the cell says, or of which probabilities are asked.
    """
    if cell.black_box is not None:
        model = black_box(cell.black_box)
        if _fingerprint(model) != cell.content:
            raise InputError(
                f"{model.name} does not answer as it did when the audit began; start it again"
            )
        return model
    content = cell.content or model_digest(cell.model, cell.revision)
    return _loaded(cell.model, cell.revision, cell.output, cell.pool, cell.device, content)


@lru_cache(maxsize=1)
def black_box(options: BlackBox) -> Model:
    """The model behind a function or an endpoint; the one asked for last is kept."""
    if options.encode is not None:
        return as_model(load_named(options.encode), batch_size=options.batch_size)
    names = {
        "model": options.endpoint_model,
        "timeout": options.timeout,
        "retries": options.retries,
        "on_error": options.on_error,
    }
    endpoint = Endpoint(url=str(options.endpoint), **names)
    return as_model(endpoint, batch_size=options.batch_size)


@lru_cache(maxsize=1)
def _fingerprint(model: Model) -> str:
    return model.fingerprint()


@lru_cache(maxsize=1)
def _loaded(
    model: str, revision: str | None, output: str, pool: str | None, device: str, content: str
) -> TransformerFeatures | Model:
    _require_content(model, revision, content)
    if output == "embedding":
        loaded = as_model(model, pool=pool, revision=revision, device=device)
        phi = loaded if loaded.no_rows else map_of(loaded)
    else:
        phi = TransformerFeatures.from_pretrained(
            model, pool=pool, output=output, device=device, revision=revision
        )
        phi = phi.at(pool="last", output=output) if pool is None and phi.causal else phi
    _require_content(model, revision, content)
    return phi


def _require_content(model: str, revision: str | None, content: str) -> None:
    if model_digest(model, revision) != content:
        raise InputError(
            f"the files of the model {model!r} are not those that the audit began with; start it "
            "again, or put them "
            "back"
        )


AUDIT = Study(name="audit", Cell=AuditCell, measure=measure_audit)
