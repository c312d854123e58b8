"""One layer's attention of a pretrained model as a map, and the attention of two texts side by
side."""

import pytest
import torch

import wordsens as ws
from tests.maps.tiny_models import model_of, tokenizer
from wordsens.errors import InputError
from wordsens.maps.attention_pair import attention_pair
from wordsens.maps.transformer.attention import entering_attention, trained_attention
from wordsens.sensitivity.one_word import relative_change

TEXT = "the film was not very good"
KNOWN = ("bert", "roberta", "xlm-roberta", "camembert", "electra", "distilbert", "gpt2")


@pytest.mark.parametrize("head", [None, 2])
@pytest.mark.parametrize("kind", KNOWN)
def test_it_is_the_model_s_attention(kind, head):
    """The rows that enter the attention, under its map, are what the model's heads make of the
    text, up to float32."""
    whole = ws.TransformerFeatures(model_of(kind), tokenizer(), layer=2)
    text = whole.embed([TEXT])[0]
    phi, X = trained_attention(whole, 2, head), entering_attention(whole, text, 2)
    expected = sum(
        whole.at(layer=2, head=one)(text) for one in (range(4) if head is None else [head])
    )
    torch.testing.assert_close(phi(X), expected.double(), rtol=1e-4, atol=1e-5)
    assert X.tokens == text.tokens
    if kind == "bert":
        torch.testing.assert_close(X.rows, whole.at(layer=1)(text).double())
    assert phi.attention_of(X.rows, 1).shape == (4 if head is None else 1, len(X), len(X))


@pytest.mark.parametrize(("kind", "head"), [("bert", 0), ("bert", None), ("gpt2", 1)])
def test_a_bracket_of_a_trained_head(kind, head):
    whole = ws.TransformerFeatures(model_of(kind), tokenizer())
    phi, X = trained_attention(whole, 3, head), entering_attention(whole, whole.embed([TEXT])[0], 3)
    radius = X.rows.norm(dim=1)[[0, 4, len(X) - 1]]
    found = ws.word_sensitivity(phi, X, words=[0, 4, len(X) - 1], radius=radius, search="quick")
    assert found.upper_per_word is not None
    again = relative_change(phi, X.rows, found.words.unsqueeze(1), found.perturbations.unsqueeze(1))
    torch.testing.assert_close(again, found.per_word, rtol=1e-6, atol=0)
    assert bool((found.per_word <= found.upper_per_word).all())
    small = ws.certify(phi, X, radius=1e-7)
    exact = 1e-7 * ws.jacobian_sensitivity(phi, X).per_word
    assert bool((small >= exact * (1 - 1e-6)).all())
    if head is not None:
        assert float((small / exact).median()) < 1.01
    if kind == "gpt2":
        assert torch.equal(phi(X)[:4], phi(X.rows + torch.eye(len(X), 1).roll(5, 0))[:4])


@pytest.mark.parametrize(
    ("kind", "layer", "told"),
    [
        ("llama", 1, "is not softmax"),
        ("mpnet", 1, "is not softmax"),
        ("modernbert", 2, "is not softmax"),
        ("bert", 0, "has heads 0 to 3 in layers 1 to 3"),
    ],
)
def test_what_has_no_such_map_is_refused(kind, layer, told):
    with pytest.raises(InputError, match=told):
        trained_attention(ws.TransformerFeatures(model_of(kind), tokenizer()), layer)


def test_gpt2_with_other_scores_is_noticed():
    with pytest.raises(InputError, match="is not softmax"):
        trained_attention(
            ws.TransformerFeatures(model_of("gpt2", scale_attn_weights=False), tokenizer()), 1
        )


PAIR = ("the film was good", "the film was bad")


def phi_of(kind="bert", auto="AutoModel", **options):
    return ws.TransformerFeatures(model_of(kind, auto), tokenizer(), name=kind, **options)


@pytest.mark.parametrize("kind", ["bert", "distilbert", "mpnet", "modernbert", "gpt2", "llama"])
@pytest.mark.parametrize(("layer", "head"), [(1, None), (-1, 2)])
def test_the_weights_are_the_models_own(kind, layer, head):
    pair = attention_pair(phi_of(kind), *PAIR, layer=layer, head=head)
    assert pair.layer == (1 if layer == 1 else 3)
    for text, weights in zip(PAIR, pair.weights, strict=True):
        ids = torch.tensor([tokenizer()(text)["input_ids"]])
        own = model_of(kind)(ids, output_attentions=True).attentions[pair.layer - 1][0].double()
        torch.testing.assert_close(
            weights, own.mean(dim=0) if head is None else own[head], rtol=0, atol=1e-6
        )
        torch.testing.assert_close(
            weights.sum(dim=1), torch.ones(6, dtype=torch.float64), rtol=0, atol=1e-6
        )
    assert pair.changed == (4,)
    torch.testing.assert_close(pair.difference, pair.weights[1] - pair.weights[0])


@pytest.mark.parametrize("heads", [1, 3])
@pytest.mark.parametrize("score", ["softmax", "relu"])
def test_random_attention_features_have_a_pair_too(heads, score):
    phi = ws.RandomAttentionFeatures(6, score=score, heads=heads, seed=2)
    first = ws.TextMatrix(ws.gaussian_text(4, 6).rows, tokens=("I", "love", "her", "much"))
    second = ws.TextMatrix(
        first.rows + torch.eye(4, 6, dtype=torch.float64), tokens=("I", "love", "her", "smile")
    )
    pair = attention_pair(phi, first, second)
    own = phi.attention(first.rows).reshape(heads, 4, 4)
    torch.testing.assert_close(pair.weights[0], own.mean(dim=0))
    torch.testing.assert_close(
        attention_pair(phi, first, second, head=heads - 1).weights[0], own[-1]
    )
    assert (pair.layer, pair.head, pair.model, pair.changed) == (1, None, phi.name, (3,))
    assert pair.tokens == (first.tokens, second.tokens)
    with pytest.raises(ws.InputError, match=r"`layer` \(=2\) has no attention; choose 1 to 1"):
        attention_pair(phi, first, second, layer=2)
