"""Similarity where one word matters: AUC and changes by plain NumPy, swaps of one word, one line
for what cannot be."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch

import wordsens as ws
from wordsens.errors import InputError, ZeroFeaturesError
from wordsens.models.embedding import load_encoder
from wordsens.studies.passages import single_words, swapped_passages
from wordsens.studies.similarity import STUDY, SimilarityCell, compared, pairs_of
from wordsens.sweeps.sweep import paper_sweep
from wordsens.sweeps.texts import DatasetText, ShippedText
from wordsens.text.whole_words import reading_words

SMALL = {
    "map": "raf",
    "n": 12,
    "d": 16,
    "text": "reviews",
    "search": "quick",
    "count": 5,
    "words": 0,
}
POOLED = {"map": "model", "pool": "mean", "model_layer": 2, "d": 384}


def by_numpy(lower, higher):
    """The AUC by its definition, pair of pairs by pair of pairs."""
    return np.mean([[1.0 if a < b else 0.5 if a == b else 0.0 for b in higher] for a in lower])


def test_swaps_are_compared_as_numpy_does():
    """Softmax attention written out in NumPy float64, on the rows of the same passages."""
    cell = SimilarityCell.parse({**SMALL, "words": 1})
    columns = STUDY.measure(cell)
    pairs, weight = pairs_of(cell), cell.build().weight.numpy()

    def phi(text):
        rows = ws.embed(text)[0].truncated(12, 16).rows.numpy()
        scores = rows @ weight @ rows.T / 4
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        return (weights / weights.sum(axis=1, keepdims=True) @ rows).ravel()

    features = [(phi(pair.first), phi(pair.second)) for pair in pairs]
    cosines = np.array([a @ b / np.linalg.norm(a) / np.linalg.norm(b) for a, b in features])
    moved = np.array([np.linalg.norm(b - a) / np.linalg.norm(a) for a, b in features])
    assert columns["value"] == pytest.approx(by_numpy(cosines[:5], cosines[5:]), abs=1e-12)
    assert columns["moved_flip"] == pytest.approx(np.median(moved[:5]), rel=1e-9)
    assert columns["moved_synonym"] == pytest.approx(np.median(moved[5:]), rel=1e-9)
    assert columns["auc_low"] <= columns["value"] <= columns["auc_high"]
    first = ws.embed(pairs[0].first)[0].truncated(12, 16)
    asked = {
        "words": columns["word"],
        "seed": cell.seed_of("search"),
        "search": "quick",
        "certificate": False,
    }
    assert columns["sensitivity"] == ws.word_sensitivity(cell.build(), first, **asked).value > 0


def test_pairs_of_check_are_compared_with_paraphrases_and_synonyms():
    cell = SimilarityCell.parse(
        {**SMALL, "pairs": "check", "length": "question", "n": 25, "count": 3}
    )
    columns, pairs = STUDY.measure(cell), pairs_of(cell)
    kept = columns["arrays"]
    cosines = kept["cosines"].numpy()
    sides = {
        name: cosines[[test(pair) for pair in pairs]]
        for name, test in {
            "opposite": lambda pair: not pair.same,
            "paraphrase": lambda pair: pair.same and pair.kind != "synonym",
            "synonym": lambda pair: pair.kind == "synonym",
        }.items()
    }
    assert columns["value"] == pytest.approx(by_numpy(sides["opposite"], sides["paraphrase"]))
    assert columns["auc_synonym"] == pytest.approx(by_numpy(sides["opposite"], sides["synonym"]))
    moved = kept["moved"].numpy()[[pair.kind == "synonym" for pair in pairs]]
    assert columns["moved_synonym"] == pytest.approx(np.median(moved))


def test_only_a_texts_own_words_are_searched(monkeypatch):
    """Not the special tokens that a model reads with it."""
    searched = []

    def search(phi, text, words, *_, **__):
        searched.extend(words)
        return SimpleNamespace(value=1.0, evaluations=0, word=words[0])

    monkeypatch.setattr("wordsens.studies.similarity.word_sensitivity", search)
    STUDY.measure(SimilarityCell.parse({**SMALL, **POOLED, "words": 12}))
    assert searched == list(range(1, 13))


def test_layers_are_the_pooled_states_of_the_model():
    cell = SimilarityCell.parse({**SMALL, **POOLED})
    kept = STUDY.measure(cell)["arrays"]
    phi = ws.TransformerFeatures.from_pretrained("minilm", layer=2, pool="mean")
    for pair, cosine in zip(pairs_of(cell), kept["cosines"].tolist(), strict=True):
        a, b = (phi(phi.embed([text])[0].rows).double() for text in (pair.first, pair.second))
        assert cosine == pytest.approx(
            float(torch.nn.functional.cosine_similarity(a, b, dim=0)), abs=1e-5
        )


@pytest.mark.parametrize("n", [8, 40])
def test_a_swap_exchanges_one_word_of_a_table_and_keeps_the_rows(n):
    reader = load_encoder("minilm")
    pairs = swapped_passages(ShippedText(), "minilm", n, 12, seed=3)
    assert [pair.same for pair in pairs] == [False] * 12 + [True] * 12
    assert len({pair.first for pair in pairs}) == 12
    assert [pair.first for pair in pairs[:12]] == [pair.first for pair in pairs[12:]]
    reviews = [review.text for review in ws.shipped_reviews()]
    for pair in pairs:
        assert reader.tokenize(pair.first).words == reader.tokenize(pair.second).words == n
        assert any(pair.first in review for review in reviews)
        before, after = reading_words(pair.first), reading_words(pair.second)
        (at,) = [at for at, (a, b) in enumerate(zip(before, after, strict=True)) if a != b]
        assert after[at].lower() in single_words(pair.kind)[before[at].lower()]


def test_features_of_length_zero_have_no_cosine():
    features = torch.tensor([[1.0, 0.0], [0.0, 2.0], [0.0, 0.0]])
    cosines, moved = compared(features, [(0, 1), (1, 0)], "map")
    assert cosines.tolist() == [0.0, 0.0]
    assert moved.tolist() == pytest.approx([5**0.5, 5**0.5 / 2])
    with pytest.raises(ZeroFeaturesError):
        compared(features, [(0, 2)], "map")


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"length": "page"}, "`length` .* goes with pairs 'check'"),
        ({"text": "gaussian"}, "no words to exchange"),
        ({"text": {"kind": "reviews", "padded_below": 9}}, "cut into passages"),
    ],
)
def test_specs_that_mean_nothing(keys, message):
    with pytest.raises(InputError, match=message):
        SimilarityCell.parse({**SMALL, **keys})


def test_texts_without_a_word_of_the_tables_leave_the_swaps_out(tmp_path):
    (tmp_path / "text.txt").write_text("zebra xylophone quartz " * 30)
    source = DatasetText(path=str(tmp_path / "text.txt"))
    with pytest.raises(InputError, match=r"has a passage of `n` \(=8\) rows that holds"):
        swapped_passages(source, "minilm", 8, 3, seed=0)
    sweep, notices = paper_sweep("similarity", "quick", source)
    assert {cell.pairs for cell in sweep.cells()} == {"check"}
    assert notices == ["no text has a passage of 8, 32 words in which one can be swapped: left out"]


def _records(values, **columns):
    """Made-up records of swaps: AUC and S by (map, n, draw)."""
    rows = [
        {"cell": str(place), "map": name, "text": "reviews", "n": n, "draw": draw, "pairs": "swaps"}
        | {
            "value": value,
            "sensitivity": s,
            "spec": '{"model_layer": 1}' if "layer" in name else "{}",
        }
        for place, ((name, n, draw), (value, s)) in enumerate(values.items())
    ]
    usual = {"opposites": 5, "moved_flip": 0.2, "moved_synonym": 0.1, "length": None}
    usual |= dict.fromkeys(("auc_synonym", "auc_low", "auc_high"), 0.5)
    return pd.DataFrame(rows).assign(**usual | columns)


def test_the_figure_has_three_layers_of_a_model():
    layers = {(f"minilm layer {at}", n, 0): (0.1 * at, None) for at in range(7) for n in (8, 16)}
    maps = {(name, n, 0): (0.5, 1.0) for name in ("rf", "raf") for n in (8, 16)}
    figures = STUDY.figures(_records(maps | layers))
    assert set(figures) == {"similarity", "similarity-sensitivity"}
    titles = ["random maps, movie reviews", "pooled layers, movie reviews"]
    assert [panel.get_title() for panel in figures["similarity"].axes] == titles
    series = [bars.get_label() for bars in figures["similarity"].axes[1].containers]
    assert series == [f"minilm layer {at}" for at in (0, 3, 6)]


def _study(start, end, slope, draws=5):
    """AUC at 8 and 16 words, which changes by `slope` from map to map, as S does."""
    maps = enumerate(("rf", "raf", "relu-raf"))
    values = {
        (name, n, draw): (value + slope * place + draw / 100, float(place))
        for place, name in maps
        for n, value in ((8, start), (16, end))
        for draw in range(draws)
    }
    return STUDY.summary(_records(values))


def test_findings_say_what_the_intervals_allow():
    summary = _study(0.7, 0.5, 0.1)
    first, correlation = (finding.sentence for finding in summary.findings)
    assert "movie reviews of 8 to 16 words) random maps are better than chance in 6" in first
    assert "with length the AUC falls in 3 of 3 settings" in first
    assert "over random maps and lengths the AUC rises with S" in correlation
    assert len(summary.findings[0].rows) == summary.table()["draws"].sum() == 30
    assert summary.table()["AUC"].tolist()[:2] == pytest.approx([0.72, 0.52])
    worse = _study(0.3, 0.3, 0.0).headline
    assert "worse in 6" in worse
    assert "with length the AUC no difference is claimed in 3 settings" in worse
    assert "AUC falls with S" in _study(0.7, 0.5, -0.15).findings[1].sentence
    (few,) = _study(0.7, 0.5, 0.1, draws=2).findings
    assert "no difference is claimed in 6 settings" in few.sentence


@pytest.mark.parametrize(
    ("low", "high", "side"),
    [(0.0, 0.3, "below chance in 2 of 2"), (0.6, 1.0, "above"), (0.4, 0.6, "no difference")],
)
def test_pairs_of_check_are_compared_with_chance_by_their_interval_over_pairs(low, high, side):
    values = {("rf", 40, 0): (0.1, None), ("raf", 40, 0): (0.2, None)}
    check = _records(values, pairs="check", length="page", auc_low=low, auc_high=high)
    (finding,) = STUDY.summary(check).findings
    assert "page pairs of check: AUC 0.10 (RF) to 0.20 (RAF (softmax))" in finding.sentence
    assert side in finding.sentence


def test_records_that_differ_in_more_than_their_draw_are_not_averaged():
    records = _records({("rf", 8, 0): (0.5, None), ("rf", 8, 1): (0.5, None)})
    records["spec"] = ['{"radius": 1}', '{"radius": 2}']
    with pytest.raises(InputError, match="several values of radius"):
        STUDY.summary(records)


def test_draws_with_fewer_passages_are_in_the_same_row():
    records = _records({("rf", 8, draw): (0.5, None) for draw in range(3)})
    table = STUDY.summary(records.assign(opposites=[5, 4, 5])).table()
    assert (table["draws"].tolist(), table["passages"].tolist()) == ([3], [4])
