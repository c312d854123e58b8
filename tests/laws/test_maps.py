"""Every map obeys the laws."""

import math

import pytest
import torch

import wordsens as ws
from tests.laws.feature_map_laws import FeatureMapLaws, SearchLaws
from tests.laws.mixins import HomogeneousLaws, NumPyTwinLaws, SeededLaws
from tests.peers import numpy_maps
from wordsens.activations import ACTIVATIONS
from wordsens.maps.attention.scores import SCORES


class DenseLaws(FeatureMapLaws, SeededLaws, NumPyTwinLaws):
    """RF and DRF with matrices that can be read."""

    depth, width, activation = 1, None, "relu"

    def make(self, *, seed=0, dtype=torch.float64, device="cpu"):
        return ws.DeepRandomFeatures(
            self.n,
            self.d,
            self.depth,
            self.width,
            self.activation,
            "dense",
            seed,
            dtype=dtype,
            device=device,
        )

    def numpy_features(self, phi, X):
        weights = [V.double().cpu().numpy() for V in phi.weights]
        return numpy_maps.fully_connected(weights, phi.activation.name, X)


class TestRandomFeatures(DenseLaws, SearchLaws, HomogeneousLaws):
    def make(self, *, seed=0, dtype=torch.float64, device="cpu"):
        return ws.RandomFeatures(
            self.n, self.d, gaussian="dense", seed=seed, dtype=dtype, device=device
        )

    def numpy_features(self, phi, X):
        return numpy_maps.fully_connected([phi.weight.double().cpu().numpy()], "relu", X)


class TestRandomFeaturesNarrow(DenseLaws):
    width, activation = 7, "identity"


class TestRandomFeaturesWide(DenseLaws):
    width, activation = 50, "leaky_relu"


class TestRandomFeaturesTanh(DenseLaws, SearchLaws):
    activation = "tanh"


class TestRandomFeaturesGelu(DenseLaws):
    activation = "gelu"


class TestRandomFeaturesErf(DenseLaws):
    activation = "erf"


class TestDeepRandomFeatures2(DenseLaws, SearchLaws, HomogeneousLaws):
    depth = 2


class TestDeepRandomFeatures4(DenseLaws):
    depth, width = 4, 24


class TestDeepRandomFeaturesGelu(DenseLaws):
    depth, activation = 2, "gelu"


class LazyLaws(FeatureMapLaws, SeededLaws):
    """RF and DRF whose matrices are sampled on demand."""

    depth = 1

    def make(self, *, seed=0, dtype=torch.float64, device="cpu"):
        return ws.DeepRandomFeatures(
            self.n, self.d, self.depth, gaussian="lazy", seed=seed, dtype=dtype, device=device
        )


class TestRandomFeaturesLazy(LazyLaws, SearchLaws):
    # Another sequence of queries is another matrix of the same law.
    test_a_subset_of_the_words_gives_what_the_full_run_gives = None


class TestDeepRandomFeaturesLazy(LazyLaws):
    n, d, depth = 4, 4, 2


class AttentionLaws(FeatureMapLaws, SeededLaws, NumPyTwinLaws):
    """RAF with any score."""

    score, temperature, heads = "softmax", 1.0, 1

    def make(self, *, seed=0, dtype=torch.float64, device="cpu"):
        return ws.RandomAttentionFeatures(
            self.d,
            self.score,
            seed,
            dtype,
            temperature=self.temperature,
            heads=self.heads,
            device=device,
        )

    def numpy_features(self, phi, X):
        W = phi.weight.double().cpu().numpy()
        return numpy_maps.attention(W, self.score, X, self.temperature)


class TestSoftmaxAttention(AttentionLaws, SearchLaws):
    pass


class TestReluAttention(AttentionLaws, SearchLaws, HomogeneousLaws):
    score = "relu"


class TestUndividedReluAttention(AttentionLaws, SearchLaws, HomogeneousLaws):
    score = "relu-unnormalized"


class TestSigmoidAttention(AttentionLaws, SearchLaws):
    score = "sigmoid"


class TestLinearAttention(AttentionLaws, SearchLaws, HomogeneousLaws):
    score = "linear"


class TestColdAttention(AttentionLaws):
    temperature = 0.3


class TestAttentionOfMoreWordsThanCoordinates(AttentionLaws, SearchLaws):
    n, d = 9, 3


class TestAttentionHeads(AttentionLaws):
    heads = 3

    def numpy_features(self, phi, X):
        heads = [numpy_maps.attention(W, self.score, X) for W in phi.weight.double().cpu().numpy()]
        return numpy_maps.np.stack(heads, axis=-3)


class TestFunction(FeatureMapLaws, SearchLaws):
    """A callable that knows nothing of batches."""

    def make(self, *, dtype=torch.float64, device="cpu"):
        def gated(X):
            return torch.cat([torch.tanh(X @ X.T).flatten(), X.mean(dim=0)])

        return ws.FunctionFeatures(gated, dtype=dtype, device=device)


class TestBatchedFunction(FeatureMapLaws):
    """One number a text."""

    def make(self, *, dtype=torch.float64, device="cpu"):
        return ws.FunctionFeatures(
            lambda X: torch.logsumexp(X, dim=(-2, -1)),
            batched=True,
            name="pooled",
            dtype=dtype,
            device=device,
        )


class TestModule(FeatureMapLaws):
    """A torch module, whose parameters want gradients of their own."""

    def make(self, *, dtype=torch.float64, device="cpu"):
        module = torch.nn.Sequential(
            torch.nn.Linear(self.d, 8), torch.nn.GELU(), torch.nn.Linear(8, 3)
        )
        stream = torch.Generator().manual_seed(0)
        with torch.no_grad():
            for parameter in module.parameters():
                parameter.copy_(torch.randn(parameter.shape, generator=stream))
        return ws.FunctionFeatures(
            module.to(dtype=dtype, device=device), batched=True, dtype=dtype, device=device
        )


def test_every_score_and_every_activation_has_its_laws():
    laws = [
        thing
        for thing in globals().values()
        if isinstance(thing, type) and thing.__name__.startswith("Test")
    ]
    assert {law.score for law in laws if issubclass(law, AttentionLaws)} == set(SCORES)
    assert {law.activation for law in laws if issubclass(law, DenseLaws)} == set(ACTIVATIONS)


@pytest.mark.parametrize("score", ["softmax", "sigmoid"])
def test_a_temperature_divides_the_scores(score):
    """Scaling the text by c and the temperature by c² leaves the weights as they are, so S
    stays."""
    X = ws.gaussian_text(5, 6, seed=8).rows
    cold = ws.word_sensitivity(
        ws.RandomAttentionFeatures(6, score, temperature=0.5), X, certificate=False
    )
    scaled = ws.RandomAttentionFeatures(6, score, temperature=0.5 * 9.0)
    again = ws.word_sensitivity(scaled, 3.0 * X, radius=3.0 * math.sqrt(6), certificate=False)
    torch.testing.assert_close(again.per_word, cold.per_word, rtol=1e-3, atol=0)


class TestRandomTransformer(FeatureMapLaws, SeededLaws, SearchLaws):
    def make(self, *, seed=0, dtype=torch.float64, device="cpu"):
        return ws.RandomTransformer(
            self.d, 2, heads=2, mlp=8, seed=seed, dtype=dtype, device=device
        )
