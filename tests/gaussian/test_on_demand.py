"""The on-demand matrix is one matrix: consistent, linear, repeatable, and clear about its
limits."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from wordsens.errors import BudgetError
from wordsens.gaussian import OnDemandGaussian
from wordsens.seeds import generator

ROWS, WORDS, D = 11, 4, 3
COLUMNS = WORDS * D


def matrix(seed=0, **options):
    return OnDemandGaussian(ROWS, COLUMNS, standard_deviation=0.7, seed=seed, **options)


def asked(V, kind, word, stream, count):
    """One query of a kind: (full-length queries, V q) from the right, or (u, columns, V^T u) from
    the left."""
    start, stop = word * D, (word + 1) * D
    low, high = (start + 1) % (COLUMNS - 4), (start + 1) % (COLUMNS - 4) + 4
    if kind == "full":
        q = torch.randn(count, COLUMNS, generator=stream, dtype=torch.float64)
        return "right", q, (0, COLUMNS), V.multiply(q)
    if kind == "block":
        q = torch.zeros(count, COLUMNS, dtype=torch.float64)
        q[:, start:stop] = torch.randn(count, D, generator=stream, dtype=torch.float64)
        return "right", q, (start, stop), V.multiply_block(q[:, start:stop], start)
    if kind == "straddling":
        q = torch.zeros(count, COLUMNS, dtype=torch.float64)
        q[:, low:high] = torch.randn(count, 4, generator=stream, dtype=torch.float64)
        return "right", q, (low, high), V.multiply_block(q[:, low:high], low)
    u = torch.randn(count, ROWS, generator=stream, dtype=torch.float64)
    if kind == "full transposed":
        return "left", u, (0, COLUMNS), V.multiply_transposed(u)
    if kind == "straddling transposed":
        return "left", u, (low, high), V.multiply_block_transposed(u, low, high)
    return "left", u, (start, stop), V.multiply_block_transposed(u, start, stop)


KINDS = [
    *("full", "block", "straddling"),
    *("full transposed", "block transposed", "straddling transposed"),
]
QUERIES = st.lists(
    st.tuples(st.sampled_from(KINDS), st.integers(0, WORDS - 1), st.integers(1, 3)),
    min_size=1,
    max_size=12,
)


@settings(deadline=None, max_examples=60, derandomize=True)
@given(QUERIES, st.integers(0, 2**20), st.sampled_from([1.0, 1e-6, 1e6]))
def test_every_answer_belongs_to_one_matrix(queries, seed, scale):
    V, stream = matrix(), generator(seed, "queries")
    answers = [asked(V, *query[:2], stream, query[2]) for query in queries]
    whole = V.multiply(torch.eye(COLUMNS, dtype=torch.float64)).T
    for side, vectors, (start, stop), answer in answers:
        expected = vectors @ whole.T if side == "right" else vectors @ whole[:, start:stop]
        assert torch.allclose(answer, expected, rtol=0, atol=1e-10)
    right = [entry for entry in answers if entry[0] == "right"]
    left = [entry for entry in answers if entry[0] == "left"]
    for _, q, _, product in right:
        for _, u, (start, stop), transposed in left:
            inside = torch.zeros_like(q)
            inside[:, start:stop] = q[:, start:stop]
            if torch.equal(inside, q):
                assert torch.allclose(
                    u @ product.T, transposed @ q[:, start:stop].T, rtol=0, atol=1e-10
                )
    q = torch.randn(2, COLUMNS, generator=stream, dtype=torch.float64)
    combined = V.multiply(scale * q[0] - 2 * q[1])
    expected = scale * V.multiply(q[0]) - 2 * V.multiply(q[1])
    assert torch.allclose(combined, expected, rtol=0, atol=1e-10 * max(1, scale))


@settings(deadline=None, max_examples=15, derandomize=True)
@given(QUERIES)
def test_the_same_calls_get_the_same_answers(queries):
    first, second, other = (matrix(seed) for seed in (3, 3, 4))
    for query in queries:
        answers = [
            asked(V, *query[:2], generator(5, *query[:2]), query[2])[-1]
            for V in (first, second, other)
        ]
        assert torch.equal(answers[0], answers[1])
        assert not torch.equal(answers[0], answers[2])


def test_a_fork_shares_the_past_and_chooses_its_future():
    V = matrix()
    q, u = torch.randn(2, COLUMNS, dtype=torch.float64), torch.randn(ROWS, dtype=torch.float64)
    answer, transposed = V.multiply(q[0]), V.multiply_block_transposed(u, 0, D)
    same, other = V.fork(), V.fork(seed=9)
    for twin in (same, other):
        assert torch.allclose(twin.multiply(q[0]), answer)
        assert torch.allclose(twin.multiply_block_transposed(u, 0, D), transposed)
    later = V.multiply(q[1])
    assert torch.equal(same.multiply(q[1]), later)
    assert not torch.allclose(other.multiply(q[1]), later)
    assert torch.allclose(V.multiply(q[1]), later)


def test_a_query_in_the_span_of_earlier_ones_adds_nothing():
    V = matrix()
    q = torch.randn(3, COLUMNS, dtype=torch.float64)
    answer = V.multiply(q)
    before = V.queries
    assert torch.allclose(V.multiply(q[0] - 5 * q[2]), answer[0] - 5 * answer[2])
    assert torch.allclose(
        V.multiply(torch.cat([q, q, 0 * q])), torch.cat([answer, answer, 0 * answer])
    )
    assert V.queries == before == (3, 0)


def test_past_its_budget_it_says_what_to_do():
    V = OnDemandGaussian(
        1000, 1000, standard_deviation=1.0, seed=0, gaussian_bytes=40 * 2 * 1000 * 8
    )
    V.multiply(torch.eye(1000, dtype=torch.float64)[:30])
    with pytest.raises(
        BudgetError, match=r"search fewer words, steps or starts, raise `gaussian_bytes`"
    ):
        V.multiply(torch.eye(1000, dtype=torch.float64)[30:90])


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("share", [1.0, 1e-3, 1e-6, 1e-9, 1e-12, 1e-15])
def test_a_word_that_makes_up_nearly_all_of_a_text_is_set_apart_without_loss(share, dtype):
    """Little of the queries is then outside the word's columns."""
    V, stream = matrix(dtype=dtype), generator(0, "texts")
    texts = torch.randn(5, COLUMNS, generator=stream, dtype=torch.float64)
    texts[:, D:] *= share
    texts = torch.nn.functional.normalize(texts).to(dtype)
    before = V.multiply(texts)
    inside = V.multiply_block(torch.eye(D, dtype=dtype), 0)
    whole = V.multiply(torch.eye(COLUMNS, dtype=dtype))
    tolerance = 1000 * torch.finfo(dtype).eps
    torch.testing.assert_close(before, texts @ whole, rtol=0, atol=tolerance)
    torch.testing.assert_close(inside, whole[:D], rtol=0, atol=tolerance)


def test_autograd_goes_through_twice():
    V = matrix()
    q = torch.randn(2, COLUMNS, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(V.multiply, q)
    assert torch.autograd.gradgradcheck(lambda q: V.multiply(q).square(), q)
