"""What holds for every feature map. A subclass gives `make()` and inherits the tests."""

import functools
import math

import numpy as np
import pytest
import torch

import wordsens as ws
from tests.search.functions import on_spheres, plain_change, word_change
from wordsens.maps.base import FeatureMap
from wordsens.search.objective import Ball
from wordsens.seeds import generator
from wordsens.sensitivity.one_word import relative_change

QUICK = {"search": ws.SearchPlan("quick", starts=3, steps=10), "certificate": False}
"""A short search, for laws that hold whatever the search finds. The laws of upper bounds are in
test_certified.py."""


class FeatureMapLaws:
    """Laws of a map and of what is reported of it, however good the search.

    Attributes:
        n, d: the size of the texts.
    """

    n, d = 5, 6

    def make(self, *, dtype: torch.dtype = torch.float64, device: str = "cpu") -> FeatureMap:
        raise NotImplementedError

    def text(self, seed: int = 0) -> ws.TextMatrix:
        return ws.gaussian_text(self.n, self.d, seed=seed)

    def points(self, count: int, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
        """Perturbations on the spheres of random words, in no order and with repetition, and these
        words."""
        stream = generator(seed, "points")
        words = torch.randint(self.n, (count,), generator=stream)
        ball = Ball(torch.full((count,), math.sqrt(self.d), dtype=torch.float64))
        return on_spheres(ball, dimension=self.d, generator=stream).unsqueeze(1), words

    # The map

    def test_a_batch_equals_a_loop(self, device):
        phi = self.make(device=device)
        texts = torch.stack([self.text(seed).rows for seed in range(6)]).unflatten(0, (3, 2))
        batch = phi(texts)
        for i in range(3):
            for j in range(2):
                torch.testing.assert_close(batch[i, j], phi(texts[i, j]), rtol=1e-11, atol=1e-11)

    def test_texts_are_converted_to_the_maps_dtype_and_device(self, device):
        phi = self.make(device=device)
        single = self.text().rows.float()
        features = phi(single)
        assert (features.dtype, features.device.type) == (phi.dtype, device)
        torch.testing.assert_close(features, phi(single.double()), rtol=1e-12, atol=1e-12)
        half = self.make(dtype=torch.float32, device=device)
        assert half(self.text()).dtype == torch.float32

    def test_features_are_differentiable_in_the_text(self):
        phi = self.make()
        rows = self.text().rows.clone().requires_grad_()
        target = phi(self.text(1)).detach()
        (slope,) = torch.autograd.grad((phi(rows) - target).square().sum(), rows)
        assert slope.shape == rows.shape
        assert bool(torch.isfinite(slope).all())

    # The change of one word

    def test_word_change_equals_plain_evaluation(self, device):
        phi = self.make(device=device)
        rows = self.text().rows
        delta, words = (part.to(device) for part in self.points(40))
        change, plain = word_change(phi, rows), plain_change(phi, rows)
        squared, slope = change.value_and_gradient(delta, words)
        expected, expected_slope = plain.value_and_gradient(delta, words)
        size = float(expected.max())
        torch.testing.assert_close(squared, expected, rtol=1e-11, atol=1e-13 * size)
        torch.testing.assert_close(
            change.value(delta, words), squared, rtol=1e-13, atol=1e-14 * size
        )
        scale = float(torch.linalg.vector_norm(expected_slope, dim=2).max())
        torch.testing.assert_close(slope, expected_slope, rtol=1e-10, atol=1e-10 * scale)

    def test_gradient_agrees_with_finite_differences(self, device):
        phi = self.make(device=device)
        rows = self.text().rows
        delta, words = (part.to(device) for part in self.points(12, seed=1))
        ahead, _ = (part.to(device) for part in self.points(12, seed=2))
        step = 1e-6
        change = word_change(phi, rows)
        squared, slope = change.value_and_gradient(delta, words)
        above = change.value(delta + step * ahead, words)
        below = change.value(delta - step * ahead, words)
        expected = (above - below) / (2 * step)
        along = (slope * ahead).sum(dim=(1, 2))
        scale = 1e-12 + float(squared.max()) + float(expected.abs().max())
        assert float((along - expected).abs().max()) <= 1e-6 * scale

    def test_small_chunks_change_nothing(self):
        phi = self.make()
        rows = self.text().rows
        delta, words = self.points(17, seed=3)
        whole = word_change(phi, rows).value_and_gradient(delta, words)
        pieces = word_change(phi, rows, memory_budget=1).value_and_gradient(delta, words)
        for one, other in zip(whole, pieces, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-11, atol=1e-11 * float(one.abs().max()))

    # The sensitivity

    def test_witnesses_are_inside_their_balls_and_attain_what_is_reported(self, device):
        phi = self.make(device=device)
        radius = torch.linspace(0.1, 3.0, self.n, dtype=torch.float64)
        r = ws.word_sensitivity(phi, self.text(), radius=radius, **QUICK)
        lengths = np.linalg.norm(r.perturbations.double().cpu().numpy(), axis=1)
        assert (lengths <= radius.numpy() * (1 + 1e-12)).all()
        again = relative_change(
            phi, phi.accept(self.text().rows), r.words.unsqueeze(1), r.perturbations.unsqueeze(1)
        )
        torch.testing.assert_close(r.per_word, again, rtol=1e-12, atol=1e-13)
        assert bool((r.per_word >= 0).all())

    def test_a_float32_map_keeps_its_witnesses_inside_too(self, device):
        r = ws.word_sensitivity(self.make(dtype=torch.float32, device=device), self.text(), **QUICK)
        assert r.perturbations.dtype == torch.float32
        lengths = np.linalg.norm(r.perturbations.double().cpu().numpy(), axis=1)
        assert (lengths <= math.sqrt(self.d) * (1 + 1e-12)).all()

    def test_the_value_is_the_largest_per_word(self, device):
        r = ws.word_sensitivity(self.make(device=device), self.text(1), **QUICK)
        assert r.value == float(r.per_word.max())
        assert float(r.per_word[r.words.tolist().index(r.word)]) == r.value
        assert r.words.tolist() == list(range(self.n))

    def test_the_same_seed_gives_the_same_result(self, device):
        first, second = (
            ws.word_sensitivity(self.make(device=device), self.text(), seed=3, **QUICK)
            for _ in range(2)
        )
        assert torch.equal(first.perturbations, second.perturbations)
        assert torch.equal(first.per_word, second.per_word)
        assert first.evaluations == second.evaluations

    def test_the_container_of_the_text_does_not_matter(self):
        text = self.text()
        results = [
            ws.word_sensitivity(self.make(), container, words=[0, self.n - 1], **QUICK)
            for container in (
                text,
                text.rows,
                text.rows.numpy(),
                np.asfortranarray(text.rows.numpy()),
            )
        ]
        for result in results[1:]:
            assert torch.equal(result.perturbations, results[0].perturbations)
            assert torch.equal(result.per_word, results[0].per_word)


@pytest.mark.usefixtures(
    "unchecked_types"
)  # shapes are checked above; checks triple the time of a search
class SearchLaws:
    """How good the search is: what it finds is near the maximum, so maxima that must agree do.

    Attributes:
        search_slack: by how much, relative, two searches for the same maximum may differ. Searches
            are seeded, so this states how good they are on this map, not how lucky.
    """

    n: int
    d: int
    search_slack = 1e-3

    def make(self, *, dtype: torch.dtype = torch.float64, device: str = "cpu") -> FeatureMap:
        raise NotImplementedError

    def text(self, seed: int = 0) -> ws.TextMatrix:
        raise NotImplementedError

    @classmethod
    @functools.cache
    def full(cls, device: str) -> ws.Sensitivity:
        """All words, the default search, the default radius."""
        return ws.word_sensitivity(cls().make(device=device), cls().text(), certificate=False)

    def test_a_larger_ball_gives_no_less(self, device):
        full, phi = self.full(device), self.make(device=device)
        half, double = (
            ws.word_sensitivity(
                phi, self.text(), radius=share * math.sqrt(self.d), certificate=False
            ).per_word
            for share in (0.5, 2.0)
        )
        for smaller, larger in [(half, full.per_word), (full.per_word, double)]:
            assert bool((larger >= smaller * (1 - self.search_slack) - 1e-12).all())

    def test_a_subset_of_the_words_gives_what_the_full_run_gives(self, device):
        chosen = [self.n - 1, 1]
        full = self.full(device)
        phi = self.make(device=device)
        part = ws.word_sensitivity(phi, self.text(), words=chosen, certificate=False)
        assert part.words.tolist() == chosen
        assert part.tokens == tuple(full.tokens[word] for word in chosen)
        # Two searches of one word: with kinks they may end on hills a little apart.
        apart = 0.1 if getattr(getattr(phi, "score", None), "kinked", False) else 0.01
        torch.testing.assert_close(part.per_word, full.per_word[chosen], rtol=apart, atol=1e-12)

    def test_the_search_beats_random_sampling_at_equal_evaluations(self, device):
        full, phi = self.full(device), self.make(device=device)
        rows = phi.accept(self.text().rows)
        count = -(-full.evaluations // self.n)
        ball = Ball(torch.full((self.n,), math.sqrt(self.d), dtype=torch.float64))
        stream = generator(0, "random sampling")
        sphere = on_spheres(ball, count, dimension=self.d, generator=stream)
        inside = sphere * torch.rand(count, self.n, 1, generator=stream, dtype=torch.float64) ** (
            1 / self.d
        )
        words = torch.arange(self.n, device=rows.device).repeat(count).unsqueeze(1)
        for points in (sphere, inside):
            sampled = relative_change(
                phi, rows, words, points.reshape(-1, 1, self.d).to(rows.device)
            )
            best = sampled.view(count, self.n).amax(dim=0)
            assert bool((full.per_word >= best * (1 - 1e-9) - 1e-12).all())
