"""word_sensitivities: each text's result is that of the text alone."""

import math

import pytest
import torch

import wordsens as ws
from wordsens.errors import InputError
from wordsens.sensitivity.one_word import TextUnderMap, sensitivities

QUICK = {"search": ws.SearchPlan("quick", starts=4, steps=15), "certificate": False}
D = 6


def texts(*lengths, d=D):
    return [ws.gaussian_text(n, d, seed=seed) for seed, n in enumerate(lengths)]


def raf(score="softmax", heads=1, d=D, **options):
    return ws.RandomAttentionFeatures(d, score, seed=0, heads=heads, **options)


MAPS = [
    (raf(), 1e-6),
    (raf("relu", 2), 1e-2),
    (lambda X: X.square(), 1e-6),
    (ws.DeepRandomFeatures(3, D, 2, seed=0), 1e-2),
]


@pytest.mark.parametrize(("phi", "close"), MAPS, ids=["softmax", "relu", "function", "drf"])
def test_equals_word_sensitivity_in_order(phi, close):
    """Of searches that run to their end; with kinks they may end on hills a little apart."""
    mixed = texts(3, 3) if isinstance(phi, ws.DeepRandomFeatures) else texts(4, 3, 4)
    for options in ({"seed": 7, "certificate": False}, {"radius": 2.0, "search": "quick"}):
        for X, together in zip(mixed, ws.word_sensitivities(phi, mixed, **options), strict=True):
            alone = ws.word_sensitivity(phi, X, **options)
            assert together.per_word.numpy() == pytest.approx(alone.per_word.numpy(), rel=close)
            assert together.rigor == alone.rigor
            if alone.upper is not None:
                assert together.upper == pytest.approx(alone.upper, rel=1e-9)


def test_maps_of_other_scores_and_shapes_are_searched_apart():
    W, stream = [], torch.Generator().manual_seed(3)
    for width in (3, 3, 8, 9):
        W.append(torch.randn(D, width, dtype=torch.float64, generator=stream))
    maps = [raf(), raf("sigmoid")]
    maps += [ws.AttentionFeatures(W[0], W[1], value) for value in W[2:]]
    problems = [TextUnderMap(phi, X) for phi, X in zip(maps, texts(4, 4, 4, 4), strict=True)]
    for problem, together in zip(problems, sensitivities(problems, "quick"), strict=True):
        alone = ws.word_sensitivity(problem.phi, problem.X, search="quick")
        assert together.per_word.numpy() == pytest.approx(alone.per_word.numpy(), rel=1e-6)


def test_a_flat_word_of_one_text_changes_nothing_of_another():
    """Under ReLU scores words may have no gradient where their search ends: they are sampled."""
    few = texts(5, 5, 5, 5, 5, 5, d=4)
    phi = raf("relu", d=4)
    for X, together in zip(few, ws.word_sensitivities(phi, few, certificate=False), strict=True):
        alone = ws.word_sensitivity(phi, X, certificate=False)
        assert together.per_word.numpy() == pytest.approx(alone.per_word.numpy(), rel=1e-3)


def test_the_text_under_which_a_map_fails_is_named(unchecked_types):
    def noisy(X):
        return X + (0 if X.shape[-2] == 3 else torch.rand(()))

    with pytest.raises(InputError, match=r"^`texts\[2\]`: .* answers differently"):
        ws.word_sensitivities(noisy, texts(3, 3, 4), **QUICK)


@pytest.mark.parametrize(("gaussian", "rigor"), [("dense", "certified"), ("lazy", None)])
def test_texts_that_depend_on_the_weights_get_the_weights_bounds_or_none(gaussian, rigor):
    phi = ws.DeepRandomFeatures(3, D, 2, gaussian=gaussian, seed=0)
    for r in ws.word_sensitivities(
        phi, texts(3, 3), text_depends_on_weights=True, **{**QUICK, "certificate": True}
    ):
        assert r.rigor == rigor
        assert (r.upper is None) == (rigor is None)


def test_the_bad_text_is_named(unchecked_types):
    good, broken = texts(3, 3), texts(3)[0].rows.clone()
    broken[1, 2] = math.nan
    for X, said in (
        (
            [*good, ws.gaussian_text(3, D + 1, seed=0)],
            f"`texts[2]` (shape (3, {D + 1})) does not fit raf",
        ),
        ([good[0], broken], "`texts[1]` has NaN or infinity in row 1; every entry must be finite"),
        ([good[0].rows[:1]], "`texts[0]` has one word;"),
        (["love", good[0]], "`texts[0]` (str) must be a TextMatrix, a tensor or an array"),
        ([], "`texts` is empty"),
        (good[0], "`texts` (TextMatrix) must be a list of texts"),
    ):
        with pytest.raises(InputError) as caught:
            ws.word_sensitivities(raf(), X, **QUICK)
        assert str(caught.value).startswith(said)
