"""Random attention in plain NumPy: how much one moved word changes phi(X), and the gradient, by hand.

With s_jl = x_j . W x_l / sigma (sigma = temperature sqrt(d)), weights a_jl from g(s_jl), outputs o_j = sum_l a_jl x_l.
Word i moves by Delta. Another row j != i has one new score, s_ji + t_j with t_j = u_j . Delta, u_j = W^T x_j / sigma;
its output changes by p Delta + (p - a) r, where p is the new weight, and r is x_i less the mean of the other rows
(weights divided by their sum) or x_i (not divided). Row i has n new scores, s_il + k_l . Delta, k_l = W x_l / sigma;
its own moves by u_i . Delta + Delta . W Delta / sigma more. Differences are formed without cancellation.

With a value matrix V, read V^T x_l for x_l in outputs and V^T Delta for the Delta that is not in scores.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls
from scipy.special import expit, logsumexp

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Score:
    """How scores become weights: g, its derivative, g(s + t) - g(s) without cancellation, divided by the sum or not.

    `function` None stands for softmax, whose weights are formed from differences of scores. `saturates`: far moves
    change nothing more; `rugged`: there are many narrow hills, on which more is spent; `silent`: rows may be left to
    one word, whose score alone is positive.
    """

    divided: bool
    function: Callable[[Array], Array] | None = None
    derivative: Callable[[Array], Array] | None = None
    difference: Callable[[Array, Array], Array] | None = None
    saturates: bool = False
    rugged: bool = False
    silent: bool = False


def relu_difference(s: Array, t: Array) -> Array:
    """max(s + t, 0) - max(s, 0), exact where both are positive."""
    return np.where((s > 0) & (s + t > 0), t, np.maximum(s + t, 0.0) - np.maximum(s, 0.0))


def sigmoid_difference(s: Array, t: Array) -> Array:
    """sigmoid(s + t) - sigmoid(s): p (1 - a) (1 - e^-t) for t > 0, a (1 - p) (e^t - 1) for t < 0."""
    step = -np.expm1(-np.abs(t))
    return np.where(t >= 0, expit(s + t) * expit(-s), -expit(s) * expit(-s - t)) * step


def _positive(s: Array) -> Array:
    return (s > 0).astype(float)


SCORES = {
    "softmax": Score(divided=True, saturates=True),
    "relu": Score(True, lambda s: np.maximum(s, 0.0), _positive, relu_difference, rugged=True, silent=True),
    "relu-unnormalized": Score(False, lambda s: np.maximum(s, 0.0), _positive, relu_difference),
    "sigmoid": Score(False, expit, lambda s: expit(s) * expit(-s), sigmoid_difference, saturates=True),
    "linear": Score(False, lambda s: s, np.ones_like, lambda s, t: t),
    # Scores that the library does not know: passed to it as objects.
    "own-squares": Score(True, np.square, lambda s: 2 * s, lambda s, t: t * (2 * s + t)),
    "own-tanh": Score(
        False,
        np.tanh,
        lambda s: 4 * expit(2 * s) * expit(-2 * s),
        lambda s, t: 2 * sigmoid_difference(2 * s, 2 * t),
        True,
    ),
}


class AttentionMap:
    """‖phi(X^i(Delta)) - phi(X)‖² and its gradient for many words and many Delta at once.

    Args:
        X: the text, (n, d).
        weights: W of every head, (heads, d, d).
        sigma: what divides the scores.
        score: how they become weights.
        scores: the scores of every head, (heads, n, n), correctly rounded; for softmax less each row's largest.
    """

    def __init__(self, X: Array, weights: Array, sigma: float, score: Score, scores: Array):
        self.X, self.weights, self.sigma, self.score, self.scores = X, weights, sigma, score, scores
        self.words, self.coordinates = X.shape
        self.heads = [
            Head(Linear(X @ W / sigma, X @ W.T / sigma, W / sigma, X), score, s)
            for W, s in zip(weights, scores, strict=True)
        ]

    def softened(self, factor: float) -> "AttentionMap":
        """The same map at `factor` times the temperature."""
        return AttentionMap(self.X, self.weights, self.sigma * factor, self.score, self.scores / factor)

    def reach(self, radius: float) -> float:
        """About how far Delta moves a score within the radius."""
        return max(
            float(np.linalg.norm(head.queries, axis=1).max()) * radius
            + float(np.linalg.norm(head.keys, axis=1).max()) * radius
            + float(np.linalg.norm(head.symmetric)) * radius**2 / 4
            for head in self.heads
        )

    def features(self, X: Array) -> Array:
        """phi(X) by the definition, in float64: (heads, n, d)."""
        outputs = []
        for W in self.weights:
            scores = X @ W @ X.T / self.sigma
            if self.score.function is None:
                weights = np.exp(scores - logsumexp(scores, axis=1, keepdims=True))
            else:
                weights = self.score.function(scores)
                if self.score.divided:
                    sums = weights.sum(axis=1, keepdims=True)
                    weights = np.divide(weights, sums, out=np.zeros_like(weights), where=sums > 0)
            outputs.append(weights @ X)
        return np.stack(outputs)

    def change(self, words: NDArray[np.intp], delta: Array, with_gradient: bool = True) -> tuple[Array, Array | None]:
        """‖phi(X^i(Delta)) - phi(X)‖² (w, s) and its gradient (w, s, d) for words (w,) and Delta (w, s, d)."""
        square, half = np.zeros(delta.shape[:2]), np.zeros_like(delta) if with_gradient else None
        for head in self.heads:
            head.add_change(words, delta, square, half)
        return square, None if half is None else 2 * half

    @property
    def saturates(self) -> bool:
        """Whether far moves leave the weights where they are: the map is climbed at higher temperatures first."""
        return self.score.saturates

    def directions(self, word: int, rng: np.random.Generator) -> Array:
        """Vectors (m, d) along which a search may start, of any length."""
        rows = [self.X, -self.X, self.X - self.X[word]]
        for head in self.heads:
            U, K = head.queries, head.keys
            for images in (U, K, U + K, U - K):
                rows += [images, -images, images.sum(0, keepdims=True), -images.sum(0, keepdims=True)]
            for images in (U, K):
                rows += [subset_signs(rng, len(U)) @ images]
            rest = head.linear.lifted(head.others[word])
            rows += [head.axes, -head.axes, rest, -rest]
        return np.concatenate(rows)

    def points(self, word: int, radius: float) -> Array:
        """Points (m, d), in radii, at which a search may start: where the word's row is left to itself, by Lawson and
        Hanson's least distance programming, near some other points."""
        if not self.score.silent or not radius > 0:
            return np.zeros((0, self.coordinates))
        others = np.arange(self.words) != word
        near = self.X[word] / np.linalg.norm(self.X[word]).clip(min=1e-300)
        found = []
        for heads in [[head] for head in self.heads] + ([self.heads] if len(self.heads) > 1 else []):
            keys = np.concatenate([head.keys[others] for head in heads]) * radius
            scores = np.concatenate([head.scores[word, others] for head in heads])
            size = np.linalg.norm(keys, axis=1).clip(min=1e-300)
            up = sum(_direction(head.queries[word] + head.keys[word]) for head in heads)
            for raised in (0.0, 0.3, 0.7):
                for along in (-0.4, 0.0, 0.4):
                    start = raised * up + along * near
                    moved = _least_distance(keys / size[:, None], (scores + keys @ start) / size + 1e-6)
                    if moved is not None:
                        found.append(start + moved)
        return np.array(found).reshape(-1, self.coordinates)


def _direction(vector: Array) -> Array:
    return vector / np.linalg.norm(vector).clip(min=1e-300)


def _least_distance(keys: Array, scores: Array) -> Array | None:
    """The shortest Delta with keys Delta <= -scores (Lawson and Hanson 1974, chapter 23); None where there is none."""
    stacked = np.concatenate([-keys.T, scores[None]])
    goal = np.zeros(len(stacked))
    goal[-1] = 1.0
    try:
        dual, left = nnls(stacked, goal)
    except RuntimeError:
        return None
    if left < 1e-9:
        return None
    rest = stacked @ dual - goal
    return -rest[:-1] / rest[-1]


def subset_signs(rng: np.random.Generator, rows: int, count: int = 24) -> Array:
    """Coefficients (count, rows): ones or random signs, each row kept with a probability of its own draw."""
    kept = rng.uniform(size=(count, rows)) < rng.uniform(size=(count, 1))
    return kept * np.where(rng.uniform(size=(count, 1)) < 0.5, 1.0, rng.choice([-1.0, 1.0], (count, rows)))


@dataclass(frozen=True)
class Linear:
    """What of a head is linear in one word: its scores' slopes and its values.

    Attributes:
        queries, keys: u_j, k_l; (n, d).
        form: M, of the quadratic Delta . M Delta in the word's score with itself.
        values: what weights are taken of, (n, m).
        lift: V, (d, m), with V^T Delta what the moved word's value changes by; None: the identity.
    """

    queries: Array
    keys: Array
    form: Array
    values: Array
    lift: Array | None = None

    def divided(self, factor: float) -> "Linear":
        """The scores divided by a factor."""
        return replace(self, queries=self.queries / factor, keys=self.keys / factor, form=self.form / factor)

    def seen(self, delta: Array) -> Array:
        """V^T Delta."""
        return delta if self.lift is None else delta @ self.lift

    def lifted(self, values: Array) -> Array:
        """V r."""
        return values if self.lift is None else values @ self.lift.T


class Head:
    """One head: what does not depend on Delta, computed once."""

    def __init__(self, linear: Linear, score: Score, scores: Array):
        values, n = linear.values, len(linear.values)
        self.linear, self.values, self.score, self.scores = linear, values, score, scores
        self.queries, self.keys, self.symmetric = linear.queries, linear.keys, linear.form + linear.form.T
        eigenvectors = np.linalg.eigh(self.symmetric)[1]
        left, _, right = np.linalg.svd(linear.form)
        top = slice(0, min(4, len(linear.form)))
        self.axes = np.concatenate([eigenvectors.T[top], eigenvectors.T[::-1][top], left.T[top], right[top]])
        off = ~np.eye(n, dtype=bool)
        if score.function is None:
            # Without word i: the log of the rest's sum and the mean of its rows, for every i (first) and row j.
            masked = np.where(off[:, None, :], scores[None], -np.inf)
            with np.errstate(divide="ignore", invalid="ignore"):
                log_rest = logsumexp(masked, axis=2)
                # A row that sees no other word is the word's for good; one that does not see it never is.
                self.logit = np.where(-np.inf == scores.T, -np.inf, scores.T - log_rest)
                means = np.nan_to_num(np.exp(masked - log_rest[:, :, None])) @ values
            self.base = np.exp(scores - logsumexp(scores, axis=1, keepdims=True))
            self.others = values[:, None, :] - means
        else:
            weights = score.function(scores)
            if score.divided:
                kept = np.where(off[:, None, :], weights[None], 0.0)
                self.rest = kept.sum(axis=2)
                safe = np.where(self.rest > 0, self.rest, 1.0)
                self.others = values[:, None, :] - (kept @ values) / safe[:, :, None]
                total = weights.sum(axis=1)
                self.total = total
                self.base = weights / np.where(total > 0, total, 1.0)[:, None]
            else:
                self.others = np.broadcast_to(values[:, None, :], (n, n, values.shape[1]))
                self.base = weights
        self.lengths = np.einsum("ijd,ijd->ij", self.others, self.others)

    def add_change(self, words, delta, square, half) -> None:
        """Adds the head's squared change to `square`, and half its gradient to `half` unless that is None."""
        t, q = delta @ self.queries.T, delta @ self.keys.T
        bent, seen = delta @ self.symmetric, self.linear.seen(delta)
        length = np.einsum("wsd,wsd->ws", seen, seen)
        own = np.arange(len(words)), slice(None), words
        # Rows j != i.
        r = self.others[words]
        along, r_length = seen @ r.transpose(0, 2, 1), self.lengths[words][:, None, :]
        p, gain, p_slope, gain_slope = self._moved(words, t)
        for part in (p, gain, p_slope, gain_slope):
            part[own] = 0.0
        square += (p * p).sum(-1) * length + (gain * (2 * p * along + gain * r_length)).sum(-1)
        # Row i.
        tau = q.copy()
        tau[own] += t[own] + 0.5 * np.einsum("wsd,wsd->ws", delta, bent)
        new, difference, pull = self._own(words, tau)
        new_own = new[own]
        c = difference @ self.values + new_own[..., None] * seen
        square += np.einsum("wsd,wsd->ws", c, c)
        if half is None:
            return
        pushes = p_slope * (p * length[..., None] + gain * along) + gain_slope * (p * along + gain * r_length)
        half += pushes @ self.queries + self.linear.lifted((p * p).sum(-1)[..., None] * seen + (p * gain) @ r)
        f = c @ self.values.T
        f[own] += np.einsum("wsd,wsd->ws", c, seen)
        e = pull(f)
        half += (
            self.linear.lifted(new_own[..., None] * c)
            + e @ self.keys
            + e[own][..., None] * (self.queries[words][:, None, :] + bent)
        )

    def _moved(self, words, t):
        """p, p - a and their derivatives in t, for rows j != i: (w, s, n) each."""
        if self.score.function is None:
            c = self.logit[words][:, None, :]
            p = expit(c + t)
            slope = p * expit(-c - t)
            return p, sigmoid_difference(c, t), slope, slope.copy()
        s = self.scores.T[words][:, None, :]
        v, slope = self.score.function(s + t), self.score.derivative(s + t)
        if not self.score.divided:
            return v.copy(), self.score.difference(s, t) + 0.0, slope, slope.copy()
        rest, g = self.rest[words][:, None, :], self.score.function(s)
        after, before = np.where(v + rest > 0, v + rest, 1.0), np.where(g + rest > 0, g + rest, 1.0)
        p = v / after
        gain = np.where(rest > 0, rest / before * self.score.difference(s, t) / after, p - g / before)
        slope = slope * rest / after / after
        return p, gain, slope, slope.copy()

    def _own(self, words, tau):
        """Row i's new weights, their change, and what takes f to the gradient in the scores: (w, s, n) each."""
        s, a = self.scores[words][:, None, :], self.base[words][:, None, :]
        if self.score.function is None:
            moved = s + tau
            new = np.exp(moved - moved.max(-1, keepdims=True))
            new /= new.sum(-1, keepdims=True)
            small = np.expm1(np.clip(tau, -1.0, 1.0))
            mean = (a * small).sum(-1, keepdims=True)
            gentle = np.abs(tau).max(-1, keepdims=True) < 0.5
            difference = np.where(gentle, a * (small - mean) / (1 + mean), new - a)
            return new, difference, lambda f: new * (f - (new * f).sum(-1, keepdims=True))
        v, slope, step = self.score.function(s + tau), self.score.derivative(s + tau), self.score.difference(s, tau)
        if not self.score.divided:
            return v, step, lambda f: slope * f
        total = v.sum(-1, keepdims=True)
        safe = np.where(total > 0, total, 1.0)
        new = v / safe
        was = self.total[words][:, None, None]
        difference = np.where((total > 0) & (was > 0), (step - a * step.sum(-1, keepdims=True)) / safe, new - a)
        return new, difference, lambda f: slope * (f - (new * f).sum(-1, keepdims=True)) / safe
