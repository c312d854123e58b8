"""The commands with the search and the bounds that users get: nothing is patched here."""

import json

import pyarrow.parquet as pq
import pytest
import torch
from benchmarks.straightforward_attention import plain_ascent

import wordsens as ws
from wordsens.experiments.sensitivity import SensitivityCell
from wordsens.experiments.texts import load_text
from wordsens.maps.registry import MAP_NAMES, MODEL, MapOptions, build_map
from wordsens.seeds import derive_seed

N, D = 5, 6


@pytest.fixture(autouse=True)
def _cheap():
    """In place of the other command tests' short searches and loose bounds."""


@pytest.mark.slow_cases("relu*", "drf", "sigmoid*", "rf", "linear-raf")
@pytest.mark.parametrize("name", [name for name in MAP_NAMES if name != MODEL])
def test_a_sweep_gives_what_the_library_finds_by_default(wordsens, tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    spec = f"name: real\ngrids: [{{map: {name}, n: {N}, d: {D}, text: gaussian}}]\n"
    (tmp_path / "real.yaml").write_text(spec, encoding="utf-8")
    assert wordsens("sweep", "run", "real.yaml", "--quiet").code == 0
    (record,) = pq.read_table(tmp_path / "real" / "sensitivity.parquet").to_pylist()
    seed = {purpose: derive_seed(0, purpose, "gaussian", N, D, 0) for purpose in ("map", "search", "text")}
    phi = build_map(name, N, D, options=MapOptions(), seed=seed["map"])
    X = drawn_text()
    expected = ws.word_sensitivity(phi, X, seed=seed["search"])
    assert record["value"] == pytest.approx(expected.value, rel=1e-12)
    assert record["median_word"] == pytest.approx(float(expected.per_word.median()), rel=1e-12)
    assert record["word"] == expected.word
    assert record["upper"] == (None if expected.upper is None else pytest.approx(expected.upper, rel=1e-9))
    assert record["evaluations"] == expected.evaluations
    # By definition, at the witness; and no ascent of a straightforward kind from three starts finds more.
    rows = X.rows.clone()
    at = int((expected.words == expected.word).nonzero()[0])
    rows[expected.word] += expected.perturbations[at]
    change = float((phi(rows) - phi(X)).norm() / phi(X).norm())
    assert record["value"] == pytest.approx(change, rel=1e-9)
    assert record["value"] >= largest_by_plain_ascent(phi, X) * (1 - 1e-6)
    if record["upper"] is not None:
        assert record["value"] <= record["upper"] * (1 + 1e-9)


def drawn_text():
    cell = SensitivityCell.parse({"map": "raf", "n": N, "d": D, "text": "gaussian"})
    return load_text(cell.text, N, D, draw=0, seed=0)


def largest_by_plain_ascent(phi, X, *, starts=3, steps=60):
    """The largest change over all words: gradient steps on the ball through the whole map, from random points of it."""
    rows, features = X.rows, phi(X.rows)
    stream, best = torch.Generator().manual_seed(0), 0.0
    for word in range(len(rows)):
        for _ in range(starts):
            x = torch.randn(D, dtype=torch.float64, generator=stream)
            x = x * D**0.5 / x.norm()
            for step in range(steps):
                x.requires_grad_(True)
                moved = torch.cat([rows[:word], (rows[word] + x)[None], rows[word + 1 :]])
                value = (phi(moved) - features).norm() / features.norm()
                best = max(best, float(value.detach()))
                (slope,) = torch.autograd.grad(value, x)
                with torch.no_grad():
                    x = x + 0.3 * D**0.5 * 0.95**step * slope / slope.norm().clamp(min=1e-300)
                    x = x * min(1.0, D**0.5 / float(x.norm()))
    return best


def test_measure_gives_what_the_library_finds_by_default(wordsens):
    run = wordsens("measure", "good film", "--map", "rf,raf", "--json")
    rf, raf = json.loads(run.out)["texts"][0]["results"]
    X = ws.embed("good film")[0]
    for result, phi in ((rf, ws.RandomFeatures(2, 384, seed=0)), (raf, ws.RandomAttentionFeatures(384, seed=0))):
        expected = ws.word_sensitivity(phi, X, seed=0)
        assert result["per_word"] == pytest.approx(expected.per_word.tolist(), rel=1e-9)
        assert result["upper"] == pytest.approx(expected.upper, rel=1e-9)
    phi = ws.RandomAttentionFeatures(384, seed=0)
    for word in (0, 1):
        assert raf["per_word"][word] >= plain_ascent(phi.weight, X.rows, word, seed=word)[0] * (1 - 1e-9)
