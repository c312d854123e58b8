"""Word sensitivity when several words move together: multi-token words, and k words at once."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from wordsens.errors import InputError, require_choice, require_count, require_positive
from wordsens.maps.arguments import as_text
from wordsens.maps.base import FeatureMap
from wordsens.maps.function import as_feature_map
from wordsens.maps.mapping import leaves_the_map_as_found
from wordsens.results import Look, Result
from wordsens.search.ball import Ball
from wordsens.search.maximize import maximize
from wordsens.search.plan import Search, SearchPlan
from wordsens.seeds import Seed, generator
from wordsens.sensitivity.one_word import attained, word_sensitivity
from wordsens.sensitivity.result import Budget
from wordsens.text.matrix import TextMatrix

BALLS = ("each", "joint")

_RANKING = SearchPlan("quick")
"""Enough to tell which words are the most sensitive one by one: their values need not be the largest."""


@dataclass(frozen=True, eq=False, repr=False)
class GroupSensitivity(Result):
    """The sensitivity of one text to several words that move together.

    Attributes:
        value: the largest of `per_group`: attained, a lower bound of the sup over these groups.
        group: the words of its group.
        groups: the words of every group.
        per_group: (m,), the relative change at each group's witness, recomputed through phi.
        perturbations: a witness for each group, (g, d).
        radius: of the ball, each word's or the joint one's.
        ball: "each" or "joint".
        search: what the search was allowed, in words, such as "normal"; see SearchPlan.
        evaluations: how many perturbed texts were evaluated.
        seconds: what the call took.
        converged: (m,), whether the search stopped gaining, before its steps ran out, at a stationary point.
    """

    value: float
    group: tuple[int, ...]
    groups: tuple[tuple[int, ...], ...]
    per_group: Float[Tensor, " m"]
    perturbations: tuple[Tensor, ...]
    radius: float
    ball: str
    search: str
    evaluations: int
    seconds: float = field(compare=False)
    converged: Bool[Tensor, " m"]

    def look(self) -> Look:
        """A row a group."""
        columns = {
            "group": [" ".join(map(str, group)) for group in self.groups],
            "sensitivity": self.per_group.tolist(),
            "converged": self.converged.tolist(),
        }
        heading = f"S >= {self.value:.4f}, at the words {', '.join(map(str, self.group))}"
        return Look(heading, columns, "sensitivity")


@leaves_the_map_as_found
def group_sensitivity(
    phi: FeatureMap | Callable[[Tensor], Tensor],
    X: TextMatrix | Tensor | np.ndarray,
    groups: Sequence[Sequence[int]],
    radius: float | None = None,
    seed: Seed = 0,
    *,
    ball: str = "each",
    search: Search | Budget = "normal",
) -> GroupSensitivity:
    """sup over the groups G and their Delta of ‖phi(X^G(Delta)) - phi(X)‖ / ‖phi(X)‖, all words of G moved at once.

    The definition of eq. 1 with a group in place of a word (ours): the tokens that make up one word, or k words.
    Attained: a lower bound of the sup, each witness recomputed through phi.

    Args:
        phi: a feature map, or any differentiable function of an (n, d) tensor.
        X: the text, (n, d).
        groups: the word indices of each group; sizes may differ.
        radius: None for sqrt(d).
        seed: of the random starts.
        ball: "each": every word has its own ball, ‖Delta_i‖ <= radius; "joint": ‖Delta‖_F <= radius over the group.
        search: as for word_sensitivity; or a Budget.

    Raises:
        InputError: an empty group, a word out of range or named twice in a group, a bad radius or ball.

    >>> phi = lambda X: X
    >>> X = torch.ones(4, 9, dtype=torch.float64)
    >>> round(group_sensitivity(phi, X, [(0, 1)]).value, 9)     # two moves of length 3, ‖X‖ = 6
    0.707106781
    >>> round(group_sensitivity(phi, X, [(0, 1)], ball="joint").value, 9)
    0.5
    """
    started, budget = time.perf_counter(), Budget.of(search)
    text, phi = as_text(X), as_feature_map(phi)
    require_choice("ball", ball, BALLS)
    rows = phi.accept(text.rows)
    listed = _checked_groups(groups, len(text))
    radius = math.sqrt(rows.shape[1]) if radius is None else require_positive("radius", radius)
    per_group = torch.empty(len(listed), dtype=torch.float64)
    converged = torch.empty(len(listed), dtype=torch.bool)
    perturbations: list[Tensor] = [torch.empty(0)] * len(listed)
    evaluations = 0
    for size in sorted({len(group) for group in listed}):
        at = [index for index, group in enumerate(listed) if len(group) == size]
        members = torch.tensor([listed[index] for index in at], device=rows.device)
        change = phi.group_change(rows, members, memory_budget=budget.memory_budget)
        found = maximize(
            change,
            torch.arange(len(at), device=rows.device),
            Ball(torch.full((len(at),), radius, dtype=torch.float64, device=rows.device)),
            budget.plan,
            blocks=size if ball == "each" else 1,
            generator=generator(seed, "group starts", size),
            progress=budget.progress,
        )
        values = attained(phi, rows, members, found.perturbations, memory_budget=budget.memory_budget)
        evaluations += found.evaluations + len(at)
        for position, index in enumerate(at):
            per_group[index], converged[index] = values[position], found.converged[position]
            perturbations[index] = found.perturbations[position]
    best = int(per_group.argmax())
    return GroupSensitivity(
        value=float(per_group[best]),
        group=listed[best],
        groups=listed,
        per_group=per_group,
        perturbations=tuple(perturbations),
        radius=radius,
        ball=ball,
        search=str(budget.plan),
        evaluations=evaluations,
        seconds=time.perf_counter() - started,
        converged=converged,
    )


def several_words_sensitivity(
    phi: FeatureMap | Callable[[Tensor], Tensor],
    X: TextMatrix | Tensor | np.ndarray,
    count: int,
    radius: float | None = None,
    seed: Seed = 0,
    *,
    ball: str = "each",
    search: Search | Budget = "normal",
) -> GroupSensitivity:
    """The sensitivity to `count` words that move at once (paper's open question: how many must change?).

    A lower bound of the sup over all sets of that size: it searches those of `word_sets`.

    Args:
        phi, X, radius, seed, ball: as for group_sensitivity.
        count: k, from 1 to n.
        search: what the search of the sets spends; the words are ranked by a short search of their own.
    """
    budget = Budget.of(search)
    return group_sensitivity(phi, X, word_sets(phi, X, count, radius, seed), radius, seed, ball=ball, search=budget)


def word_sets(
    phi: FeatureMap | Callable[[Tensor], Tensor],
    X: TextMatrix | Tensor | np.ndarray,
    count: int,
    radius: float | None = None,
    seed: Seed = 0,
    *,
    sets: int = 4,
) -> list[tuple[int, ...]]:
    """The `count` words that are the most sensitive one by one, and random sets of as many beside them.

    Args:
        phi, X, radius, seed: as for group_sensitivity.
        count: k, from 1 to n.
        sets: how many sets, the first included; of a short text they may coincide, and are then fewer.

    >>> word_sets(lambda X: X, torch.ones(4, 9), 4)
    [(0, 1, 2, 3)]
    """
    text = as_text(X)
    n = len(text)
    require_count("sets", sets)
    if require_count("count", count) > n:
        raise InputError(f"`count` (={count}) is more than the text's {n} words; choose 1 to {n}")
    alone = word_sensitivity(phi, text, radius=radius, seed=seed, search=_RANKING, certificate=False)
    best = alone.words[alone.per_word.argsort(descending=True)[:count]].tolist()
    stream = generator(seed, "word sets", count)
    drawn = [torch.randperm(n, generator=stream)[:count].tolist() for _ in range(sets - 1)]
    return list(dict.fromkeys(tuple(sorted(words)) for words in [best, *drawn]))


def _checked_groups(groups: Sequence[Sequence[int]], n: int) -> tuple[tuple[int, ...], ...]:
    if len(groups) == 0:
        raise InputError("`groups` is empty; give at least one group of word indices")
    for group in groups:
        if len(group) == 0 or any(not -n <= int(word) < n for word in group):
            raise InputError(f"`groups` has {tuple(group)!r}; a group names words from 0 to {n - 1}, at least one")
        if len({int(word) % n for word in group}) != len(group):
            raise InputError(f"`groups` has {tuple(group)!r}, which names a word twice; name each word once")
    return tuple(tuple(int(word) % n for word in group) for group in groups)
