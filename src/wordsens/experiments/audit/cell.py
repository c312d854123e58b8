"""One audited text: from spec to record. A process loads a model once."""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from wordsens.audit.text import AuditPlan, audit_text
from wordsens.errors import InputError
from wordsens.experiments.audit.record import columns_of
from wordsens.experiments.audit.spec import AuditCell
from wordsens.maps.transformer.features import TransformerFeatures
from wordsens.maps.transformer.loading import content_of
from wordsens.search.plan import SearchPlan
from wordsens.text.document import Document
from wordsens.text.vocabulary import Vocabulary


def measure_audit(cell: AuditCell, keep: Callable[[Mapping[str, Any]], None] | None) -> dict[str, Any]:
    """The columns of an audited text. No witness is kept."""
    phi = audited_map(cell)
    plan = AuditPlan(
        max_words=cell.max_words,
        words_per_text=cell.words_per_text,
        removal=cell.removal,
        seed=cell.seed,
        radius=cell.radius,
        search=SearchPlan(starts=cell.starts, steps=cell.steps, generations=cell.generations),
    )
    document = Document(cell.text.content, cell.text.label, cell.text.source)
    found = audit_text(phi, document, plan, _vocabulary(phi) if cell.swaps else None)
    if keep is not None:
        keep({})
    return {"map": phi.name, **columns_of(found, swaps=cell.swaps)}


def describe_audit(cell: AuditCell) -> dict[str, Any]:
    """The columns that the cell alone decides."""
    return {"audit": cell.audit(), "model": cell.model, "source": cell.text.source, "label": cell.text.label}


def audited_map(cell: AuditCell) -> TransformerFeatures:
    """The cell's map, of the files that the cell asks for; the one asked for last is kept.

    Raises:
        InputError: the model's files are not those, or change while they are read.
    """
    return _loaded(cell.model, cell.output, cell.pool, cell.device, cell.content or content_of(cell.model))


@lru_cache(maxsize=1)
def _loaded(model: str, output: str, pool: str | None, device: str, content: str) -> TransformerFeatures:
    _require_content(model, content)
    wanted = "states" if output == "embedding" else output
    phi = TransformerFeatures.from_pretrained(model, pool=pool, output=wanted, device=device)
    _require_content(model, content)
    if pool is not None:
        return phi
    if output == "embedding":
        try:
            return phi.at(pool="own")
        except InputError:
            return phi.at(pool="mean")
    return phi.at(pool="last", output=output) if phi.causal else phi


def _require_content(model: str, content: str) -> None:
    if content_of(model) != content:
        raise InputError(
            f"the files of the model {model!r} are not those that the audit began with; start it again, or put them "
            "back"
        )


@lru_cache(maxsize=1)
def _vocabulary(phi: TransformerFeatures) -> Vocabulary:
    return phi.vocabulary()
