"""Words that move together, whole words among them: closed forms, the plain evaluation, the single
word."""

import math
from itertools import combinations

import numpy as np
import pytest
import torch

import wordsens as ws
from tests.maps.tiny_models import model_of, tokenizer
from tests.search.functions import plain_change
from wordsens.display.view import Words
from wordsens.maps.attention.scores import SCORES
from wordsens.sensitivity.one_word import relative_change
from wordsens.text.matrix import TextMatrix, Word


def unit_rows(n, d, seed):
    rows = torch.randn(n, d, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    return rows / rows.norm(dim=1, keepdim=True) * math.sqrt(d)


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("heads", [1, 3])
def test_the_change_of_a_group_equals_the_plain_one(score, heads):
    rows = unit_rows(9, 7, 1)
    phi = ws.RandomAttentionFeatures(7, score=score, heads=heads, seed=2)
    groups = torch.tensor([[0, 4, 5], [8, 1, 2]])
    stream = torch.Generator().manual_seed(3)
    delta = torch.randn(6, 3, 7, dtype=torch.float64, generator=stream)
    which = torch.tensor([0, 1, 1, 0, 0, 1])
    fast = phi.change(rows, groups).value_and_gradient(delta, which)
    plain = plain_change(phi, rows, groups).value_and_gradient(delta, which)
    torch.testing.assert_close(fast[0], plain[0], rtol=1e-11, atol=0)
    torch.testing.assert_close(
        fast[1], plain[1], rtol=1e-9, atol=1e-9 * float(plain[1].abs().max())
    )


def test_linear_map_with_a_ball_each_and_a_joint_ball():
    """phi(X) = 3 X: g balls give radius sqrt(g) / ‖X‖, one joint ball gives radius / ‖X‖,
    exactly."""
    rows = unit_rows(5, 4, 7)
    norm = float(rows.norm())
    for group in [(0,), (1, 3), (0, 2, 4)]:
        each = ws.group_sensitivity(lambda X: 3 * X, rows, [group], radius=0.5)
        joint = ws.group_sensitivity(lambda X: 3 * X, rows, [group], radius=0.5, ball="joint")
        assert each.value == pytest.approx(0.5 * math.sqrt(len(group)) / norm, rel=1e-9)
        assert joint.value == pytest.approx(0.5 / norm, rel=1e-9)


@pytest.mark.parametrize("ball", ["each", "joint"])
def test_witnesses_lie_in_their_balls_and_give_the_value(ball):
    rows = unit_rows(10, 12, 8)
    phi = ws.RandomAttentionFeatures(12, seed=9)
    groups = [(0, 1), (4, 5, 6), (2,), (7, 9)]
    result = ws.group_sensitivity(phi, rows, groups, ball=ball, seed=1)
    base = phi(rows).numpy()
    for group, delta, value in zip(groups, result.witnesses, result.per_word, strict=True):
        moved = rows.numpy().copy()
        for word, step in zip(group, delta.numpy(), strict=True):
            moved[word] += step
        change = phi(torch.from_numpy(moved)).numpy() - base
        assert np.linalg.norm(change) / np.linalg.norm(base) == pytest.approx(
            float(value), rel=1e-9
        )
        norms = delta.norm(dim=1) if ball == "each" else delta.norm()
        assert float(norms.max()) <= math.sqrt(12) * (1 + 1e-12)
    assert result.value == float(result.per_word.max())
    assert result.group == groups[int(result.per_word.argmax())]


def test_single_words_are_searched_as_word_sensitivity_searches_them():
    rows = unit_rows(12, 10, 10)
    phi = ws.RandomAttentionFeatures(10, seed=11)
    single = ws.word_sensitivity(phi, rows, certificate=False, seed=3)
    groups = ws.group_sensitivity(phi, rows, [(word,) for word in range(12)], seed=3)
    several = ws.several_words_sensitivity(phi, rows, 1, seed=3)
    assert groups.value == several.value == single.value
    assert torch.equal(groups.per_word, single.per_word) and torch.equal(
        several.per_word, single.per_word
    )
    assert groups.group == several.group == (single.word,)


def test_several_words_searches_every_set_of_a_short_text():
    rows = unit_rows(8, 6, 14)
    result = ws.several_words_sensitivity(lambda X: X, rows, 3, seed=1, search="quick")
    assert sorted(result.groups) == list(combinations(range(8), 3))
    assert (result.searched, result.sets) == (56, 56)
    assert result.value == pytest.approx(math.sqrt(3 / 8), rel=1e-9)


def test_exchanges_meet_the_best_set_where_there_are_too_many_to_try():
    """Word 0 is the weakest alone and strong beside word 15; 16 choose 4 sets are too many, so
    words are exchanged."""
    rows = torch.ones(16, 3, dtype=torch.float64)
    weights = torch.linspace(1.0, 2.0, 16, dtype=torch.float64)

    def phi(X):
        first = X[:, 0] - 1
        return torch.cat([weights * first, 40 * (first[0] * first[15]).view(1), torch.ones(1)])

    result = ws.several_words_sensitivity(phi, rows, 4, radius=1.0, search="quick")
    assert result.sets == math.comb(16, 4) and 4 < result.searched < result.sets
    assert set(result.group) == {0, 13, 14, 15}


def test_several_words_accounts_for_every_search_and_keeps_to_its_budget():
    """Exchanges map most of the texts: they count, they report, and they keep to the memory
    budget."""
    rows, batches, reports = unit_rows(12, 4, 15), [], []
    attention = ws.RandomAttentionFeatures(4, seed=16)

    def counted(X):
        batches.append(len(X) if X.ndim == 3 else 1)
        return attention.features(X)

    phi = ws.FunctionFeatures(counted, batched=True)
    result = ws.several_words_sensitivity(
        *(phi, rows, 4),
        search="quick",
        memory_budget=1 << 16,
        progress=lambda done, most: reports.append((done, most)),
    )
    assert result.searched < result.sets
    # The rounding of the text and of the best witness is estimated from a few texts more.
    assert 0.98 * sum(batches) < result.evaluations <= sum(batches)
    assert max(batches) * rows.numel() * 8 <= 1 << 16
    done, most = zip(*reports, strict=True)
    assert list(done) == sorted(done) and len(set(most)) == 1 and done[-1] == most[-1]
    assert sum(count < most[-1] * 4 / 5 for count in done) > 10
    # Inside the first round of exchanges, the second of five parts.
    assert any(most[-1] / 5 < count < most[-1] * 2 / 5 for count in done)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"groups": []}, "`groups` is empty; give at least one group of word indices"),
        (
            {"groups": [0, 1]},
            "`groups` (=[0, 1]) must be lists of whole numbers, such as [(0, 3), (1, 2, 5)]",
        ),
        (
            {"groups": [(0.7, 1.2)]},
            "`groups` (=[(0.7, 1.2)]) must be lists of whole numbers, such as [(0, 3), (1, 2, 5)]",
        ),
        ({"groups": [()]}, "`groups` has (); a group names words from 0 to 3, at least one"),
        (
            {"groups": [(0, 4)]},
            "`groups` has (0, 4); a group names words from 0 to 3, at least one",
        ),
        (
            {"groups": [(1, -3)]},
            "`groups` has (1, -3), which names a word twice; name each word once",
        ),
        ({"groups": [(0,)], "ball": "both"}, "`ball` (='both') must be one of each, joint"),
        (
            {"groups": [(0,)], "radius": 0.0},
            "`radius` (=0.0) must be a positive finite number; pass None for the map's default",
        ),
    ],
)
def test_bad_groups_are_refused(arguments, message):
    with pytest.raises(ws.InputError) as caught:
        ws.group_sensitivity(lambda X: X, unit_rows(4, 3, 0), **arguments)
    assert str(caught.value) == message


def phi_of(kind="bert", **options):
    return ws.TransformerFeatures(model_of(kind), tokenizer(), name=kind, **options)


def test_on_the_identity_the_answer_is_known():
    rows = torch.eye(5, 4, dtype=torch.float64) + 1
    X = TextMatrix(rows, whole_words=(Word("ab", (0, 2)), Word("c", (3,)), Word("d", (4,))))
    r = ws.whole_word_sensitivity(lambda X: X, X, radius=3.0)
    norm = float(rows.norm())
    expected = [3 * math.sqrt(2) / norm, 3 / norm, 3 / norm]
    assert r.per_word.tolist() == pytest.approx(expected, rel=1e-6)
    assert (r.group, r.token, r.radius.tolist()) == ((0, 2), "ab", [3.0, 3.0, 3.0])


@pytest.mark.parametrize("kind", ["bert", "llama"])
def test_witnesses_stay_in_each_tokens_own_ball_and_attain_what_is_reported(kind):
    phi = phi_of(kind, pool="mean")
    (X,) = phi.embed("the film was unlikely good")
    r = ws.whole_word_sensitivity(phi, X, search=ws.SearchPlan(starts=2, steps=4))
    assert r.tokens == ("the", "film", "was", "unlikely", "good")
    assert [len(group) for group in r.groups] == [1, 1, 1, 3, 1]
    for group, delta, radius, value in zip(
        r.groups, r.witnesses, r.radius, r.per_word, strict=True
    ):
        norms = X.rows[list(group)].double().norm(dim=1)
        assert float(radius) == pytest.approx(float(norms.max()))
        assert bool((delta.double().norm(dim=1) <= norms * (1 + 1e-6)).all())
        again = relative_change(phi, X.rows, torch.tensor([group]), delta.unsqueeze(0))
        # The value has its rounding error taken off.
        assert float(value) <= float(again) * (1 + 1e-6)
        assert float(value) == pytest.approx(float(again), rel=1e-4)


def test_only_groups_in_reading_order_are_coloured():
    rows = unit_rows(5, 4, 3)
    for groups, coloured in (([(0, 1), (3,)], True), ([(0, 1), (1, 2)], False)):
        found = ws.group_sensitivity(lambda X: X, rows, groups, search="quick")
        assert any(isinstance(part, Words) for part in found.view().parts) == coloured
        assert "upper" not in found.columns()


def test_bad_words_are_refused():
    X = TextMatrix(torch.ones(3, 2), whole_words=(Word("a", (0,)), Word("b", (2,))))
    with pytest.raises(ws.InputError, match="`X` does not know its whole words; embed it with"):
        ws.whole_word_sensitivity(lambda X: X, TextMatrix(torch.ones(3, 2)))
    for words in ([], [2], [0, 0], [0.5]):
        with pytest.raises(ws.InputError, match="`words`"):
            ws.whole_word_sensitivity(lambda X: X, X, words=words)
    assert ws.whole_word_sensitivity(lambda X: X, X, words=-1).tokens == ("b",)


def test_a_group_in_the_place_of_words_is_refused():
    phi, X = ws.RandomAttentionFeatures(4, seed=0), unit_rows(5, 4, 0)
    for words in (torch.tensor([[0, 1]]), torch.tensor([[0]]), [(0, 1)]):
        with pytest.raises(ws.InputError, match="`words`"):
            ws.word_sensitivity(phi, X, words, torch.tensor([[-1.0]]))
