"""One generalization measurement as a row of a table."""

from dataclasses import dataclass
from typing import ClassVar

from wordsens.experiments.store.record import Record


@dataclass(frozen=True, kw_only=True)
class GeneralizationRecord(Record):
    """What one cell gave, and all that is needed to compute it again. `value` is Err on the changed text.

    Of a frontier, `value`, gamma, alignment, ... are those at the largest limit; the last four columns hold the rest.

    Attributes:
        map, n, d, texts, held_out, labels, seed, draw, sample, training, objective: of the cell.
        width, activation, temperature: of the map, as asked for; width None for n d.
        word_choice, radius, penalty, ridge: as asked for; radius None for sqrt(d), penalty of penalized-error only.
        starts, steps, generations: of the search, as asked for; None for what suits the map.
        keep_special_tokens, text_content, mean_cosine: of the texts, as for a sensitivity.
        features: p, how many features a text has.
        text, encoder, layer: the kind of the texts, and what embedded real ones.
        source, label: of the text X, where known.
        word, token: the changed word.
        gamma, alignment, bound: see OneWordGeneralization.
        output_before, output_after: the model before on X, the model after on the changed text.
        error_unchanged: Err at Delta = 0.
        conditions_hold: whether the necessary conditions of Theorem 4 or 5 hold.
        accuracy: of the model before, on the held-out texts.
        condition: of the kernel matrix, estimated.
        evaluations, converged: of the search.
        fit_seconds: wall-clock time of the fit, shared by the cells that share it.
        peak_memory_mb: the largest resident memory of the process up to the end of the cell, in MiB.
        dtype, device, threads, started, wordsens_version, torch_version, machine: as for a sensitivity.
        limits, least_errors, least_gammas, least_alignments: of a frontier, one a limit; else empty.
    """

    SPEC_COLUMNS: ClassVar[tuple[str, ...]] = (
        "width", "activation", "temperature", "word_choice", "radius", "penalty", "ridge", "starts", "steps",
        "generations", "keep_special_tokens", "text_content", "mean_cosine",
    )  # fmt: skip

    map: str
    n: int
    d: int
    texts: int
    held_out: int
    labels: str
    seed: int
    draw: int
    sample: int
    training: str
    objective: str
    width: int | None = None
    activation: str | None = None
    temperature: float | None = None
    word_choice: str | None = None
    radius: float | None = None
    penalty: float | None = None
    ridge: float | None = None
    starts: int | None = None
    steps: int | None = None
    generations: int | None = None
    features: int | None = None
    text: str
    encoder: str | None = None
    layer: int | None = None
    keep_special_tokens: bool | None = None
    text_content: str | None = None
    mean_cosine: float | None = None
    source: str | None = None
    label: int | None = None
    word: int | None = None
    token: str | None = None
    gamma: float | None = None
    alignment: float | None = None
    bound: float | None = None
    output_before: float | None = None
    output_after: float | None = None
    error_unchanged: float | None = None
    conditions_hold: bool | None = None
    accuracy: float | None = None
    condition: float | None = None
    evaluations: int | None = None
    converged: bool | None = None
    fit_seconds: float | None = None
    peak_memory_mb: float | None = None
    dtype: str
    device: str
    threads: int | None = None
    started: str
    wordsens_version: str
    torch_version: str
    machine: str
    limits: tuple[float, ...] = ()
    least_errors: tuple[float, ...] = ()
    least_gammas: tuple[float, ...] = ()
    least_alignments: tuple[float, ...] = ()
