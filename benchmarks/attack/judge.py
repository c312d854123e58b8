"""One problem judged: the library's default search and bounds against the attack."""

import inspect
import time
import traceback
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray

import wordsens as ws
from wordsens.errors import ZeroFeaturesError

from .exact import inside
from .problems import Problem
from .search import Attack, Budget

Array = NDArray[np.float64]
LOW, VERY_LOW, LOW_TEXT = 0.98, 0.95, 0.995  # the limits: per_word / attack and S / attack
# Values in float64 are trusted to this, relative; what is nearer to a bound is recomputed to 60 digits.
TRUSTED = 1e-7
MISREPORTED = 1e-6  # relative: a reported value further above what its witness attains is listed
# Of ‖phi(X)‖: differences of maps in float64 say nothing below it, unless the library states its rounding error.
RESOLUTION = 1e-14
DEPENDS = "text_depends_on_weights"  # the option for texts built from the weights, where the library has it
ATTACKED_WORDS = 6  # of each text; of a longer one the library's best word and others, drawn by the problem's seed
CHECKED_WORDS = 4  # of each problem and kind of claim, the strongest are recomputed to 60 digits


@dataclass
class Verdict:
    """What one problem showed.

    Attributes:
        skipped: why the problem does not count, or "".
        error: the library's exception on a problem that counts, or "".
        words: how many words were compared: all of a text of ATTACKED_WORDS or fewer, else the library's best word and
            random ones. The library always searches all words.
        bounded: whether there are upper bounds.
        crossed: (word, bound, attained beyond it) of bounds below an attained value, all confirmed to 60 digits.
        low: (word, per_word / attack) of words below `LOW`, the attack's value confirmed.
        text_ratio: S / the attack's S over the compared words: what a higher word left out would show is not seen.
        misreported: (word, reported, attained by its witness to 60 digits).
        above: per_word above the attack's own value, before it saw the witness: the largest per_word / attack.
        unresolved: words whose value is within ten times its stated rounding error: nothing is asked of them.
        ratios: per_word / attack of every compared word.
        brackets: upper / attained of every compared word.
        seconds: of the library and of the attack.
    """

    problem: Problem
    skipped: str = ""
    error: str = ""
    words: int = 0
    bounded: bool = False
    crossed: list[tuple[int, float, float]] = field(default_factory=list)
    low: list[tuple[int, float]] = field(default_factory=list)
    text_ratio: float = 1.0
    misreported: list[tuple[int, float, float]] = field(default_factory=list)
    above: float = 0.0
    unresolved: int = 0
    ratios: Array = field(default_factory=lambda: np.ones(0))
    brackets: Array = field(default_factory=lambda: np.ones(0))
    seconds: tuple[float, float] = (0.0, 0.0)

    @property
    def very_low(self) -> list[tuple[int, float]]:
        """The words below `VERY_LOW`."""
        return [found for found in self.low if found[1] < VERY_LOW]

    @property
    def text_low(self) -> bool:
        """Whether S itself is below `LOW_TEXT` of the attack's."""
        return self.text_ratio < LOW_TEXT


def judge(problem: Problem, budget: Budget | None = None, measure=ws.word_sensitivity) -> Verdict:
    """Measures the problem with the library's defaults, attacks it, compares.

    Args:
        problem: the problem.
        budget: of the attack; None for the default.
        measure: what takes (phi, X, radius=...) and returns a `Sensitivity`.
    """
    verdict = Verdict(problem)
    if not problem.exact.norm > 0 or not np.isfinite(problem.exact.norm):
        verdict.skipped = "phi(X) = 0"
        return verdict
    if problem.phi is None:
        verdict.skipped = "the library takes no score of one's own"
        return verdict
    options = {"radius": problem.radius}
    if problem.text == "from-weights" and DEPENDS in inspect.signature(ws.word_sensitivity).parameters:
        options[DEPENDS] = True
    begun = time.perf_counter()
    try:
        found = measure(problem.phi, torch.from_numpy(problem.X), **options)
    except ZeroFeaturesError:
        verdict.skipped = "phi(X) is zero to float64"
        return verdict
    except Exception as failure:
        verdict.error = "".join(traceback.format_exception_only(failure)).strip().splitlines()[0]
        return verdict
    between = time.perf_counter()
    chosen = _attacked(problem, int(found.per_word.argmax()))
    attack = Attack(problem.map, chosen, problem.radius, budget or Budget(), problem.seed)
    attack.run()
    _compare(verdict, found, attack)
    verdict.seconds = between - begun, time.perf_counter() - between
    return verdict


def _attacked(problem: Problem, best: int) -> Array:
    """Which words are attacked, in order."""
    others = np.delete(np.arange(len(problem.X)), best)
    drawn = np.random.default_rng((problem.seed, 1)).permutation(others)[: ATTACKED_WORDS - 1]
    return np.sort(np.append(drawn, best))


def _compare(verdict: Verdict, found: ws.Sensitivity, attack: Attack) -> None:
    problem, chosen = verdict.problem, attack.words
    reported, rounding = found.per_word.double().numpy(), np.full(len(problem.X), RESOLUTION)
    if hasattr(found, "rounding"):
        rounding = 2 * found.rounding.double().numpy() + 1e-300
    witnesses = found.perturbations.double().numpy()
    _reported_values(verdict, reported, witnesses, 0.0 if hasattr(found, "rounding") else RESOLUTION)
    upper = None if found.upper_per_word is None else found.upper_per_word.double().numpy()
    if upper is not None:
        _bounds(verdict, np.arange(len(upper)), upper, reported, witnesses)
    reported, rounding, witnesses = reported[chosen], rounding[chosen], witnesses[chosen]
    if hasattr(found, "rounding"):
        verdict.unresolved = int((rounding > 0.1 * (reported + rounding)).sum())
    verdict.words = len(chosen)
    own = np.sqrt(np.maximum(attack.best, 0.0)) / problem.exact.norm
    verdict.above = float((reported / np.maximum(own, 1e-300)).max())
    attack.offer(witnesses)
    points = problem.radius * (1 - 4e-16) * attack.points
    values = np.sqrt(np.maximum(attack.best, 0.0)) / problem.exact.norm
    values = _confirmed(verdict, chosen, values, points, reported + rounding)
    verdict.ratios = (reported + rounding) / np.maximum(values, 1e-300)
    verdict.low = [(int(chosen[i]), float(verdict.ratios[i])) for i in np.flatnonzero(verdict.ratios < LOW)]
    verdict.text_ratio = float((reported + rounding).max() / values.max()) if values.max() > 0 else 1.0
    if upper is None:
        return
    verdict.bounded = True
    _bounds(verdict, chosen, upper[chosen], values, points)
    verdict.brackets = upper[chosen] / np.maximum(np.maximum(values, reported), 1e-300)


def _confirmed(verdict: Verdict, words: Array, values: Array, points: Array, reported: Array) -> Array:
    """The attack's values; those that would count as low are recomputed to 60 digits, all of them if one differs."""
    exact, values = verdict.problem.exact, values.copy()
    order = np.argsort(reported / np.maximum(values, 1e-300))
    suspects = [i for i in order if reported[i] < LOW * values[i]]
    if reported.max() < LOW_TEXT * values.max() and values.argmax() not in suspects[:CHECKED_WORDS]:
        suspects.insert(0, values.argmax())
    agreed = 0
    for i in suspects:
        true = exact.value(int(words[i]), points[i])
        agreed = agreed + 1 if abs(true - values[i]) <= 1e-4 * values[i] else -len(suspects)
        values[i] = max(true, min(values[i], reported[i]))
        if agreed == CHECKED_WORDS:
            break
    return values


def _bounds(verdict: Verdict, words: Array, upper: Array, values: Array, points: Array) -> None:
    """Bounds that a value reaches, recomputed to 60 digits; those below it are crossed."""
    problem = verdict.problem
    near = [i for i in np.argsort(-values / np.maximum(upper, 1e-300)) if not upper[i] > values[i] * (1 + TRUSTED)]
    for i in near[:CHECKED_WORDS]:
        value = problem.exact.value(int(words[i]), points[i]) if inside(points[i], problem.radius) else 0.0
        if value > upper[i]:
            verdict.crossed.append((int(words[i]), float(upper[i]), value))


def _reported_values(verdict: Verdict, reported: Array, witnesses: Array, allowed: float) -> None:
    """Reported values by more than `allowed` above what the witness attains, confirmed to 60 digits."""
    problem = verdict.problem
    at = np.arange(len(reported))
    squares = problem.map.change(at, witnesses[:, None, :], with_gradient=False)[0][:, 0]
    own = np.sqrt(squares) / problem.exact.norm
    difference = (reported - own - allowed) / np.maximum(own, 1e-300)
    for i in np.argsort(-difference)[:CHECKED_WORDS]:
        if not difference[i] <= MISREPORTED:
            true = problem.exact.value(int(i), witnesses[i])
            if not inside(witnesses[i], problem.radius):
                verdict.misreported.append((int(i), float(reported[i]), float("nan")))
            elif reported[i] > true * (1 + MISREPORTED) + allowed:
                verdict.misreported.append((int(i), float(reported[i]), true))
