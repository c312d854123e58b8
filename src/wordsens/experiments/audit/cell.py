"""One audited text: from spec to record. A process loads a model once."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from torch import Tensor

from wordsens.audit.black_box import audit_black_box
from wordsens.audit.common_directions import common_directions
from wordsens.audit.text import AUDIT_SEARCH, AuditPlan, audit_text
from wordsens.errors import InputError
from wordsens.evaluation.near_misses.replacements import Replacements
from wordsens.experiments.audit.kept import KeptDirections, kept
from wordsens.experiments.audit.record import AuditRecord, columns_of
from wordsens.experiments.audit.spec import AuditCell, BlackBox
from wordsens.experiments.kinds import CellKind
from wordsens.maps.transformer.features import TransformerFeatures
from wordsens.maps.transformer.loading import content_of
from wordsens.models.choice import as_model
from wordsens.models.contract import Model
from wordsens.models.endpoint import Endpoint
from wordsens.models.function import load_named
from wordsens.text.document import Document
from wordsens.text.shipped_data import shipped_reviews


def measure_audit(cell: AuditCell, keep: Callable[[Mapping[str, Any]], None] | None) -> dict[str, Any]:
    """The columns of an audited text. No witness is kept."""
    phi, document = audited_model(cell), Document(cell.text.content, cell.text.label, cell.text.source)
    plan = AuditPlan(
        max_words=cell.max_words,
        words_per_text=cell.words_per_text,
        removal=cell.removal,
        seed=cell.seed,
        radius=cell.radius,
        search=replace(AUDIT_SEARCH, starts=cell.starts, steps=cell.steps, generations=cell.generations),
    )
    offered = Replacements([document.text, *_shipped_texts()], seed=cell.seed) if cell.swaps else None
    if isinstance(phi, TransformerFeatures):
        found = audit_text(phi, document, plan, offered, _directions(phi, cell))
    else:
        found = audit_black_box(phi, document, plan, offered)
    if keep is not None:
        keep({})
    return {"map": phi.name, **columns_of(found, swaps=cell.swaps)}


def prepare(cell: AuditCell) -> None:
    """Load and measure what all texts of the audit share, so that the first text takes as long as another, and workers
    find it in the audit's folder."""
    phi = audited_model(cell)
    if isinstance(phi, TransformerFeatures):
        _directions(phi, cell)


def describe_audit(cell: AuditCell) -> dict[str, Any]:
    """The columns that the cell alone decides."""
    return {"audit": cell.audit(), "model": cell.model, "source": cell.text.source, "label": cell.text.label}


def audited_model(cell: AuditCell) -> TransformerFeatures | Model:
    """The cell's model, of the files that the cell asks for; the one asked for last is kept.

    A map, for transformers whose parts are known; other models only give vectors.

    Raises:
        InputError: the model's files are not those, or change while they are read; a black box that answers otherwise
            than the cell says, or of which probabilities are asked.
    """
    if cell.black_box is not None:
        return _asked(cell.black_box.model_dump_json(), str(cell.content))
    content = cell.content or content_of(cell.model, cell.revision)
    return _loaded(cell.model, cell.revision, cell.output, cell.pool, cell.device, content)


def black_box(asked: BlackBox) -> Model:
    """The model behind a function or an endpoint."""
    if asked.encode is not None:
        return as_model(load_named(asked.encode))
    return as_model(
        Endpoint(url=str(asked.endpoint), model=asked.endpoint_model, timeout=asked.timeout, retries=asked.retries)
    )


@lru_cache(maxsize=1)
def _asked(asked: str, content: str) -> Model:
    model = black_box(BlackBox.model_validate_json(asked))
    if model.identity() != content:
        raise InputError(f"{model.name} does not answer as it did when the audit began; start it again")
    return model


@lru_cache(maxsize=1)
def _loaded(
    model: str, revision: str | None, output: str, pool: str | None, device: str, content: str
) -> TransformerFeatures | Model:
    _require_content(model, revision, content)
    wanted = "states" if output == "embedding" else output
    try:
        phi = TransformerFeatures.from_pretrained(model, pool=pool, output=wanted, device=device, revision=revision)
    except InputError:
        if output != "embedding":
            raise
        return as_model(model, pool=pool, revision=revision, device=device)
    _require_content(model, revision, content)
    if pool is not None:
        return phi
    if output == "embedding":
        try:
            return phi.at(pool="own")
        except InputError:
            return phi.at(pool="mean")
    return phi.at(pool="last", output=output) if phi.causal else phi


def _require_content(model: str, revision: str | None, content: str) -> None:
    if content_of(model, revision) != content:
        raise InputError(
            f"the files of the model {model!r} are not those that the audit began with; start it again, or put them "
            "back"
        )


def _directions(phi: TransformerFeatures, cell: AuditCell) -> Tensor | None:
    folder = None if cell.kept_in is None else Path(cell.kept_in)
    return _directions_of(phi, folder, json.dumps(cell.of_the_model()))


@lru_cache(maxsize=1)
def _directions_of(phi: TransformerFeatures, folder: Path | None, key: str) -> Tensor | None:
    if folder is None or not folder.is_dir():
        return common_directions(phi)
    return kept(folder, KeptDirections, json.loads(key), lambda: KeptDirections(common_directions(phi))).directions


@cache
def _shipped_texts() -> tuple[str, ...]:
    return tuple(review.text for review in shipped_reviews())


KIND = CellKind(
    name="audit",
    folder="audit-records",
    cell_type=AuditCell,
    record_type=AuditRecord,
    measure=measure_audit,
    described=describe_audit,
    witnesses=False,
)
