"""How good the search is: against an independent plain ascent, on random maps and texts."""

import math

import pytest
import torch

import wordsens as ws
from tests.maps.tiny_models import model_of


def plain_ascent(phi, X, groups=None, *, radius=None, starts=16, steps=100, seed=0):
    """The largest relative change of any word, or group: many random starts, steps of falling
    length along the gradient."""
    n, d = X.shape
    radius = math.sqrt(d) if radius is None else radius
    groups = torch.arange(n).unsqueeze(1) if groups is None else torch.tensor(groups)
    members = groups.repeat(starts, 1)
    base, each = phi(X), torch.arange(len(members)).unsqueeze(1)
    x = torch.randn(*members.shape, d, dtype=X.dtype, generator=torch.Generator().manual_seed(seed))
    x = x * radius / x.norm(dim=-1, keepdim=True)
    best = 0.0
    for step in range(steps):
        x = x.detach().requires_grad_()
        texts = X.expand(len(members), n, d).clone()
        texts[each, members] = texts[each, members] + x
        squared = (phi(texts) - base).flatten(start_dim=1).square().sum(dim=1)
        best = max(best, float(squared.detach().max()))
        (slope,) = torch.autograd.grad(squared.sum(), x)
        slope = torch.nn.functional.normalize(slope.flatten(start_dim=1), dim=1).view_as(x)
        length = 0.3 * radius * math.sqrt(members.shape[1]) * (1 - step / steps)
        x = x.detach() + length * slope
        x = x * (radius / x.norm(dim=-1, keepdim=True)).clamp(max=1)
    return math.sqrt(best) / float(base.norm())


def unknown(X):
    """A map of which the library knows nothing."""
    return torch.cat([torch.tanh(X @ X.mT) @ X, torch.logsumexp(X, dim=-2, keepdim=True)], dim=-2)


MAPS = {
    "softmax": lambda n, d, seed: ws.RandomAttentionFeatures(d, seed=seed),
    "cold softmax": lambda n, d, seed: ws.RandomAttentionFeatures(d, seed=seed, temperature=0.2),
    "relu": lambda n, d, seed: ws.RandomAttentionFeatures(d, "relu", seed=seed),
    "relu-unnormalized": lambda n, d, seed: ws.RandomAttentionFeatures(
        d, "relu-unnormalized", seed=seed
    ),
    "two heads": lambda n, d, seed: ws.RandomAttentionFeatures(d, "sigmoid", seed=seed, heads=2),
    "rf": lambda n, d, seed: ws.RandomFeatures(n, d, gaussian="dense", seed=seed),
    "rf tanh": lambda n, d, seed: ws.RandomFeatures(
        n, d, activation="tanh", gaussian="dense", seed=seed
    ),
    "narrow rf": lambda n, d, seed: ws.RandomFeatures(n, d, 8, gaussian="dense", seed=seed),
    "drf": lambda n, d, seed: ws.DeepRandomFeatures(n, d, 3, gaussian="dense", seed=seed),
    "function": lambda n, d, seed: ws.FunctionFeatures(unknown, batched=True),
}


@pytest.mark.usefixtures("unchecked_types")
def test_no_worse_than_a_plain_ascent():
    """S at least .98 of the ascent's on 19 of 20 problems: each map on two texts, seeds 0 to 19."""
    behind = {}
    for seed, (name, make) in enumerate(2 * list(MAPS.items())):
        n, d = (6, 10) if seed < len(MAPS) else (10, 6)
        phi, X = make(n, d, seed), ws.gaussian_text(n, d, seed=100 + seed).rows
        share = ws.word_sensitivity(phi, X, certificate=False).value / plain_ascent(phi, X)
        if share < 0.98:
            behind[f"{name}, seed {seed}"] = share
    assert len(behind) <= 1, behind


@pytest.mark.usefixtures("unchecked_types")
def test_groups_are_no_worse_than_a_plain_ascent():
    """As above, of one group of two or three words: at least .97 on 19 of 20 problems, and no less
    where converged."""
    behind = {}
    for seed, (name, make) in enumerate(2 * list(MAPS.items())):
        n, d, group = (12, 10, (1, 4, 9)) if seed < len(MAPS) else (24, 8, (3, 20))
        phi, X = make(n, d, seed), ws.gaussian_text(n, d, seed=200 + seed).rows
        result = ws.group_sensitivity(phi, X, [group])
        share = result.value / plain_ascent(phi, X, [group], starts=40)
        if share < 0.97:
            behind[f"{name}, seed {seed}"] = share, bool(result.converged[0])
    assert len(behind) <= 1 and not any(converged for _, converged in behind.values()), behind


@pytest.mark.usefixtures("unchecked_types")
def test_a_trained_model_is_searched_no_worse_than_by_a_plain_ascent():
    """A word of MiniLM, a vector a text: .97 of 480 evaluations from four random starts."""
    phi = ws.TransformerFeatures.from_pretrained("minilm", layer=3, pool="mean")
    (text,) = phi.embed("The kettle is not hot yet.")
    radius = float(text.rows[3].norm())
    result = ws.word_sensitivity(phi, text, words=[3])
    assert result.value >= 0.97 * plain_ascent(
        phi, text.rows, [(3,)], radius=radius, starts=4, steps=120
    )


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize("kind", ["bert", "gpt2"])
def test_the_small_radius_limit_of_a_transformer(kind):
    """At a small radius the largest singular value of the Jacobian is reached to 1 %."""
    phi = ws.TransformerFeatures(model_of(kind, dtype=torch.float64))
    X = torch.randn(
        6, phi.model.dimension, dtype=torch.float64, generator=torch.Generator().manual_seed(4)
    )
    small = ws.word_sensitivity(phi, X, radius=0.01).per_word / 0.01
    assert bool((small >= 0.99 * ws.jacobian_sensitivity(phi, X).per_word).all())


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize("activation", ["tanh", "erf"])
def test_saturating_layers_at_large_radii(activation):
    """A known optimum: far out tanh and erf are signs, and the best signs are those of some
    direction."""
    n, d = 4, 2
    phi = ws.RandomFeatures(n, d, 40, activation=activation, gaussian="dense", seed=2)
    X, radius = ws.gaussian_text(n, d, seed=52).rows, 10.0
    angles = torch.linspace(0, 2 * math.pi, 1441, dtype=torch.float64)
    circle = radius * torch.stack([angles.cos(), angles.sin()], dim=1)
    best = ws.word_sensitivity(phi, X, radius=radius, certificate=False).per_word
    for word in range(n):
        texts = X.expand(len(circle), n, d).clone()
        texts[:, word] += circle
        grid = (phi(texts) - phi(X)).norm(dim=1).max() / phi(X).norm()
        assert float(best[word]) >= 0.99 * float(grid)


@pytest.mark.usefixtures("unchecked_types")
def test_a_thorough_search_of_one_layer_converges_and_more_steps_add_nothing():
    """Of 38 words, one in ten may end beside a kink; the others gain .2 % at most from 300
    steps."""
    converged, gains = [], []
    for n, d in ((7, 48), (12, 24)):
        for seed in range(2):
            X, phi = ws.gaussian_text(n, d, seed=seed), ws.RandomFeatures(n, d, seed=seed)
            found, longer = (
                ws.word_sensitivity(phi, X, search=plan, certificate=False)
                for plan in ("thorough", ws.SearchPlan("thorough", steps=300))
            )
            converged.append(found.converged)
            gains.append(longer.per_word / found.per_word - 1)
    ended = torch.cat(converged)
    assert int((~ended).sum()) <= len(ended) // 10
    assert float(torch.cat(gains)[ended].max()) <= 2e-3
