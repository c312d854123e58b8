"""Words and tokens of a transformer: vocabularies of bytes, offsets without width, answers, begin
tokens."""

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, normalizers, processors
from transformers import PreTrainedTokenizerFast

import wordsens as ws
from tests.maps.tiny_models import model_of, tokenizer
from tests.models.zoo import CORPUS, tokenizer_of, zoo_model
from wordsens.evaluation.flips import label_flips
from wordsens.maps.transformer.prompt_pair import prompt_pair
from wordsens.models.load import as_model
from wordsens.models.tokens import whole_word_tokens
from wordsens.text.whole_words import reading_words

NAMES = {
    name: getattr(tokenizer(), name)
    for name in ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token")
}
LETTERS = {letter for text in CORPUS for letter in text.lower()}


@pytest.mark.parametrize("name", ["roberta", "gpt2", "qwen2", "modernbert"])
def test_tokens_of_bytes_are_offered_as_the_words_that_they_spell(name):
    words = tokenizer_of(name)
    spelled = whole_word_tokens(words)
    assert all(words.decode([number]).strip() == word.strip() for number, word in spelled.items())
    offered = "".join(spelled.values())
    assert set(offered.lower()) <= LETTERS and not offered.isascii()


@pytest.mark.parametrize("name", ["roberta", "gpt2", "qwen2"])
def test_tokens_of_bytes_are_shown_as_what_they_spell(name):
    """Whole characters: a piece of one has no letter to show."""
    words, model = zoo_model(name)
    text = "the lift, שלום עולם זה לא טוב"
    for X in (
        ws.embed([text], (model, words))[0],
        ws.TransformerFeatures(model, words).embed([text])[0],
    ):
        shown = [X.word(row).removeprefix("Ġ") for row in range(len(X))]
        assert {"lift", "זה"} <= set(shown)


def test_words_with_marks_on_their_letters_are_words():
    inner = Tokenizer(
        models.WordPiece(
            {"[UNK]": 0, "नहीं": 1, "है": 2, "##ी": 3, "ं": 4, "न!": 5}, unk_token="[UNK]"
        )
    )
    words = PreTrainedTokenizerFast(tokenizer_object=inner, unk_token="[UNK]")
    assert whole_word_tokens(words) == {1: "नहीं", 2: "है"}
    assert whole_word_tokens(words, rows=2) == {1: "नहीं"}


@pytest.mark.parametrize("name", ["roberta", "qwen2"])
def test_words_of_other_scripts_are_exchanged_for_words(name):
    words, model = zoo_model(name)
    found = [
        word.swapped_for
        for word in ws.explain((model, words), "यह अच्छा नहीं है", "我不喜欢这个电影").words
    ]
    words, classifier = zoo_model(name, "ForSequenceClassification", pad_token_id=0)
    found += [
        word.swapped_for
        for word in label_flips((classifier, words), ["यह अच्छा नहीं है", "שלום עולם זה לא טוב"]).words
    ]
    assert set("".join(filter(None, found)).lower()) <= LETTERS


class Narrow(PreTrainedTokenizerFast):
    """A tokenizer whose offsets have no width: (3, 3) for (3, 8); or all begin at 0."""

    together = False

    def _encode_plus(self, *given, **named):
        encoded = super()._encode_plus(*given, **named)
        if "offset_mapping" in encoded:
            spans = encoded["offset_mapping"]
            starts = [0 if self.together else start for start, _ in spans]
            encoded["offset_mapping"] = list(zip(starts, starts, strict=True))
        return encoded


def test_offsets_without_width_reach_to_the_next_token():
    narrow = Narrow(tokenizer_object=tokenizer().backend_tokenizer, model_max_length=24, **NAMES)
    text, bert = "the film don't: unlikely, not good!", model_of("bert")
    wide = ws.TransformerFeatures(bert, tokenizer()).embed(text)[0].whole_words
    assert [word.text for word in wide] == reading_words(text)
    assert ws.TransformerFeatures(bert, narrow).embed(text)[0].whole_words == wide
    narrow.together = True
    assert ws.TransformerFeatures(bert, narrow).embed(text)[0].whole_words == ()
    found = ws.explain((bert, narrow), text)
    assert all(word.raises is None for word in found.words)
    assert (
        "No vectors: the tokenizer does not tell which tokens belong to which word." in found.notes
    )
    long = "the film was not good " * 9
    assert (
        as_model((bert, narrow)).read_span(long)[1]
        == as_model((bert, tokenizer())).read_span(long)[1]
        < len(long)
    )


@pytest.fixture(scope="module")
def llama():
    """A language model with the blanks of Llama 2: one is put before every text, and " Yes" has a
    bare one in front."""
    words = ["▁Yes", "▁No", "▁is", "▁the", "▁lift", "▁on"]
    steps = [word[:stop] for word in words for stop in range(2, len(word) + 1)]
    entries = ["<unk>", "<s>", "</s>", "▁", *"abcdefghijklmnopqrstuvwxyzYNQ[]?", *steps]
    vocabulary = {entry: number for number, entry in enumerate(dict.fromkeys(entries))}
    inner = Tokenizer(
        models.BPE(
            vocabulary, [(step[:-1], step[-1]) for step in dict.fromkeys(steps)], unk_token="<unk>"
        )
    )
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
    model = model_of(
        "llama", "AutoModelForCausalLM", vocab_size=len(words), bos_token_id=1, eos_token_id=2
    )
    phi = ws.TransformerFeatures(model, words, output="probabilities", pool="last")

    def own(ids, answer):
        with torch.no_grad():
            return float(
                model(torch.tensor([ids]))
                .logits[0, -1]
                .softmax(-1)[words.convert_tokens_to_ids(answer)]
            )

    return phi, words, own


def test_an_answer_behind_a_bare_blank_is_its_own_first_token(llama):
    phi, words, own = llama
    assert words.tokenize(" Yes") == ["▁", "▁Yes"]
    prompts = ("is the lift on?", "is the lift not on?")
    expected = [
        [own(words(prompt)["input_ids"], answer) for answer in ("▁Yes", "▁No")]
        for prompt in prompts
    ]
    torch.testing.assert_close(
        prompt_pair(phi, *prompts).probabilities, torch.tensor(expected).double(), rtol=1e-5, atol=0
    )
    with pytest.raises(ws.InputError, match="'Q', whose first token is a blank alone"):
        prompt_pair(phi, *prompts, answers=("Q", "No"))


def test_an_answer_counts_with_and_without_a_blank_before_it():
    words, model = zoo_model("gpt2", "LMHeadModel")
    phi = ws.TransformerFeatures(model, words, output="probabilities", pool="last")
    answers, prompt = ("the", "not"), "turn it"
    first = [[words(blank + answer)["input_ids"][0] for blank in ("", " ")] for answer in answers]
    assert len({*first[0], *first[1]}) == 4
    with torch.no_grad():
        own = model(**words(prompt, return_tensors="pt")).logits[0, -1].double().softmax(-1)
    expected = own[torch.tensor(first)].sum(dim=1)
    found = prompt_pair(phi, prompt, "the lift", answers=answers).probabilities[0]
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=0)


def test_a_prompt_of_a_chat_template_has_one_begin_token(llama):
    phi, words, own = llama
    prompt = "<s>[user] is the lift on?"
    once = words(prompt, add_special_tokens=False)["input_ids"]
    assert words(prompt)["input_ids"][:2] == [1, 1]
    assert list(phi.model.read(prompt).ids) == once
    found = prompt_pair(phi, prompt, "is the lift on?").probabilities[0]
    assert found.tolist() == pytest.approx([own(once, "▁Yes"), own(once, "▁No")], rel=1e-5)
