"""Word sensitivity when several words move together: given groups, k words chosen for their effect,
whole words."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from wordsens.errors import InputError, require_choice, require_count
from wordsens.maps.arguments import as_feature_map, as_text, radii
from wordsens.maps.base import DEFAULT_MEMORY_BUDGET, FeatureMap
from wordsens.maps.mapping import restores_state
from wordsens.search.maximize import maximize
from wordsens.search.objective import Ball, Objective, Progress, part_of
from wordsens.search.plan import Search, SearchPlan
from wordsens.seeds import Seed, generator
from wordsens.sensitivity.one_word import attained, word_sensitivity
from wordsens.sensitivity.result import Sensitivity, SensitivityResult
from wordsens.sensitivity.several_texts import on_demand
from wordsens.text.matrix import TextMatrix, Word

BALLS = ("each", "joint")
MOST_SETS = 300
"""Sets of k words up to which all of them are searched, and that a round of exchanges tries at
most."""

_RANKING = SearchPlan("quick", starts=6, steps=10)
"""Enough to tell which words or sets are the most sensitive: their values need not be the
largest."""

_ROUNDS, _FINALISTS = 3, 4
"""Rounds of exchanges at most, and the sets that the full search is spent on after them."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class GroupSensitivity(SensitivityResult):
    """The sensitivity of one text to several words that move together.

    Attributes:
        value: the largest of `per_group`: a lower bound of the sup over these groups.
        group: the words of its group.
        groups: the words of every group.
        per_group: (m,), the relative change at each group's witness, recomputed through phi.
        perturbations: a witness for each group, (g, d).
        radius: of each word's ball, group by group; of a joint ball, the lengths that count as one.
        ball: "each" or "joint".
        converged: (m,).
        searched, sets: of `several_words_sensitivity`, how many sets of so many words were
            searched, if only shortly, and how many there are; None for groups that were given.
    """

    group: tuple[int, ...]
    groups: tuple[tuple[int, ...], ...]
    per_group: Float[Tensor, " m"]
    perturbations: tuple[Tensor, ...]
    radius: tuple[tuple[float, ...], ...]
    ball: str
    converged: Bool[Tensor, " m"]
    searched: int | None = None
    sets: int | None = None

    ranked = "sensitivity"

    @property
    def headline(self) -> str:
        """How far the most sensitive group can move the output, and how many were searched."""
        words = ", ".join(map(str, self.group))
        sets = "" if self.sets is None else f"; {self.searched} of {self.sets} sets searched"
        return (
            f"The words {words} together can move the output {self.value:.3g} times its size{sets}"
        )

    def columns(self) -> dict[str, Any]:
        """One row per group."""
        return {
            "group": [" ".join(map(str, group)) for group in self.groups],
            "sensitivity": self.per_group.tolist(),
            "converged": self.converged.tolist(),
        }


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
) -> GroupSensitivity:
    """sup over the groups G and their Delta of ‖phi(X^G(Delta)) - phi(X)‖ / ‖phi(X)‖, all words of
    G moved at once.

    The definition of eq. 1 with a group in place of a word (ours): the tokens that make up one
    word, or k words. A lower bound of the sup, each witness recomputed through phi. Groups of one
    word are searched as `word_sensitivity` searches these words.

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
    started, plan = time.perf_counter(), SearchPlan.of(search)
    require_count("memory_budget", memory_budget)
    phi, text = as_feature_map(phi), as_text(X)
    require_choice("ball", ball, BALLS)
    checked = _checked_groups(groups, len(text))
    rows = phi.accept(text.rows)
    lengths = radii(radius, phi, rows, torch.arange(len(text)))
    per_group = torch.empty(len(checked), dtype=torch.float64)
    perturbations: list[Tensor] = [torch.empty(0)] * len(checked)
    converged = torch.empty(len(checked), dtype=torch.bool)
    evaluations = 0
    sizes = sorted({len(group) for group in checked})
    for part, size in enumerate(sizes):
        places = [index for index, group in enumerate(checked) if len(group) == size]
        members = torch.tensor([checked[index] for index in places], device=rows.device)
        if size == 1:
            words, where = members.flatten().unique(return_inverse=True)
            alone = word_sensitivity(
                phi,
                text,
                words,
                lengths[words],
                seed,
                search=plan,
                certificate=False,
                memory_budget=memory_budget,
                progress=part_of(progress, part, len(sizes)),
            )
            values, stopped = alone.per_word[where], alone.converged[where]
            deltas, spent = alone.perturbations[where].unsqueeze(1), alone.evaluations
        else:
            reach = lengths[members]
            climbed = maximize(
                InUnitBalls(phi.group_change(rows, members, memory_budget=memory_budget), reach),
                torch.arange(len(places), device=rows.device),
                Ball(torch.ones(len(places), dtype=torch.float64, device=rows.device)),
                plan,
                blocks=1 if ball == "joint" else size,
                generator=generator(seed, "group starts", size),
                progress=part_of(progress, part, len(sizes)),
            )
            deltas = climbed.perturbations * reach.unsqueeze(-1).to(climbed.perturbations)
            values = attained(phi, rows, members, deltas, memory_budget=memory_budget)
            stopped, spent = climbed.converged, climbed.evaluations + len(places)
        evaluations += spent
        per_group[places], converged[places] = values.cpu(), stopped.cpu()
        for index, delta in zip(places, deltas, strict=True):
            perturbations[index] = delta
    best = int(per_group.argmax())
    return GroupSensitivity(
        value=float(per_group[best]),
        group=checked[best],
        groups=checked,
        per_group=per_group,
        perturbations=tuple(perturbations),
        radius=tuple(tuple(lengths[list(group)].tolist()) for group in checked),
        ball=ball,
        search=str(plan),
        evaluations=evaluations,
        seconds=time.perf_counter() - started,
        converged=converged,
        seed=int(seed),
    )


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
) -> GroupSensitivity:
    """The sensitivity to `count` words that move at once (paper's open question: how many must
    change?).

    A lower bound of the sup over all sets of that size. Up to MOST_SETS sets are all searched. Of
    more, the words that are the most sensitive one by one are exchanged for others as long as short
    searches gain by it, and the best few sets that were met are searched. Of matrices sampled on
    demand, which remember every product, those of `word_sets`.

    Arguments as for `group_sensitivity`; `count` k, from 1 to n; `search` is the effort of the last
    search, on the best sets. `evaluations` and `seconds` are of all searches.

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
        stages = 2 if on_demand(phi) else 2 + _ROUNDS
        alone = _ranked(phi, text, progress=part_of(progress, 0, stages), **shared)
        order, spent = _falling(alone), alone.evaluations
        if on_demand(phi):
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


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class WholeWordSensitivity(SensitivityResult):
    """The sensitivity of one text, word by word as a reader counts words.

    Attributes:
        value: the largest of `per_word`: a lower bound of the sup.
        word: the index, in the text's `whole_words`, of its word.
        words: the indices of the searched words.
        whole: the searched words, each with its rows.
        tokens: the tokens of each of them.
        per_word: (w,), the relative change at each word's witness, recomputed through phi.
        perturbations: a witness for each word, (tokens of the word, d).
        radius: the radius of each token's ball, word by word.
        notes: what the map says of itself.
    """

    word: int
    words: tuple[int, ...]
    whole: tuple[Word, ...]
    tokens: tuple[tuple[str, ...], ...]
    per_word: Float[Tensor, " w"]
    perturbations: tuple[Tensor, ...]
    radius: tuple[tuple[float, ...], ...]
    converged: Bool[Tensor, " w"]
    notes: tuple[str, ...] = ()

    ranked = "sensitivity"
    row_names = "text"

    @property
    def headline(self) -> str:
        """How far the most sensitive word can move the output."""
        text = self.whole[self.words.index(self.word)].text
        return f"Word {self.word} {text!r} can move the output {self.value:.3g} times its size"

    def columns(self) -> dict[str, Any]:
        """One row per word as a reader counts them, with its tokens."""
        return {
            "word": self.words,
            "text": [word.text for word in self.whole],
            "tokens": [" ".join(pieces) for pieces in self.tokens],
            "sensitivity": self.per_word.tolist(),
            "converged": self.converged.tolist(),
        }


def whole_word_sensitivity(
    phi: FeatureMap | Callable[[Tensor], Tensor],
    X: TextMatrix,
    words: Sequence[int] | None = None,
    radius: float | None = None,
    seed: Seed = 0,
    *,
    search: Search = "normal",
    memory_budget: int = DEFAULT_MEMORY_BUDGET,
    progress: Progress | None = None,
) -> WholeWordSensitivity:
    """sup over whole words G and ‖Delta_j‖ <= radius_j, j in G, of ‖phi(X^G(Delta)) - phi(X)‖ /
    ‖phi(X)‖ (ours).

    Eq. 1 with the tokens of one word in place of one row, each with a ball of its own:
    `group_sensitivity` of them.

    Args:
        phi: as for word_sensitivity.
        X: a text that knows its whole words, as `TransformerFeatures.embed` gives it.
        words: indices of X.whole_words; None for all.
        radius: of every token's ball; None for the map's default, a transformer's being the token's
            own row norm.
        seed, search, memory_budget, progress: as for word_sensitivity.

    Raises:
        InputError: a text that does not know its words, or an index out of range.

    >>> X = TextMatrix(torch.ones(4, 9, dtype=torch.float64), whole_words=(Word("un", (0, 1)), Word("a", (3,))))
    >>> r = whole_word_sensitivity(lambda X: X, X)
    >>> round(r.value, 6), r.whole[r.word].text
    (0.707107, 'un')
    """  # noqa: E501
    phi, text = as_feature_map(phi), as_text(X)
    if not text.whole_words:
        raise InputError(
            "`X` does not know its whole words; embed it with TransformerFeatures.embed, or name "
            "the rows with "
            "group_sensitivity"
        )
    count = len(text.whole_words)
    chosen = list(range(count)) if words is None else list(words)
    if (
        not chosen
        or len(set(chosen)) != len(chosen)
        or any(not 0 <= word < count for word in chosen)
    ):
        raise InputError(
            f"`words` (={chosen!r}) must name different words from 0 to {count - 1}, at least one"
        )
    whole = [text.whole_words[word] for word in chosen]
    groups = group_sensitivity(
        phi,
        text,
        [word.rows for word in whole],
        radius,
        seed,
        search=search,
        memory_budget=memory_budget,
        progress=progress,
    )
    shared = (
        "value",
        "perturbations",
        "radius",
        "search",
        "evaluations",
        "seconds",
        "converged",
        "seed",
    )
    return WholeWordSensitivity(
        word=int(chosen[int(groups.per_group.argmax())]),
        words=tuple(int(word) for word in chosen),
        whole=tuple(whole),
        tokens=tuple(tuple(text.word(row) for row in word.rows) for word in whole),
        per_word=groups.per_group,
        notes=phi.notes,
        **{name: getattr(groups, name) for name in shared},
    )


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
    n = len(text)
    require_count("sets", sets)
    _checked_count(count, n)
    best = _falling(_ranked(phi, text, radius=radius, seed=seed))[:count]
    return _beside_random(best, n, seed, sets)


class InUnitBalls(Objective):
    """A change of groups in coordinates where the ball of every row, of these radii, has radius
    1."""

    def __init__(self, change: Objective, radius: Float[Tensor, "m g"]):
        super().__init__(
            change.shape,
            dtype=change.dtype,
            device=change.device,
            memory_budget=change.memory_budget,
            typical_length=change.typical_length / float(radius.max()),
        )
        self._change, self._radius = change, radius.unsqueeze(-1)
        self.stages, self.kinked = change.stages, change.kinked

    def bytes_per_pair(self) -> int:
        return self._change.bytes_per_pair()

    def coarse(self) -> Objective:
        coarse = self._change.coarse()
        return self if coarse is self._change else InUnitBalls(coarse, self._radius.squeeze(-1))

    def starts(self, words: Int[Tensor, " w"], radius: Float[Tensor, " w"]) -> Tensor:
        return self._change.starts(words, torch.ones_like(radius)) / self._radius[words].to(
            self.dtype
        )

    def _evaluate(
        self, perturbations: Tensor, words: Tensor, *, gradient: bool
    ) -> tuple[Tensor, Tensor | None]:
        scale = self._radius[words].to(perturbations.dtype)
        squared, slope = self._change._evaluate(perturbations * scale, words, gradient=gradient)
        return squared, None if slope is None else slope * scale


def _exchanged(
    searched: Callable[..., GroupSensitivity],
    order: list[int],
    count: int,
    progress: Progress | None,
) -> tuple[dict[tuple[int, ...], float], int]:
    """What short searches attain at the sets that exchanges meet, one word of the best set for one
    outside of it; and their evaluations. The words come in the falling `order` of what each
    attains alone."""
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
        tried |= dict(zip(fresh, shortly.per_group.tolist(), strict=True))
        leader = max(tried, key=lambda words: tried[words])
        if leader == best:
            break
        best = leader
    return tried, spent


_ranked = partial(word_sensitivity, search=_RANKING, certificate=False)
"""What each word attains alone, by a short search."""


def _falling(alone: Sensitivity) -> list[int]:
    """The words in the falling order of what each attains alone."""
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
    if len(groups) == 0:
        raise InputError("`groups` is empty; give at least one group of word indices")
    for group in groups:
        if len(group) == 0 or any(not -n <= int(word) < n for word in group):
            raise InputError(
                f"`groups` has {tuple(group)!r}; a group names words from 0 to {n - 1}, at least "
                "one"
            )
        if len({int(word) % n for word in group}) != len(group):
            raise InputError(
                f"`groups` has {tuple(group)!r}, which names a word twice; name each word once"
            )
    return tuple(tuple(int(word) % n for word in group) for group in groups)
