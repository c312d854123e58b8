"""Which certificate a map gets: that of its exact class, one that is registered, one from a
Lipschitz constant."""

import math

import pytest
import torch

import wordsens as ws
from tests.maps.own_scores import DividedSquares
from wordsens.errors import InputError, ZeroFeaturesError
from wordsens.seeds import generator


def linear(rows: int, columns: int) -> torch.Tensor:
    return torch.randn(rows, columns, generator=generator(0, "a linear map"), dtype=torch.float64)


def test_it_is_met_by_a_map_that_stretches_every_direction_alike() -> None:
    """phi(X) = 3 X attains L radius / ‖phi(X)‖: the bound is its S, and lies above what a search
    attains."""
    X = ws.gaussian_text(4, 9, seed=0)
    found = ws.certificate(lambda X: 3 * X, X, lipschitz=3.0)
    assert torch.allclose(found.upper, torch.full((4,), 0.5, dtype=torch.float64), rtol=1e-9)
    assert ws.word_sensitivity(lambda X: 3 * X, X, search="quick").value <= found.value


def test_it_lies_above_everything_that_an_operator_norm_allows() -> None:
    """A linear map then tanh: L is the matrix's largest singular value; 200 random moves stay
    below."""
    matrix = linear(12, 7)
    phi = lambda X: torch.tanh(X.flatten() @ matrix)  # noqa: E731
    constant = float(torch.linalg.matrix_norm(matrix, 2))
    rows = ws.gaussian_text(3, 4, seed=1).rows
    upper = ws.certify(phi, rows, words=[2, 0], radius=[0.5, 2.0], lipschitz=constant)
    norm = float(phi(rows).norm())
    assert torch.allclose(
        upper, constant * torch.tensor([0.5, 2.0], dtype=torch.float64) / norm, rtol=1e-9
    )
    moves = torch.randn(200, 4, generator=generator(1, "moves"), dtype=torch.float64)
    for move in torch.nn.functional.normalize(moves, dim=1) * 2:
        moved = rows.clone()
        moved[0] += move
        assert float((phi(moved) - phi(rows)).norm()) / norm <= float(upper[1])


def test_it_says_what_it_rests_on() -> None:
    X = ws.gaussian_text(3, 4, seed=0)
    found = ws.certificate(ws.RandomAttentionFeatures(4, seed=0), X, lipschitz=2.5)
    assert found.rigor == "if the Lipschitz constant 2.5 that was given holds"
    heading = found.headline
    assert heading.startswith("None of these words can move the output more than 1.808")
    assert "if the Lipschitz constant" in heading
    assert ws.certificate(ws.RandomAttentionFeatures(4, seed=0), X).rigor == "certified"


def test_a_constant_that_is_none_and_features_of_zero_are_refused() -> None:
    X = ws.gaussian_text(3, 4, seed=0)
    for constant in (0.0, -1.0, math.inf, math.nan):
        with pytest.raises(InputError, match="`lipschitz`"):
            ws.certify(lambda X: X, X, lipschitz=constant)
    with pytest.raises(ZeroFeaturesError):
        ws.certify(lambda X: 0 * X, X, lipschitz=1.0)


class Scaled(ws.FeatureMap):
    """phi(X) = 3 X."""

    name = "3 X"

    def features(self, texts: torch.Tensor) -> torch.Tensor:
        return 3 * texts


def scaled_bounds(phi, rows, words, radius):
    return ws.Certificate(
        words, radius / rows.double().norm() * (1 + 1e-12), "a multiple of the identity"
    )


def test_a_registered_certificate_serves_its_class_and_no_other() -> None:
    X = ws.gaussian_text(4, 9, seed=0)
    with pytest.raises(InputError, match="has no certificate"):
        ws.certify(Scaled(), X)
    ws.register_certificate(Scaled, scaled_bounds)
    assert ws.certify(Scaled(), X, words=[1, 3]) == pytest.approx(torch.full((2,), 0.5).double())
    result = ws.word_sensitivity(Scaled(), X, search="quick")
    assert result.value <= result.upper <= result.value * (1 + 1e-6)
    for name in ("Changed", "RandomFeatures"):
        assert ws.certificate(type(name, (Scaled,), {})(), X) is None


def test_a_score_without_bounds_is_told_what_it_lacks() -> None:
    with pytest.raises(
        InputError, match=r"its score DividedSquares does not say .*scores\.Certified .*`lipschitz`"
    ):
        ws.certify(
            ws.RandomAttentionFeatures(9, score=DividedSquares()), ws.gaussian_text(4, 9, seed=0)
        )


@pytest.mark.parametrize(("n", "certain"), [(10, True), (11, False)])
def test_random_features_are_certified_up_to_ten_words_of_384_coordinates(n, certain) -> None:
    """What README and docs/start.md say of the shipped embeddings: from 11 words on the matrix is
    past 128 MiB, and the bound holds with probability 1 - 1e-9 over the weights."""
    phi, X = ws.RandomFeatures(n, 384, seed=0), ws.gaussian_text(n, 384, seed=0)
    bounds = ws.certificate(phi, X, words=[0])
    assert (bounds.failure_probability is None) == certain == (bounds.rigor == "certified")
    assert certain or bounds.failure_probability == pytest.approx(1e-9)
    depending = ws.certificate(phi, X, words=[0], text_depends_on_weights=True)
    assert (depending is not None) == certain
