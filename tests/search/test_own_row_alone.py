"""Divided ReLU where hardly any Delta leaves the word's own row to itself: n between d and 2 d."""

import math

import numpy as np
import torch
from scipy.optimize import nnls

import wordsens as ws
from wordsens.search import group_search


def least_distance(keys: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """The shortest Delta with keys Delta <= -scores, by Lawson and Hanson's least distance programming."""
    stacked = np.concatenate([-keys.T, scores[None]])
    goal = np.zeros(len(stacked))
    goal[-1] = 1.0
    rest = stacked @ nnls(stacked, goal)[0] - goal
    return -rest[:-1] / rest[-1]


def test_a_row_that_can_be_left_to_another_word_is_found():
    """A word whose own score cannot be left alone, but word l's can: least distance programming for every l, as above,
    stretched to the sphere. It was at .74 of that.
    """
    n, d, word = 100, 60, 77
    rows, phi = ws.gaussian_text(n, d, seed=7205).rows, ws.RandomAttentionFeatures(d, score="relu", seed=7205)
    found = float(ws.word_sensitivity(phi, rows, words=[word], certificate=False).per_word)
    scale, x = math.sqrt(d), rows[word].numpy()
    scores, keys = (rows @ phi.weight @ rows.T / scale).numpy(), (rows @ phi.weight.T / scale).numpy()
    before, best = phi(rows), 0.0
    for left in range(n):
        others = (np.arange(n) != word) & (np.arange(n) != left)
        nearest = x + least_distance(keys[others], scores[word, others] + 1e-6)
        moved = rows.clone()
        moved[word] = torch.from_numpy(2 * (x @ nearest) / (nearest @ nearest) * nearest * (1 - 1e-12))
        if float(torch.linalg.vector_norm(moved[word] - rows[word])) <= scale:
            best = max(best, float((phi(moved) - before).norm() / before.norm()))
    assert best > 0.4
    assert found >= 0.99 * best


def test_climbs_of_rounded_kinks_raise_what_jams_beside_them(monkeypatch):
    """Words' mean rises by .7 % where a third of the own row's scores lie at zero, and no word falls."""
    n, d = 120, 92
    rows, phi = ws.gaussian_text(n, d, seed=7).rows, ws.RandomAttentionFeatures(d, score="relu", seed=7)
    found = ws.word_sensitivity(phi, rows, words=range(0, n, 10), certificate=False).per_word
    monkeypatch.setattr(group_search, "ROUNDED", ())
    beside = ws.word_sensitivity(phi, rows, words=range(0, n, 10), certificate=False).per_word
    assert float((found / beside).min()) >= 1 and float((found / beside).mean()) > 1.004


def test_a_row_that_can_be_left_to_its_word_is_found():
    """Every fifth word of a long text against points where its row is left to it: words were at .88 of those."""
    n, d = 120, 92
    rows, phi = ws.gaussian_text(n, d, seed=0).rows, ws.RandomAttentionFeatures(d, score="relu", seed=0)
    words = range(0, n, 5)
    found = ws.word_sensitivity(phi, rows, words=words, certificate=False).per_word
    scale = math.sqrt(d)
    scores, keys = (rows @ phi.weight @ rows.T / scale).numpy(), (rows @ phi.weight.T / scale).numpy()
    raised = torch.nn.functional.normalize(rows @ (phi.weight + phi.weight.T), dim=1).numpy() * scale
    before, reached = phi(rows), []
    for word in words:
        others, best = np.arange(n) != word, 0.0
        for share in (0.5, 0.8):
            start = share * raised[word]
            delta = start + least_distance(keys[others], scores[word, others] + keys[others] @ start + 1e-6)
            moved = rows.clone()
            moved[word] += torch.from_numpy(delta * min(1.0, scale / float(np.linalg.norm(delta))))
            best = max(best, float((phi(moved) - before).norm() / before.norm()))
        reached.append(best)
    share = found / torch.tensor(reached, dtype=found.dtype)
    assert float(share.min()) >= 0.99
