"""Tasks: the label is what the words say, one word decides it or none can, and parts are what was
asked for."""

import pytest
import torch

import wordsens as ws
from wordsens.studies import control
from wordsens.studies.control.tasks import NEUTRAL, SIGNED

SIZE = control.TaskSize(n=9, d=6, training=40, validation=8, test=16)


def test_one_key_word_a_text_decides_its_label():
    part = control.one_word_task(SIZE, seed=3).training
    at = torch.arange(len(part))
    assert bool(((part.words < 2).sum(dim=1) == 1).all())
    assert torch.equal(1.0 - 2 * part.words[at, part.deciding], part.labels)
    assert len(part.deciding.unique()) == 9  # its place is any of the text
    assert part.table.shape == (2 + NEUTRAL, 6)


@pytest.mark.parametrize("n", [5, 8, 9, 64])
def test_no_single_word_changes_a_majority(n):
    part = control.majority_task(
        control.TaskSize(n=n, d=6, training=30, validation=1, test=1)
    ).training
    signs = 1 - 2 * (part.words >= SIGNED).long()
    for place in range(n):
        for sign in (-1, 1):
            other = signs.clone()
            other[:, place] = sign
            assert torch.equal(other.sum(dim=1).sign().float(), part.labels)
    assert part.deciding is None


@pytest.mark.parametrize("make", [control.one_word_task, control.majority_task])
def test_rows_lie_on_the_sphere_labels_are_fair_and_the_seed_decides_all(make):
    task, again, other = make(SIZE, 0), make(SIZE, 0), make(SIZE, 1)
    assert torch.allclose(task.test.rows().norm(dim=2), torch.tensor(6.0).sqrt())
    assert torch.equal(task.training.rows(), again.training.rows())
    assert not torch.equal(task.training.labels, other.training.labels)
    assert abs(float(task.training.labels.mean())) < 0.5  # beyond it in 1 of 500 seeds
    assert [len(part) for part in (task.training, task.validation, task.test)] == [40, 8, 16]
    assert not torch.equal(task.training.words[:8], task.validation.words)


def test_pairs_of_the_one_word_task_flip_the_label_or_keep_it():
    many = control.TaskSize(n=9, d=6, training=1, validation=1, test=2000)
    part = control.one_word_task(many, seed=3).test
    pairs = control.one_word_pairs(part, seed=1)
    first, second = pairs.first, pairs.second
    assert bool(((first != second).sum(dim=1) == 1).all())
    keys_before, keys_after = (words.where(words < 2, 0).sum(dim=1) for words in (first, second))
    assert torch.equal(
        keys_before != keys_after, pairs.flipped
    )  # the other key word, and it alone, is another label
    assert bool(((second < 2).sum(dim=1) == 1).all())
    assert int(pairs.flipped.sum()) == len(part) == len(pairs) // 2
    again, other = control.one_word_pairs(part, seed=1), control.one_word_pairs(part, seed=2)
    assert torch.equal(again.second, second)
    assert not torch.equal(other.second, second)


def test_every_copy_of_a_majority_has_one_other_word():
    many = control.TaskSize(n=9, d=6, training=1, validation=1, test=2000)
    pairs = control.majority_pairs(control.majority_task(many, seed=3).test, seed=1)
    assert bool(((pairs.first != pairs.second).sum(dim=1) == 1).all())
    assert not bool(pairs.flipped.any())


def test_the_shipped_reviews_are_a_task():
    texts = [text for text in ws.embed(ws.shipped_reviews(), max_words=12) if len(text) == 12]
    task = control.texts_task(texts, (20, 10, 10), seed=2)
    assert task.shape == (12, 384)
    assert {len(task.training), len(task.test)} == {20, 10}
    for rows, label in zip(task.training.rows(), task.training.labels, strict=True):
        (found,) = [text for text in texts if torch.allclose(text.rows.float(), rows)]
        assert found.label == int(label)
