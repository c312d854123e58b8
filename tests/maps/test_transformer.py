"""Transformers as maps, for every family: what a map gives is what the model's own forward pass gives."""

import pytest
import torch
from tests.laws.feature_map_laws import FeatureMapLaws
from tests.maps.tiny_models import CONTEXT, DECODERS, ENCODERS, model_of, tokenizer

import wordsens as ws
from wordsens.maps.contract import PlainGroupChange, PlainWordChange
from wordsens.maps.transformer.families import FAMILIES
from wordsens.seeds import generator

EVERY = (*ENCODERS, *DECODERS)
SENTENCE = "the film was not very unlikely good and long"
IDS = torch.tensor([[2, 5, 6, 9, 14, 8, 13, 12, 3], [2, 7, 7, 10, 11, 5, 6, 19, 3]])
UP_TO_ROUNDING = {"rtol": 0, "atol": 1e-6}


def phi_of(kind, *, dtype=torch.float32, auto="AutoModel", **options):
    return ws.TransformerFeatures(model_of(kind, auto, dtype=dtype), tokenizer(), name=kind, **options)


def own(phi, ids, **options):
    with torch.no_grad():
        return phi.stack.model(input_ids=ids, **options)


def perturbations(phi, rows, count, seed=0):
    stream = generator(seed, "perturbations")
    words = torch.randint(len(rows), (count,), generator=stream)
    return torch.randn(count, rows.shape[1], generator=stream).to(phi.dtype), words


class SmallBertLaws(FeatureMapLaws):
    n, d = 5, 6
    kind, changes = "bert", {}
    options = {}  # noqa: RUF012

    def make(self, *, dtype=torch.float64, device="cpu"):
        model = model_of(self.kind, dtype=dtype, hidden_size=self.d, num_attention_heads=2, num_hidden_layers=2)
        return ws.TransformerFeatures(model.to(device), **self.options)


class TestBertLaws(SmallBertLaws):
    pass


class TestGpt2LastTokenLaws(SmallBertLaws):
    kind = "gpt2"
    options = {"pool": "last"}  # noqa: RUF012


@pytest.mark.parametrize("kind", EVERY)
class TestEveryFamily:
    def test_hidden_states_are_the_librarys_own(self, kind):
        phi = phi_of(kind)
        expected = own(phi, IDS, output_hidden_states=True).hidden_states
        rows = phi.rows_of(IDS)
        torch.testing.assert_close(rows, expected[0], **UP_TO_ROUNDING)
        assert len(expected) == phi.stack.layers + 1 == 4
        for layer, states in enumerate(expected):
            torch.testing.assert_close(phi.at(layer=layer)(rows), states, **UP_TO_ROUNDING)

    def test_positions_stay_when_a_word_is_replaced_by_another_ones_row(self, kind):
        phi = phi_of(kind)
        other = IDS.clone()
        other[:, 4] = 11
        rows = phi.rows_of(IDS)
        rows[:, 4] = phi.rows_of(other)[:, 4]
        torch.testing.assert_close(phi(rows), own(phi, other).last_hidden_state, **UP_TO_ROUNDING)

    def test_the_heads_and_the_bias_sum_to_the_attention_output(self, kind):
        phi = phi_of(kind)
        rows = phi.rows_of(IDS)
        for layer in (1, 2, 3):
            projection = phi.stack.anatomy.outputs[layer - 1]
            seen = []
            handle = projection.register_forward_hook(lambda _, __, output, seen=seen: seen.append(output))
            phi(rows)
            handle.remove()
            heads = [phi.at(layer=layer, head=head)(rows) for head in range(4)]
            bias = torch.zeros(16) if projection.bias is None else projection.bias
            torch.testing.assert_close(torch.stack(heads).sum(dim=0) + bias, seen[0], rtol=0, atol=2e-6)

    def test_a_head_is_its_attention_times_its_values(self, kind):
        phi = phi_of(kind)
        rows = phi.rows_of(IDS)
        attention = phi.stack.attention(rows, 1)
        torch.testing.assert_close(attention.sum(dim=-1), torch.ones(2, 4, 9))
        # Moving row 8 changes the output of row j of head 2 by A_2 of the new text times the new values: rows that do
        # not attend to row 8 stay.
        head = phi.at(layer=1, head=2)
        moved = rows.clone()
        moved[:, 8] += 1.0
        stays = attention[:, 2, :, 8] == 0
        still = (head(moved) == head(rows)).all(dim=-1)
        assert torch.equal(still, stays)

    def test_a_batch_is_its_texts_one_at_a_time(self, kind):
        phi = phi_of(kind)
        rows = phi.rows_of(IDS)
        for one in (phi, phi.at(layer=2, head=1), phi.at(pool="mean"), phi.at(pool="cls"), phi.at(pool="last")):
            single = torch.stack([one(text) for text in rows])
            torch.testing.assert_close(one(rows), single, rtol=0, atol=2e-6)

    def test_the_change_and_its_gradient_are_those_of_plain_autograd(self, kind):
        phi = phi_of(kind, dtype=torch.float64)
        rows = phi.rows_of(IDS)[0]
        delta, words = perturbations(phi, rows, 12)
        for one in (phi, phi.at(layer=2, head=1), phi.at(pool="last")):
            plain = PlainWordChange(one, rows, memory_budget=1 << 28)
            expected, expected_slope = plain.squared_norm_and_gradient(delta, words)
            for budget in (1, 1 << 28):
                squared, slope = one.word_change(rows, memory_budget=budget).squared_norm_and_gradient(delta, words)
                # Rotary models compute angles and norms in float32 whatever their dtype.
                torch.testing.assert_close(squared, expected, rtol=1e-4, atol=1e-7)
                torch.testing.assert_close(
                    slope, expected_slope, rtol=1e-3, atol=1e-5 * float(expected_slope.abs().max())
                )

    def test_groups_change_as_plain_autograd_says(self, kind):
        phi = phi_of(kind, dtype=torch.float64)
        rows = phi.rows_of(IDS)[0]
        groups = torch.tensor([[1, 2], [4, 7], [5, 6]])
        delta = torch.randn(5, 2, 16, generator=generator(3, "groups"), dtype=torch.float64)
        which = torch.tensor([2, 0, 1, 1, 0])
        plain = PlainGroupChange(phi, rows, groups, memory_budget=1 << 28)
        expected = plain.squared_norm_and_gradient(delta, which)
        for ours, theirs in zip(
            phi.group_change(rows, groups).squared_norm_and_gradient(delta, which), expected, strict=True
        ):
            torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-5 * float(theirs.abs().max()))

    def test_causality(self, kind):
        phi = phi_of(kind)
        rows = phi.rows_of(IDS)[0]
        moved = rows.clone()
        moved[4] += 1.0
        before, after = phi(rows), phi(moved)
        assert bool((before[4:] != after[4:]).any(dim=1).all())
        assert phi.causal == (kind in DECODERS)
        if phi.causal:
            assert torch.equal(before[:4], after[:4])
            assert phi.notes == ("the model is causal: a word can move only itself and the rows behind it",)
        else:
            assert bool((before[:4] != after[:4]).any())
            assert phi.notes == ()

    def test_bfloat16_is_float32_roughly(self, kind):
        half, single = phi_of(kind, dtype=torch.bfloat16, pool="mean"), phi_of(kind, pool="mean")
        assert (half.dtype, half.stack.dtype) == (torch.float32, torch.bfloat16)
        features, expected = half(half.rows_of(IDS)), single(single.rows_of(IDS))
        assert features.dtype == torch.float32
        assert 0 < float((features - expected).norm() / expected.norm()) < 0.05
        r = ws.word_sensitivity(half, half.rows_of(IDS)[0], words=[4], starts=1, steps=2)
        assert r.value > 0.01

    def test_weights_are_frozen(self, kind):
        assert not any(parameter.requires_grad for parameter in phi_of(kind).stack.model.parameters())

    def test_sensitivity_with_the_maps_own_plan(self, kind):
        phi = phi_of(kind)
        text = phi.embed(SENTENCE)[0]
        r = ws.word_sensitivity(phi, text, words=[3, 5])
        torch.testing.assert_close(r.radius, text.rows[[3, 5]].double().norm(dim=1))
        assert r.tokens == (text.tokens[3], text.tokens[5])
        assert r.evaluations < 2 * 100
        assert r.notes == phi.notes
        stream = generator(0, "sphere")
        sphere = torch.nn.functional.normalize(torch.randn(200, 16, generator=stream), dim=1) * text.rows[3].norm()
        texts = text.rows.repeat(200, 1, 1)
        texts[:, 3] += sphere
        sampled = (phi(texts) - phi(text)).flatten(1).norm(dim=1) / phi(text).norm()
        assert float(r.per_word[0]) > float(sampled.max())


@pytest.mark.parametrize(("tiles", "dots"), [(False, False), (True, False), (False, True)])
def test_a_search_explores_in_bfloat16_where_the_processor_multiplies_it(monkeypatch, tiles, dots):
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: tiles)
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: dots)
    twin = phi_of("bert").fast_twin()
    assert (twin is None) == (not tiles and not dots)
    assert twin is None or twin.stack.dtype == torch.bfloat16


def test_every_family_of_the_table_is_tested():
    assert set(FAMILIES) == set(EVERY)


def test_later_rows_alone_are_run_for_a_causal_model(monkeypatch):
    phi = phi_of("llama")
    rows = phi.rows_of(IDS)[0]
    change = phi.word_change(rows)
    lengths = []
    run = phi.stack.states
    monkeypatch.setattr(phi.stack, "states", lambda rows, layer: lengths.append(rows.shape[1]) or run(rows, layer))
    delta, _ = perturbations(phi, rows, 2)
    change.squared_norm(delta, torch.tensor([7, 6]))
    assert lengths == [3]


@pytest.mark.parametrize("kind", ["bert", "roberta", "distilbert", "mpnet", "modernbert", "gpt2", "llama", "qwen2"])
def test_a_classifiers_logits_and_probabilities(kind):
    phi = phi_of(kind, auto="AutoModelForSequenceClassification", output="logits")
    rows = phi.rows_of(IDS)
    # A decoder's classifier reads the last token that is not padding; none of these is.
    expected = torch.cat([own(phi, ids.unsqueeze(0)).logits for ids in IDS])
    torch.testing.assert_close(phi(rows), expected, **UP_TO_ROUNDING)
    probabilities = phi.at(output="probabilities")
    torch.testing.assert_close(probabilities(rows), expected.softmax(dim=-1), **UP_TO_ROUNDING)
    assert ws.word_sensitivity(probabilities, rows[0], words=[3], starts=1, steps=3).value > 0


@pytest.mark.parametrize("kind", DECODERS)
def test_a_language_models_next_token(kind):
    phi = phi_of(kind, auto="AutoModelForCausalLM", output="logits", pool="last")
    rows = phi.rows_of(IDS)
    expected = own(phi, IDS).logits
    torch.testing.assert_close(phi(rows), expected[:, -1], **UP_TO_ROUNDING)
    torch.testing.assert_close(phi(rows[0]), expected[0, -1], **UP_TO_ROUNDING)
    torch.testing.assert_close(phi.at(output="logits")(rows), expected, **UP_TO_ROUNDING)


def test_a_longer_window_of_local_attention_matters():
    """ModernBERT's local layers: far rows do not move each other there, so masks are the model's own."""
    phi = phi_of("modernbert")
    head = phi.at(layer=2, head=0)
    attention = phi.stack.attention(phi.rows_of(IDS), 2)
    assert float(attention[:, :, 0, 5:].abs().max()) == 0
    assert head(phi.rows_of(IDS)).shape == (2, 9, 16)


def test_pooling():
    phi = phi_of("bert")
    rows = phi.rows_of(IDS)
    states = phi(rows)
    for pool, expected in {
        "mean": states.mean(dim=1),
        "cls": states[:, 0],
        "last": states[:, -1],
        "max": states.amax(dim=1),
    }.items():
        assert torch.equal(phi.at(pool=pool)(rows), expected)
    assert phi.at(layer=2, pool="mean").name == "bert layer 2 mean"


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
    assert [word.text for word in cut.whole_words] == ["the", "film", "was", "unlikely"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"layer": 4},
            "`layer` (=4) is not a layer of bert, which has layers 0 (embeddings) to 3; negative numbers count from "
            "the last, -1",
        ),
        ({"layer": 0, "head": 1}, "`head` (=1) of layer 0 does not exist; bert has heads 0 to 3 in layers 1 to 3"),
        ({"head": 4}, "`head` (=4) of layer 3 does not exist; bert has heads 0 to 3 in layers 1 to 3"),
        ({"pool": "men"}, "`pool` (='men') must be one of mean, cls, last, max, own; did you mean 'mean'?"),
        (
            {"pool": "own"},
            "the model 'bert' says nothing of its own pooling (modules.json is missing); use one of pool='mean', "
            "'cls', 'last', 'max'",
        ),
        (
            {"output": "logits"},
            "`output` (='logits') needs a model with a head for its task, and bert has none; use output='states', or a "
            "classifier or language model",
        ),
        (
            {"output": "logit"},
            "`output` (='logit') must be one of states, logits, probabilities; did you mean 'logits'?",
        ),
    ],
)
def test_what_a_model_does_not_have_is_refused(options, message):
    with pytest.raises(ws.InputError) as caught:
        phi_of("bert", **options)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"layer": 1},
            "`output` (='logits') is made from the last layer; leave layer and head out",
        ),
        (
            {"pool": "mean"},
            "`pool` (='mean') is of hidden states; with output='logits' pass None, or 'last' for the last token's "
            "logits",
        ),
    ],
)
def test_a_task_head_has_no_layers(options, message):
    with pytest.raises(ws.InputError) as caught:
        phi_of("llama", auto="AutoModelForCausalLM", output="logits", **options)
    assert str(caught.value) == message


def test_an_unknown_architecture_is_refused():
    from transformers import AutoConfig, AutoModel

    config = AutoConfig.for_model("gpt_neox", hidden_size=16, num_hidden_layers=1, num_attention_heads=2, vocab_size=9)
    with pytest.raises(ws.InputError) as caught:
        ws.TransformerFeatures(AutoModel.from_config(config), name="neo")
    assert str(caught.value) == (
        "the model 'neo' has the architecture 'gpt_neox', whose parts are not known; use one of "
        f"{', '.join(sorted(FAMILIES))}, or wrap the model in FunctionFeatures"
    )


def test_a_model_that_is_not_what_it_says_is_refused():
    model = model_of("bert")
    # A model whose embeddings are changed behind its first block's back does not give what the blocks make of the rows.
    block = model.encoder.layer[1]
    forward = block.forward
    calls = []
    block.forward = lambda states, *rest, **named: calls.append(1) or forward(states + len(calls), *rest, **named)
    with pytest.raises(ws.InputError, match="the model 'odd' are not those of the architecture 'bert'"):
        ws.TransformerFeatures(model, name="odd")


def test_a_text_longer_than_the_context_is_refused():
    phi = phi_of("bert")
    with pytest.raises(ws.InputError) as caught:
        phi.embed("good " * 30)
    assert str(caught.value) == (
        f"text 0 has 30 tokens and bert adds 2, but its context is {CONTEXT} tokens; "
        f"pass max_words={CONTEXT - 2} or less"
    )
    assert len(phi.embed("good " * 30, max_words=CONTEXT - 2)[0]) == CONTEXT
    with pytest.raises(ws.InputError) as caught:
        phi(torch.ones(CONTEXT + 1, 16))
    assert str(caught.value) == (
        f"`X` has {CONTEXT + 1} rows, but the context of bert is {CONTEXT} tokens; truncate the text, or pass "
        f"max_words={CONTEXT - 2} to embed"
    )


def test_an_empty_text_and_a_map_without_tokenizer():
    with pytest.raises(ws.InputError, match="text 0 gives no token: it is empty or only blanks; leave it out"):
        phi_of("bert").embed("  ")
    with pytest.raises(ws.InputError, match="this map has no tokenizer; pass one to TransformerFeatures, or give rows"):
        ws.TransformerFeatures(model_of("bert")).embed("good")


def test_attention_weights_need_the_plain_products():
    model = model_of("bert")
    model.set_attn_implementation("sdpa")
    phi = ws.TransformerFeatures(model, name="bert")
    with pytest.raises(ws.InputError, match="does not give its attention weights; load it with attention='eager'"):
        phi.stack.attention(phi.rows_of(IDS), 1)
