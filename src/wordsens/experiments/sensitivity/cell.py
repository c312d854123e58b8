"""One cell: from spec to record. The values depend on the spec alone, not on what ran before."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from wordsens import __version__
from wordsens.experiments.map_choice import DENSE_MAPS, build_map
from wordsens.experiments.run.provenance import Watch, error_line, libraries, machine, peak_memory_mb
from wordsens.experiments.sensitivity.record import SensitivityRecord
from wordsens.experiments.sensitivity.spec import SensitivityCell
from wordsens.experiments.store.identity import hash_identity
from wordsens.experiments.store.spec_columns import columns_of
from wordsens.experiments.texts.documents import load_text
from wordsens.experiments.texts.source import Embedded
from wordsens.maps.contract import FeatureMap
from wordsens.seeds import derive_seed, generator
from wordsens.sensitivity.one_word import Sensitivity, word_sensitivity
from wordsens.text.matrix import TextMatrix
from wordsens.theory import predict

KeepWitness = Callable[[Mapping[str, Tensor]], None]
"""Called with the tensors from which a finished cell's value can be computed again."""


def run_cell(cell: SensitivityCell, *, keep: KeepWitness | None = None) -> SensitivityRecord:
    """Measure one cell; a failure is raised.

    The text, the weights, the searched words and the random starts each have a seed of their own, derived
    from the cell's seed, n, d and draw: maps that differ in nothing else see the same text, and no cell
    depends on another.

    Args:
        cell: what is measured.
        keep: given the witnesses: `rows` (n, d) of the text, and for each searched word its index (`words`), its
            perturbation (`perturbations`) and what that attains (`per_word`).

    Returns:
        A record with status "done".
    """
    watch = Watch()
    return _record(cell, watch, _measured(cell, keep), status="done")


def attempt_cell(cell: SensitivityCell, *, keep: KeepWitness | None = None) -> SensitivityRecord:
    """Measure one cell; a failure becomes a record with status "failed" and the error in one line."""
    watch = Watch()
    try:
        return _record(cell, watch, _measured(cell, keep), status="done")
    except Exception as error:
        return failed_cell(cell, error_line(error), watch=watch)


def failed_cell(cell: SensitivityCell, error: str, *, watch: Watch | None = None) -> SensitivityRecord:
    """The record of a cell that could not be measured, for the reason that the error gives."""
    name = f"drf{cell.depth}" if cell.map == "drf" else cell.map
    return _record(cell, watch or Watch(), {"map": name}, status="failed", error=error)


def _measured(cell: SensitivityCell, keep: KeepWitness | None) -> dict[str, Any]:
    text = load_text(cell.text, cell.n, cell.d, draw=cell.draw, seed=cell.seed)
    phi = build_map(
        cell.map,
        cell.n,
        cell.d,
        options=cell.map_options,
        seed=_seed(cell, "map"),
        dtype=getattr(torch, cell.dtype),
        device=cell.device,
    )
    result = word_sensitivity(
        phi,
        text,
        words=_searched_words(cell),
        radius=cell.radius,
        seed=_seed(cell, "search"),
        **cell.search_options,
    )
    if keep is not None:
        keep(
            {
                "rows": text.rows,
                "words": result.words,
                "per_word": result.per_word,
                "perturbations": result.perturbations,
            }
        )
    return _found(phi, text, result, usual_radius=cell.radius is None)


def _seed(cell: SensitivityCell, purpose: str) -> int:
    return derive_seed(cell.seed, purpose, cell.text.kind, cell.n, cell.d, cell.draw)


def _searched_words(cell: SensitivityCell) -> list[int] | None:
    if cell.words.indices is not None:
        return list(cell.words.indices)
    if cell.words.sample is None or cell.words.sample >= cell.n:
        return None
    stream = generator(cell.seed, "words", cell.n, cell.d, cell.draw)
    return sorted(torch.randperm(cell.n, generator=stream)[: cell.words.sample].tolist())


def _found(phi: FeatureMap, text: TextMatrix, result: Sensitivity, *, usual_radius: bool) -> dict[str, Any]:
    at = int((result.words == result.word).nonzero()[0])
    predicted = predict(phi, text, words=len(result.words)) if usual_radius else None
    return {
        "map": phi.name,
        "depth": getattr(phi, "depth", None),
        "width": getattr(phi, "width", None),
        "temperature": getattr(phi, "temperature", None),
        "source": text.source,
        "label": text.label,
        "words": len(result.words),
        "word": result.word,
        "token": result.tokens[at],
        "value": result.value,
        "median_word": float(result.per_word.double().quantile(0.5)),
        "upper": result.upper,
        "rigor": result.rigor,
        "predicted": None if predicted is None else predicted.value,
        "predicted_of": None if predicted is None else predicted.of,
        "predicted_in_range": None if predicted is None else predicted.in_range,
        "radius": float(result.radius[at]),
        "evaluations": result.evaluations,
        "converged": float(result.converged.double().mean()),
    }


def _record(
    cell: SensitivityCell,
    watch: Watch,
    found: dict[str, Any],
    *,
    status: str,
    error: str | None = None,
) -> SensitivityRecord:
    identity = cell.identity()
    asked = columns_of(identity)
    source = cell.text if isinstance(cell.text, Embedded) else None
    return SensitivityRecord(
        cell=hash_identity(identity),
        spec=identity,
        status=status,
        error=error,
        n=cell.n,
        d=cell.d,
        activation=cell.activation if cell.map in DENSE_MAPS else None,
        text=cell.text.kind,
        encoder=None if source is None else source.encoder,
        layer=None if source is None else source.layer,
        seed=cell.seed,
        draw=cell.draw,
        map_seed=_seed(cell, "map"),
        seconds=watch.seconds,
        peak_memory_mb=peak_memory_mb(),
        **{name: asked.get(name) for name in SensitivityRecord.SPEC_COLUMNS},
        dtype=cell.dtype,
        device=cell.device,
        threads=torch.get_num_threads(),
        started=watch.started,
        wordsens_version=__version__,
        torch_version=torch.__version__,
        machine=machine(),
        libraries=libraries(),
        **found,
    )
