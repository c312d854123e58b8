"""Neighbours of texts in two models, against plain cosines."""

import numpy as np
import pytest
import torch
from tests.evaluation.stand_ins import bag_of_words, deaf_to_negations

import wordsens as ws
from wordsens.evaluation.compare import ComparePlan
from wordsens.evaluation.neighbours import agreement, sampling_errors
from wordsens.text.whole_words import without

TEXTS = [
    f"{opening} {subject} {state}"
    for opening in ("today the", "we say that the", "everybody knows why the")
    for subject in ("lift", "main door", "old road bridge")
    for state in ("is not working", "is working on time", "was closed")
]


def unit(encode, text):
    (vector,) = np.asarray(encode([text]))
    return vector / np.linalg.norm(vector)


def units(seed, texts=9):
    drawn = torch.randn(texts, 4, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return torch.nn.functional.normalize(drawn, dim=1)


def test_agreement_is_that_of_plain_cosines():
    one, other = units(0), units(1)
    found = agreement(one, other, 3)
    for at in range(9):
        lists = [
            sorted((i for i in range(9) if i != at), key=lambda i, at=at, cosines=each @ each.T: -cosines[at, i])[:3]
            for each in (one, other)
        ]
        assert (list(found.first[at][:3]), list(found.second[at][:3])) == tuple(lists)
        assert found.changed[at] == (lists[0][0] != lists[1][0])
        assert found.recall[at] == pytest.approx(len({*lists[0]} & {*lists[1]}) / 3)


def test_the_standard_errors_are_those_of_other_texts():
    """Of 40 texts drawn from a large population; the half samples' errors are within 0.75 and 1.5 of the truth."""
    found, errors = [], []
    for seed in range(40):
        one = units(seed, 40)
        other = torch.nn.functional.normalize(one + 0.3 * units(seed + 1000, 40), dim=1)
        between, same = agreement(one, other, 3), agreement(one, one, 3)
        found.append([between.changed.mean(), between.recall.mean()])
        if seed < 6:
            errors.append(sampling_errors(between, [same, same], 3, seed=seed))
    ratios = np.mean(errors, axis=0) / np.std(found, axis=0, ddof=1)
    assert ((ratios > 0.75) & (ratios < 1.5)).all()


def test_a_changed_neighbour_and_its_words_are_those_of_plain_encoding():
    found = ws.compare(bag_of_words, deaf_to_negations, TEXTS, "none", plan=ComparePlan(neighbours=3))
    row = found["neighbours.nearest"]
    assert (row.first, row.count) == (0.0, len(TEXTS))
    assert 0 < len(found.changed) <= round(row.second * len(TEXTS))
    for one in found.changed:
        assert one.first >= 0 >= one.second
        assert max(one.first, -one.second) > 1e-6
        assert (one.text, one.old_text, one.new_text) == tuple(TEXTS[at] for at in (one.at, one.old, one.new))
    one = found.changed[0]
    for encode, margin, changes in (
        (bag_of_words, one.first, [word.first for word in one.words]),
        (deaf_to_negations, one.second, [word.second for word in one.words]),
    ):
        apart = unit(encode, one.old_text) - unit(encode, one.new_text)
        assert margin == pytest.approx(unit(encode, one.text) @ apart)
        for word, change in zip(one.words, changes, strict=True):
            moved = unit(encode, without(one.text, (word.start, word.stop))) @ apart
            assert change == pytest.approx(moved - margin)
            assert (word.back if encode is deaf_to_negations else word.away) == (
                moved > 0 if encode is deaf_to_negations else moved < 0
            )
    assert [abs(word.apart) for word in one.words] == sorted((abs(word.apart) for word in one.words), reverse=True)
    assert found.changed[-1].words == () or len(found.changed) <= 5
