"""word_sensitivities: each text's result is that of the text alone."""

import math

import pytest

import wordsens as ws
from wordsens.errors import InputError

QUICK = {"search": ws.SearchPlan("quick", starts=4, steps=15), "certificate": False}
D = 6


def texts(*lengths, d=D):
    return [ws.gaussian_text(n, d, seed=seed) for seed, n in enumerate(lengths)]


def raf(score="softmax", heads=1, d=D, **options):
    return ws.RandomAttentionFeatures(d, score, seed=0, heads=heads, **options)


MAPS = [raf(), raf("relu", 2), lambda X: X.square(), ws.DeepRandomFeatures(3, D, 2, seed=0)]


@pytest.mark.parametrize("phi", MAPS, ids=["softmax", "relu", "function", "drf"])
def test_equals_word_sensitivity_in_order(phi):
    mixed = texts(3, 3) if isinstance(phi, ws.DeepRandomFeatures) else texts(4, 3, 4)
    found = ws.word_sensitivities(phi, mixed, seed=7, **QUICK)
    assert found == [ws.word_sensitivity(phi, X, seed=7, **QUICK) for X in mixed]


def test_radius_and_certificate_are_those_of_one_text():
    phi, X = raf(), texts(4, 4)
    found = ws.word_sensitivities(phi, X, radius=2.0, search="quick")
    assert found == [ws.word_sensitivity(phi, text, radius=2.0, search="quick") for text in X]
    assert [r.rigor for r in found] == ["certified", "certified"]


@pytest.mark.parametrize(("gaussian", "rigor"), [("dense", "certified"), ("lazy", None)])
def test_texts_that_depend_on_the_weights_get_the_weights_bounds_or_none(gaussian, rigor):
    phi = ws.DeepRandomFeatures(3, D, 2, gaussian=gaussian, seed=0)
    for r in ws.word_sensitivities(phi, texts(3, 3), text_depends_on_weights=True, **{**QUICK, "certificate": True}):
        assert r.rigor == rigor
        assert (r.upper is None) == (rigor is None)


class TestBadInput:
    def refused(self, X, phi=None, error=InputError, **options):
        with pytest.raises(error) as caught:
            ws.word_sensitivities(phi or raf(), X, **{**QUICK, **options})
        assert "\n" not in str(caught.value)
        return str(caught.value)

    def test_the_bad_text_is_named(self, unchecked_types):
        good = texts(3, 3)
        assert self.refused([*good, ws.gaussian_text(3, D + 1, seed=0)]) == (
            f"`texts[2]` (shape (3, {D + 1})) does not fit raf, which takes (*batch, n, d) with (n, d) = (any, {D}); "
            "build the map for this size or truncate the text"
        )
        broken = good[0].rows.clone()
        broken[1, 2] = math.nan
        assert self.refused([good[0], broken]) == (
            "`texts[1]` has NaN or infinity in row 1; every entry must be finite"
        )
        assert self.refused([good[0].rows[:1]]).startswith("`texts[0]` has one word;")
        assert self.refused(["love", good[0]]).startswith("`texts[0]` (str) must be a TextMatrix, a tensor or an array")
