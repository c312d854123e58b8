"""Laws of some maps only: those drawn from a seed, those with a NumPy twin, those that scale."""

import numpy as np
import torch

import wordsens as ws
from tests.laws.feature_map_laws import QUICK
from tests.peers.numpy_maps import relative_change
from wordsens.maps.base import FeatureMap
from wordsens.sensitivity.one_word import relative_change as by_definition


class SeededLaws:
    """A map drawn from a seed. The subclass's `make` takes one."""

    n: int
    d: int

    def make(
        self, *, seed: int = 0, dtype: torch.dtype = torch.float64, device: str = "cpu"
    ) -> FeatureMap:
        raise NotImplementedError

    def test_one_seed_is_one_map(self, device):
        X = ws.gaussian_text(self.n, self.d, seed=4)
        first = self.make(seed=1, device=device)(X)
        assert torch.equal(first, self.make(seed=1, device=device)(X))
        torch.testing.assert_close(first.cpu(), self.make(seed=1)(X), rtol=1e-11, atol=1e-11)

    def test_another_seed_is_another_map(self):
        X = ws.gaussian_text(self.n, self.d, seed=4)
        one, other = self.make(seed=1)(X), self.make(seed=2)(X)
        assert float((one - other).norm()) > 0.01 * float(one.norm())

    def test_torchs_global_state_is_left_alone(self):
        X = ws.gaussian_text(self.n, self.d, seed=4)
        before = torch.random.get_rng_state()
        ws.word_sensitivity(self.make(), X, words=[0], **QUICK)
        assert torch.equal(before, torch.random.get_rng_state())


class NumPyTwinLaws:
    """A map that can be written down again in NumPy, from its weights."""

    n: int
    d: int

    def make(self, *, dtype: torch.dtype = torch.float64, device: str = "cpu") -> FeatureMap:
        raise NotImplementedError

    def numpy_features(self, phi, X: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def recomputed(self, phi, X: np.ndarray, r: ws.Sensitivity) -> np.ndarray:
        witnesses = r.perturbations.double().cpu().numpy()
        return np.array(
            [
                relative_change(lambda text: self.numpy_features(phi, text), X, word, delta)
                for word, delta in zip(r.words.tolist(), witnesses, strict=True)
            ]
        )

    def test_features_equal_their_numpy_twins(self, device):
        phi, X = self.make(device=device), ws.gaussian_text(self.n, self.d, seed=5)
        expected = self.numpy_features(phi, X.rows.numpy())
        np.testing.assert_allclose(phi(X).cpu().numpy(), expected, rtol=1e-12, atol=1e-12)

    def test_numpy_recomputes_the_reported_values(self, device):
        phi, X = self.make(device=device), ws.gaussian_text(self.n, self.d, seed=6)
        r = ws.word_sensitivity(phi, X, **QUICK)
        np.testing.assert_allclose(
            r.per_word.cpu().numpy(), self.recomputed(phi, X.rows.numpy(), r), rtol=1e-9
        )

    def test_numpy_recomputes_what_a_float32_map_reports_in_float64(self, device):
        phi, X = (
            self.make(dtype=torch.float32, device=device),
            ws.gaussian_text(self.n, self.d, seed=6),
        )
        r = ws.word_sensitivity(phi, X, **QUICK)
        rows = X.rows.float().double().numpy()
        np.testing.assert_allclose(
            r.per_word.cpu().numpy(), self.recomputed(phi, rows, r), rtol=1e-4
        )


class HomogeneousLaws:
    """phi(c X) = c^k phi(X) for c > 0: a text and its ball, scaled alike, have the same
    sensitivity."""

    n: int
    d: int

    def make(self, *, dtype: torch.dtype = torch.float64, device: str = "cpu") -> FeatureMap:
        raise NotImplementedError

    def test_a_scaled_text_with_a_scaled_ball_has_the_same_sensitivity(self):
        X = ws.gaussian_text(self.n, self.d, seed=7).rows
        r = ws.word_sensitivity(self.make(), X, radius=1.5, certificate=False)
        for scale in (2.0**-30, 2.0**30):
            phi = self.make()
            words, delta = r.words.unsqueeze(1), scale * r.perturbations.unsqueeze(1)
            torch.testing.assert_close(
                by_definition(phi, scale * X, words, delta), r.per_word, rtol=1e-12, atol=0
            )
