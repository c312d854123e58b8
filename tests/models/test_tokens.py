"""Words and tokens of a model: vocabularies of bytes, marks on letters, places without width,
unknown words."""

import pytest
from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizerFast

import wordsens as ws
from tests.maps.tiny_models import model_of, tokenizer
from tests.models.zoo import CORPUS, tokenizer_of, zoo_model
from wordsens.models.load import as_model
from wordsens.models.tokens import Tokenization, whole_word_tokens
from wordsens.text.matrix import Word
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
    third = sorted(words.get_vocab().values())[::3]
    assert whole_word_tokens(words, every=3) == {n: spelled[n] for n in third if n in spelled}


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
        effect.replaced_by
        for effect in ws.explain((model, words), "यह अच्छा नहीं है", "我不喜欢这个电影").effects
    ]
    words, classifier = zoo_model(name, "ForSequenceClassification", pad_token_id=0)
    found += [
        effect.replaced_by
        for effect in ws.explain_classes(
            (classifier, words), ["यह अच्छा नहीं है", "שלום עולם זה לא טוב"]
        ).effects
    ]
    assert set("".join(found).lower()) <= LETTERS


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
    assert found.by("move") == []
    assert any("does not tell which tokens belong to which word" in note for note in found.notes)
    long = "the film was not good " * 9
    assert (
        as_model((bert, narrow)).read_span(long)[1]
        == as_model((bert, tokenizer())).read_span(long)[1]
        < len(long)
    )


def test_a_text_is_refused_where_over_four_fifths_are_unknown():
    phi = ws.TransformerFeatures(model_of("bert"), tokenizer())
    for embed in (phi.embed, lambda text: ws.embed(text, (model_of("bert"), tokenizer()))):
        assert len(embed("good unheard words stand here")) == 1
        for text in ("good quite unheard words stand here", "любимый фильм года"):
            with pytest.raises(ws.InputError, match=r"tokens are unknown to .* \(\[UNK\]\)"):
                embed(text)


def test_tokens_that_are_cut_are_gone_from_every_part():
    """A special token, two of a prompt, three words, the first of two tokens, and [SEP]."""
    words = (Word("ab", (3, 4)), Word("c", (5,)), Word("d", (6,)))
    spans = ((0, 0), (0, 0), (0, 0), (0, 1), (1, 2), (3, 4), (5, 6), (0, 0))
    whole = Tokenization(tuple(range(8)), tuple("^PQabcd$"), 3, 1, spans, words)
    front = whole.without(1, 4)
    assert (front.ids, front.tokens, front.leading) == ((0, 4, 5, 6, 7), tuple("^bcd$"), 1)
    assert (front.offsets[1], front.words, front.own) == ((1, 2), 3, slice(1, 4))
    assert [(word.text, word.rows) for word in front.whole_words] == [("c", (2,)), ("d", (3,))]
    first = whole.first_words(1)
    assert (first.ids, first.leading, first.trailing) == ((0, 1, 2, 3, 7), 3, 1)
    assert first.whole_words == ()
    assert whole.first_words(9) is whole
