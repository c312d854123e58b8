"""Review embeddings, sample by sample: the frontiers of RF and RAF, and RF's errors against the finite-sample bound."""

import statistics
import time
from collections import defaultdict
from dataclasses import dataclass

import torch

import wordsens as ws
from benchmarks.generalization_at_size import build_map
from benchmarks.reporting import seconds, table
from wordsens.regression import TRAININGS

LIMITS = (0.1, 0.25, 0.5, 1.0)
HALF = 0.5
_DENSE_BYTES = 2 << 30


@dataclass(frozen=True)
class Setting:
    """The data (None: the shipped reviews), the maps, N, the samples, n, and how many of them search every word."""

    data: str | None
    maps: tuple[str, ...]
    texts: int
    samples: int
    words: int
    every_word: int


class Summary:
    """What the samples of one map and training have in common."""

    def __init__(self) -> None:
        self.at_half: dict[str, list[float]] = defaultdict(list)
        self.least_alignment, self.at_error, self.below = 1.0, 1.0, 0

    def see(self, by_error: ws.OneWordGeneralization, by_alignment: ws.OneWordGeneralization) -> None:
        """One sample, its Delta chosen for the error and for the alignment."""
        self.at_error = min(self.at_error, by_error.alignment)
        self.least_alignment = min(self.least_alignment, by_alignment.alignment, by_error.alignment)
        self.below += sum(one.error < one.bound - 1e-6 for one in (by_error, by_alignment))


def samples_table(setting: Setting) -> None:
    """A table a map, one of all maps at g = 0.5, and one that sums up."""
    documents = ws.shipped_reviews() if setting.data is None else ws.read_documents(setting.data)
    chosen = ws.texts_of_length(documents, setting.words, count=setting.texts + setting.samples)
    texts = ws.embed(chosen, max_words=setting.words, dtype=torch.float32)
    d = texts[0].rows.shape[1]
    print(
        f"\nMiniLM embeddings of reviews: n = {setting.words}, d = {d}, N = {setting.texts}. Word 0 moves, or any word."
    )
    found = {name: _of_map(name, texts, setting) for name in setting.maps}
    columns = [f"{name}, {training}" for name in setting.maps for training in TRAININGS]
    pairs = [found[name][training] for name in setting.maps for training in TRAININGS]
    for which in ("word 0", "any word"):
        values = [summary.at_half[which] for summary in pairs]
        rows = [[str(at), *(f"{value:.2f}" for value in line)] for at, line in enumerate(zip(*values, strict=True))]
        if rows:
            print(table(f"Least Err found with gamma <= {HALF}: {which}", ["sample", *columns], rows))
    rows = [
        [f"{label}, {which}", *_spread(summary.at_half[which]), *_shared(summary)]
        for label, summary in zip(columns, pairs, strict=True)
        for which in ("word 0", "any word")
        if summary.at_half[which]
    ]
    heads = [
        *("map, training, word", "samples", "least", "median", "largest", "under .5", "above 1.8"),
        *("least F", "least F for Err", "Err < bound"),
    ]
    print(table(f"All samples: least Err with gamma <= {HALF}; F and bounds at word 0", heads, rows))


def _of_map(name: str, texts: list[ws.TextMatrix], setting: Setting) -> dict[str, Summary]:
    n, d = texts[0].rows.shape
    count = setting.texts
    labels = [text.label for text in texts]
    # Every word is searched, so that all of V is needed: kept dense where it fits.
    dense = setting.every_word > 0 and 4 * (n * d) ** 2 < _DENSE_BYTES
    phi = build_map(name, n, d, "dense" if dense else "lazy")
    begin = time.perf_counter()
    fit = ws.fit_min_norm(phi, texts[:count], labels[:count])
    took = time.perf_counter() - begin
    accuracy = fit.accuracy(texts[count:], labels[count:])
    summaries = {training: Summary() for training in TRAININGS}
    rows = []
    for index in range(setting.samples):
        new = ws.NewText(fit, texts[count + index], labels[count + index] or 1)
        every = index < setting.every_word
        for training, summary in summaries.items():
            rows.append([f"{index}, {training}", *_sample(new, training, summary, every_word=every)])
    columns = [
        *("sample, training", "y f(X)", "Err", "gamma", "F", "bound", "F for F = -1"),
        *(f"g = {limit}" for limit in LIMITS),
        f"any word, g = {HALF}",
    ]
    print(table(f"{name}: held-out accuracy {accuracy:.2f}, fit in {seconds(took)}", columns, rows), flush=True)
    return summaries


def _sample(new: ws.NewText, training: str, summary: Summary, *, every_word: bool) -> list[str]:
    phi = new.fit.phi
    by_error = ws.one_word_generalization(phi, None, None, new, None, 0, training, "error")
    by_alignment = ws.one_word_generalization(phi, None, None, new, None, 0, training, "alignment")
    summary.see(by_error, by_alignment)
    frontier = ws.one_word_frontier(phi, None, None, new, None, 0, training, LIMITS)
    summary.at_half["word 0"].append(frontier.at(HALF))
    any_word = ""
    if every_word:
        best = ws.one_word_frontier(phi, None, None, new, None, None, training, (HALF,))
        summary.at_half["any word"].append(best.at(HALF))
        any_word = f"{best.at(HALF):.2f}"
    numbers = (by_error.error, by_error.gamma, by_error.alignment, by_error.bound, by_alignment.alignment)
    return [
        f"{new.output_before * new.label:+.2f}",
        *(f"{number:.3f}" for number in numbers),
        *(f"{frontier.at(limit):.2f}" for limit in LIMITS),
        any_word,
    ]


def _spread(errors: list[float]) -> list[str]:
    under, above = sum(error < 0.5 for error in errors), sum(error > 1.8 for error in errors)
    least, middle, most = min(errors), statistics.median(errors), max(errors)
    return [str(len(errors)), f"{least:.2f}", f"{middle:.2f}", f"{most:.2f}", str(under), str(above)]


def _shared(summary: Summary) -> list[str]:
    return [f"{summary.least_alignment:.3f}", f"{summary.at_error:.3f}", str(summary.below)]
