"""An attack that shares no code with the library: NumPy maps, gradients by hand, many starts,
L-BFGS.

    python -m benchmarks.attack [--problems 200] [--seed 0] [--only NUMBER] [--starts 24]

Each problem is drawn from one number: a text, a map, a radius. The library searches and bounds it
by its defaults; the attack searches words of it on its own, then climbs from the library's
witnesses too. Exit code 1 where a bound lies below what either attains, a reported value above what
its witness attains, or a problem ends in an exception. Words below 98 % of the attack are listed.
"""

import argparse
import math
import sys
import time
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit, softmax

import wordsens as ws
from benchmarks.reporting import header

Array = NDArray[np.float64]
TRUSTED = 1e-9
"""Relative: float64 sums over a text of the sizes drawn here are exact to it."""

SCORES = ("softmax", "relu", "relu-unnormalized", "sigmoid", "linear")
TEXTS = ("gaussian", "repeated", "zero-sum", "huge-row", "correlated")
RADII = (0.01, 0.1, 0.5, 1.0, 1.0, 2.0, 4.0)
ATTACKED = 6


class AttentionMap:
    """phi(X) = g(X W X^T / (t sqrt(d))) X, g by rows; the change of row i and its gradient, texts
    batched."""

    def __init__(self, X: Array, W: Array, score: str, temperature: float):
        self.X, self.W, self.score, self.sigma = X, W, score, temperature * math.sqrt(X.shape[1])
        self.base = self._forward(X[None])[0][0]

    def _weights(self, scores: Array) -> tuple[Array, Array]:
        """Weights (b, n, n) and, for functions of single scores, g'(scores)."""
        if self.score == "softmax":
            return softmax(scores, axis=2), scores
        if self.score.startswith("relu"):
            value, slope = np.maximum(scores, 0.0), (scores > 0).astype(float)
        elif self.score == "sigmoid":
            value = expit(scores)
            slope = value * expit(-scores)
        else:
            value, slope = scores, np.ones_like(scores)
        if self.score == "relu":  # normalized
            total = value.sum(2, keepdims=True)
            total = np.where(total > 0, total, 1.0)
            return value / total, slope / total
        return value, slope

    def _forward(self, texts: Array) -> tuple[Array, Array, Array]:
        weights, slope = self._weights(texts @ self.W @ texts.transpose(0, 2, 1) / self.sigma)
        return weights @ texts, weights, slope

    def change(self, word: int, delta: Array) -> tuple[Array, Array]:
        """‖phi(X^i(Delta)) - phi(X)‖² (s,) and its gradient (s, d) for Delta (s, d)."""
        texts = np.repeat(self.X[None], len(delta), 0)
        texts[:, word] += delta
        features, weights, slope = self._forward(texts)
        back = 2 * (features - self.base)  # of the features
        by_weight = back @ texts.transpose(0, 2, 1)
        if self.score in ("softmax", "relu"):
            by_weight = by_weight - (by_weight * weights).sum(2, keepdims=True)
        by_score = by_weight * (weights if self.score == "softmax" else slope) / self.sigma
        gradient = np.einsum("bj,bjd->bd", weights[:, :, word], back)
        gradient += np.einsum("bl,bld->bd", by_score[:, word], texts @ self.W.T)  # as a query
        gradient += np.einsum("bj,bjd->bd", by_score[:, :, word], texts @ self.W)  # as a key
        return np.square(features - self.base).sum((1, 2)), gradient

    def directions(self, word: int) -> Array:
        """Rows along which a search may start: the text's, and those that move scores."""
        keys, queries = self.X @ self.W.T, self.X @ self.W
        rows = [
            self.X,
            keys,
            queries,
            keys + queries,
            self.X - self.X[word],
            queries.sum(0, keepdims=True),
        ]
        return np.concatenate([*rows, *(-row for row in rows)])


class DenseMap:
    """h = act(V_L ... act(V_1 flat(X))): the change of row i and its gradient."""

    def __init__(self, X: Array, weights: list[Array], activation: str):
        self.X, self.weights, self.activation = X, weights, activation
        self.base = self._forward(X.reshape(1, -1))[0][0]

    def _forward(self, flat: Array) -> tuple[Array, list[Array]]:
        slopes = []
        for V in self.weights:
            flat = flat @ V.T
            relu = self.activation == "relu"
            slopes.append((flat > 0).astype(float) if relu else 1 - np.tanh(flat) ** 2)
            flat = np.maximum(flat, 0.0) if relu else np.tanh(flat)
        return flat, slopes

    def change(self, word: int, delta: Array) -> tuple[Array, Array]:
        """As `AttentionMap.change`."""
        texts = np.repeat(self.X[None], len(delta), 0)
        texts[:, word] += delta
        features, slopes = self._forward(texts.reshape(len(delta), -1))
        back = 2 * (features - self.base)
        for V, slope in zip(reversed(self.weights), reversed(slopes), strict=True):
            back = (back * slope) @ V
        d = self.X.shape[1]
        return np.square(features - self.base).sum(1), back[:, word * d : (word + 1) * d]

    def directions(self, word: int) -> Array:
        """The text's rows, and right singular vectors of the word's block of V_1."""
        d = self.X.shape[1]
        block = self.weights[0][:, word * d : (word + 1) * d]
        vectors = np.linalg.svd(block, full_matrices=False)[2][:8]
        rows = [self.X, vectors, block.sum(0, keepdims=True)]
        return np.concatenate([*rows, *(-row for row in rows)])


@dataclass(frozen=True)
class Problem:
    """A text, the library's map, its twin in NumPy, a radius."""

    X: Array
    radius: float
    phi: ws.FeatureMap
    map: AttentionMap | DenseMap
    description: str


def problem(number: int) -> Problem:
    """The problem of that number."""
    rng = np.random.default_rng(number)
    n, d = int(rng.integers(2, 31)), int(rng.integers(2, 49))
    text = str(rng.choice(TEXTS))
    X = draw_text(text, n, d, rng)
    radius = float(rng.choice(RADII)) * math.sqrt(d)
    if rng.uniform() < 0.6:
        score, temperature = str(rng.choice(SCORES)), float(rng.choice([0.2, 1.0, 1.0, 5.0]))
        phi = ws.RandomAttentionFeatures(d, score=score, temperature=temperature, seed=number)
        own = AttentionMap(X, phi.weight.numpy(), score, temperature)
        name = f"{score} attention, temperature {temperature:g}"
    else:
        depth, width = int(rng.integers(1, 5)), int(rng.integers(4, 200))
        activation = str(rng.choice(["relu", "relu", "tanh"]))
        phi = ws.DeepRandomFeatures(n, d, depth, width, activation, gaussian="dense", seed=number)
        own = DenseMap(X, [V.numpy() for V in phi.weights], activation)
        name = f"{activation} layers, depth {depth}, width {width}"
    return Problem(
        X,
        radius,
        phi,
        own,
        f"{text} text, n = {n}, d = {d}, {name}, radius {radius / math.sqrt(d):g}",
    )


def draw_text(kind: str, n: int, d: int, rng: np.random.Generator) -> Array:
    """Rows of length sqrt(d) unless the kind says otherwise."""
    X = rng.standard_normal((n, d))
    if kind == "repeated":
        X = X[rng.integers(0, max(1, n // 3), n)]
    if kind == "correlated":
        X = X + 2 * rng.standard_normal(d)
    X *= math.sqrt(d) / np.linalg.norm(X, axis=1, keepdims=True)
    if kind == "zero-sum":
        X -= X.mean(0)
    if kind == "huge-row":
        X[0] *= 100
    return X


def attack(case: Problem, word: int, starts: int, witness: Array) -> tuple[float, Array]:
    """The largest squared change found and its Delta: screening, normalized ascent, L-BFGS of the
    three best."""
    rng = np.random.default_rng(word)
    rows = np.concatenate(
        [
            case.map.directions(word),
            rng.standard_normal((4 * starts, case.X.shape[1])),
            -case.X[[word]],
        ]
    )
    points = (
        project(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-300))
        * case.radius
    )
    points = np.concatenate([points, 0.3 * points])
    values, _ = case.map.change(word, points)
    points = points[np.argsort(-values)[:starts]]
    points = np.concatenate([points, project(witness[None] / case.radius) * case.radius])
    best, kept = np.full(len(points), -1.0), points.copy()
    for size in np.geomspace(1.0, 0.003, 60):
        values, gradient = case.map.change(word, points)
        better = values > best
        best, kept = np.where(better, values, best), np.where(better[:, None], points, kept)
        noise = 0.3 * size * rng.standard_normal(points.shape) / math.sqrt(points.shape[1])
        step = (
            gradient / np.maximum(np.linalg.norm(gradient, axis=1, keepdims=True), 1e-300) + noise
        )
        points = project(points / case.radius + size * step) * case.radius
    for at in np.argsort(-best)[:3]:
        delta = polish(case, word, kept[at], best[at])
        value = float(case.map.change(word, delta[None])[0][0])
        if value > best[at]:
            best[at], kept[at] = value, delta
    top = int(best.argmax())
    return float(best[top]), kept[top]


def polish(case: Problem, word: int, delta: Array, scale: float) -> Array:
    """L-BFGS over y with Delta = radius y / max(1, ‖y‖)."""

    def loss(y: Array) -> tuple[float, Array]:
        norm = np.linalg.norm(y)
        unit = y / max(1.0, norm)
        value, gradient = case.map.change(word, case.radius * unit[None])
        slope = gradient[0] * case.radius / scale
        slope = (slope - unit * (unit @ slope)) / norm if norm > 1 else slope
        return -float(value[0]) / scale, -slope

    if not scale > 0:
        return delta
    y = minimize(loss, delta / case.radius, jac=True, method="L-BFGS-B", options={"maxiter": 60}).x
    return project(y[None])[0] * case.radius if np.isfinite(y).all() else delta


def project(points: Array) -> Array:
    """Into the unit ball, a few units of the last place inside."""
    return points * np.minimum(
        1.0, (1 - 4e-16) / np.maximum(np.linalg.norm(points, axis=1, keepdims=True), 1e-300)
    )


def judge(number: int, starts: int) -> tuple[list[str], int, Array]:
    """What is wrong with the problem's results, a line each; words compared; per_word / attack of
    each."""
    case = problem(number)
    norm = float(np.linalg.norm(case.map.base))
    name = f"{number}: {case.description}"
    try:
        result = ws.word_sensitivity(case.phi, torch.from_numpy(case.X), radius=case.radius)
    except ws.WordsensError as error:
        return ([] if norm < 1e-12 else [f"ERROR {name}: {error}"]), 0, np.ones(0)
    reported, witnesses = result.per_word.numpy(), result.perturbations.numpy()
    upper = None if result.upper_per_word is None else result.upper_per_word.numpy()
    lines, ratios = [], []
    rng = np.random.default_rng((number, 1))
    words = {int(reported.argmax()), *rng.permutation(len(reported))[: ATTACKED - 1].tolist()}
    for word in sorted(words):
        own = math.sqrt(float(case.map.change(word, witnesses[[word]])[0][0])) / norm
        value, _ = attack(case, word, starts, witnesses[word])
        value = math.sqrt(value) / norm
        if reported[word] > own * (1 + TRUSTED) + 1e-13:
            lines.append(
                f"MISREPORTED {name}, word {word}: {reported[word]!r}, its witness attains {own!r}"
            )
        if upper is not None and max(value, own) > upper[word] * (1 + TRUSTED):
            lines.append(
                f"CROSSED {name}, word {word}: bound {upper[word]!r} < {max(value, own)!r}"
            )
        ratios.append((reported[word] + 1e-13) / (value + 1e-13))
        if ratios[-1] < 0.98:
            lines.append(f"LOW {name}, word {word}: {ratios[-1]:.4f} of the attack")
    return lines, len(words), np.array(ratios)


def main() -> int:
    """Attack the problems; 1 where a bound is crossed, a value misreported or a problem fails."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--problems", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, help="the number of one problem, as printed")
    parser.add_argument("--starts", type=int, default=24, help="of the attack, each word")
    options = parser.parse_args()
    torch.set_num_threads(1)
    numbers = (
        [options.only]
        if options.only is not None
        else [options.seed * 10**6 + at for at in range(options.problems)]
    )
    print(header("The attack"), end="\n\n")
    began, words, every, wrong = time.process_time(), 0, [], 0
    for number in numbers:
        lines, compared, ratios = judge(number, options.starts)
        for line in lines:
            print(line, flush=True)
        wrong += sum(not line.startswith("LOW") for line in lines)
        words += compared
        every.append(ratios)
    ratios = np.concatenate(every)
    print(
        f"{len(numbers)} problems, {words} words, {time.process_time() - began:.0f} s of CPU; "
        f"wrong: {wrong}"
    )
    low = (ratios < 0.98).sum()
    print(
        f"reported / attack: median {np.median(ratios):.4f}, least {ratios.min():.4f}; below .98: "
        f"{low}"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
