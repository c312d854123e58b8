"""No perturbation exceeds an attention certificate; where brackets are tight, one made too small is
caught."""

import math

import pytest
import torch
from hypothesis import HealthCheck, assume, given, settings

import wordsens as ws
from tests.certificates.attention_cases import (
    Case,
    cases,
    changes,
    gaussian_rows,
    random_perturbations,
    rounding_of,
)
from wordsens.errors import InputError, ZeroFeaturesError

TIGHT = [("softmax", 2, 1000), ("relu", 3, 300)]


def exceeded(
    upper: torch.Tensor, case: Case, *, count: int = 64, search: ws.SearchPlan | str = "normal"
) -> bool:
    """Whether any of `count` random perturbations a word, or of those a search finds, exceeds the
    bounds."""
    random = changes(case, random_perturbations(case, count, 0))
    found = ws.word_sensitivity(
        case.phi, case.rows, radius=case.radius, certificate=False, search=search
    )
    allowed = upper + rounding_of(case)
    return bool((random > allowed).any()) or bool((found.per_word > allowed).any())


@settings(max_examples=8, suppress_health_check=[HealthCheck.filter_too_much])
@given(case=cases())
def test_no_perturbation_exceeds_the_certificate(case: Case) -> None:
    try:
        upper = ws.certify(case.phi, case.rows, radius=case.radius)
    except ZeroFeaturesError:
        assume(False)
        return
    assert upper.shape == (len(case.rows),)
    assert not exceeded(upper, case, count=256, search=ws.SearchPlan("quick", starts=6, steps=20))


@pytest.mark.parametrize(("score", "n", "d"), TIGHT)
def test_a_certificate_five_percent_too_small_is_caught(score: str, n: int, d: int) -> None:
    rows = gaussian_rows(n, d, 1)
    rows = rows * (math.sqrt(d) / torch.linalg.vector_norm(rows, dim=1, keepdim=True))
    case = Case(ws.RandomAttentionFeatures(d, score=score, seed=1), rows, math.sqrt(d))
    upper = ws.certify(case.phi, rows)
    plan = ws.SearchPlan("quick", starts=4, steps=40)
    assert not exceeded(upper, case, search=plan)
    assert exceeded(0.95 * upper, case, search=plan)


@pytest.mark.parametrize("score", ["softmax", "sigmoid"])
@pytest.mark.parametrize("radius", [1e-3, 100.0])
def test_exact_where_no_score_can_move(score: str, radius: float) -> None:
    """W = 0: every row takes weight a from every word, whatever Delta, and each of n rows changes
    by a Delta."""
    n, d = 5, 7
    rows = gaussian_rows(n, d, 0)
    phi = ws.RandomAttentionFeatures.of_weight(torch.zeros(d, d), score)
    weight = 1 / n if score == "softmax" else 0.5
    exact = weight * math.sqrt(n) * radius / float(phi(rows).norm())
    upper = ws.certify(phi, rows, radius=radius)
    assert torch.allclose(upper, torch.full((n,), exact, dtype=upper.dtype), rtol=1e-6)
    assert bool((upper >= exact).all())
    assert exceeded(0.95 * upper, Case(phi, rows, radius))


def test_the_bracket_is_narrow_where_words_are_many_and_nearly_orthogonal() -> None:
    rows = gaussian_rows(16, 400, 3)
    rows = rows * (math.sqrt(400) / torch.linalg.vector_norm(rows, dim=1, keepdim=True))
    phi = ws.RandomAttentionFeatures(400, seed=3)
    found = ws.word_sensitivity(phi, rows, words=range(0, 16, 5))
    assert found.upper_per_word is not None
    ratio = found.upper_per_word / found.per_word
    assert float(ratio.min()) >= 1
    assert float(ratio.median()) <= 1.12


def test_words_together_or_apart_and_radii_a_word() -> None:
    rows = gaussian_rows(3, 12, 4)
    phi = ws.RandomAttentionFeatures(12, seed=4)
    together = ws.certify(phi, rows, radius=[1.0, 2.0, 3.0])
    apart = torch.cat([ws.certify(phi, rows, words=word, radius=1.0 + word) for word in range(3)])
    assert torch.allclose(together, apart, rtol=1e-3)


def test_float32_maps_are_bounded_in_exact_arithmetic() -> None:
    rows = gaussian_rows(5, 16, 6).float()
    phi = ws.RandomAttentionFeatures(16, seed=6, dtype=torch.float32)
    exact = ws.RandomAttentionFeatures.of_weight(phi.weight.double())
    upper = ws.certify(phi, rows)
    assert upper.dtype == torch.float64
    assert torch.allclose(upper, ws.certify(exact, rows.double()), rtol=1e-9)
    found = ws.word_sensitivity(exact, rows.double(), certificate=False)
    assert bool((found.per_word <= upper).all())


def test_heads_taken_apart_still_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = gaussian_rows(4, 6, 7)
    phi = ws.RandomAttentionFeatures(6, seed=7, heads=2)
    joint = ws.certify(phi, rows)
    monkeypatch.setattr("wordsens.certificates.attention.bounds._MOST_ROWS", 4)
    apart = ws.certify(phi, rows)
    found = ws.word_sensitivity(phi, rows, certificate=False)
    assert bool((found.per_word <= torch.minimum(joint, apart)).all())


def test_maps_without_a_certificate() -> None:
    class Changed(ws.RandomAttentionFeatures):
        def features(self, texts: torch.Tensor) -> torch.Tensor:
            return 2 * super().features(texts).square()

    rows = gaussian_rows(3, 4, 0)
    assert ws.certificate(Changed(4), rows) is None
    with pytest.raises(InputError, match="`phi` \\(raf\\) has no certificate"):
        ws.certify(Changed(4), rows)
    assert ws.word_sensitivity(lambda X: 2 * X, rows).upper is None


def test_zero_features_are_refused() -> None:
    phi = ws.RandomAttentionFeatures.of_weight(torch.zeros(3, 3), "linear")
    with pytest.raises(
        ZeroFeaturesError, match="linear-raf maps this text to features that rounding cannot tell"
    ):
        ws.certify(phi, gaussian_rows(4, 3, 0))
