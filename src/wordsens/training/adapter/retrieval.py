"""Finding a paraphrase among plain sentences."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from wordsens.evaluation.kinds import SYNONYM
from wordsens.evaluation.similarities import Progress, unit_vectors
from wordsens.models.contract import Model
from wordsens.text.pairs import Pair


@dataclass(frozen=True)
class Recall:
    """Recall at 1, with each text of a paraphrase in turn as the query.

    Attributes:
        value: the share of queries whose nearest text, of all second texts and the plain sentences, is their own.
        queries: how many.
        among: the texts that are searched.
        found: of every query, whether it was found.
    """

    value: float
    queries: int
    among: int
    found: tuple[bool, ...]


def recall_at_one(
    model: Model, pairs: Sequence[Pair], sentences: Sequence[str], *, progress: Progress = lambda done, total: None
) -> Recall:
    """The recall of the paraphrases among these pairs, each way, among the others' texts and the sentences.

    Args:
        model: whose cosines decide; a tie with another text counts as lost.
        pairs: of which those that mean the same are used, one-word synonyms left out unless there are no others.
        sentences: that none of them means the same as.
        progress: called with (done, total) texts.
    """
    same = [pair for pair in pairs if pair.same]
    chosen = [pair for pair in same if pair.kind != SYNONYM] or same
    sides = [[pair.first for pair in chosen], [pair.second for pair in chosen]]
    vectors = unit_vectors(model.encode, [*sides[0], *sides[1], *sentences], progress)
    plain = torch.stack([vectors[text] for text in sentences])
    first, second = (torch.stack([vectors[text] for text in side]) for side in sides)
    found: list[bool] = []
    for queries, targets in ((first, second), (second, first)):
        cosines = queries @ torch.cat([targets, plain]).T
        own = cosines.diagonal().clone()
        cosines.fill_diagonal_(-2)
        found += (own > cosines.amax(dim=1)).tolist()
    return Recall(float(np.mean(found)), len(found), len(chosen) + len(sentences), tuple(found))
