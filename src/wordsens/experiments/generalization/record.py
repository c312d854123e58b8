"""One generalization measurement as a row of a table."""

from dataclasses import dataclass
from typing import ClassVar

from wordsens.experiments.store.record import MapRecord


@dataclass(frozen=True, kw_only=True)
class GeneralizationRecord(MapRecord):
    """The result of one cell, and all that is needed to compute it again. `value` is Err on the changed text.

    Of a frontier, `value`, gamma, alignment, ... are those at the largest limit; the last four columns hold the rest.

    Attributes:
        cell, spec, status, ..., map, n, d, ...: see Record, TorchRecord and MapRecord; `source` and `label` are of the
            text X, and `width`, `activation`, `temperature` as asked for; width None for n d.
        texts, held_out, labels, sample, training, objective: of the cell.
        radius, penalty, ridge: as asked for; radius None for sqrt(d), penalty of penalized-error only.
        features: p, how many features a text has.
        gamma, alignment, bound: see OneWordGeneralization.
        output_before, output_after: the model before on X, the model after on the changed text.
        error_unchanged: Err at Delta = 0.
        conditions_hold: whether the necessary conditions of Theorem 4 or 5 hold.
        accuracy: of the model before, on the held-out texts.
        condition: of the kernel matrix, estimated.
        converged: of the search.
        fit_seconds: wall-clock time of the fit, shared by the cells that share it.
        limits, least_errors, least_gammas, least_alignments: of a frontier, one a limit; else empty.
    """

    SPEC_COLUMNS: ClassVar[tuple[str, ...]] = (
        *MapRecord.SPEC_COLUMNS, "width", "activation", "temperature", "radius", "penalty", "ridge",
    )  # fmt: skip

    texts: int
    held_out: int
    labels: str
    sample: int
    training: str
    objective: str
    radius: float | None = None
    penalty: float | None = None
    ridge: float | None = None
    features: int | None = None
    gamma: float | None = None
    alignment: float | None = None
    bound: float | None = None
    output_before: float | None = None
    output_after: float | None = None
    error_unchanged: float | None = None
    conditions_hold: bool | None = None
    accuracy: float | None = None
    condition: float | None = None
    converged: bool | None = None
    fit_seconds: float | None = None
    limits: tuple[float, ...] = ()
    least_errors: tuple[float, ...] = ()
    least_gammas: tuple[float, ...] = ()
    least_alignments: tuple[float, ...] = ()
