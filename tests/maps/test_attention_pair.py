"""Attention of two texts, and the answers to two prompts: the model's own numbers, side by side."""

import pytest
import torch
from tests.maps.tiny_models import model_of, tokenizer

import wordsens as ws
from wordsens.maps.attention_pair import attention_pair
from wordsens.maps.transformer.prompt_pair import prompt_pair
from wordsens.plotting import prompts

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
        torch.testing.assert_close(weights, own.mean(dim=0) if head is None else own[head], rtol=0, atol=1e-6)
        torch.testing.assert_close(weights.sum(dim=1), torch.ones(6, dtype=torch.float64), rtol=0, atol=1e-6)
    assert pair.changed == (4,)
    torch.testing.assert_close(pair.difference, pair.weights[1] - pair.weights[0])


def language_model():
    return phi_of("llama", "AutoModelForCausalLM", output="probabilities", pool="last")


def test_the_answers_are_the_models_own_probabilities():
    pair = prompt_pair(language_model(), "the film was very", "the film was not", answers=("good", "bad"))
    for row, prompt in enumerate(pair.prompts):
        ids = torch.tensor([tokenizer()(prompt)["input_ids"][:-1]])  # [SEP] is left off: the answer follows the prompt
        logits = model_of("llama", "AutoModelForCausalLM")(ids).logits[0, -1].double()
        expected = logits.softmax(dim=0)[tokenizer().convert_tokens_to_ids(["good", "bad"])]
        torch.testing.assert_close(pair.probabilities[row], expected, rtol=1e-5, atol=1e-8)
    torch.testing.assert_close(pair.change, pair.probabilities[1] - pair.probabilities[0])
    torch.testing.assert_close(pair.among.sum(dim=1), torch.ones(2, dtype=torch.float64))
    figure = prompts(pair)
    assert [label.get_text() for label in figure.axes[0].get_xticklabels()] == ["good", "bad"]


def test_prompts_need_a_causal_language_model_and_answers_that_differ():
    with pytest.raises(ws.InputError, match="prompts need a causal language model"):
        prompt_pair(phi_of("llama"), "a", "b")
    with pytest.raises(ws.InputError, match="begin with the same token; choose answers that differ there"):
        prompt_pair(language_model(), "good", "bad", answers=("unlike", "unly"))


@pytest.mark.parametrize("heads", [1, 3])
@pytest.mark.parametrize("score", ["softmax", "relu"])
def test_random_attention_features_have_a_pair_too(heads, score):
    phi = ws.RandomAttentionFeatures(6, score=score, heads=heads, seed=2)
    first = ws.TextMatrix(ws.gaussian_text(4, 6).rows, tokens=("I", "love", "her", "much"))
    second = ws.TextMatrix(first.rows + torch.eye(4, 6, dtype=torch.float64), tokens=("I", "love", "her", "smile"))
    pair = attention_pair(phi, first, second)
    own = phi.attention(first.rows).reshape(heads, 4, 4)
    torch.testing.assert_close(pair.weights[0], own.mean(dim=0))
    torch.testing.assert_close(attention_pair(phi, first, second, head=heads - 1).weights[0], own[-1])
    assert (pair.layer, pair.head, pair.model, pair.changed) == (1, None, phi.name, (3,))
    assert pair.tokens == (first.tokens, second.tokens)
    with pytest.raises(ws.InputError, match=r"`layer` \(=2\) has no attention; choose 1 to 1"):
        attention_pair(phi, first, second, layer=2)
