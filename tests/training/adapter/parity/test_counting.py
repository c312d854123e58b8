"""A model with a counting layer, against the number of turning tokens that its tokenizer finds."""

import pytest
import torch

import wordsens as ws
from wordsens.text.pretrained import load_model, minilm_folder
from wordsens.training.adapter.parity.carry import anatomy_of
from wordsens.training.adapter.parity.counting import append_layer
from wordsens.training.adapter.parity.neurons import above, add_neurons, below, of_one_width, value
from wordsens.training.adapter.parity.turning import turning_pieces

TEXTS = [
    "Yes.",
    "It is not open.",
    "No one ever said that the shop was not closed, and nobody asked.",
    "Never pay 30 euros before the trial ends; cancel on Tuesday instead, without a fee.",
]


def pooled(tokenizer, model, texts):
    """The mean over all tokens of each text, padded together as sentence-transformers pads."""
    read = tokenizer(texts, padding=True, truncation=True, max_length=256, return_tensors="pt")
    mask = read["attention_mask"][..., None]
    with torch.no_grad():
        states = model(**read).last_hidden_state
    return (states * mask).sum(dim=1) / mask.sum(dim=1)


def counts(tokenizer, texts):
    """The number of turning tokens of each text."""
    pieces = turning_pieces(tokenizer)
    read = tokenizer(texts, truncation=True, max_length=256)["input_ids"]
    return torch.tensor([float(sum(number in pieces for number in ids)) for ids in read])


def test_the_model_counts(counting, sentences):
    tokenizer, model, (count, one) = counting
    texts = [*TEXTS, *sentences[:200], *(" ".join(sentences[at : at + 15]) for at in range(0, 150, 15))]
    vectors, expected = pooled(tokenizer, model, texts), counts(tokenizer, texts)
    assert expected.max() > 15
    assert (vectors[:, count] / vectors[:, one] - expected).abs().max() < 0.25


def test_the_count_is_a_small_part_of_the_vector(counting, sentences):
    tokenizer, model, places = counting
    vectors = pooled(tokenizer, model, sentences[:50])
    assert (vectors[:, list(places)].norm(dim=1) < 0.02 * vectors.norm(dim=1)).all()


def test_an_appended_layer_changes_nothing(encoder):
    tokenizer, model, _ = load_model(str(encoder))
    before = pooled(tokenizer, model, TEXTS)
    append_layer(anatomy_of(model, "encoder"))
    assert model.config.num_hidden_layers == 4
    assert (pooled(tokenizer, model, TEXTS) - before).abs().max() < 1e-5


@pytest.mark.parametrize("act", ["gelu", "relu"])
def test_neurons_compute_lines_and_steps(act, encoder):
    _, model, _ = load_model(str(encoder))
    model.config.hidden_act = act
    layer = anatomy_of(model, "encoder").layers[0]
    for part in (layer.intermediate.dense, layer.output.dense):
        torch.nn.init.zeros_(part.weight), torch.nn.init.zeros_(part.bias)
    unit = torch.eye(128)
    add_neurons(layer, [value(4, unit[5]), above(4, 0.4, unit[6]), below(4, 0.3, -2 * unit[7])])
    of_one_width(model, anatomy_of(model, "encoder").layers)
    assert model.config.intermediate_size == 102
    states = torch.zeros(6, 128)
    states[:, 4] = torch.tensor([-3.0, -0.35, -0.2, 0.3, 0.45, 8.0])
    activation = {"gelu": torch.nn.functional.gelu, "relu": torch.relu}[act]
    written = layer.output.dense(activation(layer.intermediate.dense(states)))
    assert torch.allclose(written[:, 5], states[:, 4], atol=1e-5)
    assert torch.allclose(written[:, 6], torch.tensor([0.0, 0, 0, 0, 1, 1]), atol=1e-3)
    assert torch.allclose(written[:, 7], torch.tensor([-2.0, -2, 0, 0, 0, 0]), atol=1e-3)


def test_roberta_counts(sentences, encoder, tmp_path):
    """Its positions begin behind that of the padding."""
    from transformers import AutoTokenizer, RobertaConfig, RobertaModel

    from wordsens.training.adapter.parity.build import ParityModel

    tokenizer = AutoTokenizer.from_pretrained(encoder)
    config = RobertaConfig(
        vocab_size=len(tokenizer), hidden_size=128, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
        max_position_embeddings=514, initializer_range=0.1, pad_token_id=0, type_vocab_size=1,
    )  # fmt: skip
    torch.manual_seed(1)
    RobertaModel(config).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    made = ParityModel(str(tmp_path), sentences, pooling=None, revision=None)
    vectors, (count, one) = pooled(tokenizer, made._model, sentences[:100]), made._places
    assert (vectors[:, count] / vectors[:, one] - counts(tokenizer, sentences[:100])).abs().max() < 0.25


@pytest.mark.slow
def test_minilm_counts_and_keeps_its_vectors(sentences):
    from wordsens.training.adapter.parity.build import ParityModel

    texts = [*TEXTS, *sentences[-60:], *(" ".join(sentences[at : at + 8]) for at in range(300, 332, 8))]
    tokenizer, plain, _ = load_model(str(minilm_folder()))
    before = pooled(tokenizer, plain, texts)
    made = ParityModel("minilm", sentences, pooling=None, revision=None)
    count, one = made._places
    vectors = pooled(tokenizer, made._model, texts)
    assert (vectors[:, count] / vectors[:, one] - counts(tokenizer, texts)).abs().max() < 0.1
    vectors[:, [count, one]] = before[:, [count, one]] = 0
    cosines = torch.nn.functional.cosine_similarity(vectors, before, dim=1)
    assert cosines.mean() > 0.998 and cosines.min() > 0.99


def test_other_architectures_are_refused():
    from transformers import DistilBertConfig, DistilBertModel

    model = DistilBertModel(DistilBertConfig(vocab_size=50, dim=16, n_layers=1, n_heads=2, hidden_dim=16))
    with pytest.raises(ws.InputError, match=r"`model` \(='small'\) is not built as BERT is"):
        anatomy_of(model, "small")
