"""Real texts with labels: no text is in two parts; the labels that a changed word flips are counted
again with NumPy."""

from collections import Counter

import numpy as np
import pandas as pd
import pytest
import torch

import wordsens as ws
from wordsens.errors import InputError
from wordsens.evaluation.word_lists import antonyms, synonyms
from wordsens.studies import control
from wordsens.studies.control import reviews
from wordsens.studies.control.reviews import edits_of, label_flips, review_task
from wordsens.studies.control.study import preset
from wordsens.sweeps.texts import DatasetText
from wordsens.text import shipped_reviews
from wordsens.text.whole_words import reading_words

SHAPE = (24, 32)


def source_of(folder, rows, **columns):
    """A file of labelled texts."""
    path = folder / "texts.csv"
    table = pd.DataFrame(rows, columns=["text", "label"])
    table.rename(columns=columns).to_csv(path, index=False)
    return DatasetText.parse({"path": str(path)})


@pytest.fixture
def texts():
    found = [text for text in shipped_reviews() if len(text.text) > 300][:40]
    return [(text.text, text.label) for text in found]


def rows_of(part):
    return [tuple(rows.flatten().tolist()) for rows in part.rows()]


def test_no_text_is_in_two_parts_and_the_held_out_ones_are_those_of_every_draw(tmp_path, texts):
    """Texts that the file has twice are in one part once."""
    source = source_of(tmp_path, [*texts, *texts[::-1]])
    first, second = (review_task(source, SHAPE, 99, seed=0, draw_seed=draw) for draw in (1, 2))
    parts = [rows_of(part) for part in (first.training, first.validation, first.test)]
    assert [len(part) for part in parts] == [28, 4, 8]
    assert len({rows for part in parts for rows in part}) == 40
    assert rows_of(second.test) == parts[2]
    assert rows_of(second.training) != parts[0]
    assert set(rows_of(second.training)) != set(parts[0])
    embedded = ws.embed([text for text, _ in texts], max_words=SHAPE[0], dtype=torch.float32)
    labels = {
        tuple(matrix.truncated(*SHAPE).rows.flatten().tolist()): label
        for matrix, (_, label) in zip(embedded, texts, strict=True)
    }
    for part in (first.training, first.validation, first.test):
        assert [labels[rows] for rows in rows_of(part)] == part.labels.tolist()


def words_changed(before, after):
    """The words that only one of two texts has."""
    counts = [Counter(reading_words(text.lower())) for text in (before, after)]
    return tuple(tuple(sorted((one - other).elements())) for one, other in (counts, counts[::-1]))


def test_an_edit_changes_one_word_in_its_way(texts):
    plain = [text for text, _ in texts]
    exchanges = {
        kind: {words_changed(word, other) for word, others in table.items() for other in others}
        for kind, table in (("antonym", antonyms()), ("synonym", synonyms()))
    }
    kinds = Counter()
    for kind, number, changed in edits_of(plain, [250] * len(plain), seed=3):
        head, tail = plain[number][:250], plain[number][250 : 250 + reviews.TAIL]
        assert changed.endswith(tail)
        gone, new = words_changed(head, changed[: -len(tail)])
        kinds[kind] += 1
        if kind == "deletion":
            # Signs beside the word may join.
            assert (len(gone), len(new)) in ((1, 0), (3, 1))
        elif kind == "negation":
            assert gone + new == ("not",)
        else:
            assert (gone, new) in exchanges[kind]
    assert kinds["deletion"] == reviews.TRIES * len(plain)
    assert min(kinds[kind] for kind in reviews.EDITS) > 50


def logits(network, texts):
    """Of softmax attention or a fully connected layer, in NumPy."""
    weights = {name: one.detach().double().numpy() for name, one in network.state_dict().items()}
    for rows in texts:
        if "blocks.0.weight" in weights:
            hidden = weights["blocks.0.weight"] @ rows.ravel() + weights["blocks.0.bias"]
            features = np.sqrt(2) * np.maximum(hidden, 0)
        else:
            queries, keys = (
                rows @ weights[f"blocks.0.{name}.weight"].T + weights[f"blocks.0.{name}.bias"]
                for name in ("query", "key")
            )
            powers = np.exp(queries @ keys.T / np.sqrt(rows.shape[1]))
            attended = powers / powers.sum(axis=1, keepdims=True) @ rows
            features = (attended @ weights["blocks.0.value.weight"].T).mean(axis=0)
        yield float(weights["head.weight"][0] @ features + weights["head.bias"][0])


@pytest.mark.parametrize("layer", ["dense", "softmax"])
def test_flipped_labels_are_counted_again_text_by_text(tmp_path, texts, layer):
    source = source_of(tmp_path, texts)
    network = control.build_network(control.Architecture(layer=layer), *SHAPE, seed=5)
    # Logits of both signs: about half of the labels are positive.
    held_out = review_task(source, SHAPE, 99, seed=1, draw_seed=0).test.rows()
    with torch.no_grad():
        network.head.bias -= network(held_out).median()
    shares = label_flips(network, source, SHAPE, 99, seed=1)

    def rows(parts):
        found = ws.embed(parts, max_words=SHAPE[0], dtype=torch.float32)
        return [text.truncated(*SHAPE).rows.double().numpy() for text in found]

    places = {rows([text])[0].astype(np.float32).tobytes(): text for text, _ in texts}
    plain = [places[matrix.numpy().tobytes()] for matrix in held_out]
    whole = ws.embed(plain, max_words=SHAPE[0])
    ends = [max(word.stop for word in text.whole_words) for text in whole]
    before = [logit > 0 for logit in logits(network, rows(plain))]
    assert 0 < sum(before) < len(before)
    edits = list(edits_of(plain, ends, seed=1))
    after = [logit > 0 for logit in logits(network, rows([text for *_, text in edits]))]
    for kind in reviews.EDITS:
        flips = [
            label != before[number]
            for (way, number, _), label in zip(edits, after, strict=True)
            if way == kind
        ]
        assert shares[kind] == pytest.approx(np.mean(flips), abs=1e-12)
    assert sum(shares.values()) > 0


def test_texts_without_a_word_have_no_share(tmp_path):
    signs = [("!? " * 14 + ". " * copy, copy % 2) for copy in range(10)]
    network = control.build_network(control.Architecture(), *SHAPE)
    shares = label_flips(network, source_of(tmp_path, signs), SHAPE, 99, seed=1)
    assert shares == dict.fromkeys(reviews.EDITS)


@pytest.mark.parametrize("missing", ["column", "label", "texts"])
def test_a_file_that_cannot_be_learned_from_is_refused_in_one_line(tmp_path, texts, missing):
    many = [(f"{text} Number {copy}.", label) for text, label in texts for copy in range(20)]
    if missing == "column":
        source, message = source_of(tmp_path, many, label="stars"), "`label_column`"
    elif missing == "label":
        source, message = source_of(tmp_path, [*many, (texts[0][0], None)]), "one has none"
    else:
        source, message = source_of(tmp_path, texts), "needs 500 texts of n = 64 words"
    with pytest.raises(InputError, match=message) as error:
        preset("quick", source, 0, None, task="sentiment")
    assert "\n" not in str(error.value)


def test_words_in_another_order_are_the_same_text_to_attention_alone():
    """Attention without positions learns the same whether the words of a text are shuffled."""
    task = control.one_word_task(6, 8, parts=(64, 8, 8))
    last = {}
    for layer in ("softmax", "dense"):
        for shuffle in (False, True):
            network = control.build_network(control.Architecture(layer=layer), 6, 8)
            plan = control.TrainingPlan(steps=5, shuffle=shuffle)
            last[layer, shuffle] = control.train(network, task, plan)[-1]
    assert last["softmax", True] == pytest.approx(last["softmax", False], rel=1e-4)
    assert last["dense", True] != pytest.approx(last["dense", False], rel=1e-2)
