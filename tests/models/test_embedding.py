"""embed: which rows a text gets, and which texts are refused."""

import pytest
import torch

from tests.maps.tiny_models import CONTEXT
from tests.models.zoo import zoo_model
from wordsens.errors import InputError
from wordsens.models.embedding import embed, load_encoder
from wordsens.text import Document

SENTENCE = "the film was very long and not unlikely good"


@pytest.fixture(scope="module")
def bert(tiny_bert):
    return load_encoder(str(tiny_bert))


@pytest.mark.parametrize("layer", [0, 2])
def test_rows_are_those_of_the_model_at_their_usual_length(bert, layer):
    (text,) = embed(SENTENCE, bert, layer, rescale=False)
    (rows,) = bert.rows([SENTENCE], layer)
    assert torch.equal(text.rows, rows[1:-1].double())
    (scaled,) = embed(SENTENCE, bert, layer)
    directions = torch.nn.functional.normalize(rows[1:-1].double())
    torch.testing.assert_close(scaled.rows, directions * 4)


@pytest.mark.parametrize("special", [False, True])
def test_words_know_their_rows(bert, special):
    (text,) = embed(SENTENCE, bert, special_tokens=special)
    spelled = ["".join(text.tokens[row] for row in word.rows) for word in text.whole_words]
    assert " ".join(spelled).replace("##", "") == SENTENCE
    (short,) = embed(SENTENCE, bert, max_words=1, special_tokens=special)
    assert short.tokens == (("[CLS]",) if special else ("the",))
    assert len(short.whole_words) == 1 - special


def test_the_encoder_does_not_see_what_is_cut(bert):
    """Where special tokens count as words, [CLS] is the first of the five."""
    for special, words, short in ((False, 3, "the film was"), (True, 5, "the film was very")):
        (cut,) = embed(SENTENCE, bert, 3, words, special_tokens=special)
        (whole,) = embed(short, bert, 3, special_tokens=special)
        assert cut.tokens == whole.tokens[:words]
        assert torch.equal(cut.rows, whole.rows[:words])


def test_a_text_over_the_context_is_not_cut_in_silence(bert):
    most = CONTEXT - 2
    with pytest.raises(InputError) as caught:
        embed(["good", Document("good " * (most + 1), 1, "a/b")], bert)
    assert str(caught.value) == (
        f"text 1 (a/b) has {most + 1} tokens and {bert.name} adds 2, but its context is {CONTEXT} "
        f"tokens; shorten it, or pass max_words={most} or less"
    )
    with pytest.raises(InputError, match=f"shorten it, or pass max_words={most} or less"):
        embed("good " * 40, bert, max_words=most + 1)
    assert len(embed("good " * 40, bert, max_words=most)[0]) == most
    assert len(embed("good " * most, bert)[0]) == most


def test_as_published_the_rows_are_those_of_a_padded_input():
    tokenizer, model = zoo_model("roberta")
    texts, options = ["Turn it on", "I did not love her much"], {"special_tokens": True}
    padded = tokenizer(texts, padding="max_length", max_length=20, return_tensors="pt")
    with torch.no_grad():
        states = model(**padded, output_hidden_states=True).hidden_states
    for layer in (0, 1, 2):
        found = embed(texts, (model, tokenizer), layer, 20, False, pad_to=20, **options)
        for text, rows, mask in zip(found, states[layer], padded["attention_mask"], strict=True):
            assert [token == "<pad>" for token in text.tokens] == (mask == 0).tolist()
            torch.testing.assert_close(text.rows.float(), rows, rtol=0, atol=1e-5)
    with pytest.raises(
        InputError, match=r"`pad_to` \(=65\) does not fit .* pass pad_to=62 or less"
    ):
        embed(texts, (model, tokenizer), pad_to=65)


def test_label_and_source_are_kept(bert):
    first, second = embed([Document("good film", 1, "shelf/1"), "bad film"], bert)
    assert (first.label, first.source) == (1, "shelf/1")
    assert (second.label, second.source) == (None, "text 1")


def test_an_encoder_stays_on_its_device(bert):
    with pytest.raises(InputError, match="is not that of the given encoder"):
        embed("good film", bert, device="meta")
