"""How to search for the worst perturbation of attention: rules and plans at equal numbers of evaluations.

    python -m benchmarks.attention_search [--quick] [--text gaussian|review] [--score softmax|relu] [--words N]

A plan spends its evaluations a word on starts, on crossing witnesses and on polishing. Every number is a ratio to the
best value known of the word: the best of all runs here and of one that spends several times more.
"""

import argparse
import copy
import itertools
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

import wordsens as ws
from benchmarks.reporting import header, seconds, table
from benchmarks.texts import kinds
from wordsens.search.ball import Ball
from wordsens.search.climb import RULES
from wordsens.search.objective import WordChange
from wordsens.search.plan import SearchPlan
from wordsens.search.population import SearchResult, search
from wordsens.seeds import generator

CLIMB = 10
"""Steps that every start and child is given, so that each costs one evaluation more."""


@dataclass(frozen=True)
class Case:
    """A text and a score."""

    text: str
    n: int
    d: int
    score: str


QUICK = (Case("review", 20, 96, "softmax"), Case("gaussian", 30, 96, "softmax"), Case("gaussian", 30, 96, "relu"))
NORMAL = (
    Case("review", 20, 384, "softmax"),
    Case("review", 100, 384, "softmax"),
    Case("review", 200, 384, "softmax"),
    Case("gaussian", 20, 96, "softmax"),
    Case("gaussian", 100, 384, "softmax"),
    Case("gaussian", 100, 768, "softmax"),
    Case("review", 50, 384, "relu"),
    Case("gaussian", 50, 384, "relu"),
)


def three_starts(budget: int) -> dict[str, int]:
    """Three starts, each polished."""
    steps = max(1, budget // 3 - CLIMB - 1)
    return {"starts": 3, "generations": 0, "relays": 0, "finalists": 3, "steps": steps}


def many_starts(budget: int) -> dict[str, int]:
    """Three fifths of the budget on starts, the rest on polishing the best two."""
    starts = max(3, budget * 3 // 5 // (CLIMB + 1))
    return {"starts": starts, "generations": 0, "relays": 0, "finalists": 2, "steps": budget // 5}


def crossing(budget: int) -> dict[str, int]:
    """A quarter on starts, a half on children, the rest on polishing the best two."""
    children = min(8, max(2, budget // 100))
    generations = max(1, budget // 2 // (children * (CLIMB + 1)))
    starts = max(3, budget // 4 // (CLIMB + 1))
    population = {"population": 8, "children": children, "generations": generations, "relays": 0}
    return {"starts": starts, **population, "finalists": 2, "steps": budget // 8}


def crossing_and_relays(budget: int) -> dict[str, int]:
    """Crossing as before with four fifths of the budget, and a tenth on trying other words' witnesses as they are."""
    return {**crossing(budget * 4 // 5), "relays": max(1, budget // 10)}


PLANS: dict[str, Callable[[int], dict[str, int]]] = {
    "3 starts": three_starts,
    "many starts": many_starts,
    "crossing": crossing,
    "crossing, relays": crossing_and_relays,
}


def _exact(change: WordChange) -> WordChange:
    """The same change without a cheaper one to explore with."""
    exact = copy.copy(change)
    exact.coarse = lambda: exact
    return exact


@dataclass(frozen=True)
class Run:
    """What one plan found: the values of its words, its evaluations a word and its time."""

    words: Tensor
    values: Tensor
    evaluations: float
    time: float


def compare(case: Case, make: Callable[[int, int, int], ws.TextMatrix], budgets: tuple[int, ...]) -> str:
    """One table: a row a plan and rule, three columns a budget."""
    phi = ws.RandomAttentionFeatures(case.d, score=case.score)
    X = make(case.n, case.d, 0).rows
    change = phi.word_change(X)
    every = torch.arange(case.n)
    some = every[:: max(1, case.n // 4)][:4]
    runs: dict[tuple[str, int], Run] = {}
    for (name, plan), rule, budget in itertools.product(PLANS.items(), RULES, budgets):
        wanted = replace(change.plan, rule=rule, climb_steps=CLIMB, **plan(budget))
        runs[f"{name}, {rule}", budget] = _run(phi, X, change, [every], wanted)
        print(".", end="", flush=True, file=sys.stderr)
    for budget in budgets:
        wanted = replace(change.plan, climb_steps=CLIMB, **crossing(budget))
        alone = [word.unsqueeze(0) for word in some]
        runs["crossing within a word only **", budget] = _run(phi, X, change, alone, wanted)
    own = change.plan
    whole = {"its own plan *": change, "its own plan, float64 throughout *": _exact(change)}
    for name, evaluator in whole.items():
        found = _run(phi, X, evaluator, [every], own)
        runs |= {(name, budget): found for budget in budgets}
    long = replace(own, starts=4 * own.starts, generations=4 * max(own.generations, 3), steps=4 * own.steps)
    best = _run(phi, X, change, [every], long).values
    for run in runs.values():
        best[run.words] = torch.maximum(best[run.words], run.values)

    names = list(dict.fromkeys(name for name, _ in runs))
    cells = [[name, *(cell for budget in budgets for cell in _cells(runs[name, budget], best))] for name in names]
    columns = [f"{column} ({budget})" for budget in budgets for column in ("mean", "least", "evaluations", "time")]
    return table(f"{case.score} attention, {case.text} text, n = {case.n}, d = {case.d}", ["plan", *columns], cells)


def _run(phi: ws.RandomAttentionFeatures, X: Tensor, change: WordChange, groups: list[Tensor], plan: SearchPlan) -> Run:
    start = time.perf_counter()
    found: list[SearchResult] = [
        search(change, words, Ball(phi.default_radius(X)[words]), plan, generator=generator(0, "search benchmark"))
        for words in groups
    ]
    took = time.perf_counter() - start
    words = torch.cat(groups)
    values = torch.cat([result.squared for result in found]).sqrt() / change.base_norm
    return Run(words, values, sum(result.evaluations for result in found) / len(words), took)


def _cells(run: Run, best: Tensor) -> list[str]:
    ratios = run.values / best[run.words]
    return [f"{ratios.mean():.4f}", f"{ratios.min():.4f}", f"{run.evaluations:.0f}", seconds(run.time)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small texts, two budgets: a minute")
    parser.add_argument("--text", help="only this kind of text")
    parser.add_argument("--score", help="only this score")
    parser.add_argument("--words", type=int, help="only texts of so many words")
    parser.add_argument("--threads", type=int, help="torch threads; torch's own choice unless given")
    options = parser.parse_args()
    if options.threads is not None:
        torch.set_num_threads(options.threads)
    print(header("The search for attention's worst perturbation"))
    print("\nRatios to the best value known of each word, mean and least over the words; a column group a budget of")
    print("evaluations a word. * whatever the budget. ** searched one word at a time, four words of the text.")
    made = kinds()
    for case in QUICK if options.quick else NORMAL:
        filters = ((options.text, case.text), (options.score, case.score), (options.words, case.n))
        if case.text in made and all(asked in (None, has) for asked, has in filters):
            print(compare(case, made[case.text], (100, 300) if options.quick else (100, 300, 900)))


if __name__ == "__main__":
    main()
