"""Transformers as maps, for every architecture: what a map gives is what the model's own forward
pass gives."""

import pytest
import torch

import wordsens as ws
from tests.laws.feature_map_laws import FeatureMapLaws
from tests.maps.tiny_models import CONTEXT, DECODERS, ENCODERS, UNUSUAL, model_of, tokenizer
from wordsens.seeds import generator

EVERY = (*ENCODERS, *DECODERS, *UNUSUAL)
IDS = torch.tensor([[2, 5, 6, 9, 14, 8, 13, 12, 3], [2, 7, 7, 10, 11, 5, 6, 19, 3]])
UP_TO_ROUNDING = {"rtol": 0, "atol": 2e-6}


def phi_of(kind, *, dtype=torch.float32, auto="AutoModel", **options):
    return ws.TransformerFeatures(
        model_of(kind, auto, dtype=dtype), tokenizer(), name=kind, **options
    )


class SmallBertLaws(FeatureMapLaws):
    n, d = 5, 6
    kind, changes = "bert", {}
    options = {}  # noqa: RUF012

    def make(self, *, dtype=torch.float64, device="cpu"):
        model = model_of(
            self.kind, dtype=dtype, hidden_size=self.d, num_attention_heads=2, num_hidden_layers=2
        )
        return ws.TransformerFeatures(model.to(device), **self.options)


class TestBertLaws(SmallBertLaws):
    pass


class TestGpt2LastTokenLaws(SmallBertLaws):
    kind = "gpt2"
    options = {"pool": "last"}  # noqa: RUF012


@pytest.mark.parametrize("kind", EVERY)
class TestEveryArchitecture:
    def test_the_gradient_is_that_of_finite_differences(self, kind):
        # Longformer's own attention has no gradient in float64; rotary models compute their angles
        # in float32.
        phi = phi_of(
            kind, dtype=torch.float32 if kind == "longformer" else torch.float64, pool="mean"
        )
        stream = generator(0, "slope")
        rows = phi.rows_of(IDS)[0].requires_grad_()
        along = torch.randn(16, generator=stream).to(phi.dtype)
        (slope,) = torch.autograd.grad((phi(rows) * along).sum(), rows)
        with torch.no_grad():
            step = 1e-3 * rows.norm() * slope / slope.norm()
            change = ((phi(rows + step) - phi(rows - step)) * along).sum()
        torch.testing.assert_close(change, 2 * (slope * step).sum(), rtol=0.02, atol=0)

    def test_the_change_of_a_batch_is_the_change_by_definition(self, kind):
        phi = phi_of(kind)
        rows = phi.rows_of(IDS)[0]
        stream = generator(1, "delta")
        delta, words = torch.randn(6, 16, generator=stream), torch.tensor([0, 3, 3, 8, 5, 1])
        for one in (phi, phi.at(layer=2, head=1), phi.at(layer=1, pool="last")):
            for budget in (1, 1 << 28):
                squared, slope = one.word_change(rows, memory_budget=budget).value_and_gradient(
                    delta, words
                )
                for at, word in enumerate(words):
                    moved = rows.clone()
                    moved[word] += delta[at]
                    expected = (one(moved) - one(rows)).square().sum()
                    torch.testing.assert_close(squared[at], expected, rtol=1e-4, atol=1e-6)
                assert slope.shape == delta.shape
        groups = phi.group_change(rows, torch.tensor([[1, 2], [5, 6]]))
        moved = rows.clone()
        moved[5:7] += delta[:2]
        found = groups.value(delta[:2].unsqueeze(0), torch.tensor([1]))
        torch.testing.assert_close(
            found[0], (phi(moved) - phi(rows)).square().sum(), rtol=1e-4, atol=1e-6
        )

    def test_the_heads_and_the_bias_sum_to_the_attention_output(self, kind):
        phi = phi_of(kind)
        rows = phi.rows_of(IDS)
        for layer in (1, 3):
            projection = phi.heads.parts(layer)[-1]
            seen = []
            handle = projection.register_forward_hook(
                lambda _, __, output, seen=seen: seen.append(output)
            )
            phi(rows)
            handle.remove()
            heads = [phi.at(layer=layer, head=head)(rows) for head in range(4)]
            bias = torch.zeros(16) if getattr(projection, "bias", None) is None else projection.bias
            expected = seen[layer - 1 if len(seen) > 1 else 0][:, : rows.shape[1]]
            torch.testing.assert_close(
                torch.stack(heads).sum(dim=0) + bias, expected, **UP_TO_ROUNDING
            )

    def test_a_batch_is_its_texts_one_at_a_time(self, kind):
        phi = phi_of(kind)
        rows = phi.rows_of(IDS)
        for one in (
            phi,
            phi.at(layer=2, head=1),
            phi.at(pool="mean"),
            phi.at(pool="cls"),
            phi.at(pool="last"),
        ):
            torch.testing.assert_close(
                one(rows), torch.stack([one(text) for text in rows]), **UP_TO_ROUNDING
            )

    def test_causality(self, kind):
        phi = phi_of(kind)
        rows = phi.rows_of(IDS)[0]
        moved = rows.clone()
        moved[4] += 1.0
        before, after = phi(rows), phi(moved)
        assert bool((before[4:] != after[4:]).any(dim=1).all())
        assert phi.causal == (kind in DECODERS)
        assert torch.equal(before[:4], after[:4]) == phi.causal
        note = "the model is causal: a word can move only itself and the rows behind it"
        assert phi.notes == ((note,) if phi.causal else ())

    def test_bfloat16_is_float32_roughly(self, kind):
        half, single = phi_of(kind, dtype=torch.bfloat16, pool="mean"), phi_of(kind, pool="mean")
        assert (half.dtype, half.model.dtype) == (torch.float32, torch.bfloat16)
        features, expected = half(half.rows_of(IDS)), single(single.rows_of(IDS))
        assert features.dtype == torch.float32
        assert 0 < float((features - expected).norm() / expected.norm()) < 0.05

    def test_weights_are_frozen_and_no_hook_stays(self, kind):
        phi = phi_of(kind)
        phi.at(layer=1, head=0)(phi.rows_of(IDS))
        assert not any(parameter.requires_grad for parameter in phi.model.model.parameters())
        parts = list(phi.model.model.modules())
        names = [hook.__module__ for part in parts for hook in (*part._forward_pre_hooks.values(),)]
        assert not [name for name in names if name.startswith("wordsens")]


@pytest.mark.parametrize(
    "kind",
    [
        "bert",
        "roberta",
        "distilbert",
        "mpnet",
        "modernbert",
        "deberta-v2",
        "gpt2",
        "llama",
        "qwen2",
    ],
)
def test_a_classifiers_logits_and_probabilities(kind):
    phi = phi_of(kind, auto="AutoModelForSequenceClassification", output="logits")
    rows = phi.rows_of(IDS)
    # A decoder's classifier reads the last token that is not padding; none of these is.
    expected = torch.cat([phi.model.model(ids.unsqueeze(0)).logits.detach() for ids in IDS])
    torch.testing.assert_close(phi(rows), expected, **UP_TO_ROUNDING)
    probabilities = phi.at(output="probabilities")
    torch.testing.assert_close(probabilities(rows), expected.softmax(dim=-1), **UP_TO_ROUNDING)
    assert (
        ws.word_sensitivity(
            probabilities, rows[0], words=[3], search=ws.SearchPlan(starts=1, steps=3)
        ).value
        > 0
    )


def test_a_classifier_whose_tokenizer_ends_a_text_with_the_padding_token():
    """The model reads the last token that is not padding, which is not the last row."""
    phi = phi_of("qwen2", auto="AutoModelForSequenceClassification", output="logits")
    other = model_of("qwen2", "AutoModelForSequenceClassification", pad_token_id=3)
    padded = ws.TransformerFeatures(other, tokenizer(), output="logits")
    rows = phi.rows_of(IDS)
    expected = torch.cat([other(ids.unsqueeze(0)).logits.detach() for ids in IDS])
    torch.testing.assert_close(padded(rows), expected, **UP_TO_ROUNDING)
    assert not torch.allclose(padded(rows), phi(rows))


@pytest.mark.parametrize("kind", DECODERS)
def test_a_language_models_next_token(kind):
    phi = phi_of(kind, auto="AutoModelForCausalLM", output="logits", pool="last")
    rows = phi.rows_of(IDS)
    expected = phi.model.model(IDS).logits.detach()
    torch.testing.assert_close(phi(rows), expected[:, -1], **UP_TO_ROUNDING)
    torch.testing.assert_close(phi(rows[0]), expected[0, -1], **UP_TO_ROUNDING)
    torch.testing.assert_close(phi.at(output="logits")(rows), expected, **UP_TO_ROUNDING)


def test_rows_come_with_tokens_and_whole_words():
    phi = phi_of("bert")
    text = phi.embed("the film was unlikely good")[0]
    assert text.tokens == ("[CLS]", "the", "film", "was", "un", "##like", "##ly", "good", "[SEP]")
    assert [(word.text, word.rows) for word in text.whole_words] == [
        ("the", (1,)),
        ("film", (2,)),
        ("was", (3,)),
        ("unlikely", (4, 5, 6)),
        ("good", (7,)),
    ]
    cut = phi.embed(ws.Document("the film was unlikely good", label=1, source="a"), max_words=4)[0]
    assert cut.tokens == ("[CLS]", "the", "film", "was", "un", "[SEP]")
    assert (cut.label, cut.source) == (1, "a")
    # A word that is cut in its middle is none.
    assert [word.text for word in cut.whole_words] == ["the", "film", "was"]


class Sequential(torch.nn.Module):
    """A transformer of no known layout: its layers are no list, and places are added behind the
    token embeddings."""

    def __init__(self):
        from transformers import PretrainedConfig

        super().__init__()
        with torch.random.fork_rng():
            torch.manual_seed(0)
            self.words, self.places = torch.nn.Embedding(20, 8), torch.nn.Embedding(CONTEXT, 8)
            self.body = torch.nn.Sequential(
                *(torch.nn.TransformerEncoderLayer(8, 2, 12, 0, batch_first=True),) * 2
            )
        self.config = PretrainedConfig(vocab_size=20, hidden_size=8, pad_token_id=0)

    def get_input_embeddings(self):
        return self.words

    def forward(self, input_ids, output_hidden_states=False):
        from transformers.modeling_outputs import BaseModelOutput

        states = [self.words(input_ids) + self.places.weight[: input_ids.shape[1]]]
        for layer in self.body:
            states.append(layer(states[-1]))
        return BaseModelOutput(states[-1], tuple(states) if output_hidden_states else None)


def test_without_a_list_of_layers_the_token_embeddings_move():
    model = Sequential()
    phi = ws.TransformerFeatures(model, tokenizer(), name="odd")
    assert phi.notes == (
        "the rows that move are those of the token embeddings: no list of layers was recognised",
    )
    rows = phi.rows_of(IDS)
    assert torch.equal(rows, model.words.weight[IDS])
    expected = model(IDS, output_hidden_states=True).hidden_states
    for layer, states in enumerate(expected):
        torch.testing.assert_close(phi.at(layer=layer)(rows), states, **UP_TO_ROUNDING)
    other = IDS.clone()
    other[:, 2] = 17
    rows[:, 2] = model.words.weight[17]
    torch.testing.assert_close(phi(rows), model(other).last_hidden_state, **UP_TO_ROUNDING)
    assert (
        ws.word_sensitivity(phi, rows[0], words=[2], search=ws.SearchPlan(starts=1, steps=2)).notes
        == phi.notes
    )
    with pytest.raises(ws.InputError, match=r"`head` .* does not exist"):
        phi.at(layer=1, head=0)


def shifting(model):
    """The model with a layer that counts its calls: what it gives depends on more than the rows."""
    forward, calls = model.encoder.layer[1].forward, []
    model.encoder.layer[1].forward = lambda states, *rest, **named: (
        calls.append(1) or forward(states + len(calls), *rest, **named)
    )
    return model


def quantised(model):
    return torch.ao.quantization.quantize_dynamic(model, {torch.nn.Linear}, dtype=torch.qint8)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (shifting, "depend on the tokens in other ways than by the rows|has no gradient"),
        (quantised, r"is quantised: its layers have no gradient"),
        (lambda _: model_of("xlnet"), r"cannot be run from rows \(RuntimeError"),
    ],
)
def test_a_model_that_has_no_map_says_so(make, message):
    with pytest.raises(ws.InputError, match=message):
        ws.TransformerFeatures(make(model_of("bert")), name="odd")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"layer": 4}, r"`layer` \(=4\) is not a layer of bert"),
        ({"head": 4}, r"`head` \(=4\) of layer 3 does not exist"),
        ({"pool": "men"}, "did you mean 'mean'"),
        ({"pool": "own"}, "says nothing of its own pooling"),
        ({"output": "logits"}, "needs a model with a head for its task"),
    ],
)
def test_what_a_model_does_not_have_is_refused(options, message):
    with pytest.raises(ws.InputError, match=message):
        phi_of("bert", **options)


def test_more_rows_than_the_context_are_refused():
    phi = phi_of("bert")
    assert len(phi.embed("good " * 30, max_words=CONTEXT - 2)[0]) == CONTEXT
    phi(torch.ones(CONTEXT, 16))
    with pytest.raises(ws.InputError, match="truncate the text, or pass max_words="):
        phi(torch.ones(CONTEXT + 1, 16))


def test_an_empty_text_and_a_map_without_tokenizer():
    with pytest.raises(
        ws.InputError, match="text 0 gives no token: it is empty or only blanks; leave it out"
    ):
        phi_of("bert").embed("  ")
    with pytest.raises(
        ws.InputError,
        match="has no tokenizer; pass one, or give rows",
    ):
        ws.TransformerFeatures(model_of("bert")).embed("good")
