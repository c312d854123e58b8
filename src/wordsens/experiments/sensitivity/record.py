"""The record of a sensitivity cell."""

from dataclasses import dataclass
from typing import ClassVar

from wordsens.experiments.store.record import Record


@dataclass(frozen=True, kw_only=True)
class SensitivityRecord(Record):
    """The result of one cell, and all that is needed to compute it again: the columns of the Parquet table.

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
        text: the kind of the text: reviews, dataset, given, gaussian, orthogonal, correlated.
        source: the text itself, e.g. "shipped/review-001".
        encoder, layer: what embedded a real text.
        keep_special_tokens: whether [CLS] and [SEP] of a real text count as words.
        text_content: a digest of the texts that a real one was drawn from, or of the given one.
        content: the characters of a given text, which `wordsens measure` has; None of others.
        tokens: a JSON list: what each of the n words is called; None of a synthetic text.
        whole_words: a JSON list of [word, [rows]], the words as a reader sees them with the rows of their tokens; None
            where they are not known.
        mean_cosine: of the rows of a correlated text.
        label: of the text, +1 or -1, where it has one.
        seed, draw: of the cell.
        map_seed: the seed the map was built with.
        word_choice: which words were asked for: all, or the JSON of a sample or of indices.
        search: quick or thorough, where that was asked for.
        starts, steps, generations, tolerance: of the search, as asked for; None for what suits the map.
        words: how many words were searched.
        searched: their indices; this and what follows here has an entry for each, in that order.
        per_word: what each attains: lower bounds.
        upper_per_word: an upper bound for each, where the map has one.
        swap: of `measure --swaps`: the relative change by the best real word found in its place.
        swapped_for: a JSON list of strings, likewise: that word.
        moved: of `measure`, for maps whose features have a row a word: a JSON list with, for each, the rows that its
            witness moves most as [row, change, before, after] (`sensitivity.witness_effect`).
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
        "gaussian", "keep_special_tokens", "text_content", "mean_cosine", "word_choice", "search", "starts", "steps",
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
    content: str | None = None
    tokens: str | None = None
    whole_words: str | None = None
    mean_cosine: float | None = None
    label: int | None = None
    seed: int
    draw: int
    map_seed: int
    word_choice: str | None = None
    search: str | None = None
    starts: int | None = None
    steps: int | None = None
    generations: int | None = None
    tolerance: float | None = None
    words: int | None = None
    searched: tuple[int, ...] | None = None
    per_word: tuple[float, ...] | None = None
    upper_per_word: tuple[float, ...] | None = None
    swap: tuple[float, ...] | None = None
    swapped_for: str | None = None
    moved: str | None = None
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
