"""Encoders that are not one dense vector by cosine: sparse, multi-vector, two-sided, by a dot
product, cut in front.

Every number is compared with that of the library's own call.
"""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

import wordsens as ws
from tests.maps.tiny_models import model_of, tokenizer
from wordsens.errors import InputError
from wordsens.maps.transformer.features import map_of
from wordsens.models import as_pair_model
from wordsens.models.classifier import as_classifier
from wordsens.models.identity import UNKNOWN
from wordsens.models.load import as_model, is_pair_model

library = pytest.importorskip("sentence_transformers")
from sentence_transformers.base.modules import Normalize, Router, Transformer  # noqa: E402
from sentence_transformers.sentence_transformer.modules import Dense, Pooling  # noqa: E402

OPPOSITES = [("the film was good", "the film was not good"), ("bad and long", "bad and short")]
SAME = [
    ("very good", "good and very good"),
    ("the film was unlikely", "the unlikely film"),
    ("not long", "not very long"),
]
ROWS = [
    *(("switch", *pair, False) for pair in OPPOSITES),
    *(("near", *pair, True) for pair in SAME),
]
LONG = "the film was not very long and the short film was not good and unlikely bad"


@pytest.fixture
def folder(tmp_path_factory):
    """A function that saves a tiny model with its tokenizer, and returns the folder's name."""

    def save(auto="AutoModel", seed=0, words=None, **changes):
        place, model = tmp_path_factory.mktemp("model"), model_of("bert", auto, **changes)
        with torch.no_grad():
            for weight in model.parameters():
                weight.add_(
                    seed * torch.randn(weight.shape, generator=torch.Generator().manual_seed(seed))
                )
        model.save_pretrained(place)
        (words or tokenizer()).save_pretrained(place)
        return str(place)

    return save


def cut_in_front():
    from transformers import PreTrainedTokenizerFast

    inner, names = (
        tokenizer().backend_tokenizer,
        ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"),
    )
    named = {name: getattr(tokenizer(), name) for name in names}
    return PreTrainedTokenizerFast(
        tokenizer_object=inner, model_max_length=10, truncation_side="left", **named
    )


@pytest.fixture
def dense(folder):
    """A function that makes a SentenceTransformer: a tiny BERT, its mean, and further modules."""

    def make(
        *behind, words=None, length=None, pooling="mean", changes=None, transformer=None, **options
    ):
        first = Transformer(
            folder(words=words, **(changes or {})), max_seq_length=length, **(transformer or {})
        )
        return library.SentenceTransformer(
            modules=[first, Pooling(16, pooling), *behind], device="cpu", **options
        )

    return make


def saved(model, tmp_path):
    model.save_pretrained(str(tmp_path))
    return str(tmp_path)


def similarities(model, **options):
    known = {
        (row["first"], row["second"]): row["similarity"]
        for row in ws.check(model, ROWS, **options).all_pairs()
    }
    return [known[pair] for pair in [*OPPOSITES, *SAME]]


def own_similarities(model, first="encode", second="encode"):
    sides = [[pair[side] for pair in [*OPPOSITES, *SAME]] for side in (0, 1)]
    return model.similarity_pairwise(
        getattr(model, first)(sides[0]), getattr(model, second)(sides[1])
    ).tolist()


def test_a_sparse_encoder_by_its_dot_products(folder, tmp_path):
    from sentence_transformers.sparse_encoder.modules import SpladePooling

    masked = Transformer(folder("AutoModelForMaskedLM"), transformer_task="fill-mask")
    model = library.SparseEncoder(modules=[masked, SpladePooling()], device="cpu")
    own = [
        float((one * two).sum())
        for one, two in (model.encode(list(pair)).to_dense() for pair in [*OPPOSITES, *SAME])
    ]
    place = saved(model, tmp_path)
    for given in (model, place):
        assert similarities(given) == pytest.approx(own, rel=1e-5)
    assert "dot product" in ws.check(model, ROWS).notes[0]
    assert ws.explain(place, *OPPOSITES[0]).value == pytest.approx(own[0], rel=1e-5)
    with pytest.raises(InputError, match="is a SparseEncoder"):
        ws.TransformerFeatures.from_pretrained(place, pool="own")


@pytest.mark.skipif(
    not hasattr(library, "MultiVectorEncoder"), reason="sentence-transformers before 6 has none"
)
def test_a_multi_vector_encoder_scores_pairs_by_its_own_similarity(folder, tmp_path):
    model = library.MultiVectorEncoder(folder(), device="cpu")
    own = own_similarities(model, "encode_query", "encode_document")
    place = saved(model, tmp_path)
    for given in (model, place, as_pair_model(place)):
        assert similarities(given) == pytest.approx(own, rel=1e-5)
        assert ws.explain(given, *OPPOSITES[0]).value == pytest.approx(own[0], rel=1e-5)
    for given in (model, place):
        with pytest.raises(InputError, match="use as_pair_model"):
            as_model(given)
    with pytest.raises(InputError, match="is a MultiVectorEncoder"):
        ws.TransformerFeatures.from_pretrained(place, pool="own")


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("config.json", {"architectures": ["HF_ColBERT"]}),
        ("config_sentence_transformers.json", {"model_type": "ColBERT"}),
        ("config_sentence_transformers.json", {"model_type": "CrossEncoder"}),
    ],
)
def test_a_folder_of_a_model_of_pairs_is_never_run_as_one_of_vectors(folder, file, content):
    """ColBERT models of Stanford and of PyLate, and a reranker, whose transformers would give
    vectors, too."""
    place = Path(folder())
    known = json.loads((place / file).read_text()) if (place / file).exists() else {}
    (place / file).write_text(json.dumps({**known, **content}))
    with pytest.raises(InputError, match="scores pairs of texts: use as_pair_model"):
        as_model(str(place))
    assert is_pair_model(str(place))


def test_a_router_reads_queries_and_documents_each_by_its_own_encoder(folder, tmp_path):
    query, document = (Transformer(folder(seed=seed)) for seed in (1, 2))
    router = Router.for_query_document([query, Pooling(16)], [document, Pooling(16)])
    model = library.SentenceTransformer(modules=[router], prompts={"query": "good "}, device="cpu")
    texts = [pair[0] for pair in OPPOSITES]
    assert not np.allclose(model.encode_query(texts), model.encode_document(texts), atol=0.1)
    for given in (model, saved(model, tmp_path)):
        for name, own in (
            ("query", model.encode_query(texts)),
            ("document", model.encode_document(texts)),
        ):
            assert (
                np.abs(as_model(given, prompt_name=name).encode(texts).numpy() - own).max() < 1e-5
            )
        found = similarities(given, prompt_names=("query", "document"))
        assert found == pytest.approx(
            own_similarities(model, "encode_query", "encode_document"), abs=1e-5
        )


def test_a_router_behind_the_pooling_is_followed(dense, tmp_path):
    """One transformer, and a dense layer for queries and another for documents."""
    model = dense(Router.for_query_document([Dense(16, 8)], [Dense(16, 8)]))
    texts = [pair[0] for pair in OPPOSITES]
    assert not np.allclose(model.encode_query(texts), model.encode_document(texts), atol=0.1)
    for given in (model, saved(model, tmp_path)):
        for name, own in (
            ("query", model.encode_query(texts)),
            ("document", model.encode_document(texts)),
        ):
            assert (
                np.abs(as_model(given, prompt_name=name).encode(texts).numpy() - own).max() < 1e-5
            )
        assert np.abs(as_model(given).encode(texts).numpy() - model.encode(texts)).max() < 1e-5


def test_a_length_of_queries_cuts_them(dense, tmp_path):
    model = dense(transformer={"query_length": 8, "document_length": 12})
    for given in (model, saved(model, tmp_path)):
        for name, own in (
            ("query", model.encode_query([LONG])),
            ("document", model.encode_document([LONG])),
        ):
            loaded = as_model(given, prompt_name=name)
            assert np.abs(loaded.encode([LONG]).numpy() - own).max() < 1e-5
            assert np.abs(map_of(loaded).encode([LONG]).numpy() - own).max() < 1e-5
        assert (
            as_model(given, prompt_name="query").read_span(LONG)[1]
            < as_model(given).read_span(LONG)[1]
        )


@pytest.mark.parametrize("name", ["dot", "euclidean", "manhattan", "cosine"])
def test_similarities_are_those_that_the_model_names(dense, tmp_path, name):
    model = dense(similarity_fn_name=name)
    own = own_similarities(model)
    for given in (model, saved(model, tmp_path)):
        result, explained = ws.check(given, ROWS), ws.explain(given, *OPPOSITES[0])
        assert similarities(given) == pytest.approx(own, abs=1e-4)
        assert result.kinds["switch"].auc == pytest.approx(
            np.mean([one < two for one in own[:2] for two in own[2:]])
        )
        assert explained.value == pytest.approx(own[0], abs=1e-4)
        last = [word for word in explained.words if word.side == 1][-1]
        less = model.similarity(model.encode([OPPOSITES[0][0]]), model.encode(["the film was not"]))
        assert last.removal == pytest.approx(float(less) - own[0], abs=1e-4)
        assert any("(similarity_fn_name)" in note for note in result.notes) == (name != "cosine")


def test_what_takes_cosines_alone_says_so_of_another_similarity(dense):
    model = dense(similarity_fn_name="dot")
    texts = [
        f"{LONG} {word}" for word in ("good", "bad", "long", "short", "not", "very", "film", "was")
    ]
    with pytest.raises(InputError, match=r"compares by the dot product \(similarity_fn_name\)"):
        ws.advise_length(model, texts)
    result = ws.compare(model, dense(Normalize()), texts, "none")
    assert sum("neighbours and distances are by cosines" in note for note in result.notes) == 1
    assert ws.check(model, ROWS, threshold=30).threshold == 30


class Scaled(torch.nn.Module):
    """A module whose weight is no parameter, as those of the ONNX runtime are."""

    def __init__(self, factor):
        super().__init__()
        self.factor = np.array(factor)

    def forward(self, features):
        return {
            **features,
            "sentence_embedding": features["sentence_embedding"] * float(self.factor),
        }

    def get_config_dict(self):
        return {}


def test_an_identity_is_shared_by_no_model_that_differs(dense, tmp_path):
    """Weights out of sight, a method that was replaced, a hook, a setting, a pooling."""
    patched, hooked = dense(), dense()
    patched[1].forward = lambda features: {
        **features,
        "sentence_embedding": features["token_embeddings"].sum(dim=1),
    }
    hooked[0].register_forward_hook(
        lambda module, given, out: {**out, "token_embeddings": out["token_embeddings"] ** 2}
    )
    unseen = [dense(Scaled(2.0)), patched, hooked]
    assert [as_model(model).identity() for model in unseen] == [UNKNOWN] * 3
    assert as_model(patched).fingerprint() != as_model(dense()).fingerprint()
    seen = [
        *(dense(), dense(pooling="cls"), dense(length=5), dense(changes={"hidden_act": "relu"})),
        *(dense(words=cut_in_front()), dense(similarity_fn_name="dot"), dense(truncate_dim=4)),
    ]
    places = [saved(model, tmp_path / str(at)) for at, model in enumerate(seen)]
    for models in (seen, places):
        identities = [as_model(model).identity() for model in models]
        assert len({*identities, UNKNOWN}) == len(seen) + 1
    assert as_model(dense()).identity() == as_model(seen[0]).identity()
    nudged = dense()
    nudged[0].auto_model.embeddings.LayerNorm.eps = 1.0  # neither a weight nor in the configuration
    assert as_model(nudged).identity() != as_model(seen[0]).identity()


def test_two_cross_encoders_share_no_identity_where_their_activation_is_out_of_sight(folder):
    class Times(torch.nn.Module):
        def __init__(self, factor):
            super().__init__()
            self.factor = factor

        def forward(self, logits):
            return logits * self.factor

    place = folder("AutoModelForSequenceClassification", num_labels=1)
    activations = (torch.nn.Identity(), torch.nn.Sigmoid(), Times(2.0), torch.tanh)
    models = [
        library.CrossEncoder(place, activation_fn=activation, device="cpu")
        for activation in activations
    ]
    identities = [as_pair_model(model).identity() for model in models]
    assert len(set(identities)) == 3 and identities[2:] == [UNKNOWN] * 2


def test_of_a_text_that_is_cut_in_front_the_end_is_read(dense, folder, tmp_path):
    words = cut_in_front()
    model = dense(words=words, length=10, prompts={"query": "bad film "})
    plain, classifier = model_of("bert"), model_of("bert", "AutoModelForSequenceClassification")
    ids = words(LONG, truncation=True, max_length=10, return_tensors="pt")
    with torch.no_grad():
        mean, classes = plain(**ids).last_hidden_state.mean(1), classifier(**ids).logits.softmax(1)
    end = "was not good and unlikely bad"
    ours = as_model((plain, words))
    for given, own in (
        (ours, mean),
        (as_model(model), model.encode([LONG])),
        (as_model(saved(model, tmp_path)), mean),
    ):
        assert np.abs(given.encode([LONG]).numpy() - np.asarray(own)).max() < 1e-5
        assert LONG[slice(*given.read_span(LONG))].strip() == end
    asked = as_model(str(tmp_path), prompt_name="query")
    for text in (LONG, "the film was not good and", "good"):
        assert np.abs(asked.encode([text]).numpy() - model.encode_query([text])).max() < 1e-5
    assert [word.text for word in map_of(ours).embed([LONG])[0].whole_words] == end.split()
    read = as_classifier((classifier, words))
    assert float((read.probabilities([LONG]) - classes).abs().max()) < 1e-6
    assert LONG[slice(*read.read_span(LONG))].strip() == end
    explained = ws.explain(ours, LONG, "good film")
    unread = [word.word for word in explained.words if word.removal is None]
    assert unread == LONG.removesuffix(end).split()
    tail, head = LONG.replace("unlikely", "not"), LONG.replace("the film", "a film", 1)
    rows = [("read", LONG, tail, False), ("unread", LONG, head, False), ("near", *SAME[0], True)]
    # An opposite that the model cannot see is a hit, as it is in service.
    seen, unseen, _ = ws.check(ours, rows).measured.values
    assert seen < unseen == 1


def test_a_token_of_the_tokenizer_alone_is_named(dense, tmp_path):
    model = dense()
    model.tokenizer.add_tokens(["covid"])
    message = (
        r"the token 'covid' has the number 20, but the model's table has 20 rows; use the tokenizer"
    )
    for given in (model, saved(model, tmp_path), (model_of("bert"), model.tokenizer)):
        with pytest.raises(InputError, match=message):
            as_model(given).encode(["good covid film"])
    with pytest.raises(InputError, match=message):
        ws.explain(model, "good covid film", "bad film")
    with pytest.raises(InputError, match=message):
        classifier = model_of("bert", "AutoModelForSequenceClassification")
        as_classifier((classifier, model.tokenizer)).probabilities(["good covid film"])
    # Of the other texts all is measured, and it is no word that another is exchanged for.
    assert "covid" not in [
        word.swapped_for for word in ws.explain(model, "good film", "bad film").words
    ]


@pytest.mark.parametrize("kind", ["CrossEncoder", "MultiVectorEncoder"])
def test_a_token_of_the_tokenizer_alone_is_named_by_a_model_of_pairs(folder, kind):
    if not hasattr(library, kind):
        pytest.skip("sentence-transformers before 6 has none")
    model = getattr(library, kind)(
        folder("AutoModelForSequenceClassification", num_labels=1), device="cpu"
    )
    model.tokenizer.add_tokens(["covid"])
    for pair in (("good film", "good covid film"), ("good covid film", "good film")):
        with pytest.raises(
            InputError,
            match=r"the token 'covid' has the number 20, but the model's table has 20 rows",
        ):
            as_pair_model(model).score(*([text] for text in pair))


def test_code_of_a_folder_is_not_run_and_the_remedy_is_named(dense, tmp_path):
    place = saved(dense(), tmp_path)
    (tmp_path / "mine.py").write_text("raise RuntimeError('the code was run')")
    modules = json.loads((tmp_path / "modules.json").read_text())
    modules[1]["type"] = "mine.Own"
    (tmp_path / "modules.json").write_text(json.dumps(modules))
    for load in (
        as_model,
        ws.check,
        lambda name: ws.TransformerFeatures.from_pretrained(name, pool="own"),
    ):
        with pytest.raises(
            InputError,
            match=r"trust_remote_code=True and pass the object; on the command line, [^;]*$",
        ):
            load(place)


def test_code_of_a_cross_encoder_is_not_run_either(folder):
    place = Path(folder("AutoModelForSequenceClassification", num_labels=1))
    config = json.loads((place / "config.json").read_text())
    own = {
        "model_type": "own",
        "auto_map": {"AutoConfig": "own.Config", config["architectures"][0]: "own.Model"},
    }
    (place / "config.json").write_text(json.dumps({**config, **own}))
    (place / "own.py").write_text("raise RuntimeError('the code was run')")
    with pytest.raises(
        InputError,
        match=r"load the model yourself with trust_remote_code=True and pass the object",
    ):
        as_pair_model(str(place))
