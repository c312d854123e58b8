"""Models of pairs: CrossEncoders, MultiVectorEncoders and functions; scores are the library's
own."""

import copy
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from tokenizers import processors

import wordsens as ws
from tests.maps.tiny_models import CONTEXT, save_tiny, tokenizer
from wordsens.errors import InputError
from wordsens.maps.transformer.features import map_of
from wordsens.models.identity import UNKNOWN
from wordsens.models.load import as_model, as_pair_model, is_pair_model

library = pytest.importorskip("sentence_transformers")
multi = pytest.mark.skipif(
    not hasattr(library, "MultiVectorEncoder"), reason="sentence-transformers before 6 has none"
)

HEAD = "AutoModelForSequenceClassification"
QUERIES = ["was the film good", "not bad", "very long"]
DOCUMENTS = ["the film was not good", "the film was good", "short and bad and very long " * 6]
PAIRS = list(zip(QUERIES, DOCUMENTS, strict=True))
CLOSE = {"rtol": 0, "atol": 1e-6}


@pytest.fixture(scope="module")
def reranker(tmp_path_factory):
    """A tiny CrossEncoder and its folder; the tokens of the second text have a type of their
    own."""
    folder = save_tiny(tmp_path_factory.mktemp("reranker"), "bert", HEAD, num_labels=1)
    words = copy.deepcopy(tokenizer())
    pair, special = "[CLS] $A [SEP] $B:1 [SEP]:1", [("[CLS]", 2), ("[SEP]", 3)]
    words.backend_tokenizer.post_processor = processors.TemplateProcessing(
        pair=pair, special_tokens=special
    )
    names = ["input_ids", "token_type_ids", "attention_mask"]
    words.init_kwargs["model_input_names"] = words.model_input_names = names
    words.save_pretrained(folder)
    model = library.CrossEncoder(folder, device="cpu")
    assert model.tokenizer("good", "bad")["token_type_ids"][-1] == 1
    return model, folder


def test_a_cross_encoder_scores_as_it_predicts(reranker):
    model, folder = reranker
    expected = model.predict(PAIRS)
    assert np.ptp(expected) > 0.01
    pairs = [as_pair_model(model, batch_size=2), as_pair_model(folder)]
    model.train()
    for pair in pairs:
        scores = pair.score(QUERIES, DOCUMENTS)
        np.testing.assert_allclose(scores.numpy(), expected, **CLOSE)
        assert scores.dtype == torch.float64
    assert model.training
    model.eval()
    assert pairs[0].identity() == pairs[1].identity()
    assert is_pair_model(model) and is_pair_model(folder)
    assert as_pair_model(pairs[0]) is pairs[0]


@pytest.mark.parametrize("side", ["first", "second"])
def test_the_words_of_one_side_move_a_cross_encoder(reranker, side):
    model, _ = reranker
    phi = map_of(as_pair_model(model), "logits")
    for pair in PAIRS:
        text = phi.embed_pair(*pair, side)
        logit = model.predict([pair], activation_fn=torch.nn.Identity())[0]
        np.testing.assert_allclose(phi(text).numpy(), [logit], **CLOSE)
        moving = pair[side == "second"].split()
        assert [word.text for word in text.whole_words] == moving[: len(text.whole_words)]
        for word in text.whole_words:
            assert "".join(text.tokens[row] for row in word.rows) == word.text
    assert len(text) == CONTEXT
    quick = ws.SearchPlan(starts=1, steps=1)
    assert ws.whole_word_sensitivity(phi, text, words=[1], search=quick).value > 0


@pytest.mark.parametrize("pair", PAIRS)
def test_what_a_cross_encoder_reads_of_both_texts(reranker, pair):
    """The words that are read stand in the spans, and no others."""
    model = as_pair_model(reranker[0])
    spans = model.read_spans(*pair)
    phi = map_of(model, "logits")
    for text, span, side in zip(pair, spans, ("first", "second"), strict=True):
        words = phi.embed_pair(*pair, side).whole_words
        assert text[slice(*span)].split() == [word.text for word in words]


def test_a_score_that_is_not_its_logit_has_no_gradient(reranker):
    """A prediction that differs from the transformer's by a thousandth is told."""
    model = library.CrossEncoder(reranker[1], device="cpu")
    predict = model.predict
    model.predict = lambda *given, **named: predict(*given, **named) + 0.02
    with pytest.raises(InputError, match="its own score is not its logit"):
        as_pair_model(model).text_model()


@multi
def test_a_multi_vector_encoder_scores_pairs_by_its_own_similarity(save, tmp_path):
    model = library.MultiVectorEncoder(save(), device="cpu")
    own = model.similarity_pairwise(model.encode_query(QUERIES), model.encode_document(DOCUMENTS))
    model.save_pretrained(str(tmp_path))
    for given in (model, str(tmp_path)):
        pair = as_pair_model(given, batch_size=2)
        np.testing.assert_allclose(pair.score(QUERIES, DOCUMENTS), own, rtol=1e-5)
        value = ws.explain(given, *PAIRS[0]).value
        assert value == pytest.approx(float(own[0]), rel=1e-5)
        with pytest.raises(InputError, match="use as_pair_model"):
            as_model(given)
    model[0].query_length, model[0].document_length = 5, 8
    reads = as_pair_model(model).read_spans(DOCUMENTS[2], DOCUMENTS[2])
    assert reads[0][1] < reads[1][1] < len(DOCUMENTS[2])
    with pytest.raises(InputError, match="is a MultiVectorEncoder"):
        ws.TransformerFeatures.from_pretrained(str(tmp_path), pool="own")


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("config.json", {"architectures": ["HF_ColBERT"]}),
        ("config_sentence_transformers.json", {"model_type": "ColBERT"}),
        ("config_sentence_transformers.json", {"model_type": "CrossEncoder"}),
    ],
)
def test_a_folder_of_a_model_of_pairs_is_never_run_as_one_of_vectors(save, file, content):
    """ColBERT models of Stanford and of PyLate, and a reranker, whose transformers would give
    vectors, too."""
    path = Path(save()) / file
    known = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps({**known, **content}))
    with pytest.raises(InputError, match="scores pairs of texts: use as_pair_model"):
        as_model(path.parent)
    assert is_pair_model(path.parent)


def test_cross_encoders_that_differ_share_no_identity(reranker):
    """An activation that is out of sight has none."""

    class Times(torch.nn.Module):
        def forward(self, logits):
            return logits * 2

    activations = (torch.nn.Identity(), torch.nn.Sigmoid(), Times(), torch.tanh)
    models = [
        library.CrossEncoder(reranker[1], activation_fn=activation, device="cpu")
        for activation in activations
    ]
    models.append(library.CrossEncoder(reranker[1], device="cpu", max_length=9))
    identities = [as_pair_model(model).identity() for model in models]
    assert len(set(identities)) == 4 and identities[2:4] == [UNKNOWN] * 2


@pytest.mark.parametrize("kind", ["CrossEncoder", pytest.param("MultiVectorEncoder", marks=multi)])
def test_a_token_of_the_tokenizer_alone_is_named_by_a_model_of_pairs(reranker, kind):
    model = getattr(library, kind)(reranker[1], device="cpu")
    model.tokenizer.add_tokens(["covid"])
    message = r"the token 'covid' has the number 20, but the model's table has 20 rows"
    for first, second in (("good film", "good covid film"), ("good covid film", "good film")):
        with pytest.raises(InputError, match=message):
            as_pair_model(model).score([first], [second])


def test_code_of_a_cross_encoder_is_not_run(save):
    place = Path(save("bert", HEAD, num_labels=1))
    config = json.loads((place / "config.json").read_text())
    own = {"AutoConfig": "own.Config", config["architectures"][0]: "own.Model"}
    config |= {"model_type": "own", "auto_map": own}
    (place / "config.json").write_text(json.dumps(config))
    (place / "own.py").write_text("raise RuntimeError('the code was run')")
    message = "load the model yourself with trust_remote_code=True and pass the object"
    with pytest.raises(InputError, match=message):
        as_pair_model(place)


def test_a_function_of_pairs():
    def longer(first, second):
        return [len(a) - len(b) for a, b in zip(first, second, strict=True)]

    pair = as_pair_model(longer, batch_size=2)
    assert pair.score(["a", "bb", "c"], ["aa", "b", "c"]).tolist() == [-1.0, 1.0, 0.0]
    assert (pair.name, pair.identity()) == ("longer", UNKNOWN)
    with pytest.raises(InputError, match="where gradients are needed longer cannot be used"):
        map_of(pair)
    with pytest.raises(InputError, match="`second` has 2 texts and `first` 1"):
        pair.score(["a"], ["b", "c"])


def test_what_scores_no_pairs_is_refused(reranker, save):
    three = library.CrossEncoder(save("bert", HEAD, num_labels=3), device="cpu")
    for build, given, message in (
        (as_model, reranker[0], r"\(a CrossEncoder\) scores pairs, not texts; use as_pair_model"),
        (as_pair_model, torch.nn.Linear(1, 1), r"\(a Linear\) does not score pairs"),
        (as_pair_model, save(), "does not score pairs: it is no CrossEncoder"),
        (as_pair_model, three, "gives 3 scores per pair; use a CrossEncoder with one label"),
    ):
        with pytest.raises(InputError, match=message):
            build(given)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda a, b: [[1.0, 2.0]] * len(a), "gave 2 scores per pair; it must give one"),
        (lambda a, b: [1.0], "gave an array of shape (1, 1) for 2 texts"),
        (lambda a, b: a[5], "failed on 2 pairs with IndexError: list index out of range"),
    ],
)
def test_bad_scores(answer, message):
    with pytest.raises(InputError) as caught:
        as_pair_model(answer).score(["a", "b"], ["c", "d"])
    assert message in str(caught.value)
