"""The benchmark of random features runs, in tiny sizes; its fit and its search methods do what they say."""

import json
import sys

import jaxtyping
import pytest
import torch
from benchmarks.search_methods import METHODS, traces

import wordsens as ws
from benchmarks import random_features, random_features_at_size

TINY = random_features.Scale(
    maps=((6, 8, 1), (4, 6, 2)),
    against=((5, 8),),
    repeats=1,
    lengths=(4, 6, 8, 10),
    dimension=6,
    convergence=((6, 8),),
    draws=2,
    methods=((6, 8),),
)


@pytest.fixture
def in_process(monkeypatch, capsys):
    """Searches in this process, whose peak is an earlier test's: starting a process for each takes seconds."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)

    def at_size(n, d, *options):
        monkeypatch.setattr(sys, "argv", ["at_size", "--words", str(n), "--dimension", str(d), *options])
        random_features_at_size.main()
        found = json.loads(capsys.readouterr().out.splitlines()[-1])
        assert found["memory_peak"] >= 0 < found["seconds"]
        return {**found, "memory_peak": found["memory_before"] + 1e6}

    monkeypatch.setattr(random_features, "at_size", at_size)


@pytest.mark.parametrize("section", ["size", "straightforward", "scaling", "convergence"])
def test_a_section_prints_its_table(section, in_process, capsys):
    random_features.SECTIONS[section](TINY)
    printed = capsys.readouterr().out
    assert "| --" in printed
    assert "nan" not in printed


def test_the_fitted_exponent_of_a_power_law():
    assert random_features.exponent([1, 10, 100], [3.0, 30 * 10**0.5, 3000.0]) == pytest.approx(1.5)


@pytest.mark.parametrize("method", METHODS)
def test_every_search_method_spends_products_and_gains(method):
    phi = ws.RandomFeatures(12, 30, gaussian="dense")
    change = phi.word_change(ws.gaussian_text(12, 30).rows)
    (trace,) = traces(METHODS[method], change, seeds=1)
    best = ws.word_sensitivity(phi, ws.gaussian_text(12, 30), words=[0], starts=40).value
    assert trace.products == sorted(set(trace.products))
    assert trace.values == sorted(trace.values)
    assert 0.9 * best < trace.values[-1] / float(torch.linalg.vector_norm(phi(change.rows))) <= best * (1 + 1e-2)
