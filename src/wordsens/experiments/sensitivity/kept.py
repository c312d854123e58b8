"""Measurements of given texts in a store: kept with their witnesses, and given back as they were."""

from typing import Any

from wordsens.experiments.run.provenance import Watch
from wordsens.experiments.sensitivity.cell import KIND, columns_of_result, json_text
from wordsens.experiments.sensitivity.record import SensitivityRecord
from wordsens.experiments.sensitivity.spec import SensitivityCell
from wordsens.experiments.store.store import RecordStore
from wordsens.experiments.store.witness import packed_witness
from wordsens.maps.contract import FeatureMap
from wordsens.sensitivity.result import Sensitivity
from wordsens.sensitivity.witness_effect import witness_effect
from wordsens.text.matrix import TextMatrix

_TENSORS = (
    "words",
    "per_word",
    "rounding",
    "perturbations",
    "radius",
    "converged",
    "upper_per_word",
    "evaluations_per_word",
)


def keep_measurement(
    store: RecordStore[SensitivityRecord],
    cell: SensitivityCell,
    watch: Watch,
    phi: FeatureMap,
    text: TextMatrix,
    result: Sensitivity,
    *,
    swaps: tuple[tuple[float, ...], tuple[str, ...]] | None = None,
) -> None:
    """Write the record of a measurement, and its tensors as the cell's witness.

    `swaps`: for each searched word, the relative change by the best real word in its place, and that word.

    Raises:
        StoreError: when it cannot be written.
    """
    effect = witness_effect(phi, text, result)
    rows = None if effect is None else [[[m.row, m.change, m.before, m.after] for m in moved] for moved in effect]
    columns = {
        "status": "done",
        **columns_of_result(phi, text, result, usual_radius=cell.radius is None),
        "swap": None if swaps is None else swaps[0],
        "swapped_for": None if swaps is None else json_text(swaps[1]),
        "moved": None if rows is None else json_text(rows),
    }
    tensors = {name: getattr(result, name) for name in _TENSORS if getattr(result, name) is not None}
    record = KIND.record(cell, watch, columns)
    store.write(record, packed_witness(record.cell, {"rows": text.rows, **tensors}))


def kept_measurement(
    store: RecordStore[SensitivityRecord], cell: SensitivityCell, phi: FeatureMap, text: TextMatrix
) -> tuple[Sensitivity, SensitivityRecord] | None:
    """The measurement that `keep_measurement` wrote, and its record; None where the store does not have both."""
    name = cell.content_hash()
    found = [record for record in store.read([name]) if record.done]
    tensors: dict[str, Any] | None = store.witness(name) if found else None
    if tensors is None or not {"rounding", "radius", "converged"} <= set(tensors):
        return None
    (record,) = found
    assert record.value is not None and record.word is not None and record.evaluations is not None
    result = Sensitivity(
        **{field: tensors.get(field) for field in _TENSORS},  # pyright: ignore[reportArgumentType]
        value=record.value,
        word=record.word,
        tokens=tuple(text.word(word) for word in tensors["words"].tolist()),
        search=str(cell.search_plan),
        evaluations=record.evaluations,
        seconds=record.seconds,
        seed=cell.seed,
        map_name=record.map,
        upper=record.upper,
        rigor=record.rigor,
        notes=phi.notes,
    )
    return result, record
