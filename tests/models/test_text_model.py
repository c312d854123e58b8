"""Laws of a TextModel, for seventeen architectures: tokens, rows and vectors are those of the
tokenizer, the transformer and sentence-transformers themselves."""

import copy
import pickle
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import transformers

import wordsens as ws
from tests.maps.tiny_models import model_of, tokenizer
from tests.models.zoo import CORPUS, NAMES, tokenizer_of, zoo_model
from wordsens.maps.transformer.features import map_of
from wordsens.models import TextModel
from wordsens.models.hooks import encoder_part
from wordsens.models.load import as_model
from wordsens.models.tokens import whole_word_tokens
from wordsens.text.english import NEGATIONS
from wordsens.text.whole_words import reading_words

sentence_transformers = pytest.importorskip("sentence_transformers")

FIRST, SECOND = "The lift is not working today, please use the stairs.", "I did not love her."
TEXTS = [FIRST, SECOND, "यह अच्छा नहीं है", "I did not see her.", "emoji 😀 naïve café"]
LONG = " ".join(CORPUS[:3] * 4)
PROMPT = "Turn it off:"
ROUNDING = {"rtol": 0, "atol": 5e-6}


@pytest.fixture(scope="module", params=NAMES)
def member(request, tmp_path_factory):
    """An architecture: its tokenizer and model, what sentence-transformers makes of its folder, and
    our models of folder, pair and object."""
    transformers.utils.logging.disable_progress_bar()
    folder = tmp_path_factory.mktemp(request.param)
    words, model = zoo_model(request.param)
    for part in (words, model):
        part.save_pretrained(folder)
    models = [as_model(folder), as_model((model, words))]
    library = None
    if words.pad_token is not None:  # without one the library refuses
        library = sentence_transformers.SentenceTransformer(str(folder), device="cpu")
        models.append(as_model(library))
    base = encoder_part(model.base_model)
    return SimpleNamespace(
        name=request.param, folder=folder, words=words, base=base, library=library, models=models
    )


@torch.no_grad()
def own_pass(member, text):
    """The model's own output for the text."""
    return member.base(**member.words(text, return_tensors="pt"), output_hidden_states=True)


def test_vectors_are_those_of_the_library_in_any_order(member):
    """By folder, as a pair, as an object, and from rows. Where there is no padding token, which the
    library needs, the model's own last states are pooled."""
    if member.library is None:
        states = [own_pass(member, text).last_hidden_state[0].numpy() for text in TEXTS]
        vectors = [each[-1] if member.name == "llama" else each.mean(axis=0) for each in states]
    else:
        vectors = [member.library.encode([text])[0] for text in TEXTS]
    expected = np.stack(vectors)
    for model in (*member.models, *map(map_of, member.models)):
        for order in (slice(None), slice(None, None, -1)):
            apart = np.linalg.norm(model.encode(TEXTS[order]).numpy() - expected[order], axis=1)
            assert (apart <= 1e-6 * np.linalg.norm(expected[order], axis=1)).all()


def test_rows_of_a_layer_are_the_hidden_states(member):
    for model in member.models:
        expected = [own_pass(member, text).hidden_states for text in TEXTS]
        assert model.layers == len(expected[0]) - 1 == 2
        for layer in (0, 1, 2, -1):
            for rows, states in zip(model.rows(TEXTS, layer), expected, strict=True):
                torch.testing.assert_close(rows, states[layer][0], **ROUNDING)


def test_a_pass_from_rows_is_the_models_own(member):
    """From unmoved rows, and from rows of which one is another token's in its place."""
    for model in member.models:
        ids, other = (torch.tensor([model.read(text).ids]) for text in (FIRST, FIRST))
        other[0, 4] = ids[0, 6]
        rows = model.entering(ids)
        expected = own_pass(member, FIRST)
        for layer in (0, 1):
            states = expected.hidden_states[layer]
            torch.testing.assert_close(model.forward(rows, layer), states, **ROUNDING)
        torch.testing.assert_close(model.forward(rows), expected.last_hidden_state, **ROUNDING)
        rows[0, 4] = model.entering(other)[0, 4]
        with torch.no_grad():
            own = member.base(other, attention_mask=torch.ones_like(other))
        torch.testing.assert_close(model.forward(rows), own.last_hidden_state, **ROUNDING)


def test_states_pooled_at_every_layer(member):
    model = member.models[1]
    found = model.encode_layers(TEXTS, pool="max")
    for place, text in enumerate(TEXTS):
        states = own_pass(member, text).hidden_states
        expected = torch.stack([layer[0].amax(dim=0) for layer in states]).double()
        torch.testing.assert_close(found[:, place], expected, **ROUNDING)
    torch.testing.assert_close(model.encode_layers(TEXTS)[-1], model.encode(TEXTS), **ROUNDING)
    phi = ws.TransformerFeatures(member.base, member.words, layer=1, pool="max")
    torch.testing.assert_close(as_model(phi).encode(TEXTS), found[1], **ROUNDING)


@pytest.mark.parametrize("prompt", ["", PROMPT])
def test_places_of_tokens_point_at_the_words(member, prompt):
    model = TextModel(member.base, member.words, prompt=prompt)
    for text in TEXTS:
        read = model.read(text)
        assert list(read.ids) == member.words(prompt + text)["input_ids"]
        assert [word.text for word in read.whole_words] == reading_words(text)
        for word in read.whole_words:
            assert text[word.start : word.stop] == word.text
            places = [read.offsets[row] for row in word.rows]
            assert all(start < word.stop and stop > word.start for start, stop in places)
            # A normalizer may strip the mark on a word's last letter.
            assert places[0][0] <= word.start and places[-1][1] >= word.stop - 1
        assert (read.leading, len(read.ids) - read.words) == (
            model.leading_tokens,
            model.own_tokens,
        )
        assert read.leading <= read.whole_words[0].rows[0] <= read.leading + 1
        cut = model.read(text, max_words=3)
        assert cut.ids == (*read.ids[: read.leading + 3], *read.ids[read.own.stop :])
        assert set(cut.whole_words) <= set(read.whole_words)


@pytest.mark.parametrize("prompt", ["", PROMPT])
@pytest.mark.parametrize("side", ["left", "right"])
def test_a_long_text_is_cut_as_the_tokenizer_cuts_it(member, side, prompt):
    words = tokenizer_of(member.name)
    words.truncation_side = side
    model = TextModel(member.base, words, prompt=prompt, cuts=True, limit=60)
    assert (model.context, member.models[1].context) == (60, min(128, words.model_max_length))
    whole, read = model.tokenize(LONG), model.read(LONG)
    cut = words(prompt + LONG, truncation=True, max_length=60)["input_ids"]
    assert list(read.ids) == cut
    start, stop = model.read_span(LONG)
    inside = [span for span in whole.offsets if start <= span[0] < span[1] <= stop]
    assert inside == [span for span in read.offsets if span[1]]
    tokens = {
        (word.start, word.stop): [whole.ids[row] for row in word.rows] for word in whole.whole_words
    }
    for word in read.whole_words:
        assert [read.ids[row] for row in word.rows] == tokens[word.start, word.stop]
    assert model.read_span(FIRST) == (0, len(FIRST))


def test_an_identity_is_shared_by_folder_and_object(member, tmp_path):
    named = member.models[0]
    loaded = type(named.model).from_pretrained(member.folder)
    assert as_model((loaded, named.tokenizer)).identity() == named.identity()
    cut_in_front = copy.deepcopy(member.words)
    cut_in_front.truncation_side = "left"
    changed = [
        TextModel(member.base, member.words, pool="max"),
        TextModel(member.base, cut_in_front, pool="mean"),
        TextModel(member.base, member.words, pool="mean"),
        TextModel(member.base, member.words, pool="mean", limit=9),
        TextModel(member.base, None, pool="mean"),
    ]
    assert len({model.identity() for model in changed}) == len(changed)
    if member.library is not None:
        member.library.save(str(tmp_path))
        assert as_model(tmp_path).identity() == member.models[2].identity()


def test_a_pickled_model_is_the_same(member):
    model = TextModel(member.base, member.words, pool="max", cuts=True, prompt=PROMPT, limit=20)
    again = pickle.loads(pickle.dumps(model))
    assert torch.equal(again.encode([LONG, FIRST]), model.encode([LONG, FIRST]))


@pytest.mark.parametrize("special", [True, False])
def test_rows_of_a_vocabulary_are_those_of_the_word_in_its_place(member, special):
    model = member.models[1]
    words = model.vocabulary(special_tokens=special)
    number, word = list(whole_word_tokens(model.tokenizer, rows=model.table).items())[-1]
    ids = torch.tensor([model.read(FIRST).ids])
    found = words.rows(torch.tensor([len(words) - 1]), torch.tensor([3, 1]))
    for row, position in zip(found[0], (3, 1), strict=True):
        place = position + (0 if special else model.leading_tokens)
        other = ids.clone()
        other[0, place] = number
        torch.testing.assert_close(row, model.entering(other)[0, place], **ROUNDING)
    assert words.tokens[-1] == word
    negations = [number for number, word in enumerate(words.tokens) if word.lower() in NEGATIONS]
    assert list(words.outliers) == negations


def test_the_model_keeps_its_mode_and_its_gradients_and_shares_its_weights():
    model = model_of("gpt2").train()
    ours = as_model((model, tokenizer()))
    ours.encode(["good film"])
    ours.text_model().forward(ours.entering(torch.tensor([[2, 5, 3]])))
    assert model.training
    assert all(weight.requires_grad for weight in model.parameters())
    assert model.config.pad_token_id is None
    first, identity = ours.encode(["good film"]), ours.identity()
    with torch.no_grad():
        next(model.parameters()).mul_(1.5)
    assert not torch.allclose(ours.encode(["good film"]), first)
    assert ours.identity() != identity


def test_at_most_so_many_texts_run_together():
    sizes, model = [], model_of("bert")
    ours = TextModel(model, tokenizer(), pool="mean", batch_size=2)
    model.register_forward_pre_hook(
        lambda _, __, named: sizes.append(len(named["input_ids"])), with_kwargs=True
    )
    ours.encode(["good film", "bad film", "not bad", "good", "not good"])
    assert sorted(sizes) == [1, 2, 2]


def test_a_model_that_cannot_be_run_from_rows_is_a_black_box():
    model = model_of("xlnet")
    ours = as_model((model, tokenizer()))
    with torch.no_grad():
        ids = tokenizer()("good film", return_tensors="pt")["input_ids"]
        expected = model(ids).last_hidden_state.mean(dim=1).double()
    torch.testing.assert_close(ours.encode(["good film"]), expected, **ROUNDING)
    with pytest.raises(ws.InputError, match=r"where gradients .* cannot be run from rows"):
        ours.text_model()
    assert ours.identity() == as_model((model_of("xlnet"), tokenizer())).identity()


def test_a_pipeline_is_its_transformer():
    made = transformers.pipeline(
        "feature-extraction", model=model_of("bert"), tokenizer=tokenizer()
    )
    expected = torch.tensor(made("good film")[0][0]).double()
    torch.testing.assert_close(as_model(made, pool="cls").encode(["good film"])[0], expected)


def test_positions_behind_a_padding_number_shorten_the_context():
    model = model_of("roberta", max_position_embeddings=10, pad_token_id=1)
    assert TextModel(model, tokenizer()).context == 8
    assert TextModel(model_of("bert", max_position_embeddings=10), tokenizer()).context == 10
