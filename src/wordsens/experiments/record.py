"""One measurement as a row of a table."""

import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar, TypeVar

from wordsens.errors import InputError
from wordsens.experiments.identity import hash_identity

DIGEST = "digest"
_ARROW_TYPES = {str: "string", int: "int64", float: "float64", bool: "bool_"}


@dataclass(frozen=True, kw_only=True)
class Record:
    """What every kind of record has. A kind adds its own columns: strings, numbers, truth values, tuples of numbers.

    Attributes:
        cell: the content hash of the cell's spec.
        spec: the identity of the cell, canonical JSON; `cell` is its hash.
        status: "done" or "failed".
        error: why a failed cell failed.
        value: the main number of a finished cell.
        seconds: wall-clock time of the cell.
        libraries: the versions of Python, torch, ..., as JSON; None in records of before they were kept.
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

    @property
    def done(self) -> bool:
        """Whether the cell gave a value."""
        return self.status == "done"

    def to_dict(self) -> dict[str, Any]:
        """The row as plain Python values."""
        return asdict(self)


SomeRecord = TypeVar("SomeRecord", bound=Record)


@dataclass(frozen=True, kw_only=True)
class SensitivityRecord(Record):
    """What one cell gave, and all that is needed to compute it again. The columns of the Parquet table.

    Attributes:
        cell: the content hash of the cell's spec.
        spec: the identity of the cell, canonical JSON; `cell` is its hash.
        status: "done" or "failed".
        error: why a failed cell failed.
        map: rf, drf4 (the number is the depth), raf, relu-raf, ...
        n, d: words of the text and coordinates of a word.
        depth: layers of rf and drf.
        width: features of a layer of rf and drf.
        activation: of rf and drf.
        gaussian: how the matrices of rf and drf are kept.
        temperature: of the attention maps.
        text: the kind of the text: reviews, dataset, gaussian, orthogonal, correlated.
        source: the text itself, e.g. "shipped/review-001".
        encoder, layer: what embedded a real text.
        keep_special_tokens: whether [CLS] and [SEP] of a real text count as words.
        text_content: a digest of the texts that a real one was drawn from.
        mean_cosine: of the rows of a correlated text.
        label: of the text, +1 or -1, where it has one.
        seed, draw: of the cell.
        map_seed: the seed the map was built with.
        word_choice: which words were asked for: all, or the JSON of a sample or of indices.
        starts, steps, generations, tolerance: of the search, as asked for; None for what suits the map.
        words: how many words were searched.
        word, token: the word with the largest value, and what it is called.
        value: the attained word sensitivity: a lower bound of the sup.
        median_word: the median over the searched words of what each attains; None in records of before it was kept.
        upper: an upper bound over the searched words, where the map has one.
        rigor: of the upper bound: "certified", or "with probability 1 - x over the weights, ..."; x speaks of one
            cell, and the bounds of m cells all hold but for probability m x.
        predicted: what theory predicts, where it does.
        predicted_of: what that is of: "the largest of 16 words" or "a typical word" (compare `median_word`).
        predicted_in_range: whether the sizes lie where the prediction was compared with measurements.
        radius: of the ball of that word.
        evaluations: how many perturbed texts were evaluated.
        converged: the share of searched words whose search stopped at a stationary point before its steps ran out.
        seconds: wall-clock time of the cell.
        peak_memory_mb: the largest resident memory of the process up to the end of the cell, in MiB.
        dtype, device: what it was computed in and on.
        threads: CPU threads of torch meanwhile; None in records of before they were kept.
        started: UTC, ISO 8601.
        wordsens_version, torch_version: of the libraries.
        machine: operating system, processor and cores.
    """

    SPEC_COLUMNS: ClassVar[tuple[str, ...]] = (
        "gaussian", "keep_special_tokens", "text_content", "mean_cosine", "word_choice", "starts", "steps",
        "generations", "tolerance",
    )  # fmt: skip

    map: str
    n: int
    d: int
    depth: int | None = None
    width: int | None = None
    activation: str | None = None
    gaussian: str | None = None
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
    map_seed: int
    word_choice: str | None = None
    starts: int | None = None
    steps: int | None = None
    generations: int | None = None
    tolerance: float | None = None
    words: int | None = None
    word: int | None = None
    token: str | None = None
    median_word: float | None = None
    upper: float | None = None
    rigor: str | None = None
    predicted: float | None = None
    predicted_of: str | None = None
    predicted_in_range: bool | None = None
    radius: float | None = None
    evaluations: int | None = None
    converged: float | None = None
    peak_memory_mb: float | None = None
    dtype: str
    device: str
    threads: int | None = None
    started: str
    wordsens_version: str
    torch_version: str
    machine: str


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
    """What every kind has, checked row by row: status, value, that each hash is that of its spec, and the digest.

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


def arrow_schema(kind: type[Record] = SensitivityRecord) -> Any:
    """The Arrow schema of the table of records of that kind: its columns, and the digest of each row."""
    import pyarrow as pa

    columns = []
    for field in fields(kind):
        if field.type == tuple[float, ...]:
            columns.append(pa.field(field.name, pa.list_(pa.float64()), nullable=False))
            continue
        plain = next(plain for plain in _ARROW_TYPES if field.type in (plain, plain | None))
        columns.append(pa.field(field.name, getattr(pa, _ARROW_TYPES[plain])(), nullable=field.type != plain))
    return pa.schema([*columns, pa.field(DIGEST, pa.string())])
