"""The loss against its definition, and what makes each part of it vanish."""

from dataclasses import fields

import numpy as np
import pytest
import torch

from wordsens.training.adapter.loss import SOFTNESS, TEMPERATURE, Batch, Weights, batch_loss

OFF = dict.fromkeys(("rank", "push", "contrast", "geometry", "anchor"), 0.0)


def units(*shape, seed):
    drawn = torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return torch.nn.functional.normalize(drawn, dim=1)


@pytest.fixture
def batches():
    now, before = (Batch(*(units(rows, 6, seed=seed + rows) for rows in (3, 3, 2, 4))) for seed in (0, 9))
    return now, before, [0, 2]


def by_numpy(now, before, flipped, weights):
    """Every part with loops."""
    n, b = ({field.name: getattr(batch, field.name).numpy() for field in fields(batch)} for batch in (now, before))
    alike = [n["text"][i] @ n["same"][i] for i in range(3)]
    apart = [n["text"][i] @ n["other"][at] for at, i in enumerate(flipped)]
    rank = np.mean([SOFTNESS * np.log1p(np.exp((f - p + weights.margin) / SOFTNESS)) for f in apart for p in alike])
    push = np.mean([max(0, f - weights.floor) ** 2 for f in apart])
    targets = np.concatenate([n["same"], n["other"], n["plain"]])
    contrast = 0.0
    for i in range(3):
        logits = targets @ n["text"][i] / TEMPERATURE
        contrast += (np.log(np.exp(logits).sum()) - logits[i]) / 3
    here, there = (np.concatenate([one["text"], one["same"], one["plain"]]) for one in (n, b))
    meaning = [0, 1, 2, 0, 1, 2, 3, 4, 5, 6]
    moves = [
        (here[i] @ here[j] - there[i] @ there[j]) ** 2 for i in range(10) for j in range(10) if meaning[i] != meaning[j]
    ]
    stayed = [*(here * there).sum(1), *(n["other"] * b["other"]).sum(1)]
    anchor = np.mean([max(0, weights.near - one) ** 2 for one in stayed])
    return rank, push, contrast, np.mean(moves), anchor


def test_every_part_is_its_definition(batches):
    now, before, flipped = batches
    expected = by_numpy(now, before, flipped, Weights())
    for name, value in zip(OFF, expected, strict=True):
        found = batch_loss(now, before, flipped, Weights(**{**OFF, name: 1.0}))
        assert float(found) == pytest.approx(value, rel=1e-9)


def test_the_whole_is_the_weighted_sum(batches):
    now, before, flipped = batches
    weights = Weights()
    parts = by_numpy(now, before, flipped, weights)
    expected = sum(getattr(weights, name) * value for name, value in zip(OFF, parts, strict=True))
    assert float(batch_loss(now, before, flipped, weights)) == pytest.approx(expected, rel=1e-9)


def test_nothing_is_held_back_where_nothing_has_moved(batches):
    _, before, flipped = batches
    assert float(batch_loss(before, before, flipped, Weights(**{**OFF, "geometry": 1.0, "anchor": 1.0}))) == 0
