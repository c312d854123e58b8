"""Similarity where one word matters: AUC and changes by plain NumPy, swaps of one word, one line
for what cannot be."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

import wordsens as ws
from wordsens.errors import InputError, ZeroFeaturesError
from wordsens.models.embedding import load_encoder
from wordsens.plotting import of_experiment
from wordsens.studies.passages import single_words, swapped_passages
from wordsens.studies.similarity import (
    SimilarityCell,
    compared,
    measure_similarity,
    pairs_of,
    summarize,
)
from wordsens.sweeps.run import failed
from wordsens.sweeps.sweep import paper_sweep
from wordsens.sweeps.texts import DatasetText, ReviewsText
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
    columns = measure_similarity(cell)
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
    columns, pairs = measure_similarity(cell), pairs_of(cell)
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
    measure_similarity(SimilarityCell.parse({**SMALL, **POOLED, "words": 12}))
    assert searched == list(range(1, 13))


def test_layers_are_the_pooled_states_of_the_model():
    cell = SimilarityCell.parse({**SMALL, **POOLED})
    kept = measure_similarity(cell)["arrays"]
    phi = ws.TransformerFeatures.from_pretrained("minilm", layer=2, pool="mean")
    for pair, cosine in zip(pairs_of(cell), kept["cosines"].tolist(), strict=True):
        a, b = (phi(phi.embed([text])[0].rows).double() for text in (pair.first, pair.second))
        assert cosine == pytest.approx(
            float(torch.nn.functional.cosine_similarity(a, b, dim=0)), abs=1e-5
        )


@pytest.mark.parametrize("n", [8, 40])
def test_a_swap_exchanges_one_word_of_a_table_and_keeps_the_rows(n):
    reader = load_encoder("minilm")
    pairs = swapped_passages(ReviewsText(), "minilm", n, 12, seed=3)
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


def _record(name, n, draw, value, s, **columns):
    keys = POOLED | {"d": 384} if name == "model" else {"map": name}
    cell = SimilarityCell.parse({**SMALL, **keys, "n": n, "draw": draw})
    plain = dict.fromkeys(("moved_flip", "moved_synonym", "auc_synonym", "auc_low", "auc_high"))
    made = {"value": value, "sensitivity": s, "opposites": 5}
    return failed(cell, "none").replace(status="done", error=None, **plain | made | columns)


def _told(records):
    return [claim.sentence for claim in summarize(records).findings]


def test_the_figure_names_its_axes_and_has_three_layers_of_a_model():
    layers = [
        _record("model", n, 0, 0.1 * at, None).replace(model_layer=at, map=f"minilm layer {at}")
        for at in range(7)
        for n in (8, 16)
    ]
    maps = [_record(name, n, 0, 0.5, 1.0) for name in ("rf", "raf") for n in (8, 16)]
    figure = of_experiment([*maps, *layers])["similarity"]
    panels = {
        (panel.get_title(), panel.get_ylabel()): panel for panel in figure.axes if panel.containers
    }
    assert {label for _, label in panels} == {"AUC", "word sensitivity S"}
    (of_layers,) = (panel for (title, _), panel in panels.items() if title.startswith("Layers"))
    assert [bars.get_label() for bars in of_layers.containers] == [
        f"minilm layer {at}" for at in (0, 3, 6)
    ]


def test_sentences_say_what_the_intervals_allow():
    scatter = (0.0, 0.01, 0.02, 0.03, 0.04)

    def study(start, end, slope):
        return [
            _record(
                name,
                n,
                draw,
                value + slope * at + small,
                float(at),
                moved_flip=0.2,
                moved_synonym=0.1 + 0.1 * at,
            )
            for at, name in enumerate(("rf", "raf", "relu-raf"))
            for n, value in ((8, start), (16, end))
            for draw, small in enumerate(scatter)
        ]

    told = _told(study(0.7, 0.5, 0.1))
    assert (
        "RF, swaps in movie reviews: AUC 0.720 [0.700, 0.739] in passages of 8 words, better than"
        in told[0]
    )
    assert "0.520 [0.500, 0.540] in passages of 16, better than a coin, less by 0.200" in told[0]
    whole = summarize(study(0.7, 0.5, 0.1))
    shown = " ".join(str(whole).split())
    assert all(f"{name}, swaps" in shown for name in ("RF", "RAF (softmax)", "ReLU-RAF"))
    assert "worse than a coin, no change beyond its scatter" in _told(study(0.3, 0.3, 0.0))[0]
    assert any(
        "over the random maps and the lengths measured AUC rises with S" in one for one in told
    )
    assert any("AUC falls with S" in one for one in _told(study(0.7, 0.5, -0.15)))
    assert not any("all features" in one for one in told)  # there are no layers among them
    check = {"pairs": "check", "length": "page", "auc_low": 0.0, "auc_high": 0.3}
    told = _told(
        [
            _record(name, 40, 0, value, None).replace(**check)
            for name, value in (("rf", 0.1), ("raf", 0.2))
        ]
    )
    assert told == [
        "Pairs of check, pages, against paraphrases: AUC between 0.10 (RF) and 0.20 (RAF "
        "(softmax)); every feature "
        "finds the flipped pairs more alike than paraphrases."
    ]
    for low, high in ((0.0, 0.6), (0.4, 1.0)):  # intervals that hold a coin
        unsure = [_record(name, 40, 0, 0.5, None) for name in ("rf", "raf")]
        interval = {**check, "auc_low": low, "auc_high": high}
        (sentence,) = _told([one.replace(**interval) for one in unsure])
        assert "every feature finds" not in sentence
    assert _told([one for one in study(0.7, 0.5, 0.1) if one.draw < 2]) == []
