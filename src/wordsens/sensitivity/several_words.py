"""Word sensitivity when several words move together: groups that are given, and k words chosen for their effect."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from wordsens.errors import InputError, require_choice, require_count, require_positive
from wordsens.maps.arguments import as_text
from wordsens.maps.base import FeatureMap
from wordsens.maps.function import as_feature_map
from wordsens.maps.mapping import restores_state
from wordsens.results import Result, ResultTable
from wordsens.search.ball import Ball
from wordsens.search.maximize import maximize
from wordsens.search.objective import Objective
from wordsens.search.plan import Search, SearchPlan
from wordsens.seeds import Seed, generator
from wordsens.sensitivity.one_word import attained, word_sensitivity
from wordsens.sensitivity.result import Budget
from wordsens.sensitivity.several_texts import on_demand
from wordsens.text.matrix import TextMatrix

BALLS = ("each", "joint")
MOST_SETS = 300
"""Sets of k words up to which all of them are searched, and that a round of exchanges tries at most."""

_RANKING = SearchPlan("quick", starts=6, steps=10)
"""Enough to tell which words or sets are the most sensitive: their values need not be the largest."""

_ROUNDS, _FINALISTS = 3, 4
"""Rounds of exchanges at most, and the sets that the full search is spent on after them."""


@dataclass(frozen=True, eq=False, repr=False)
class GroupSensitivity(Result):
    """The sensitivity of one text to several words that move together.

    Attributes:
        value: the largest of `per_group`: attained, a lower bound of the sup over these groups.
        group: the words of its group.
        groups: the words of every group.
        per_group: (m,), the relative change at each group's witness, recomputed through phi.
        perturbations: a witness for each group, (g, d).
        radius: of each word's ball, group by group; of a joint ball, the lengths that count as one.
        ball: "each" or "joint".
        search: what the search was allowed, in words, such as "normal"; see SearchPlan.
        evaluations: how many perturbed texts were evaluated.
        seconds: what the call took.
        converged: (m,), whether the search stopped gaining, before its steps ran out, at a stationary point.
        searched, sets: of `several_words_sensitivity`, how many sets of so many words were searched, if only shortly,
            and how many there are; None for groups that were given.
    """

    value: float
    group: tuple[int, ...]
    groups: tuple[tuple[int, ...], ...]
    per_group: Float[Tensor, " m"]
    perturbations: tuple[Tensor, ...]
    radius: tuple[tuple[float, ...], ...]
    ball: str
    search: str
    evaluations: int
    seconds: float = field(compare=False)
    converged: Bool[Tensor, " m"]
    searched: int | None = None
    sets: int | None = None

    def result_table(self) -> ResultTable:
        """A row a group."""
        columns = {
            "group": [" ".join(map(str, group)) for group in self.groups],
            "sensitivity": self.per_group.tolist(),
            "converged": self.converged.tolist(),
        }
        words = ", ".join(map(str, self.group))
        heading = f"The words {words} together can move the output {self.value:.3g} times its size"
        if self.sets is not None:
            heading += f"; {self.searched} of {self.sets} sets searched"
        return ResultTable(heading, columns, "sensitivity")


@restores_state
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
    Attained: a lower bound of the sup, each witness recomputed through phi. Groups of one word are searched as
    `word_sensitivity` searches these words.

    Args:
        phi: a feature map, or any differentiable function of an (n, d) tensor.
        X: the text, (n, d).
        groups: the word indices of each group; sizes may differ.
        radius: None for the map's default, sqrt(d).
        seed: of the random starts.
        ball: "each": every word has its own ball, ‖Delta_i‖ <= radius_i; "joint": one ball for the group,
            sum_i ‖Delta_i‖² / radius_i² <= 1.
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
    phi, text = as_feature_map(phi), as_text(X)
    require_choice("ball", ball, BALLS)
    listed = _checked_groups(groups, len(text))
    lengths = radii_of_rows(phi, text, radius)
    result = search_groups(phi, text, listed, lengths, seed, budget, joint=ball == "joint")
    best = int(result.per_group.argmax())
    return GroupSensitivity(
        value=float(result.per_group[best]),
        group=listed[best],
        groups=listed,
        per_group=result.per_group,
        perturbations=tuple(result.perturbations),
        radius=tuple(tuple(lengths[list(group)].tolist()) for group in listed),
        ball=ball,
        search=str(budget.plan),
        evaluations=result.evaluations,
        seconds=time.perf_counter() - started,
        converged=result.converged,
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

    A lower bound of the sup over all sets of that size. Up to MOST_SETS sets are all searched. Of more, the words that
    are the most sensitive one by one are exchanged for others as long as short searches gain by it, and the best few
    sets that were met are searched. Of matrices sampled on demand, which remember every product, those of `word_sets`.

    Args:
        phi, X, radius, seed, ball: as for group_sensitivity.
        count: k, from 1 to n.
        search: what the search of a set spends.

    >>> X = torch.diag(torch.tensor([1.0, 2.0, 3.0]).double())
    >>> result = several_words_sensitivity(lambda X: X.diag().square(), X, 2, radius=1.0)
    >>> result.group, result.searched, result.sets
    ((1, 2), 3, 3)
    """
    text, budget = as_text(X), Budget.of(search)
    phi, n = as_feature_map(phi), len(text)
    total = math.comb(n, _checked_count(count, n))
    if total <= MOST_SETS or count == 1:
        chosen = list(combinations(range(n), count))
        searched = total
    elif on_demand(phi):
        chosen = word_sets(phi, text, count, radius, seed)
        searched = len(chosen)
    else:
        tried = _exchanged(phi, text, count, radius, seed, ball)
        chosen = sorted(tried, key=lambda words: -tried[words])[:_FINALISTS]
        searched = len(tried)
    result = group_sensitivity(phi, text, chosen, radius, seed, ball=ball, search=budget)
    return replace(result, searched=searched, sets=total)


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
    _checked_count(count, n)
    best = _most_sensitive(phi, text, radius, seed)[:count]
    stream = generator(seed, "word sets", count)
    drawn = [torch.randperm(n, generator=stream)[:count].tolist() for _ in range(sets - 1)]
    return list(dict.fromkeys(tuple(sorted(words)) for words in [best, *drawn]))


class GroupSearch(NamedTuple):
    """The search of m groups: the attained values, a witness each, whether it converged, and what it spent."""

    per_group: Float[Tensor, " m"]
    perturbations: list[Tensor]
    converged: Bool[Tensor, " m"]
    evaluations: int


def search_groups(
    phi: FeatureMap,
    text: TextMatrix,
    groups: Sequence[tuple[int, ...]],
    radius: Float[Tensor, " n"],
    seed: Seed,
    budget: Budget,
    *,
    joint: bool = False,
) -> GroupSearch:
    """The best Delta of every group, sizes one after another; `radius` is of each row's ball."""
    rows = phi.accept(text.rows)
    result = GroupSearch(
        torch.empty(len(groups), dtype=torch.float64),
        [torch.empty(0)] * len(groups),
        torch.empty(len(groups), dtype=torch.bool),
        0,
    )
    evaluations = 0
    for size in sorted({len(group) for group in groups}):
        at = [index for index, group in enumerate(groups) if len(group) == size]
        members = torch.tensor([groups[index] for index in at], device=rows.device)
        if size == 1:
            words, where = members.flatten().unique(return_inverse=True)
            one = word_sensitivity(
                phi, text, words, radius[words], seed, search=budget.plan, certificate=False,
                memory_budget=budget.memory_budget, progress=budget.progress,
            )  # fmt: skip
            values, converged = one.per_word[where], one.converged[where]
            deltas, spent = one.perturbations[where].unsqueeze(1), one.evaluations
        else:
            lengths = radius[members]
            change = phi.group_change(rows, members, memory_budget=budget.memory_budget)
            solution = maximize(
                InUnitBalls(change, lengths),
                torch.arange(len(at), device=rows.device),
                Ball(torch.ones(len(at), dtype=torch.float64, device=rows.device)),
                budget.plan,
                blocks=1 if joint else size,
                generator=generator(seed, "group starts", size),
                progress=budget.progress,
            )
            deltas = solution.perturbations * lengths.unsqueeze(-1).to(solution.perturbations)
            values = attained(phi, rows, members, deltas, memory_budget=budget.memory_budget)
            converged, spent = solution.converged, solution.evaluations + len(at)
        evaluations += spent
        result.per_group[at], result.converged[at] = values.cpu(), converged.cpu()
        for index, delta in zip(at, deltas, strict=True):
            result.perturbations[index] = delta
    return result._replace(evaluations=evaluations)


class InUnitBalls(Objective):
    """A change of groups in coordinates where the ball of every row has radius 1.

    Args:
        change: the change.
        radius: of each row of each group.
    """

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
        return self._change.starts(words, torch.ones_like(radius)) / self._radius[words].to(self.dtype)

    def _evaluate(self, perturbations: Tensor, words: Tensor, *, gradient: bool) -> tuple[Tensor, Tensor | None]:
        scale = self._radius[words].to(perturbations.dtype)
        squared, slope = self._change._evaluate(perturbations * scale, words, gradient=gradient)
        return squared, None if slope is None else slope * scale


def radii_of_rows(phi: FeatureMap, text: TextMatrix, radius: float | None) -> Float[Tensor, " n"]:
    """The radius of every row's ball: one for all, or the map's default."""
    rows = phi.accept(text.rows)
    if radius is None:
        return phi.default_radius(rows)
    value = require_positive("radius", radius, remedy="pass None for the map's default")
    return torch.full((len(rows),), value, dtype=torch.float64, device=rows.device)


def _exchanged(
    phi: FeatureMap, text: TextMatrix, count: int, radius: float | None, seed: Seed, ball: str
) -> dict[tuple[int, ...], float]:
    """What short searches attain at the sets that exchanges meet: one word of the best set for one outside of it."""
    order = _most_sensitive(phi, text, radius, seed)
    best, tried = tuple(sorted(order[:count])), dict[tuple[int, ...], float]()
    for _ in range(_ROUNDS):
        outside = [word for word in order if word not in best]
        swapped = [tuple(sorted({*best, new} - {old})) for new in outside for old in best]
        fresh = [words for words in dict.fromkeys([best, *swapped]) if words not in tried][:MOST_SETS]
        if not fresh:
            break
        values = group_sensitivity(phi, text, fresh, radius, seed, ball=ball, search=_RANKING).per_group
        tried |= dict(zip(fresh, values.tolist(), strict=True))
        leader = max(tried, key=lambda words: tried[words])
        if leader == best:
            break
        best = leader
    return tried


def _most_sensitive(
    phi: FeatureMap | Callable[[Tensor], Tensor], text: TextMatrix, radius: float | None, seed: Seed
) -> list[int]:
    """The words in the falling order of what each attains alone, by a short search."""
    alone = word_sensitivity(phi, text, radius=radius, seed=seed, search=_RANKING, certificate=False)
    return alone.words[alone.per_word.argsort(descending=True)].tolist()


def _checked_count(count: int, n: int) -> int:
    if require_count("count", count) > n:
        raise InputError(f"`count` (={count}) is more than the text's {n} words; choose 1 to {n}")
    return count


def _checked_groups(groups: Sequence[Sequence[int]], n: int) -> tuple[tuple[int, ...], ...]:
    if len(groups) == 0:
        raise InputError("`groups` is empty; give at least one group of word indices")
    for group in groups:
        if len(group) == 0 or any(not -n <= int(word) < n for word in group):
            raise InputError(f"`groups` has {tuple(group)!r}; a group names words from 0 to {n - 1}, at least one")
        if len({int(word) % n for word in group}) != len(group):
            raise InputError(f"`groups` has {tuple(group)!r}, which names a word twice; name each word once")
    return tuple(tuple(int(word) % n for word in group) for group in groups)
