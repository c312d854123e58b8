"""word_sensitivities: each text's result is that of the text alone, whatever texts it is searched with."""

import math

import pytest
import torch
from wordsens.maps.attention.products import add_and_double, times
from wordsens.maps.attention.texts_change import AttentionTextsChange

import wordsens as ws
from wordsens.errors import InputError, ZeroFeaturesError
from wordsens.maps.attention.scores import SCORES
from wordsens.maps.attention.word_change import AttentionWordChange

QUICK = {"search": ws.SearchPlan(starts=4, generations=2, steps=15), "certificate": False}
D = 6


def texts(*lengths, d=D):
    return [ws.gaussian_text(n, d, seed=seed) for seed, n in enumerate(lengths)]


def raf(score="softmax", heads=1, d=D, **options):
    return ws.RandomAttentionFeatures(d, score, seed=0, heads=heads, **options)


def assert_same(found, alone, relative=1e-9):
    torch.testing.assert_close(found.per_word, alone.per_word, rtol=relative, atol=0)
    torch.testing.assert_close(found.perturbations, alone.perturbations, rtol=0, atol=1e-2 if relative > 1e-9 else 1e-4)
    assert found.word == alone.word
    assert found.tokens == alone.tokens
    assert torch.equal(found.radius, alone.radius)
    assert torch.equal(found.words, alone.words)
    assert (found.seed, found.map_name, found.notes) == (alone.seed, alone.map_name, alone.notes)


@pytest.fixture
def lots(monkeypatch):
    """The lengths of the lots that were searched together, as they come."""
    seen = []
    built = ws.RandomAttentionFeatures.texts_change

    def watched(self, members, **options):
        seen.append([len(rows) for rows in members])
        return built(self, members, **options)

    monkeypatch.setattr(ws.RandomAttentionFeatures, "texts_change", watched)
    return seen


class TestEachTextAsIfAlone:
    @pytest.mark.slow_cases("relu*")
    @pytest.mark.parametrize("score", sorted(SCORES))
    def test_equals_word_sensitivity_to_rounding_where_exploring_is_in_float64(self, score, monkeypatch, lots):
        for change in (AttentionWordChange, AttentionTextsChange):
            monkeypatch.setattr(change, "coarse", lambda self: self)
        mixed = texts(4, 3, 4)
        found = ws.word_sensitivities(raf(score), mixed, seed=7, **QUICK)
        assert lots == [[4, 4]]
        for X, r in zip(mixed, found, strict=True):
            assert_same(r, ws.word_sensitivity(raf(score), X, seed=7, **QUICK), 1e-12)

    @pytest.mark.slow_cases("*-relu-1", "*-softmax-2")
    @pytest.mark.parametrize(("score", "heads"), [("softmax", 1), ("relu", 1), ("softmax", 2), ("sigmoid", 1)])
    def test_equals_word_sensitivity_in_order(self, score, heads, device, lots):
        phi = raf(score, heads, device=device)
        mixed = texts(4, 3, 4)
        found = ws.word_sensitivities(phi, mixed, seed=7, **QUICK)
        assert lots == [[4, 4]]
        for X, r in zip(mixed, found, strict=True):
            # Exploring is in float32, and at a kink its rounding decides where a climb ends; in float64 see below.
            relative = 1e-4 if phi.score.kinked else 1e-9
            assert_same(r, ws.word_sensitivity(phi, X, seed=7, **QUICK), relative)

    @pytest.mark.slow
    def test_a_longer_search_and_its_certificate(self, lots):
        phi, X = raf(d=16), texts(8, 8, 8, d=16)
        found = ws.word_sensitivities(phi, X, radius=2.0, search=ws.SearchPlan(generations=3))
        assert lots == [[8, 8, 8]]
        for text, r in zip(X, found, strict=True):
            alone = ws.word_sensitivity(phi, text, radius=2.0, search=ws.SearchPlan(generations=3))
            assert_same(r, alone)
            assert r.rigor == "certified"
            assert torch.equal(r.upper_per_word, alone.upper_per_word)
            assert r.evaluations == pytest.approx(alone.evaluations, rel=0.01)

    def test_one_text_and_a_stack_of_texts(self):
        phi, X = raf(), texts(4, 4)
        (one,) = ws.word_sensitivities(phi, X[:1], **QUICK)
        stacked = ws.word_sensitivities(phi, torch.stack([text.rows for text in X]), **QUICK)
        for r in (one, stacked[0]):
            assert_same(r, ws.word_sensitivity(phi, X[0], **QUICK))

    def test_companions_do_not_matter(self):
        phi, X = raf(), texts(4, 4, 4, 4)
        few, many = ws.word_sensitivities(phi, X[:2], **QUICK), ws.word_sensitivities(phi, X, **QUICK)
        assert_same(few[1], many[1])
        assert_same(few[0], ws.word_sensitivities(phi, X[::-1], **QUICK)[3])

    @pytest.mark.slow_cases("90000")
    @pytest.mark.parametrize("budget", [90_000, 800_000, 1_600_000])
    def test_a_small_memory_budget(self, budget, lots):
        phi, X, plan = raf(), texts(5, 5, 5, 5), ws.SearchPlan(starts=4, generations=1, steps=5)
        found = ws.word_sensitivities(phi, X, **{**QUICK, "search": ws.Budget(plan, memory_budget=budget)})
        assert lots == {90_000: [], 800_000: [[5, 5]] * 2, 1_600_000: [[5] * 4]}[budget]
        for text, r in zip(X, found, strict=True):
            assert_same(r, ws.word_sensitivity(phi, text, memory_budget=budget, **{**QUICK, "search": plan}))

    def test_long_words_are_searched_one_text_after_the_other(self, lots):
        assert ws.RandomAttentionFeatures(384).texts_at_once(10) == 4
        assert ws.RandomAttentionFeatures(384).texts_at_once(20) == 1
        assert lots == []

    @pytest.mark.parametrize("phi", [lambda X: X.square(), ws.RandomFeatures(3, D, seed=0)], ids=["function", "rf"])
    def test_other_maps(self, phi):
        X = texts(3, 3)
        for text, r in zip(X, ws.word_sensitivities(phi, X, **QUICK), strict=True):
            assert_same(r, ws.word_sensitivity(phi, text, **QUICK))


@pytest.mark.parametrize(("gaussian", "rigor"), [("dense", "certified"), ("lazy", None)])
def test_texts_that_depend_on_the_weights_get_the_weights_bounds_or_none(gaussian, rigor):
    phi = ws.DeepRandomFeatures(3, D, 2, gaussian=gaussian, seed=0)
    for r in ws.word_sensitivities(phi, texts(3, 3), text_depends_on_weights=True, **{**QUICK, "certificate": True}):
        assert r.rigor == rigor
        assert (r.upper is None) == (rigor is None)


class TestTheJointChange:
    @pytest.mark.parametrize("score", SCORES)
    @pytest.mark.parametrize("heads", [1, 2])
    @pytest.mark.parametrize("pairs", ["as many of each", "few of some", "one text"])
    def test_values_and_gradients_are_those_of_each_text(self, score, heads, pairs, device):
        phi, X = raf(score, heads, device=device), [3 * text.rows for text in texts(4, 4, 4)]
        joint = phi.texts_change([phi.accept(rows) for rows in X])
        words = {"as many of each": torch.arange(12), "few of some": [9, 1, 10, 0], "one text": [5, 5, 4]}[pairs]
        words = torch.as_tensor(words, device=device)
        delta = 2 * torch.randn(len(words), D, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
        squared, slope = joint.value_and_gradient(delta.to(device), words)
        for at, word in enumerate(words.tolist()):
            alone = phi.word_change(phi.accept(X[word // 4]))
            one = torch.tensor([word % 4], device=device)
            value, gradient = alone.value_and_gradient(delta[at : at + 1].to(device), one)
            torch.testing.assert_close(squared[at : at + 1], value, rtol=1e-11, atol=0)
            torch.testing.assert_close(slope[at : at + 1], gradient, rtol=1e-9, atol=1e-9 * float(gradient.norm()))

    def test_rows_that_one_word_dominates(self):
        """Scores in the hundreds: attention sits on one word of most rows, in some texts and not in others."""
        X = [scale * text.rows for text, scale in zip(texts(4, 4, 4), (0.1, 12.0, 30.0), strict=True)]
        phi = raf()
        joint = phi.texts_change(X)
        assert isinstance(joint, AttentionTextsChange)
        delta = torch.randn(12, D, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
        squared = joint.value(delta, torch.arange(12))
        for word in range(12):
            moved = X[word // 4].clone()
            moved[word % 4] += delta[word]
            plain = float((phi(moved) - phi(X[word // 4])).square().sum())
            assert float(squared[word]) == pytest.approx(plain, rel=1e-9)

    @pytest.mark.parametrize("counts", [(2, 2, 2), (1, 0, 5), (0, 6, 0)])
    def test_products_by_text(self, counts):
        stream = torch.Generator().manual_seed(1)
        rows, matrices, start = (
            torch.randn(*shape, dtype=torch.float64, generator=stream) for shape in ((6, 3), (3, 3, 4), (6, 4))
        )
        own = matrices[torch.repeat_interleave(torch.arange(3), torch.tensor(counts))]
        expected = (rows.unsqueeze(1) @ own).squeeze(1)
        torch.testing.assert_close(times(rows, matrices, counts), expected)
        torch.testing.assert_close(add_and_double(start.clone(), rows, matrices, counts), 2 * (start + expected))


class TestProgress:
    @pytest.mark.parametrize("phi", [raf(), lambda X: X.square()], ids=["together", "one by one"])
    def test_it_counts_up_to_the_end(self, phi):
        calls = []
        told = ws.Budget(QUICK["search"], progress=lambda *call: calls.append(call))
        ws.word_sensitivities(phi, texts(4, 3, 4), **{**QUICK, "search": told})
        done = [call[0] for call in calls]
        assert done == sorted(done)
        assert calls[-1] == (3000, 3000)
        assert {call[1] for call in calls} == {3000}
        assert len(set(done)) > 10


class TestBadInput:
    def refused(self, X, phi=None, error=InputError, **options):
        with pytest.raises(error) as caught:
            ws.word_sensitivities(phi or raf(), X, **{**QUICK, **options})
        assert "\n" not in str(caught.value)
        return str(caught.value)

    def test_no_text(self):
        assert self.refused([]) == "`texts` is empty; give at least one text of shape (n, d)"

    def test_one_text_instead_of_a_list(self, unchecked_types):
        wanted = "must be a list of texts, each of shape (n, d); for one text use word_sensitivity"
        assert self.refused(texts(3)[0]) == f"`texts` (TextMatrix) {wanted}"
        assert self.refused(None) == f"`texts` (NoneType) {wanted}"
        assert self.refused(texts(3)[0].rows).startswith("`texts[0]` (shape (6,), torch.float64) must be")

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

    def test_a_text_that_is_mapped_to_zero(self):
        phi = ws.FunctionFeatures(lambda X: X - X.mean(dim=0), name="centred")
        same = torch.ones(3, D, dtype=torch.float64)
        assert self.refused([texts(3)[0], same], phi, ZeroFeaturesError).startswith(
            "`texts[1]`: centred maps this text to zero"
        )

    def test_options_are_checked_before_any_text_is_mapped(self):
        def never(X):
            raise AssertionError("mapped")

        assert self.refused(texts(3), never, radius=-1.0).startswith("`radius` (=-1.0) must be a positive finite")
        assert self.refused(texts(3), never, search="slow").startswith("`search` (='slow')")
        assert self.refused(texts(3), never, seed=True).startswith("`seed` (=True)")


@pytest.mark.parametrize("score", ["softmax", "relu"])
def test_the_coarse_relative_is_each_text_s_though_their_scores_differ_in_size(score):
    """Divided ReLU's was in each text's own units, for one W: words of mixed lots were found at down to .63."""
    small, large = texts(4, 4)
    changes = [raf(score).word_change(rows, memory_budget=1 << 28) for rows in (small.rows, 9 * large.rows)]
    together = AttentionTextsChange(changes).coarse()
    delta = torch.randn(8, D, generator=torch.Generator().manual_seed(0), dtype=together.dtype)
    values, slopes = together.value_and_gradient(delta, torch.arange(8))
    for change, mine in zip(changes, (slice(0, 4), slice(4, 8)), strict=True):
        value, slope = change.coarse().value_and_gradient(delta[mine], torch.arange(4))
        torch.testing.assert_close(values[mine], value, rtol=1e-5, atol=0)
        torch.testing.assert_close(slopes[mine], slope, rtol=1e-4, atol=1e-5)
