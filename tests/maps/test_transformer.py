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


class TestBertHeadLaws(SmallBertLaws):
    options = {"layer": 1, "head": 1, "pool": "mean"}  # noqa: RUF012


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


def test_a_classifier_whose_tokenizer_ends_a_text_with_the_padding_token():
    """The model reads the last token that is not padding, which is not the last row."""
    model = model_of("qwen2", "AutoModelForSequenceClassification", pad_token_id=3)
    phi = ws.TransformerFeatures(model, tokenizer(), output="logits")
    expected = torch.cat([model(ids.unsqueeze(0)).logits.detach() for ids in IDS])
    torch.testing.assert_close(phi(phi.rows_of(IDS)), expected, **UP_TO_ROUNDING)


@pytest.mark.parametrize("kind", DECODERS)
def test_a_language_models_next_token(kind):
    phi = phi_of(kind, auto="AutoModelForCausalLM", output="logits", pool="last")
    rows = phi.rows_of(IDS)
    expected = phi.model.model(IDS).logits.detach()
    torch.testing.assert_close(phi(rows), expected[:, -1], **UP_TO_ROUNDING)
    torch.testing.assert_close(phi(rows[0]), expected[0, -1], **UP_TO_ROUNDING)
    torch.testing.assert_close(phi.at(output="logits")(rows), expected, **UP_TO_ROUNDING)


def test_a_word_that_is_cut_in_its_middle_is_none():
    document = ws.Document("the film was unlikely good", label=1, source="a")
    (cut,) = phi_of("bert").embed(document, max_words=4)
    assert cut.tokens == ("[CLS]", "the", "film", "was", "un", "[SEP]")
    assert [word.text for word in cut.whole_words] == ["the", "film", "was"]
    assert (cut.label, cut.source) == (1, "a")


def test_without_a_list_of_layers_the_token_embeddings_move():
    model = model_of("bert")
    model.encoder.layer = torch.nn.Sequential(*model.encoder.layer)
    phi = ws.TransformerFeatures(model, tokenizer(), name="odd")
    note = "the rows that move are those of the token embeddings: no list of layers was recognised"
    rows = phi.rows_of(IDS)
    table = model.get_input_embeddings().weight
    assert torch.equal(rows, table[IDS])
    for layer, states in enumerate(model(IDS, output_hidden_states=True).hidden_states):
        torch.testing.assert_close(phi.at(layer=layer)(rows), states, **UP_TO_ROUNDING)
    other = IDS.clone()
    other[:, 2] = 17
    rows[:, 2] = table[17]
    torch.testing.assert_close(phi(rows), model(other).last_hidden_state, **UP_TO_ROUNDING)
    quick = ws.SearchPlan(starts=1, steps=2)
    assert ws.word_sensitivity(phi, rows[0], words=[2], search=quick).notes == phi.notes == (note,)
    with pytest.raises(ws.InputError, match=r"the attention heads of 'odd' are not recognised"):
        phi.at(layer=1, head=0)


def reading_tokens(model):
    """The model with a layer that adds a thousandth of every token's number to its row."""
    forward, seen = model.encoder.layer[1].forward, []
    model.embeddings.register_forward_pre_hook(
        lambda _, __, named: seen.append(named["input_ids"].unsqueeze(-1)), with_kwargs=True
    )
    model.encoder.layer[1].forward = lambda states, *rest, **named: forward(
        states + 1e-3 * seen[-1], *rest, **named
    )
    return model


def detached(model):
    """The model with a layer whose gradient is a tenth of what its numbers say."""
    forward = model.encoder.layer[1].forward
    model.encoder.layer[1].forward = lambda states, *rest, **named: forward(
        0.1 * states + 0.9 * states.detach(), *rest, **named
    )
    return model


def quantised(model):
    return torch.ao.quantization.quantize_dynamic(model, {torch.nn.Linear}, dtype=torch.qint8)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (reading_tokens, "depend on the tokens in other ways than by the rows"),
        (detached, "has no gradient in torch.float32, or a gradient that does not match"),
        (quantised, r"is quantised: its layers have no gradient"),
        (lambda _: model_of("xlnet"), r"cannot be run from rows \(RuntimeError"),
    ],
)
def test_a_model_that_has_no_map_says_so(make, message):
    with pytest.raises(ws.InputError, match=message):
        ws.TransformerFeatures(make(model_of("bert")), name="odd")


def test_a_head_that_reads_tokens_has_no_logits_from_rows():
    model = model_of("bert", "AutoModelForSequenceClassification")
    forward = model.forward

    def with_tokens(input_ids, **named):
        output = forward(input_ids=input_ids, **named)
        output.logits = output.logits + 1e-2 * input_ids.sum()
        return output

    model.forward = with_tokens
    with pytest.raises(ws.InputError, match="its head reads other things than the hidden states"):
        ws.TransformerFeatures(model, tokenizer(), output="logits")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"layer": 4}, r"`layer` \(=4\) is not a layer of bert"),
        ({"head": 4}, r"`head` \(=4\) of layer 3 does not exist"),
        ({"pool": "men"}, "did you mean 'mean'"),
        ({"pool": "own"}, "has no pooling of its own"),
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
    with pytest.raises(ws.InputError, match=f"or pass max_words={CONTEXT - 2} to embed"):
        phi(torch.ones(CONTEXT + 1, 16))


def test_an_empty_text_and_a_map_without_tokenizer_or_pool():
    with pytest.raises(ws.InputError, match="text 0 has no token: it is empty or only blanks"):
        phi_of("bert").embed("  ")
    with pytest.raises(ws.InputError, match="has no tokenizer; pass one, or give rows"):
        ws.TransformerFeatures(model_of("bert")).embed("good")
    with pytest.raises(ws.InputError, match="choose a pool, such as pool='mean'"):
        phi_of("bert").encode(["good"])
