"""The answers of a causal language model to two prompts: probabilities of the model itself."""

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, normalizers, processors
from transformers import PreTrainedTokenizerFast

import wordsens as ws
from tests.maps.tiny_models import model_of, tokenizer
from tests.models.zoo import zoo_model
from wordsens.maps.transformer.prompt_pair import prompt_pair


def phi_of(model, words):
    return ws.TransformerFeatures(model, words, output="probabilities", pool="last")


@torch.no_grad()
def own(model, ids, tokens):
    """The model's probabilities that these tokens come next."""
    return model(torch.tensor([ids])).logits[0, -1].double().softmax(-1)[torch.tensor(tokens)]


def test_the_answers_are_the_models_own_probabilities():
    model = model_of("llama", "AutoModelForCausalLM")
    answers, texts = ("good", "bad"), ("the film was very", "the film was not")
    pair = prompt_pair(phi_of(model, tokenizer()), *texts, answers=answers)
    numbers = tokenizer().convert_tokens_to_ids(list(answers))
    # [SEP] is left off: the answer follows the prompt.
    expected = [own(model, tokenizer()(text)["input_ids"][:-1], numbers) for text in texts]
    torch.testing.assert_close(pair.probabilities, torch.stack(expected), rtol=1e-5, atol=1e-8)
    torch.testing.assert_close(pair.change, expected[1] - expected[0], rtol=1e-4, atol=1e-8)
    torch.testing.assert_close(pair.among.sum(dim=1), torch.ones(2, dtype=torch.float64))
    columns = pair.columns()
    assert [columns["first"], columns["second"]] == pair.probabilities.tolist()
    figure = pair.plot()
    assert [label.get_text() for label in figure.axes[0].get_xticklabels()] == ["good", "bad"]


def test_prompts_need_a_causal_language_model_and_answers_that_differ():
    with pytest.raises(ws.InputError, match="prompts need a causal language model"):
        prompt_pair(ws.TransformerFeatures(model_of("llama"), tokenizer()), "a", "b")
    speaking = phi_of(model_of("llama", "AutoModelForCausalLM"), tokenizer())
    with pytest.raises(ws.InputError, match="begin with the same token; choose answers that"):
        prompt_pair(speaking, "good", "bad", answers=("unlike", "unly"))


@pytest.fixture(scope="module")
def llama():
    """A language model with the blanks of Llama 2: one is put before every text, and " Yes" has a
    bare one in front."""
    words = ["▁Yes", "▁No", "▁is", "▁the", "▁lift", "▁on"]
    steps = [word[:stop] for word in words for stop in range(2, len(word) + 1)]
    entries = ["<unk>", "<s>", "</s>", "▁", *"abcdefghijklmnopqrstuvwxyzYNQ[]?", *steps]
    vocabulary = {entry: number for number, entry in enumerate(dict.fromkeys(entries))}
    merges = [(step[:-1], step[-1]) for step in dict.fromkeys(steps)]
    inner = Tokenizer(models.BPE(vocabulary, merges, unk_token="<unk>"))
    inner.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    inner.decoder = decoders.Metaspace()
    inner.post_processor = processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", 1)]
    )
    words = PreTrainedTokenizerFast(
        tokenizer_object=inner, bos_token="<s>", eos_token="</s>", unk_token="<unk>"
    )
    sizes = {"vocab_size": len(words), "bos_token_id": 1, "eos_token_id": 2}
    return model_of("llama", "AutoModelForCausalLM", **sizes), words


def test_an_answer_behind_a_bare_blank_is_its_own_first_token(llama):
    """And a prompt of a chat template has one begin token."""
    model, words = llama
    numbers = words.convert_tokens_to_ids(["▁Yes", "▁No"])
    assert words.tokenize(" Yes") == ["▁", "▁Yes"]
    texts = ("is the lift on?", "<s>[user] is the lift on?")
    once = words(texts[1], add_special_tokens=False)["input_ids"]
    assert words(texts[1])["input_ids"][:2] == [1, 1]
    assert list(phi_of(model, words).model.read(texts[1]).ids) == once
    expected = [own(model, ids, numbers) for ids in (words(texts[0])["input_ids"], once)]
    found = prompt_pair(phi_of(model, words), *texts).probabilities
    torch.testing.assert_close(found, torch.stack(expected), rtol=1e-5, atol=0)
    with pytest.raises(ws.InputError, match="'Q', whose first token is a blank alone"):
        prompt_pair(phi_of(model, words), *texts, answers=("Q", "No"))


def test_an_answer_counts_with_and_without_a_blank_before_it():
    words, model = zoo_model("gpt2", "LMHeadModel")
    answers, prompt = ("the", "not"), "turn it"
    first = [[words(blank + answer)["input_ids"][0] for blank in ("", " ")] for answer in answers]
    assert len({*first[0], *first[1]}) == 4
    expected = own(model, words(prompt)["input_ids"], first).sum(dim=1)
    pair = prompt_pair(phi_of(model, words), prompt, "the lift", answers=answers)
    torch.testing.assert_close(pair.probabilities[0], expected, rtol=1e-5, atol=0)
