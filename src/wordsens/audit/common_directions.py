"""Directions along which any word of any text moves a model far: what one text's search found, for the next text's."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.errors import InputError
from wordsens.maps.transformer.features import TransformerFeatures
from wordsens.maps.word_change import WordChange
from wordsens.search.plan import SearchPlan
from wordsens.sensitivity.one_word import word_sensitivity
from wordsens.text.matrix import TextMatrix
from wordsens.text.shipped_data import shipped_reviews

KEPT = 4
"""Directions that are kept: every word of an audit is tried along each."""

_TEXTS, _WORDS, _SIGNS, _TOKENS = 4, 3, 2, 60
"""Texts, words and signs of each, and tokens that a text keeps. Along words' directions alone an audit's search of a
full stop stays as low as .8 of a search six times longer, for what moves a sign far moves few words."""

_SEARCH = SearchPlan(climb_steps=6, steps=0, generations=0)


def common_directions(phi: TransformerFeatures) -> Float[Tensor, "k d"] | None:
    """At most KEPT unit vectors: of the witnesses of a few words of shipped texts those that together move all of these
    words farthest, each scaled to the word's own length.

    They depend on the model alone. None where the model cannot read the shipped texts, which are English.
    """
    try:
        reviews = shipped_reviews()
        read = [review.text for review in reviews[:: len(reviews) // _TEXTS][:_TEXTS]]
        texts = phi.embed(read, max_words=_TOKENS)
    except InputError:
        return None
    found, changes = [], []
    for text in texts:
        rows, words = text.rows, torch.tensor(sorted(_spread(range(len(text)), _WORDS) | _spread(_signs(text), _SIGNS)))
        witnesses = word_sensitivity(phi, rows, words, search=_SEARCH, certificate=False).perturbations
        found.append(torch.nn.functional.normalize(witnesses, dim=1))
        changes.append((phi.word_change(rows).coarse(), words, torch.linalg.vector_norm(rows[words], dim=1)))
    directions = torch.cat(found)
    moved = torch.cat([_moved(directions, *change) for change in changes], dim=1)
    return directions[_chosen(moved)]


def _spread(rows: Sequence[int], count: int) -> set[int]:
    """At most so many of the rows, evenly spread."""
    return {rows[len(rows) * part // (count + 1)] for part in range(1, count + 1)} if rows else set()


def _signs(text: TextMatrix) -> list[int]:
    """The rows of words without a letter or digit: full stops, commas, brackets."""
    return [word.rows[0] for word in text.whole_words or () if not any(map(str.isalnum, word.text))]


def _moved(directions: Tensor, change: WordChange, words: Tensor, lengths: Tensor) -> Float[Tensor, "k w"]:
    """The relative change of the text by each word's own length along each direction."""
    deltas = (directions.unsqueeze(1) * lengths.view(1, -1, 1)).flatten(end_dim=1)
    squared = change.value(deltas, words.repeat(len(directions))).nan_to_num(0.0).clamp(min=0)
    return squared.sqrt().view(len(directions), -1) / change.base_norm


def _chosen(moved: Float[Tensor, "k w"]) -> list[int]:
    """Greedily, the directions that add most to the mean over words of the farthest move."""
    chosen: list[int] = []
    best = torch.zeros_like(moved[0])
    for _ in range(min(KEPT, len(moved))):
        chosen.append(int(torch.maximum(moved, best).mean(dim=1).argmax()))
        best = torch.maximum(best, moved[chosen[-1]])
    return chosen
