"""Real swaps: the one-word experiment with the word replaced by a word of the vocabulary."""

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.errors import InputError, require_positive
from wordsens.generalization.loss import Loss, Losses
from wordsens.generalization.new_text import Learner, NewText, as_new_text
from wordsens.generalization.one_word import Effort, OneWordGeneralization, Witness, Word, result_at, words_of
from wordsens.maps.base import DEFAULT_MEMORY_BUDGET
from wordsens.regression.features import Texts
from wordsens.text.matrix import TextMatrix

Vocabulary = tuple[Sequence[str], Tensor]
"""Words and their rows (v, d) at one position of a text."""


@torch.inference_mode(False)
def one_word_swap(
    phi: Learner,
    texts: Texts | None = None,
    y: Iterable[Any] | None = None,
    x: TextMatrix | Tensor | None = None,
    y_x: float | int | None = None,
    *,
    vocabulary: Vocabulary | Callable[[int], Vocabulary],
    word: Word = 0,
    training: str = "fine-tuned",
    objective: str = "error",
    gamma_limit: float | int | None = None,
    penalty: float | int = 1.0,
    radius: float | int | None = None,
    ridge: float | int = 0.0,
    memory_budget: int = DEFAULT_MEMORY_BUDGET,
) -> OneWordGeneralization:
    """one_word_generalization with Delta restricted to real words: row i becomes a vocabulary word's own row.

    All words of the vocabulary are evaluated: the minimum is exact, not searched.

    Args:
        phi, texts, y, x, y_x, word, training, objective, penalty, ridge, memory_budget: see
            one_word_generalization.
        vocabulary: (words, rows (v, d)), or a function of the position that gives them where rows depend on it
            (`wordsens.text.vocabulary_rows`).
        gamma_limit: only swaps with gamma up to this count; None for all.
        radius: only swaps with ‖Delta‖ up to this count; None for all: a swap may leave the ball of radius sqrt(d).

    Raises:
        InputError: an empty vocabulary, rows of another length, or no swap within the limits.
    """
    started = time.perf_counter()
    new = as_new_text(phi, texts, y, x, y_x, ridge=ridge, memory_budget=memory_budget)
    losses = Losses(new, [Loss.of(training, objective, penalty)])
    most = float("inf") if radius is None else require_positive("radius", radius)
    limit = float("inf") if gamma_limit is None else require_positive("gamma_limit", gamma_limit)
    words = words_of(word, len(new.text)).to(new.rows.device)
    best: Witness | None = None
    evaluations = 0
    for index in words.tolist():
        names, rows = vocabulary(index) if callable(vocabulary) else vocabulary
        perturbations = _perturbations(new, names, rows, index)
        same = torch.full((len(names),), index, device=new.rows.device)
        values = losses.functionals.values(perturbations, same)
        evaluations += len(names)
        allowed = torch.linalg.vector_norm(perturbations, dim=1, dtype=torch.float64) <= most
        allowed &= values[:, 0].abs().double() <= limit
        value = torch.where(allowed, losses.loss(values, torch.zeros_like(same))[0].double(), torch.inf)
        at = int(value.argmin())
        if bool(allowed.any()) and (best is None or float(value[at]) < best.loss):
            best = Witness(index, perturbations[at], float(value[at]), most, True, names[at])
    if best is None:
        raise InputError(
            f"no vocabulary word has ‖Delta‖ <= `radius` (={radius}) and gamma <= `gamma_limit` (={gamma_limit}); "
            "raise them, or pass None"
        )
    effort = Effort("every word of the vocabulary", evaluations, time.perf_counter() - started, seed=0)
    return result_at(new, best, effort, training=training, objective=objective)


def _perturbations(new: NewText, names: Sequence[str], rows: Tensor, word: int) -> Float[Tensor, "v d"]:
    d = new.rows.shape[1]
    if rows.ndim != 2 or rows.shape[1] != d or len(rows) != len(names) or len(rows) == 0:
        raise InputError(
            f"`vocabulary` has {len(names)} words and rows of shape {tuple(rows.shape)}; give one row of {d} "
            "coordinates a word, at least one"
        )
    return rows.to(dtype=new.rows.dtype, device=new.rows.device) - new.rows[word]
