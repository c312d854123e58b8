"""SentenceTransformers and SparseEncoders: our numbers are those of the library's own calls, as an
object and from its folder."""

import numpy as np
import pytest
import torch
import transformers

import wordsens as ws
from tests.maps.tiny_models import CONTEXT, model_of, tokenizer
from wordsens.errors import InputError
from wordsens.maps.transformer.features import map_of
from wordsens.models.classifier import as_classifier
from wordsens.models.identity import UNKNOWN
from wordsens.models.load import as_model
from wordsens.models.model_files import minilm_folder

library = pytest.importorskip("sentence_transformers")
from sentence_transformers.base.modules import Dense, Normalize, Router, Transformer  # noqa: E402
from sentence_transformers.sentence_transformer.modules import (  # noqa: E402
    LayerNorm,
    Pooling,
    StaticEmbedding,
)

LONG = "the film was not very long and the short film was not good and unlikely bad"
TEXTS = ["The film was BAD", f"{LONG} and {LONG}", "not good", "bad"]
OPPOSITES = [("the film was good", "the film was not good"), ("bad and long", "bad and short")]
SAME = [("very good", "good and very good"), ("not long", "not very long")]
PAIRS = [*OPPOSITES, *SAME]
ROWS = [("switch", *pair, False) for pair in OPPOSITES] + [("near", *pair, True) for pair in SAME]
TASKS = ("query", "document")
CLOSE = {"rtol": 0, "atol": 1e-5}


@pytest.fixture
def dense(save):
    """A function that makes a SentenceTransformer: a tiny BERT, its pooling, and further
    modules."""

    def make(*behind, words=None, pooling="mean", prompt=True, changes=None, reads=None, **options):
        folder = save(**(changes or {}))
        if words is not None:
            words.save_pretrained(folder)
        modules = [
            Transformer(folder, **(reads or {})),
            Pooling(16, pooling, include_prompt=prompt),
        ]
        return library.SentenceTransformer(modules=[*modules, *behind], device="cpu", **options)

    return make


@pytest.fixture
def both(tmp_path):
    """A function that gives a model as an object and as its folder."""

    def ways(model):
        model.save_pretrained(str(tmp_path / "saved"))
        return model, str(tmp_path / "saved")

    return ways


def similarities(model, **options):
    rows = ws.check(model, ROWS, **options).all_pairs()
    known = {(row["first"], row["second"]): row["similarity"] for row in rows}
    return [known[pair] for pair in PAIRS]


def own_similarities(model, first="encode", second="encode"):
    sides = [[pair[side] for pair in PAIRS] for side in (0, 1)]
    vectors = getattr(model, first)(sides[0]), getattr(model, second)(sides[1])
    return model.similarity_pairwise(*vectors).tolist()


def seeded(*modules):
    """The modules with weights that are the same every time."""
    stream = torch.Generator().manual_seed(1)
    for module in modules:
        for weight in module.parameters():
            weight.data = 0.3 * torch.randn(weight.shape, generator=stream)
    return modules


RELU, GELU = torch.nn.ReLU(), torch.nn.GELU()
QUERY = {"prompts": {"query": "very good: "}, "default_prompt_name": "query"}
LOWER = {"do_lower_case": True, "max_seq_length": 11}


@pytest.mark.parametrize(
    ("behind", "options"),
    [
        ([Normalize()], {"reads": LOWER}),
        ([Dense(16, 6)], {"pooling": "cls", "reads": LOWER, **QUERY}),
        (
            [Dense(16, 6, activation_function=RELU, use_residual=True)],
            {"pooling": ("cls",), "reads": LOWER, "truncate_dim": 4},
        ),
        (
            [
                Dense(16, 16, bias=False, activation_function=None, use_residual=True),
                LayerNorm(16),
                Dense(16, 8, activation_function=GELU),
                Normalize(),
            ],
            {"reads": LOWER, "truncate_dim": 5, "prompt": False, **QUERY},
        ),
        ([], {"reads": LOWER, "pooling": ("cls", "mean"), "truncate_dim": 20}),
        ([Normalize()], {"pooling": "lasttoken", "prompt": False, "truncate_dim": 7, **QUERY}),
        ([Normalize()], {"pooling": "weightedmean"}),
        ([], {"pooling": "max", "prompt": False, "reads": {"max_seq_length": 11}, **QUERY}),
    ],
)
def test_object_folder_and_map_give_the_librarys_own_numbers(dense, both, behind, options):
    """An object in training stays in training; a text that is too long is cut."""
    model = dense(*seeded(*behind), **options)
    expected, ways = model.encode(TEXTS), both(model)
    model.train()
    for given in ways:
        ours = as_model(given)
        np.testing.assert_allclose(ours.encode(TEXTS).numpy(), expected, **CLOSE)
        for phi in (map_of(ours), ws.TransformerFeatures.from_pretrained(given, pool="own")):
            texts = phi.embed(TEXTS)
            rows = torch.stack([phi(text) for text in texts])
            np.testing.assert_allclose(rows.numpy(), expected, **CLOSE)
            np.testing.assert_allclose(phi.encode(TEXTS).numpy(), expected, **CLOSE)
            longest = options.get("reads", {}).get("max_seq_length", CONTEXT)
            assert max(map(len, texts)) == longest
    assert model.training
    assert all(weight.requires_grad for weight in model.parameters())


def test_layers_of_both(dense, both):
    model = dense(Normalize())
    for given in both(model):
        layers = as_model(given).encode_layers(TEXTS)
        assert len(layers) == 4
        np.testing.assert_allclose(layers[-1].numpy(), model.encode(TEXTS), **CLOSE)
    # A dense layer behind the pooling is made for the last states alone.
    with_weights = as_model(dense(Dense(16, 6))).encode_layers(TEXTS)
    np.testing.assert_allclose(with_weights[-1].numpy(), dense().encode(TEXTS), **CLOSE)


def test_settings_changed_on_the_object_count(dense):
    model = dense(Normalize(), **QUERY)
    model.max_seq_length, model.truncate_dim, model.default_prompt_name = 8, 3, None
    phi = ws.TransformerFeatures.from_pretrained(model, pool="own")
    for ours in (phi, as_model(model)):
        np.testing.assert_allclose(ours.encode(TEXTS).numpy(), model.encode(TEXTS), **CLOSE)


def test_vectors_that_are_not_those_of_the_modules_have_no_rows(dense):
    model = dense()
    encode = model.encode
    model.encode = lambda *given, **named: encode(*given, **named) + 1e-3
    ours = as_model(model)
    np.testing.assert_allclose(ours.encode(TEXTS).numpy(), model.encode(TEXTS), **CLOSE)
    with pytest.raises(InputError, match=r"differs from its modules' results by 0.001 \(tolerance"):
        map_of(ours)


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
USUAL = {
    "vocab_size": len(tokenizer()),
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 24,
    "max_position_embeddings": CONTEXT,
    "initializer_range": 0.5,
    "pad_token_id": 0,
}


@pytest.mark.parametrize("kind", LEAKING)
def test_a_vector_is_that_of_the_text_alone(kind, both, tmp_path):
    """Among longer and shorter ones in any order; a text that has none of its own is refused."""
    name, sizes = LEAKING[kind]
    # Funnel's blocks say how many layers it has.
    usual = {
        key: value for key, value in USUAL.items() if (kind, key[:10]) != ("funnel", "num_hidden")
    }
    with torch.random.fork_rng():
        torch.manual_seed(0)
        config = transformers.AutoConfig.for_model(kind, **{**usual, **sizes})
        getattr(transformers, name)(config).eval().save_pretrained(tmp_path)
    tokenizer().save_pretrained(tmp_path)
    modules = [Transformer(str(tmp_path), max_seq_length=CONTEXT), Pooling(16)]
    model = library.SentenceTransformer(modules=modules, device="cpu")
    long = "the film was good and short and not very long and bad"
    texts = ["bad", long, "the film was good and short", "not good", "bad film"]
    if kind == "llama":
        texts.remove(long)
        with pytest.raises(InputError, match=r"the text 'the film was good and short .* shorten"):
            as_model(model).encode([*texts, long])
        assert "context is 8 tokens" in as_model(model).unreadable(long)
    alone = np.stack([model.encode([text])[0] for text in texts])
    if kind != "llama":
        assert np.abs(model.encode(texts) - alone).max() > 1e-3  # the library's own batch leaks
    for given in both(model):
        ours = as_model(given)
        for order in (slice(None), slice(None, None, -1)):
            np.testing.assert_allclose(ours.encode(texts[order]).numpy(), alone[order], **CLOSE)


def test_a_model_that_only_the_library_can_run(both):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        static = StaticEmbedding(tokenizer().backend_tokenizer, embedding_dim=8)
    model = library.SentenceTransformer(modules=[static], device="cpu")
    models = [as_model(given) for given in both(model)]
    for ours in models:
        np.testing.assert_allclose(ours.encode(TEXTS).numpy(), model.encode(TEXTS), **CLOSE)
        with pytest.raises(InputError, match=r"where gradients or layers .* has no rows to move"):
            map_of(ours)
    assert models[0].identity() == models[1].identity()


def test_minilm_by_name_and_as_an_object():
    model = library.SentenceTransformer(str(minilm_folder()), device="cpu")
    texts = ["I did not love her much.", "Turn it on.", "A long one. " * 200]
    for given in (model, "minilm"):
        np.testing.assert_allclose(as_model(given).encode(texts), model.encode(texts), **CLOSE)


def test_a_sparse_encoder_by_its_dot_products(save, both):
    from sentence_transformers.sparse_encoder.modules import SpladePooling

    masked = Transformer(save("bert", "AutoModelForMaskedLM"), transformer_task="fill-mask")
    model = library.SparseEncoder(modules=[masked, SpladePooling()], device="cpu")
    vectors = [model.encode(list(pair)).to_dense() for pair in PAIRS]
    own = [float((one * two).sum()) for one, two in vectors]
    for given in both(model):
        assert similarities(given) == pytest.approx(own, rel=1e-5)
        assert ws.explain(given, *OPPOSITES[0]).value == pytest.approx(own[0], rel=1e-5)
        with pytest.raises(InputError, match="SparseEncoder"):
            ws.TransformerFeatures.from_pretrained(given, pool="own")
    assert "dot product" in ws.check(model, ROWS).notes[0]


def routed(dense):
    """One encoder for queries and another for documents."""
    parts = [list(dense(changes={"initializer_range": size})) for size in (0.3, 0.9)]
    router = Router.for_query_document(*parts)
    return library.SentenceTransformer(modules=[router], prompts={"query": "good "}, device="cpu")


def routed_behind(dense):
    """One transformer, and a dense layer for queries and another for documents."""
    return dense(Router.for_query_document([Dense(16, 8)], [Dense(16, 8)]))


def of_two_lengths(dense):
    return dense(reads={"query_length": 8, "document_length": 12})


def with_passages(dense):
    return dense(prompts={"query": "good ", "passage": "bad film "})


@pytest.mark.parametrize("make", [routed, routed_behind, of_two_lengths, with_passages])
def test_queries_and_documents_are_read_each_in_its_own_way(dense, both, make):
    model = make(dense)
    assert not np.allclose(model.encode_query(TEXTS), model.encode_document(TEXTS), atol=0.01)
    for given in both(model):
        for name in TASKS:
            ours, own = as_model(given, prompt_name=name), getattr(model, f"encode_{name}")(TEXTS)
            np.testing.assert_allclose(ours.encode(TEXTS).numpy(), own, **CLOSE)
            if make in (of_two_lengths, with_passages):
                np.testing.assert_allclose(map_of(ours).encode(TEXTS).numpy(), own, **CLOSE)
        assert len({as_model(given, prompt_name=name).identity() for name in TASKS}) == 2
        own = own_similarities(model, "encode_query", "encode_document")
        found = similarities(given, prompt_names=TASKS)
        assert found == pytest.approx(own, abs=1e-5)
        if make is of_two_lengths:
            read = [as_model(given, prompt_name=name).read_span(LONG)[1] for name in TASKS]
            assert [LONG[:stop].split() for stop in read] == [LONG.split()[:6], LONG.split()[:10]]
        if make is not routed:
            np.testing.assert_allclose(as_model(given).encode(TEXTS), model.encode(TEXTS), **CLOSE)


@pytest.mark.parametrize("name", ["dot", "euclidean", "manhattan", "cosine"])
def test_similarities_are_those_that_the_model_names(dense, both, name):
    model = dense(similarity_fn_name=name)
    own = own_similarities(model)
    less = model.similarity(model.encode([OPPOSITES[0][0]]), model.encode(["the film was not"]))
    for given in both(model):
        result, explained = ws.check(given, ROWS), ws.explain(given, *OPPOSITES[0])
        assert similarities(given) == pytest.approx(own, abs=1e-4)
        auc = np.mean([one < two for one in own[:2] for two in own[2:]])
        assert result.kinds["switch"].auc == pytest.approx(auc)
        assert explained.value == pytest.approx(own[0], abs=1e-4)
        assert explained.removal[-1] == pytest.approx(float(less) - own[0], abs=1e-4)
        assert any("(similarity_fn_name)" in note for note in result.notes) == (name != "cosine")


def test_what_takes_cosines_alone_says_so_of_another_similarity(dense):
    model = dense(similarity_fn_name="dot")
    words = ("good", "bad", "long", "short", "not", "very", "film", "was")
    texts = [f"{LONG} {word}" for word in words]
    with pytest.raises(InputError, match=r"compares by the dot product \(similarity_fn_name\)"):
        ws.advise_length(model, texts)
    result = ws.compare(model, dense(Normalize()), texts, "none")
    assert sum("neighbours and distances are by cosines" in note for note in result.notes) == 1
    assert ws.check(model, ROWS, threshold=30).threshold == 30


def test_a_prompt_of_any_name_is_put_before_the_text(dense):
    model = dense(prompts={"title": "good film ", "passage": "bad "})
    for name, own in (
        ("title", model.encode(TEXTS, prompt_name="title")),
        ("passage", model.encode_document(TEXTS, prompt_name="passage")),
    ):
        np.testing.assert_allclose(as_model(model, prompt_name=name).encode(TEXTS), own, **CLOSE)
    with pytest.raises(InputError, match=r"is no prompt of .*; it has .*'title', 'passage'"):
        as_model(model, prompt_name="headline")


class Scaled(torch.nn.Module):
    """A module whose weight is no parameter, as those of the ONNX runtime are."""

    factor = np.array(2.0)

    def forward(self, features):
        scaled = features["sentence_embedding"] * float(self.factor)
        return {**features, "sentence_embedding": scaled}


def cut_in_front():
    made = tokenizer().backend_tokenizer
    names = ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token")
    named = {name: getattr(tokenizer(), name) for name in names}
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, model_max_length=10, truncation_side="left", **named
    )


def test_an_identity_is_shared_by_no_model_that_differs(dense, tmp_path):
    """Weights out of sight, a method that was replaced, a hook, a setting, a pooling."""
    patched, hooked, before = dense(), dense(), dense()
    patched[1].forward = lambda features: {
        **features,
        "sentence_embedding": features["token_embeddings"].sum(dim=1),
    }
    hooked[0].register_forward_hook(
        lambda module, given, out: {**out, "token_embeddings": out["token_embeddings"] ** 2}
    )
    before[1].register_forward_pre_hook(lambda module, given: None)
    unseen = [dense(Scaled()), patched, hooked, before]
    assert [as_model(model).identity() for model in unseen] == [UNKNOWN] * 4
    seen = [
        *(dense(), dense(pooling="cls"), dense(reads={"max_seq_length": 5})),
        *(dense(changes={"hidden_act": "relu"}), dense(words=cut_in_front())),
        *(dense(similarity_fn_name="dot"), dense(truncate_dim=4), dense(**QUERY)),
    ]
    places = [tmp_path / str(at) for at, _ in enumerate(seen)]
    for model, place in zip(seen, places, strict=True):
        model.save_pretrained(str(place))
    for models in (seen, places):
        identities = [as_model(model).identity() for model in models]
        assert len({*identities, UNKNOWN}) == len(seen) + 1
    nudged = dense()
    first = as_model(nudged).identity()
    assert first == as_model(dense()).identity()
    nudged.encode(TEXTS)  # the tokenizer keeps the truncation and padding of its last call
    assert as_model(nudged).identity() == first
    nudged[0].auto_model.embeddings.LayerNorm.eps = 1.0  # neither a weight nor in the configuration
    assert as_model(nudged).identity() != first


def test_of_a_text_that_is_cut_in_front_the_end_is_read(dense, both):
    words, end = cut_in_front(), "was not good and unlikely bad"
    model = dense(words=words, prompts={"query": "bad film "})
    classifier = as_classifier((model_of("bert", "AutoModelForSequenceClassification"), words))
    ours = as_model((model_of("bert"), words))
    for each in (ours, classifier, *map(as_model, both(model))):
        assert LONG[slice(*each.read_span(LONG))].strip() == end
    ids = words(LONG, truncation=True, max_length=10, return_tensors="pt")
    with torch.no_grad():
        own = classifier.model.model(**ids).logits.softmax(1).double()
    torch.testing.assert_close(classifier.probabilities([LONG]), own, rtol=0, atol=1e-6)
    for given in both(model):
        asked = as_model(given, prompt_name="query")
        texts = [LONG, "the film was not good and", "good"]
        np.testing.assert_allclose(asked.encode(texts), model.encode_query(texts), **CLOSE)
    assert [word.text for word in map_of(ours).embed([LONG])[0].whole_words] == end.split()
    explained = ws.explain(ours, LONG, "good film")
    rows = explained.columns()
    unread = [
        word for word, change in zip(rows["word"], rows["deleted"], strict=True) if change is None
    ]
    assert unread == LONG.removesuffix(end).split()
    tail, head = LONG.replace("unlikely", "not"), LONG.replace("the film", "a film", 1)
    rows = [("read", LONG, tail, False), ("unread", LONG, head, False), ("near", *SAME[0], True)]
    # An opposite that the model cannot see is a hit, as it is in service.
    seen, unseen, _ = ws.check(ours, rows).scored.values
    assert seen < unseen == 1


def test_a_token_of_the_tokenizer_alone_is_named(dense, both):
    model = dense()
    model.tokenizer.add_tokens(["covid"])
    message = r"the token 'covid' has the number 20, but the model's table has 20 rows; use the"
    classifier = model_of("bert", "AutoModelForSequenceClassification")
    for refused in (
        *(as_model(given).encode for given in both(model)),
        as_model((model_of("bert"), model.tokenizer)).encode,
        as_classifier((classifier, model.tokenizer)).probabilities,
        lambda texts: ws.explain(model, texts[0], "bad film"),
    ):
        with pytest.raises(InputError, match=message):
            refused(["good covid film"])
    # Of the other texts all is measured, and it is no word that another is exchanged for.
    explained = ws.explain(model, "good film", "bad film")
    assert "covid" not in [effect.replaced_by for effect in explained.effects]
