"""Tasks: the label is what the words say, one word decides it or none can, and parts are what was
asked for."""

from types import SimpleNamespace

import pytest
import torch

import wordsens as ws
from wordsens.studies import control
from wordsens.studies.control.cell import pairs_answers
from wordsens.studies.control.tasks import NEUTRAL, SIGNED, Labelled

SIZES = {"n": 9, "d": 6, "parts": (40, 8, 16)}
MANY = {"n": 9, "d": 6, "parts": (1, 1, 2000)}


def test_one_key_word_a_text_decides_its_label():
    part = control.one_word_task(**SIZES, seed=3).training
    at = torch.arange(len(part))
    assert bool(((part.words < 2).sum(dim=1) == 1).all())
    assert torch.equal(1.0 - 2 * part.words[at, part.deciding], part.labels)
    assert len(part.deciding.unique()) == 9  # its place is any of the text
    assert part.table.shape == (2 + NEUTRAL, 6)


@pytest.mark.parametrize("n", [5, 8, 9, 64])
def test_no_single_word_changes_a_majority(n):
    part = control.majority_task(n, 6, parts=(30, 1, 1)).training
    signs = 1 - 2 * (part.words >= SIGNED).long()
    for place in range(n):
        for sign in (-1, 1):
            other = signs.clone()
            other[:, place] = sign
            assert torch.equal(other.sum(dim=1).sign().float(), part.labels)
    assert part.deciding is None


@pytest.mark.parametrize("make", [control.one_word_task, control.majority_task])
def test_rows_lie_on_the_sphere_labels_are_fair_and_the_seed_decides_all(make):
    task, again, other = (make(**SIZES, seed=seed) for seed in (0, 0, 1))
    assert torch.allclose(task.test.rows().norm(dim=2), torch.tensor(6.0).sqrt())
    assert torch.equal(task.training.rows(), again.training.rows())
    assert not torch.equal(task.training.labels, other.training.labels)
    assert abs(float(task.training.labels.mean())) < 0.5  # beyond it in 1 of 500 seeds
    assert [len(part) for part in (task.training, task.validation, task.test)] == [40, 8, 16]
    assert not torch.equal(task.training.words[:8], task.validation.words)


def test_pairs_of_the_one_word_task_flip_the_label_or_keep_it():
    part = control.one_word_task(**MANY, seed=3).test
    texts, copies = control.one_word_pairs(part, seed=1)
    assert bool(((texts.words != copies.words).sum(dim=1) == 1).all())
    keys, other_keys = (
        words.where(words < 2, 0).sum(dim=1) for words in (texts.words, copies.words)
    )
    # The other key word, and it alone, is another label.
    assert torch.equal(keys != other_keys, texts.labels != copies.labels)
    assert bool(((copies.words < 2).sum(dim=1) == 1).all())
    assert int((texts.labels != copies.labels).sum()) == len(part) == len(copies) // 2
    (_, again), (_, other) = (control.one_word_pairs(part, seed=seed) for seed in (1, 2))
    assert torch.equal(again.words, copies.words) and not torch.equal(other.words, copies.words)


def test_every_copy_of_a_majority_has_one_other_word():
    texts, copies = control.majority_pairs(control.majority_task(**MANY, seed=3).test, seed=1)
    assert bool(((texts.words != copies.words).sum(dim=1) == 1).all())
    assert torch.equal(texts.labels, copies.labels)


def test_the_shipped_reviews_are_a_task():
    texts = [text for text in ws.embed(ws.shipped_reviews(), max_words=12) if len(text) == 12]
    task, again = (control.texts_task(texts, (20, 10, 10), seed=2) for _ in range(2))
    assert torch.equal(again.training.rows(), task.training.rows())
    assert task.training.rows().shape == (20, 12, 384)
    assert torch.equal(task.test.rows(), torch.stack([text.rows.float() for text in texts[:10]]))
    for rows, label in zip(task.training.rows(), task.training.labels, strict=True):
        (found,) = [text for text in texts if torch.allclose(text.rows.float(), rows)]
        assert found.label == int(label)


def test_flips_that_move_the_features_farther_than_synonyms_are_told_apart():
    table = torch.tensor([[1.0, 0.0], [1.0, 0.1], [-1.0, 0.0]])
    head = torch.nn.Linear(2, 1, bias=False)
    head.weight.data = torch.tensor([[1.0, 0.0]])
    network = SimpleNamespace(head=head, features=lambda rows: rows.mean(dim=1))
    texts = Labelled(table, torch.zeros(4, 1, dtype=torch.long), torch.ones(4))
    labels = torch.tensor([1.0, 1.0, -1.0, -1.0])
    copies = Labelled(table, torch.tensor([[1], [1], [2], [2]]), labels)
    assert pairs_answers(network, (texts, copies)) == {"kept": 1.0, "told": 1.0}
    near = Labelled(table, torch.tensor([[2], [2], [1], [1]]), labels)
    assert pairs_answers(network, (texts, near)) == {"kept": 0.0, "told": 0.0}
