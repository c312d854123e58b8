"""Word sensitivity when several words move together: given groups, k words chosen for their effect,
whole words."""

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations
from operator import index
from typing import Any, SupportsIndex

import numpy as np
import torch
from torch import Tensor

from wordsens.errors import InputError, argument, require_choice, require_count
from wordsens.maps.arguments import as_feature_map, as_text, radii, word_indices
from wordsens.maps.base import DEFAULT_MEMORY_BUDGET, FeatureMap
from wordsens.maps.mapping import restores_state
from wordsens.search.objective import Progress, part_of
from wordsens.search.plan import Search, SearchPlan
from wordsens.seeds import Seed, generator
from wordsens.sensitivity.one_word import TextUnderMap, sensitivities, word_sensitivity
from wordsens.sensitivity.result import Sensitivity
from wordsens.text.matrix import TextMatrix

BALLS = ("each", "joint")

# Up to this number of sets of k words all are searched. A round of exchanges tries at most so many.
MOST_SETS = 300

# Enough to tell which words or sets are the most sensitive: their values need not be the largest.
_RANKING = SearchPlan("quick", starts=6, steps=10)

# Rounds of exchanges at most, and the sets that the full search is spent on after them.
_ROUNDS, _FINALISTS = 3, 4


@restores_state
def group_sensitivity(
    phi: FeatureMap | Callable[[Tensor], Tensor],
    X: TextMatrix | Tensor | np.ndarray,
    groups: Sequence[Sequence[int]],
    radius: float | None = None,
    seed: Seed = 0,
    *,
    ball: str = "each",
    search: Search = "normal",
    memory_budget: int = DEFAULT_MEMORY_BUDGET,
    progress: Progress | None = None,
) -> Sensitivity:
    """sup over the groups G and their Delta of ‖phi(X^G(Delta)) - phi(X)‖ / ‖phi(X)‖, all words of
    G moved at once.

    The definition of eq. 1 with a group in place of a word (ours): the tokens that make up one
    word, or k words. `value` is a lower bound of the sup with a witness, recomputed through phi.
    Groups of one word are searched as `word_sensitivity` searches these words.

    Args:
        phi, X: as for word_sensitivity.
        groups: the word indices of each group; sizes may differ.
        radius: None for the map's default, sqrt(d).
        seed: of the random starts.
        ball: "each": every word has its own ball, ‖Delta_i‖ <= radius_i; "joint": one ball for the
            group, sum_i ‖Delta_i‖² / radius_i² <= 1.
        search, memory_budget, progress: as for word_sensitivity.

    Raises:
        InputError: an empty group, a word out of range or named twice in a group, a bad radius or
            ball.

    >>> phi = lambda X: X
    >>> X = torch.ones(4, 9, dtype=torch.float64)
    >>> round(group_sensitivity(phi, X, [(0, 1)]).value, 9)     # two moves of length 3, ‖X‖ = 6
    0.707106781
    >>> round(group_sensitivity(phi, X, [(0, 1)], ball="joint").value, 9)
    0.5
    """
    phi, text = as_feature_map(phi), as_text(X)
    joint = require_choice("ball", ball, BALLS) == "joint"
    checked = _checked_groups(groups, len(text))
    lengths = radii(radius, phi, phi.accept(text.rows), torch.arange(len(text)))
    problems, order = [], []
    for size in sorted(set(map(len, checked))):
        places = [place for place, group in enumerate(checked) if len(group) == size]
        members = torch.tensor([checked[place] for place in places], device=lengths.device)
        problems.append(TextUnderMap(phi, text, None, lengths[members], seed, members, joint))
        order += places
    found = sensitivities(
        problems, search, certificate=False, memory_budget=memory_budget, progress=progress
    )
    return Sensitivity.of_groups(found, order)


@restores_state
def several_words_sensitivity(
    phi: FeatureMap | Callable[[Tensor], Tensor],
    X: TextMatrix | Tensor | np.ndarray,
    count: int,
    radius: float | None = None,
    seed: Seed = 0,
    *,
    ball: str = "each",
    search: Search = "normal",
    memory_budget: int = DEFAULT_MEMORY_BUDGET,
    progress: Progress | None = None,
) -> Sensitivity:
    """The sensitivity to `count` words that move at once (paper's open question: how many must
    change?).

    `value` is a lower bound of the sup over all sets of that size. If there are at most MOST_SETS
    sets, all are searched. If there are more, the search starts from the words that are most
    sensitive one by one, exchanges words as long as short searches gain by it, and then searches
    the best few sets.
    For maps that can afford few words, such as those with matrices sampled on demand, it searches
    the sets of `word_sets`.

    Arguments as for `group_sensitivity`; `count` k, from 1 to n; `search` is the effort of the last
    search, on the best sets. `evaluations` and `seconds` count all searches.

    >>> X = torch.diag(torch.tensor([1.0, 2.0, 3.0]).double())
    >>> pair = several_words_sensitivity(lambda X: X.diag().square(), X, 2, radius=1.0)
    >>> pair.group, pair.searched, pair.sets
    ((1, 2), 3, 3)
    """
    started, phi, text = time.perf_counter(), as_feature_map(phi), as_text(X)
    n = len(text)
    total = math.comb(n, _checked_count(count, n))
    shared: dict[str, Any] = {"radius": radius, "seed": seed, "memory_budget": memory_budget}
    searched = partial(group_sensitivity, phi, text, ball=ball, **shared)
    stages, spent = 1, 0
    if total <= MOST_SETS or count == 1:
        chosen = list(combinations(range(n), count))
        met = total
    else:
        few = phi.affordable_words is not None
        stages = 2 if few else 2 + _ROUNDS
        alone = _ranked(phi, text, progress=part_of(progress, 0, stages), **shared)
        order, spent = _falling(alone), alone.evaluations
        if few:
            chosen = _beside_random(order[:count], n, seed)
            met = len(chosen)
        else:
            tried, evaluations = _exchanged(searched, order, count, progress)
            chosen = sorted(tried, key=lambda words: -tried[words])[:_FINALISTS]
            met, spent = len(tried), spent + evaluations
    best = searched(chosen, search=search, progress=part_of(progress, stages - 1, stages))
    return replace(
        best,
        searched=met,
        sets=total,
        evaluations=best.evaluations + spent,
        seconds=time.perf_counter() - started,
    )


def whole_word_sensitivity(
    phi: FeatureMap | Callable[[Tensor], Tensor],
    X: TextMatrix,
    words: Iterable[int] | Tensor | np.ndarray | SupportsIndex | None = None,
    radius: float | None = None,
    seed: Seed = 0,
    *,
    search: Search = "normal",
    memory_budget: int = DEFAULT_MEMORY_BUDGET,
    progress: Progress | None = None,
) -> Sensitivity:
    """sup over whole words G and ‖Delta_j‖ <= radius_j, j in G, of ‖phi(X^G(Delta)) - phi(X)‖ /
    ‖phi(X)‖ (ours).

    `group_sensitivity` of the tokens of each word, each with a ball of its own: one group per word
    as a reader counts words.

    Args:
        phi: as for word_sensitivity.
        X: a text that knows its whole words, as `TransformerFeatures.embed` gives it.
        words: indices of X.whole_words; None for all.
        radius: of every token's ball; None for the map's default, a transformer's being the token's
            own row norm.
        seed, search, memory_budget, progress: as for word_sensitivity.

    Raises:
        InputError: a text that does not know its words, or an index out of range.

    >>> from wordsens.text.matrix import Word
    >>> X = TextMatrix(torch.ones(4, 9).double(), whole_words=(Word("un", (0, 1)), Word("a", (3,))))
    >>> r = whole_word_sensitivity(lambda X: X, X)
    >>> round(r.value, 6), r.token
    (0.707107, 'un')
    """
    phi, text = as_feature_map(phi), as_text(X)
    if not text.whole_words:
        raise InputError(
            f"{argument('X')} does not know its whole words; embed it with "
            "TransformerFeatures.embed, or name the rows with group_sensitivity"
        )
    count = len(text.whole_words)
    whole = [text.whole_words[word] for word in word_indices(words, count).tolist()]
    options: dict[str, Any] = {"search": search, "memory_budget": memory_budget}
    found = group_sensitivity(
        phi, text, [word.rows for word in whole], radius, seed, progress=progress, **options
    )
    return replace(found, tokens=tuple(word.text for word in whole))


def word_sets(
    phi: FeatureMap | Callable[[Tensor], Tensor],
    X: TextMatrix | Tensor | np.ndarray,
    count: int,
    radius: float | None = None,
    seed: Seed = 0,
    *,
    sets: int = 4,
) -> list[tuple[int, ...]]:
    """The `count` words that are the most sensitive one by one, and random sets of as many beside
    them.

    Arguments as for `group_sensitivity`; so many `sets` at most, the first included: in a short
    text some coincide.

    >>> word_sets(lambda X: X, torch.ones(4, 9), 4)
    [(0, 1, 2, 3)]
    """
    text = as_text(X)
    require_count("sets", sets)
    _checked_count(count, len(text))
    best = _falling(_ranked(phi, text, radius=radius, seed=seed))[:count]
    return _beside_random(best, len(text), seed, sets)


def _exchanged(
    searched: Callable[..., Sensitivity],
    order: list[int],
    count: int,
    progress: Progress | None,
) -> tuple[dict[tuple[int, ...], float], int]:
    """What short searches find at the sets that exchanges meet, one word of the best set for one
    outside of it; and their evaluations. The words come in the falling `order` of their
    values alone."""
    best, tried, spent = tuple(sorted(order[:count])), dict[tuple[int, ...], float](), 0
    for turn in range(_ROUNDS):
        outside = [word for word in order if word not in best]
        swapped = [tuple(sorted({*best, new} - {old})) for new in outside for old in best]
        fresh = [words for words in dict.fromkeys([best, *swapped]) if words not in tried][
            :MOST_SETS
        ]
        if not fresh:
            break
        shortly = searched(
            fresh, search=_RANKING, progress=part_of(progress, 1 + turn, 2 + _ROUNDS)
        )
        spent += shortly.evaluations
        tried |= dict(zip(fresh, shortly.per_word.tolist(), strict=True))
        leader = max(tried, key=lambda words: tried[words])
        if leader == best:
            break
        best = leader
    return tried, spent


# The value of each word alone, by a short search.
_ranked = partial(word_sensitivity, search=_RANKING, certificate=False)


def _falling(alone: Sensitivity) -> list[int]:
    """The words in the falling order of their values alone."""
    return alone.words[alone.per_word.argsort(descending=True)].tolist()


def _beside_random(best: list[int], n: int, seed: Seed, sets: int = 4) -> list[tuple[int, ...]]:
    """The best words, and random sets of as many, each in order and once."""
    stream = generator(seed, "word sets", len(best))
    drawn = [torch.randperm(n, generator=stream)[: len(best)].tolist() for _ in range(sets - 1)]
    return list(dict.fromkeys(tuple(sorted(words)) for words in [best, *drawn]))


def _checked_count(count: int, n: int) -> int:
    if require_count("count", count) > n:
        raise InputError(f"`count` (={count}) is more than the text's {n} words; choose 1 to {n}")
    return count


def _checked_groups(groups: Sequence[Sequence[int]], n: int) -> tuple[tuple[int, ...], ...]:
    try:
        listed = [tuple(map(index, group)) for group in groups]
    except TypeError as error:
        raise InputError(
            f"`groups` (={groups!r}) must be lists of whole numbers, such as [(0, 3), (1, 2, 5)]"
        ) from error
    if not listed:
        raise InputError("`groups` is empty; give at least one group of word indices")
    for group in listed:
        if not group or any(not -n <= word < n for word in group):
            raise InputError(
                f"`groups` has {group!r}; a group names words from 0 to {n - 1}, at least one"
            )
        if len({word % n for word in group}) < len(group):
            raise InputError(
                f"`groups` has {group!r}, which names a word twice; name each word once"
            )
    return tuple(tuple(word % n for word in group) for group in listed)
