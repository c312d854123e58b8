"""The maps with known answers obey the laws of every map: they take the path of a map that offers nothing special."""

import torch
from tests.known.known_maps import Bump, Constant, Identity, Linear, Selection
from tests.laws.feature_map_laws import FeatureMapLaws, SearchLaws
from tests.laws.mixins import HomogeneousLaws


class TestLinear(FeatureMapLaws, SearchLaws, HomogeneousLaws):
    def make(self, *, dtype=torch.float64, device="cpu"):
        return Linear(self.n, self.d, 4, dtype=dtype, device=device)


class TestIdentity(FeatureMapLaws, SearchLaws, HomogeneousLaws):
    def make(self, *, dtype=torch.float64, device="cpu"):
        return Identity(dtype=dtype, device=device)


class TestSelection(FeatureMapLaws):
    def make(self, *, dtype=torch.float64, device="cpu"):
        return Selection(2, dtype=dtype, device=device)


class TestBump(FeatureMapLaws, SearchLaws):
    def make(self, *, dtype=torch.float64, device="cpu"):
        return Bump(self.text().rows[0] + 0.5, 1.0, dtype=dtype, device=device)


class TestConstant(FeatureMapLaws):
    def make(self, *, dtype=torch.float64, device="cpu"):
        return Constant(dtype=dtype, device=device)

    def test_features_are_differentiable_in_the_text(self):
        """They are not, and the sensitivity is 0 all the same: see the laws above and tests/known."""
        assert not self.make()(self.text().rows.clone().requires_grad_()).requires_grad
