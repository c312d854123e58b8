"""The tokens of one word move together, each in a ball of its own."""

import math

import pytest
import torch
from tests.maps.tiny_models import model_of, tokenizer

import wordsens as ws
from wordsens.sensitivity.one_word import attained
from wordsens.text.matrix import TextMatrix, Word


def phi_of(kind="bert", **options):
    return ws.TransformerFeatures(model_of(kind), tokenizer(), name=kind, **options)


def test_on_the_identity_the_answer_is_known():
    rows = torch.eye(5, 4, dtype=torch.float64) + 1
    X = TextMatrix(rows, whole_words=(Word("ab", (0, 2)), Word("c", (3,)), Word("d", (4,))))
    r = ws.whole_word_sensitivity(lambda X: X, X, radius=3.0)
    norm = float(rows.norm())
    expected = [3 * math.sqrt(2) / norm, 3 / norm, 3 / norm]
    torch.testing.assert_close(r.per_word, torch.tensor(expected, dtype=torch.float64), rtol=1e-6, atol=0)
    assert (r.word, r.whole[0].text, r.radius[0]) == (0, "ab", (3.0, 3.0))


@pytest.mark.parametrize("kind", ["bert", "llama"])
def test_witnesses_stay_in_each_tokens_own_ball_and_attain_what_is_reported(kind):
    phi = phi_of(kind, pool="mean")
    (X,) = phi.embed("the film was unlikely good")
    r = ws.whole_word_sensitivity(phi, X, search=ws.SearchPlan(starts=2, steps=4))
    assert [word.text for word in r.whole] == ["the", "film", "was", "unlikely", "good"]
    assert r.tokens[3] == ("un", "##like", "##ly")
    for word, delta, radius, value in zip(r.whole, r.perturbations, r.radius, r.per_word, strict=True):
        norms = X.rows[list(word.rows)].double().norm(dim=1)
        assert radius == pytest.approx(norms.tolist())
        assert bool((delta.double().norm(dim=1) <= norms * (1 + 1e-6)).all())
        again = attained(phi, X.rows, torch.tensor([word.rows]), delta.unsqueeze(0))
        # A single row's value has its rounding error taken off.
        assert float(value) <= float(again) * (1 + 1e-6)
        assert float(value) == pytest.approx(float(again), rel=1e-5 if len(word.rows) > 1 else 1e-4)


def test_a_word_of_several_tokens_moves_the_map_at_least_as_far_as_its_tokens_alone():
    phi = phi_of(pool="mean")
    (X,) = phi.embed("the film was unlikely good")
    together = ws.whole_word_sensitivity(phi, X, words=[3]).value
    alone = ws.word_sensitivity(phi, X, words=[4, 5, 6]).value
    assert together > alone


def test_bad_words_are_refused():
    X = TextMatrix(torch.ones(3, 2), whole_words=(Word("a", (0,)), Word("b", (2,))))
    with pytest.raises(ws.InputError, match="`X` does not know its whole words; embed it with"):
        ws.whole_word_sensitivity(lambda X: X, TextMatrix(torch.ones(3, 2)))
    for words in ([], [2], [0, 0], [-1]):
        with pytest.raises(ws.InputError, match=r"must name different words from 0 to 1, at least one"):
            ws.whole_word_sensitivity(lambda X: X, X, words=words)
