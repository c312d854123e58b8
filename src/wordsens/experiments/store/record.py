"""One measurement as a row of a table."""

import hashlib
import json
import math
import types
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from functools import cache
from typing import Any, ClassVar, TypeVar, Union, get_args, get_origin

from wordsens.errors import InputError

SCHEMA_VERSION = 1
"""Raised when the meaning of a spec's key, or the way a cell is computed, changes: old records are then not reused."""

DIGEST = "digest"
_ARROW_TYPES = {str: "string", int: "int64", float: "float64", bool: "bool_"}


@dataclass(frozen=True, kw_only=True)
class Record:
    """The columns of every kind of record. A kind adds its own: strings, numbers, truth values, tuples of numbers.

    Attributes:
        cell: the content hash of the cell's spec.
        spec: the identity of the cell, canonical JSON; `cell` is its hash.
        status: "done" or "failed".
        error: why a failed cell failed.
        value: the main number of a finished cell.
        seconds: wall-clock time of the cell.
        libraries: the versions of Python, torch, ..., as JSON; None in records of before they were kept.
        peak_memory_mb: the largest resident memory of the process up to the end of the cell, in MiB; None where it is
            not told.
        device: where it was computed.
        started: UTC, ISO 8601.
        wordsens_version: of this library.
        machine: operating system, processor and cores.
    """

    SPEC_COLUMNS: ClassVar[tuple[str, ...]] = ()
    """Columns that the spec alone decides (`spec_columns`)."""

    cell: str
    spec: str
    status: str
    error: str | None = None
    value: float | None = None
    seconds: float
    libraries: str | None = None
    peak_memory_mb: float | None = None
    device: str
    started: str
    wordsens_version: str
    machine: str

    @property
    def done(self) -> bool:
        """True where the cell gave a value."""
        return self.status == "done"

    def to_dict(self) -> dict[str, Any]:
        """The row as plain Python values."""
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class TorchRecord(Record):
    """The record of a cell that computes with torch.

    Attributes:
        threads: CPU threads of torch meanwhile; None in records of before they were kept.
        torch_version: of torch.
    """

    threads: int | None = None
    torch_version: str


@dataclass(frozen=True, kw_only=True)
class MapRecord(TorchRecord):
    """The record of a cell that searches a text for a perturbation under a map.

    Attributes:
        map: rf, drf4 (the number is the depth), raf, relu-raf, ...
        n, d: words of the text and coordinates of a word.
        width: features of a layer of rf and drf.
        activation: of rf and drf.
        temperature: of the attention maps.
        text: the kind of the text: reviews, dataset, gaussian, orthogonal, correlated.
        source: the text itself, e.g. "shipped/review-001".
        encoder, layer: what embedded a real text.
        keep_special_tokens: whether [CLS] and [SEP] of a real text count as words.
        text_content: a digest of the texts that a real one was drawn from.
        mean_cosine: of the rows of a correlated text.
        label: of the text, +1 or -1, where it has one.
        seed, draw: of the cell.
        word_choice: which words were asked for: all, an index, or the JSON of a sample or of indices.
        search: quick or thorough, where that was asked for.
        starts, steps, generations: of the search, as asked for; None for what suits the map.
        word, token: the word with the best value, and what it is called.
        evaluations: how many perturbed texts were evaluated.
        dtype: what it was computed in.
    """

    SPEC_COLUMNS: ClassVar[tuple[str, ...]] = (
        "keep_special_tokens", "text_content", "mean_cosine", "word_choice", "search", "starts", "steps", "generations",
    )  # fmt: skip

    map: str
    n: int
    d: int
    width: int | None = None
    activation: str | None = None
    temperature: float | None = None
    text: str
    source: str | None = None
    encoder: str | None = None
    layer: int | None = None
    keep_special_tokens: bool | None = None
    text_content: str | None = None
    mean_cosine: float | None = None
    label: int | None = None
    seed: int
    draw: int
    word_choice: str | None = None
    search: str | None = None
    starts: int | None = None
    steps: int | None = None
    generations: int | None = None
    word: int | None = None
    token: str | None = None
    evaluations: int | None = None
    dtype: str


SomeRecord = TypeVar("SomeRecord", bound=Record)


def record_from_row(row: dict[str, Any], kind: type[SomeRecord]) -> SomeRecord:
    """The record of a row of a verified table."""
    values: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in row.items()}
    values.pop(DIGEST, None)
    return kind(**values)


def digest_of(row: Mapping[str, Any]) -> str:
    """SHA-256 of everything that a row says, itself left out: what shows that it was edited.

    A column without a value counts as none, so that one which comes later changes no digest.

    >>> digest_of({"value": 1.0, "upper": None}) == digest_of({"value": 1.0, DIGEST: "x"}) != digest_of({"value": 2.0})
    True
    """
    said = {name: value for name, value in row.items() if value is not None and name != DIGEST}
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


def require_rows(rows: Iterable[Mapping[str, Any]]) -> None:
    """Check the columns of every kind, row by row: status, value, that each hash is that of its spec, and the digest.

    Records of before there were digests have none.

    Raises:
        InputError: when a row is not one that wordsens wrote.
    """
    for row in rows:
        cell, spec, status, value = (row[name] for name in ("cell", "spec", "status", "value"))
        if status not in ("done", "failed"):
            raise InputError(f"its status (={status!r}) must be done or failed")
        if not isinstance(spec, str) or hash_identity(spec) != cell:
            raise InputError("its hash is not that of its spec")
        if status == "done" and value is None:
            raise InputError("it says done, but has no value")
        if status == "done" and not math.isfinite(value):
            raise InputError(f"it says done, but its value is {value}")
        if row.get(DIGEST) is not None and row[DIGEST] != digest_of(row):
            raise InputError("it does not say what was written: its digest differs")


@cache
def arrow_schema(kind: type[Record]) -> Any:
    """The Arrow schema of the table of records of that kind: its columns, and the digest of each row."""
    import pyarrow as pa

    columns = []
    for field in fields(kind):
        nullable = get_origin(field.type) in (Union, types.UnionType)
        plain: Any = get_args(field.type)[0] if nullable else field.type
        entry = get_args(plain)[0] if get_origin(plain) is tuple else plain
        column = getattr(pa, _ARROW_TYPES[entry])()
        column = pa.list_(column) if entry is not plain else column
        columns.append(pa.field(field.name, column, nullable=nullable))
    return pa.schema([*columns, pa.field(DIGEST, pa.string())])


def hash_identity(identity: str) -> str:
    """The name in the store of the cell with that identity: SHA-256, the first 32 hexadecimal digits.

    >>> len(hash_identity("{}"))
    32
    """
    return hashlib.sha256(identity.encode()).hexdigest()[:32]
