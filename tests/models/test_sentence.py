"""SentenceTransformers and CrossEncoders: our numbers against the library's own, as an object and
from its folder."""

import numpy as np
import pytest
import torch

import wordsens as ws
from tests.maps.tiny_models import CONTEXT, save_tiny, tokenizer
from wordsens.errors import InputError
from wordsens.maps.transformer.features import map_of
from wordsens.models.load import as_model, as_pair_model, is_pair_model
from wordsens.models.model_files import minilm_folder

sentence_transformers = pytest.importorskip("sentence_transformers")

TEXTS = [
    "The film was BAD",
    "the film was good and short and not very long and unlikely bad " * 3,
    "not good",
    "bad",
]
TOLERANCE = 1e-5


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """The folder of a tiny BERT."""
    folder = tmp_path_factory.mktemp("bert")
    save_tiny(folder)
    return str(folder)


@pytest.fixture
def made(base):
    """A function that makes a SentenceTransformer of the tiny BERT and modules behind its
    pooling."""
    from sentence_transformers.base.modules import Dense, Normalize, Transformer
    from sentence_transformers.sentence_transformer.modules import LayerNorm, Pooling

    behind = {
        "normalize": lambda: [Normalize()],
        "dense": lambda: [Dense(16, 6)],
        "residual": lambda: [Dense(16, 6, activation_function=torch.nn.ReLU(), use_residual=True)],
        "all": lambda: [
            Dense(16, 16, bias=False, activation_function=None, use_residual=True),
            LayerNorm(16),
            Dense(16, 8, activation_function=torch.nn.GELU()),
            Normalize(),
        ],
        "nothing": list,
    }

    def make(kind="all", *, pooling="mean", include_prompt=True, length=11, lower=True, **options):
        with torch.random.fork_rng():
            torch.manual_seed(1)
            modules = [
                Transformer(base, max_seq_length=length, do_lower_case=lower),
                Pooling(16, pooling, include_prompt=include_prompt),
                *behind[kind](),
            ]
        return sentence_transformers.SentenceTransformer(modules=modules, device="cpu", **options)

    return make


def both_ways(model, tmp_path):
    """Our models of the object and of its folder, and the maps of both."""
    model.save(str(tmp_path))
    loaded, named = as_model(model), as_model(tmp_path)
    maps = [
        ws.TransformerFeatures.from_pretrained(each, pool="own") for each in (model, str(tmp_path))
    ]
    return loaded, named, maps


QUERY = {"prompts": {"query": "very good: "}, "default_prompt_name": "query"}


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("normalize", {}),
        ("dense", {"pooling": "cls", **QUERY}),
        ("residual", {"pooling": ("cls", "max")[:1], "truncate_dim": 4}),
        ("all", {"truncate_dim": 5, "include_prompt": False, **QUERY}),
        ("nothing", {"pooling": ("cls", "mean"), "truncate_dim": 20}),
        (
            "normalize",
            {
                "pooling": "lasttoken",
                "include_prompt": False,
                "length": 20,
                "truncate_dim": 7,
                **QUERY,
            },
        ),
        ("normalize", {"pooling": "weightedmean"}),
        ("nothing", {"pooling": "max", "include_prompt": False, "lower": False, **QUERY}),
    ],
)
def test_object_folder_and_map_give_the_librarys_own_numbers(made, tmp_path, kind, options):
    model = made(kind, **options)
    expected = model.encode(TEXTS)
    loaded, named, maps = both_ways(model, tmp_path)
    np.testing.assert_allclose(loaded.encode(TEXTS).numpy(), expected, rtol=0, atol=TOLERANCE)
    np.testing.assert_allclose(named.encode(TEXTS).numpy(), expected, rtol=0, atol=TOLERANCE)
    for phi in maps:
        rows = torch.stack([phi(text) for text in phi.embed(TEXTS)])
        np.testing.assert_allclose(rows.numpy(), expected, rtol=0, atol=TOLERANCE)
        np.testing.assert_allclose(phi.encode(TEXTS).numpy(), expected, rtol=0, atol=TOLERANCE)
    assert loaded.no_rows is None
    assert named.no_rows is None
    # At least one text is longer than the model reads.
    assert max(len(text) for text in maps[0].embed(TEXTS)) == options.get("length", 11)


def test_layers_of_both(made, tmp_path):
    model = made("normalize")
    loaded, named, _ = both_ways(model, tmp_path)
    assert loaded.layers == named.layers == 3
    layers = loaded.encode_layers(TEXTS)
    torch.testing.assert_close(layers, named.encode_layers(TEXTS), rtol=0, atol=TOLERANCE)
    np.testing.assert_allclose(layers[-1].numpy(), model.encode(TEXTS), rtol=0, atol=TOLERANCE)
    with_weights = as_model(made("dense")).encode_layers(TEXTS)
    plain = made("nothing").encode(TEXTS)
    np.testing.assert_allclose(with_weights[-1].numpy(), plain, rtol=0, atol=TOLERANCE)


def test_settings_changed_on_the_object_count(made):
    model = made("normalize", **QUERY)
    model.max_seq_length, model.truncate_dim, model.default_prompt_name = 8, 3, None
    phi = ws.TransformerFeatures.from_pretrained(model, pool="own")
    np.testing.assert_allclose(
        phi.encode(TEXTS).numpy(), model.encode(TEXTS), rtol=0, atol=TOLERANCE
    )
    assert as_model(model).encode(TEXTS).shape == (4, 3)
    assert as_model(model).identity() != as_model(made("normalize", **QUERY)).identity()
    assert as_model(made("all")).identity() == as_model(made("all")).identity()


LEAKING = {
    "fnet": ("FNetModel", {}),
    "funnel": (
        "FunnelBaseModel",
        {"d_model": 16, "n_head": 4, "d_head": 4, "d_inner": 24, "block_sizes": [1, 1]},
    ),
    "phi3": (
        "Phi3Model",
        {
            "num_key_value_heads": 2,
            "original_max_position_embeddings": 8,
            "rope_scaling": {
                "rope_type": "longrope",
                "short_factor": [1.0] * 2,
                "long_factor": [4.0] * 2,
            },
        },
    ),
    "llama": (
        "LlamaModel",
        {
            "num_key_value_heads": 2,
            "max_position_embeddings": 8,
            "rope_scaling": {"rope_type": "dynamic", "factor": 4.0},
        },
    ),
}
"""Models whose vectors follow the longest text of a batch, or, the last, of all before."""


def leaking(kind, folder):
    """A tiny SentenceTransformer of the family."""
    import transformers
    from sentence_transformers.base.modules import Transformer
    from sentence_transformers.sentence_transformer.modules import Pooling

    name, sizes = LEAKING[kind]
    usual = {
        "vocab_size": len(tokenizer()),
        "hidden_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 24,
        "max_position_embeddings": CONTEXT,
        "initializer_range": 0.5,
        "pad_token_id": 0,
    }
    with torch.random.fork_rng():
        torch.manual_seed(0)
        if kind == "funnel":  # whose blocks say it
            del usual["num_hidden_layers"]
        config = transformers.AutoConfig.for_model(kind, **{**usual, **sizes})
        getattr(transformers, name)(config).eval().save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    modules = [Transformer(str(folder), max_seq_length=CONTEXT), Pooling(16)]
    return sentence_transformers.SentenceTransformer(modules=modules, device="cpu")


@pytest.mark.parametrize("kind", LEAKING)
def test_a_vector_is_that_of_the_text_alone(kind, tmp_path):
    """Among longer and shorter ones in any order; a text that has none of its own is refused."""
    model = leaking(kind, tmp_path / "base")
    texts = ["bad", "the film was good and short", "not good", "bad film", "the film was very bad"]
    long = "the film was good and short and not very long and bad"
    if kind == "llama":
        with pytest.raises(InputError, match=r"the text 'the film was good and short .* shorten"):
            as_model(model).encode([*texts, long])
        assert "context is 8 tokens" in as_model(model).unreadable(long)
    else:
        texts.insert(1, long)
    alone = np.stack([model.encode([text])[0] for text in texts])
    if kind != "llama":
        assert np.abs(model.encode(texts) - alone).max() > 1e-3  # the library's own batch leaks
    model.save(str(tmp_path / "saved"))
    for ours in (as_model(model), as_model(tmp_path / "saved")):
        for order in (slice(None), slice(None, None, -1)):
            encoded = ours.encode(texts[order]).numpy()
            np.testing.assert_allclose(encoded, alone[order], rtol=0, atol=TOLERANCE)


def test_an_object_in_training_stays_in_training(made):
    model = made("all").train()
    found = as_model(model)
    found.encode(TEXTS)
    map_of(found)
    assert model.training
    assert all(weight.requires_grad for weight in model.parameters())


def test_a_model_that_only_the_library_can_run(tmp_path):
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding

    with torch.random.fork_rng():
        torch.manual_seed(0)
        static = StaticEmbedding(tokenizer().backend_tokenizer, embedding_dim=8)
    model = sentence_transformers.SentenceTransformer(modules=[static], device="cpu")
    model.save(str(tmp_path))
    for each in (as_model(model), as_model(tmp_path)):
        np.testing.assert_allclose(
            each.encode(TEXTS).numpy(), model.encode(TEXTS), rtol=0, atol=1e-6
        )
        assert each.no_rows is not None
        with pytest.raises(
            InputError, match=r"where gradients or layers are needed .* has no rows to move"
        ):
            map_of(each)
    assert as_model(model).identity() == as_model(tmp_path).identity()


def test_minilm_as_an_object():
    model = sentence_transformers.SentenceTransformer(str(minilm_folder()), device="cpu")
    texts = ["I did not love her much.", "Turn it on.", "A long one. " * 200]
    expected = model.encode(texts)
    np.testing.assert_allclose(
        as_model(model).encode(texts).numpy(), expected, rtol=0, atol=TOLERANCE
    )
    np.testing.assert_allclose(
        as_model("minilm").encode(texts).numpy(), expected, rtol=0, atol=TOLERANCE
    )


@pytest.fixture(scope="module")
def reranker(tmp_path_factory):
    """A tiny CrossEncoder and its folder."""
    folder = tmp_path_factory.mktemp("reranker")
    save_tiny(folder, "bert", "AutoModelForSequenceClassification", num_labels=1)
    return sentence_transformers.CrossEncoder(str(folder), device="cpu"), folder


QUERIES = ["was the film good", "not bad", "very long"]
DOCUMENTS = ["the film was not good", "the film was good", "short and bad and very long " * 6]


def test_a_cross_encoder_scores_as_it_predicts(reranker):
    model, folder = reranker
    expected = model.predict(list(zip(QUERIES, DOCUMENTS, strict=True)))
    assert np.ptp(expected) > 0.01
    pairs = [as_pair_model(model), as_pair_model(str(folder))]
    for pair in pairs:
        np.testing.assert_allclose(
            pair.score(QUERIES, DOCUMENTS).numpy(), expected, rtol=0, atol=1e-6
        )
        assert pair.score(QUERIES, DOCUMENTS).dtype == torch.float64
    assert pairs[0].identity() == pairs[1].identity()
    assert is_pair_model(model)
    assert is_pair_model(folder)
    assert as_pair_model(pairs[0]) is pairs[0]


@pytest.mark.parametrize("moves", ["first", "second"])
def test_the_words_of_one_side_move_a_cross_encoder(reranker, moves):
    model, _ = reranker
    phi = map_of(as_pair_model(model), "logits")
    for query, document in zip(QUERIES, DOCUMENTS, strict=True):
        text = phi.embed_pair(query, document, moves)
        logit = model.predict([(query, document)], activation_fn=torch.nn.Identity())[0]
        np.testing.assert_allclose(phi(text).numpy(), [logit], rtol=0, atol=1e-6)
        assert len(text) <= CONTEXT
    text = phi.embed_pair(QUERIES[0], DOCUMENTS[0], moves)
    words = [word.text for word in text.whole_words]
    assert words == (QUERIES[0] if moves == "first" else DOCUMENTS[0]).split()
    tokens = [text.tokens[row] for word in text.whole_words for row in word.rows]
    assert tokens == words
    # A word that moves, moves the score.
    assert (
        ws.whole_word_sensitivity(
            phi, text, words=[1], search=ws.SearchPlan(starts=1, steps=1)
        ).value
        > 0
    )


def test_a_function_of_pairs():
    def longer(first, second):
        return [len(a) - len(b) for a, b in zip(first, second, strict=True)]

    pair = as_pair_model(longer, batch_size=2)
    assert pair.score(["a", "bb", "c"], ["aa", "b", "c"]).tolist() == [-1.0, 1.0, 0.0]
    assert pair.name == "longer"
    assert pair.identity() == "unknown"
    with pytest.raises(InputError, match="where gradients are needed longer cannot be used"):
        map_of(pair)


def test_what_scores_no_pairs_is_refused(reranker, base, made, tmp_path):
    with pytest.raises(
        InputError, match=r"`model` \(a CrossEncoder\) scores pairs, not texts; use as_pair_model"
    ):
        as_model(reranker[0])
    with pytest.raises(InputError, match=r"\(a SentenceTransformer\) does not score pairs"):
        as_pair_model(made())
    with pytest.raises(InputError, match="does not score pairs: it is no CrossEncoder"):
        as_pair_model(base)
    save_tiny(tmp_path, "bert", "AutoModelForSequenceClassification", num_labels=3)
    three = sentence_transformers.CrossEncoder(str(tmp_path), device="cpu")
    with pytest.raises(
        InputError, match="gives 3 scores a pair; use a CrossEncoder with one label"
    ):
        as_pair_model(three)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (
            lambda a, b: [[1.0, 2.0]] * len(a),
            "gave 2 scores per pair; it must give one",
        ),
        (lambda a, b: [1.0], "gave an array of shape (1, 1) for 2 texts"),
        (lambda a, b: a[5], "failed on 2 pairs with IndexError: list index out of range"),
    ],
)
def test_bad_scores(answer, message):
    with pytest.raises(InputError) as caught:
        as_pair_model(answer).score(["a", "b"], ["c", "d"])
    assert message in str(caught.value)
