"""Results: equality by content, short reprs, and what was spent."""

import functools
import pickle

import pytest
import torch

import wordsens as ws
from wordsens.results import Result
from wordsens.sensitivity.swaps import swap_ratio
from wordsens.text.matrix import Word

X = ws.TextMatrix(ws.gaussian_text(4, 6, seed=1).rows, whole_words=(Word("un", (0, 1)), Word("a", (3,))))
PHI = ws.RandomAttentionFeatures(6)
VOCABULARY = ws.Vocabulary.of_rows(["a", "b", "c"], ws.gaussian_text(3, 6, seed=8).rows)
TEXTS, LABELS = [ws.gaussian_text(4, 6, seed=seed) for seed in range(4)], [1, -1, 1, -1]
SHORT = ws.SearchPlan("quick", starts=2, steps=3)

SEARCHED = {
    "sensitivity": lambda: ws.word_sensitivity(PHI, X, search=SHORT, certificate=False),
    "groups": lambda: ws.group_sensitivity(PHI, X, [(0, 1), (2,)], search=SHORT),
    "several words": lambda: ws.several_words_sensitivity(PHI, X, 2, search=SHORT),
    "whole words": lambda: ws.whole_word_sensitivity(PHI, X, search=SHORT),
    "one word": lambda: ws.one_word_generalization(PHI, TEXTS, LABELS, X, 1, search=SHORT),
    "frontier": lambda: ws.one_word_frontier(PHI, TEXTS, LABELS, X, 1, gammas=(0.5,), search=SHORT),
}
OTHERS = {
    "outcomes": lambda: ws.one_word_outcomes(
        ws.NewText(ws.fit_min_norm(PHI, TEXTS, LABELS), ws.gaussian_text(4, 6, seed=9), 1), gammas=(0.5,), search=SHORT
    ),
    "several texts": lambda: ws.word_sensitivities(PHI, [X, X], search=SHORT, certificate=False)[1],
    "swaps": lambda: ws.best_swaps(PHI, X, VOCABULARY),
    "ratio": lambda: swap_ratio(PHI, X, ws.best_swaps(PHI, X, VOCABULARY), search=SHORT),
    "one swap": lambda: ws.one_word_swap(PHI, TEXTS, LABELS, X, 1, vocabulary=(["b"], X.rows[1:2])),
    "witness": lambda: ws.theorem_witness(PHI, X),
    "certificate": lambda: ws.certificate(ws.RandomFeatures(4, 6), X),
    "attention": lambda: ws.attention_pair(PHI, X, X),
    "text": lambda: ws.TextMatrix(X.rows.clone(), whole_words=X.whole_words),
    "ball": lambda: ws.Ball(torch.ones(2)),
}
MAKE = SEARCHED | OTHERS


@functools.cache
def made(name):
    return MAKE[name]()


@pytest.mark.parametrize("name", MAKE)
def test_results_compare_by_content_and_have_a_short_repr(name):
    one, again = made(name), MAKE[name]()
    assert isinstance(one, Result)
    assert one == again
    assert (one == 3, one != again, one == None) == (False, False, False)  # noqa: E711
    assert pickle.loads(pickle.dumps(one)) == one
    shown = repr(one)
    assert shown.startswith(type(one).__name__)
    assert len(shown) < 400
    assert "tensor(" not in shown
    assert "\n" not in shown


@pytest.mark.parametrize("name", SEARCHED)
def test_a_search_says_what_was_asked_for_and_spent(name):
    found = made(name)
    assert found.search == "quick, starts=2, steps=3"
    assert found.evaluations > 0
    assert 0 < found.seconds < 600


def test_seconds_do_not_count_and_nan_equals_nan():
    found = MAKE["sensitivity"]()
    changed = pickle.loads(pickle.dumps(found))
    object.__setattr__(changed, "seconds", found.seconds + 1)
    assert changed == found
    for one in (found, changed):
        object.__setattr__(one, "value", float("nan"))
        object.__setattr__(one, "per_word", found.per_word * float("nan"))
    assert changed == found
