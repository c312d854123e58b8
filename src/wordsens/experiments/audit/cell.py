"""One audited text: from spec to record. A process loads a model once."""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import torch

from wordsens import __version__
from wordsens.audit.text import audit_text
from wordsens.errors import InputError
from wordsens.experiments.audit.record import AuditRecord, columns_of
from wordsens.experiments.audit.spec import AuditCell
from wordsens.experiments.run.provenance import Watch, error_line, libraries, machine, peak_memory_mb
from wordsens.maps.transformer.features import TransformerFeatures
from wordsens.text.document import Document
from wordsens.text.model_files import model_digest
from wordsens.text.vocabulary import Vocabulary


def attempt_audit(cell: AuditCell, *, keep: Callable[[Mapping[str, Any]], None] | None = None) -> AuditRecord:
    """Audit one text; a failure becomes a record with status "failed" and the error in one line. No witness is kept."""
    watch = Watch()
    try:
        phi = audited_map(cell)
        found = audit_text(
            phi,
            Document(cell.text.content, cell.text.label, cell.text.source),
            max_words=cell.max_words,
            words_per_text=cell.words_per_text,
            removal=cell.removal,
            vocabulary=_vocabulary(phi) if cell.swaps else None,
            seed=cell.seed,
            radius=cell.radius,
            starts=cell.starts,
            steps=cell.steps,
            generations=cell.generations,
        )
        if keep is not None:
            keep({})
        return _record(cell, watch, status="done", map=phi.name, **columns_of(found, swaps=cell.swaps))
    except Exception as error:
        return failed_audit(cell, error_line(error), watch=watch)


def failed_audit(cell: AuditCell, error: str, *, watch: Watch | None = None) -> AuditRecord:
    """The record of a text that could not be audited, for the reason that the error gives."""
    return _record(cell, watch or Watch(), status="failed", error=error)


def audited_map(cell: AuditCell) -> TransformerFeatures:
    """The cell's map, of the files that the cell asks for; the one asked for last is kept.

    Raises:
        InputError: the model's files are not those, or change while they are read.
    """
    return _loaded(cell.model, cell.output, cell.pool, cell.device, cell.content or content_of(cell.model))


def content_of(model: str) -> str:
    """The digest of the model's files; a model of the hub that is not on this machine yet is brought here."""
    try:
        return model_digest(model)
    except InputError:
        TransformerFeatures.from_pretrained(model)
        return model_digest(model)


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


def _record(cell: AuditCell, watch: Watch, **found: Any) -> AuditRecord:
    return AuditRecord(
        cell=cell.content_hash(),
        spec=cell.identity(),
        seconds=watch.seconds,
        libraries=libraries(),
        audit=cell.audit(),
        model=cell.model,
        source=cell.text.source,
        label=cell.text.label,
        peak_memory_mb=peak_memory_mb(),
        threads=torch.get_num_threads(),
        device=cell.device,
        started=watch.started,
        wordsens_version=__version__,
        torch_version=torch.__version__,
        machine=machine(),
        **found,
    )
