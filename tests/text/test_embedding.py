"""embed: which rows a text gets, and which texts are refused."""

import pytest
import torch

from wordsens.errors import InputError
from wordsens.models.embedding import embed, load_encoder
from wordsens.text import Document

SENTENCE = "the film was very long and not good"


@pytest.fixture(scope="module")
def bert(tiny_bert):
    return load_encoder(str(tiny_bert))


class TestRows:
    def test_layer_0_of_minilm_is_hidden_state_0(self):
        from transformers import AutoModel
        from transformers.utils import logging

        from wordsens.models.model_files import minilm_folder

        logging.disable_progress_bar()
        model = AutoModel.from_pretrained(minilm_folder()).eval()
        logging.enable_progress_bar()
        encoder = load_encoder("minilm")
        ids = encoder.tokenize("I love her much").ids
        with torch.no_grad():
            expected = model(torch.tensor([ids]), output_hidden_states=True).hidden_states[0][
                0, 1:-1
            ]
        (text,) = embed("I love her much", rescale=False)
        torch.testing.assert_close(text.rows.float(), expected, rtol=0, atol=1e-6)
        assert text.tokens == ("i", "love", "her", "much")


class TestCutting:
    def test_the_encoder_does_not_see_what_is_cut(self, bert):
        (cut,) = embed(SENTENCE, bert, layer=3, max_words=3)
        (short,) = embed("the film was", bert, layer=3)
        assert torch.equal(cut.rows, short.rows)

    def test_it_does_not_where_special_tokens_count_as_words(self, bert):
        """[CLS] is the first of the five, so that four words are read."""
        (cut,) = embed(SENTENCE, bert, layer=3, max_words=5, special_tokens=True)
        (short,) = embed("the film was very", bert, layer=3, special_tokens=True)
        assert cut.tokens == short.tokens[:5] == ("[CLS]", "the", "film", "was", "very")
        assert torch.equal(cut.rows, short.rows[:5])

    def test_a_text_over_the_context_is_not_cut_in_silence(self, bert):
        with pytest.raises(InputError) as caught:
            embed(["good", Document("good " * 11, 1, "a/b")], bert)
        assert str(caught.value) == (
            f"text 1 (a/b) has 11 tokens and {bert.name} adds 2, but its context is 12 tokens; "
            "shorten it, or pass max_words=10 or less"
        )
        with pytest.raises(InputError, match="pass max_words=10 or less"):
            embed("good " * 40, bert, max_words=11)
        assert len(embed("good " * 40, bert, max_words=10)[0]) == 10
        assert len(embed("good " * 10, bert)[0]) == 10


class TestPadding:
    def test_as_published_the_rows_are_those_of_a_padded_input(self, bert, tiny_bert):
        from transformers import AutoModel, AutoTokenizer
        from transformers.utils import logging

        tokenizer = AutoTokenizer.from_pretrained(tiny_bert)
        logging.disable_progress_bar()
        model = AutoModel.from_pretrained(tiny_bert).eval()
        logging.enable_progress_bar()
        padded = tokenizer("good film", padding="max_length", max_length=8, return_tensors="pt")
        with torch.no_grad():
            states = model(**padded, output_hidden_states=True).hidden_states
        for layer in (0, 2):
            (text,) = embed(
                "good film", bert, layer, special_tokens=True, max_words=8, pad_to=8, rescale=False
            )
            assert text.tokens == ("[CLS]", "good", "film", "[SEP]", *["[PAD]"] * 4)
            torch.testing.assert_close(text.rows.float(), states[layer][0], rtol=0, atol=1e-6)


class TestTexts:
    def test_label_and_source_are_kept(self, bert):
        first, second = embed([Document("good film", 1, "shelf/1"), "bad film"], bert)
        assert (first.label, first.source) == (1, "shelf/1")
        assert (second.label, second.source) == (None, "text 1")
