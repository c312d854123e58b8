"""`tune` on a tiny transformer with random weights, by sentence-transformers' own trainer."""

import stat
from dataclasses import replace

import numpy as np
import pytest
import torch

import wordsens as ws
from tests.training.animals import ANIMALS, PAIRS, PLACES, TEXTS, SentenceTransformer, tiny_model
from wordsens.findings.tune import answer
from wordsens.models.function import FunctionModel
from wordsens.results import Estimate
from wordsens.text.pairs import Pair
from wordsens.training import tune
from wordsens.training.data import split_pairs, split_texts, training_data
from wordsens.training.tuning import _judged, _new

losses = pytest.importorskip("sentence_transformers.sentence_transformer.losses")
MultipleNegativesRankingLoss = losses.MultipleNegativesRankingLoss

PLAN = {"steps": 100, "batch": 8, "rate": 3e-3}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return tiny_model(tmp_path_factory.mktemp("tiny") / "model")


def load(folder):
    return SentenceTransformer(str(folder), device="cpu", local_files_only=True)


@pytest.fixture(scope="module")
def tuned(model, tmp_path_factory):
    out = tmp_path_factory.mktemp("out") / "tuned"
    return tune(model, out, PAIRS, TEXTS, **PLAN), out


def test_tuning_separates_opposites_that_took_no_part(tuned):
    before, after = (tuned[0].scores[side][0] for side in ("before", "after"))
    assert before.value < 0.2 and after.value > 0.8
    assert before.n == after.n == len(ANIMALS) * len(PLACES) // 3


def test_the_table_has_every_kind_and_recall_with_intervals(tuned):
    scores = tuned[0].scores
    assert scores["kind"] == ("negation", "recall@1")
    for estimate in scores["before"] + scores["after"]:
        assert estimate.low <= estimate.value <= estimate.high
    # "not" is trained on: none of these opposites is called new.
    assert scores["new"] == (None, None)


def test_only_changed_words_of_triples_that_were_seen_are_old(tuned):
    result = tuned[0]
    words = ("today.", "not today.")
    for seen, expected in (([], {"negation": result.scores["after"][0]}), ([words], {})):
        triples = [(first, first, other) for first, other in seen]
        assert _new(result.after, triples) == expected


def test_a_triple_counts_once_it_is_in_a_batch_before_an_interruption_too(
    model, tmp_path, monkeypatch
):
    batches, forward = [], MultipleNegativesRankingLoss.forward

    def recorded(loss, features, labels):
        batches.append(labels.tolist())
        return forward(loss, features, labels)

    monkeypatch.setattr(MultipleNegativesRankingLoss, "forward", recorded)

    def stop(now, share):
        if now == "training" and share > 0.5:
            raise KeyboardInterrupt

    out, plan = tmp_path / "out", PLAN | {"steps": 6}
    with pytest.raises(KeyboardInterrupt):
        tune(model, out, PAIRS, TEXTS, **plan, progress=stop)
    short = tune(model, out, PAIRS, TEXTS, **plan)
    assert short.seen == len({row for batch in batches for row in batch}) < short.triples


def test_a_kind_is_told_apart_where_its_whole_interval_is_above_chance(tuned):
    def said(low):
        recall = tuned[0].scores["after"][-1]
        area = Estimate(0.6, low, 0.7, n=9)
        return answer(replace(tuned[0], scores={**tuned[0].scores, "after": (area, recall)}))[1:]

    assert said(0.45) == said(0.2) != said(0.55)


def test_the_tuned_model_has_the_form_of_the_first(tuned, model):
    _, out = tuned
    first, second = load(model), load(out)
    shapes = [
        {name: value.shape for name, value in each.state_dict().items()} for each in (first, second)
    ]
    assert shapes[0] == shapes[1]
    assert {path.name for path in out.iterdir()} == {path.name for path in model.iterdir()}
    assert not out.with_name("tuned.checkpoints").exists()
    texts = [pair[1] for pair in PAIRS]
    single = torch.tensor(second.encode(texts))
    half = torch.tensor(second.half().encode(texts)).float()
    assert float((single - half).abs().max()) < 1e-2


def test_the_files_have_ordinary_permissions(tuned, tmp_path):
    _, out = tuned
    plain, folder = tmp_path / "plain", tmp_path / "folder"
    plain.touch()
    folder.mkdir()
    for path in (out, *out.rglob("*")):
        usual = folder if path.is_dir() else plain
        assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(usual.stat().st_mode), path


def test_an_interrupted_run_leaves_nothing_in_out_and_resumes_to_the_same_weights(
    tuned, model, tmp_path
):
    def stop(now, share):
        if now == "training" and share > 0.7:
            raise KeyboardInterrupt

    out = tmp_path / "again"
    with pytest.raises(KeyboardInterrupt):
        tune(model, out, PAIRS, TEXTS, **PLAN, progress=stop)
    assert not out.exists()
    with pytest.raises(ws.InputError, match="another rate"):
        tune(model, out, PAIRS, TEXTS, **PLAN | {"rate": 1e-3})
    shares = []
    tune(model, out, PAIRS, TEXTS, **PLAN, progress=lambda now, share: shares.append((now, share)))
    assert min(share for now, share in shares if now == "training") > 0.5
    assert sorted(path.name for path in tmp_path.iterdir()) == ["again"]
    for name, value in load(out).state_dict().items():
        torch.testing.assert_close(value, load(tuned[1]).state_dict()[name])


@pytest.mark.filterwarnings(
    "ignore:`is_gradient_checkpointing` is deprecated:FutureWarning"
)  # peft asks for it
def test_low_rank_matrices_are_merged_into_the_weights(model, tmp_path):
    pytest.importorskip("peft")
    out = tmp_path / "lora"
    tune(model, out, PAIRS, TEXTS, steps=4, batch=8, rate=1e-2, lora=True)
    first, second = load(model).state_dict(), load(out).state_dict()
    assert first.keys() == second.keys()
    changed = {name for name, value in first.items() if not torch.equal(value, second[name])}
    assert changed
    assert all(first[name].ndim == 2 and "embeddings" not in name for name in changed)
    assert not list(out.glob("adapter*"))


def test_pairs_with_a_long_text_are_not_trained_on_beside_shorter_ones():
    pairs = ws.read_pairs(PAIRS)
    long = [replace(pair, first=f"{pair.first} {'And so on. ' * 20}") for pair in pairs]
    triples, steady, _ = training_data([*pairs, *long], ["It is open."], seed=0)
    assert max(len(text.split()) for text in [*sum(triples, ()), *steady]) <= 50
    assert training_data(long, ["It is open."], seed=0)[0]


def test_sentences_that_are_trained_on_are_not_searched():
    ours, searched = split_texts(TEXTS, seed=0)
    own = {text.split(". ")[0] + "." for text in TEXTS}
    shared = "It can sleep there."
    assert shared in ours and sorted([*ours, *searched]) == sorted([*own, shared])


def test_whole_domains_are_held_out_with_every_text():
    pairs = [*ws.read_pairs(), *ws.near_duplicates()]
    train, held_out, domains = split_pairs(pairs, seed=0)
    assert len(domains) == 2
    assert {pair.columns["domain"] for pair in held_out} == set(domains)
    assert {pair.columns["domain"] for pair in train}.isdisjoint(domains)
    texts = [
        {text for pair in part for text in (pair.first, pair.second)} for part in (train, held_out)
    ]
    assert texts[0].isdisjoint(texts[1])
    assert (train, held_out, domains) == split_pairs(pairs, seed=0) != split_pairs(pairs, seed=1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model": len}, "must be the name or folder"),
        ({"model": "./nowhere"}, "there is no model folder"),
        ({"pairs": PAIRS[:2]}, "each part needs opposites and near-duplicates"),
        ({"out": "full"}, "is not an empty folder"),
        ({"out": "no/where"}, "in a folder that exists"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(unchecked_types, model, tmp_path, change, message):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    given = {"model": model, "out": "out", "pairs": PAIRS, "texts": TEXTS, **change}
    with pytest.raises(ws.InputError, match=message) as error:
        tune(given["model"], tmp_path / given["out"], given["pairs"], given["texts"], **PLAN)
    assert "\n" not in str(error.value)


def test_a_model_without_trainable_weights_is_refused(model, tmp_path, monkeypatch):
    frozen = load(model).requires_grad_(False)
    monkeypatch.setattr("wordsens.training.tuning.load_library_model", lambda *_: frozen)
    with pytest.raises(ws.InputError, match="no weights that can be trained"):
        tune(model, tmp_path / "out", PAIRS, TEXTS, **PLAN)


def test_no_text_of_a_held_out_pair_is_trained_on():
    """Pairs without domains that share their second texts."""
    pairs = [Pair("k", f"first {n}", f"second {n // 2}", False) for n in range(40)]
    pairs += [Pair("s", f"one {n}", f"other {n}", True) for n in range(40)]
    train, held_out, domains = split_pairs(pairs, seed=0)
    apart = {text for pair in held_out for text in (pair.first, pair.second)}
    assert domains == () and train and held_out
    assert all(apart.isdisjoint((pair.first, pair.second)) for pair in train)


def test_recall_searches_either_side_and_what_is_left_out_is_noted():
    same = [Pair("same", f"a{n}", f"b{n}", True) for n in range(6)]
    pairs = [*same, Pair("k", "a0", "z", False)]

    def one_sided(texts):
        """From the a's each partner is found; the b's are nearer to the other text."""
        sizes = {"a": (0.2, 1.0), "b": (1.0, 0.2), "y": (1.0, 0.0), "z": (1.0, 0.3)}
        return [
            [sizes[text[0]][0], *(sizes[text[0]][1] * (text[1:] == str(n)) for n in range(6))]
            for text in texts
        ]

    _, scores = _judged(
        pairs, ["y"], 0, lambda now, share: None, FunctionModel(one_sided, name="f"), "x"
    )
    assert scores["recall@1"].n == 12
    vectors = np.array(
        one_sided([text for pair in same for text in (pair.first, pair.second)] + ["y"])
    )
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    first, second, other = units[0:12:2], units[1:12:2], units[12:]
    hits = 0
    for side, partners in ((first, second), (second, first)):
        cosines = side @ np.concatenate([partners, other]).T
        hits += sum((row >= row[at]).sum() == 1 for at, row in enumerate(cosines))
    assert scores["recall@1"].value == hits / 12 == 0.5
