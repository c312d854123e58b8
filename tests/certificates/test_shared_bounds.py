"""Words whose rows have one length share their bound: a chain of layers is bounded once, in either precision."""

import pytest
import torch

import wordsens as ws
from wordsens.certificates.dense import bounds


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_rows_of_one_length_are_bounded_once(dtype, monkeypatch):
    phi = ws.DeepRandomFeatures(12, 16, depth=3, gaussian="lazy", seed=0, dtype=dtype)
    X = ws.gaussian_text(12, 16, seed=0).rows.to(dtype)
    chain, cases = bounds.chain_bound, []
    monkeypatch.setattr(
        bounds, "chain_bound", lambda *given, **named: cases.append(named["length"]) or chain(*given, **named)
    )
    upper = ws.certify(phi, X)
    assert len(cases) == 1
    lengths = torch.linalg.vector_norm(X.double(), dim=1)
    rounding = {torch.float32: 4e-6, torch.float64: 4e-12}[dtype]
    # Rounded up, and by no more than a grid's width.
    assert bool((cases[0] >= lengths).all()) and bool((cases[0] <= lengths * (1 + rounding)).all())
    assert len(set(upper.tolist())) == 1


def test_rows_of_other_lengths_are_bounded_each_for_itself():
    X = torch.diag(torch.tensor([1.0, 2.0, 2.0, 3.0], dtype=torch.float64)) @ ws.gaussian_text(4, 16, seed=0).rows
    upper = ws.certify(ws.DeepRandomFeatures(4, 16, depth=2, gaussian="lazy", seed=0), X)
    assert len(set(upper.tolist())) == 3
