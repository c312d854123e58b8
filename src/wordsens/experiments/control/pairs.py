"""The pairs of a task: to learn from, and others to judge by."""

import torch

from wordsens.experiments.control.spec import ControlCell
from wordsens.experiments.texts.documents import text_rows
from wordsens.experiments.texts.source import Embedded
from wordsens.experiments.texts.swapped_passages import swapped_passages
from wordsens.text import Document
from wordsens.training.tasks.contract import Task
from wordsens.training.tasks.majority import majority_pairs
from wordsens.training.tasks.one_word import one_word_pairs
from wordsens.training.tasks.pairs import TextPairs, text_pairs

PASSAGES = 160
"""Passages of real texts of which pairs are made; one half is learned from, the other judged by."""

_JUDGED = 256
"""Held-out texts of the other tasks of which pairs are made."""


def pairs_of(cell: ControlCell, task: Task) -> tuple[TextPairs, TextPairs]:
    """Pairs to learn from, and pairs to judge by: of the training and of the held-out texts of a synthetic task.

    Of real texts: passages of n rows in which one word is exchanged; no passage is in both parts, but another one of
    the same text may be, and the exchanges come from the same lists.
    """
    seed = cell.seed_of("pairs")
    if isinstance(cell.text, Embedded):
        return _real_pairs(cell, cell.text, seed)
    make = one_word_pairs if cell.task == "one-word" else majority_pairs
    judged = make(task.test, seed)
    some = torch.arange(len(task.test)) < _JUDGED
    return make(task.training, seed), judged.part(some.repeat(len(judged) // len(some)))


def _real_pairs(cell: ControlCell, source: Embedded, seed: int) -> tuple[TextPairs, TextPairs]:
    plain = source.model_copy(update={"keep_special_tokens": False})
    pairs = swapped_passages(plain, source.encoder, cell.n, PASSAGES, seed)
    texts = [Document(text, None, "a passage") for pair in pairs for text in (pair.first, pair.second)]
    rows = text_rows(texts, plain, cell.n, cell.d, dtype=torch.float32)
    whole = text_pairs([(rows[2 * at], rows[2 * at + 1], not pair.same) for at, pair in enumerate(pairs)])
    # A passage's two pairs stand half the list apart: it is in one part with both.
    first = torch.arange(len(pairs)) % (len(pairs) // 2) < len(pairs) // 4
    return whole.part(first), whole.part(~first)
