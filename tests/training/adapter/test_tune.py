"""Tuning a tiny encoder: what is trained, what is kept apart, what is written, and what is refused."""

import json
import random
import shutil

import numpy as np
import pytest
import torch

import wordsens as ws
from wordsens.text.pretrained import minilm_folder
from wordsens.training.adapter import train as training
from wordsens.training.adapter.examples import from_frames
from wordsens.training.adapter.retrieval import recall_at_one
from wordsens.training.adapter.split import split_pairs, split_sentences
from wordsens.training.adapter.trainee import trainee_of

SENTENCES = [
    "The door is open.",
    "We did not see the red model.",
    "a",
    "Eleven people waited for the tram in the rain.",
]


@pytest.mark.slow_cases("linear", "low-rank")
@pytest.mark.parametrize("adapter", ["layers", "low-rank", "linear"])
def test_sentence_transformers_gives_the_same_vectors(adapter, tiny, short, pairs, texts, tmp_path):
    from sentence_transformers import SentenceTransformer

    out = tmp_path / "tuned"
    found = ws.training.tune(tiny, out, pairs, texts, plan=short(adapter=adapter))
    ours = torch.nn.functional.normalize(ws.as_model(str(out)).encode(SENTENCES), dim=1).numpy()
    theirs = SentenceTransformer(str(out), device="cpu").encode(
        SENTENCES, normalize_embeddings=True, show_progress_bar=False
    )
    before = torch.nn.functional.normalize(ws.as_model(str(tiny)).encode(SENTENCES), dim=1).numpy()
    assert np.abs(ours - theirs).max() < 1e-5
    assert np.abs(ours - before).max() > 1e-3
    assert (found.weights == 32 * 32) == (adapter == "linear")
    assert [path.name for path in tmp_path.iterdir()] == ["tuned"]
    assert json.loads(json.dumps(found.to_dict()))["held_out_domains"] == list(found.domains)


def test_a_model_keeps_the_files_of_its_own_pooling(tiny, short, pairs, texts, tmp_path):
    from sentence_transformers import SentenceTransformer

    model, out = tmp_path / "own", tmp_path / "tuned"
    shutil.copytree(tiny, model)
    for name in ("modules.json", "sentence_bert_config.json", "config_sentence_transformers.json"):
        shutil.copyfile(minilm_folder() / name, model / name)
    (model / "1_Pooling").mkdir()
    own = {"word_embedding_dimension": 32, "pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}
    (model / "1_Pooling" / "config.json").write_text(json.dumps(own), encoding="utf-8")
    ws.training.tune(model, out, pairs, texts, plan=short(steps=4, made=12, kept=20))
    theirs = SentenceTransformer(str(out), device="cpu")
    assert (theirs.max_seq_length, [type(module).__name__ for module in theirs][-1]) == (256, "Normalize")
    vectors = theirs.encode(SENTENCES, show_progress_bar=False)
    assert np.abs(vectors - ws.as_model(str(out)).encode(SENTENCES).numpy()).max() < 1e-5


@pytest.mark.slow
def test_minilm_keeps_the_files_of_its_own_pooling(short, pairs, texts, tmp_path):
    from sentence_transformers import SentenceTransformer

    out = tmp_path / "tuned"
    few = [pair for pair in pairs if pair.columns["domain"] != "everyday"]
    found = ws.training.tune("minilm", out, few, texts[:6], plan=short(steps=4, made=12, kept=20))
    theirs = SentenceTransformer(str(out), device="cpu")
    assert (theirs.max_seq_length, [type(module).__name__ for module in theirs][-1]) == (256, "Normalize")
    vectors = theirs.encode(SENTENCES, show_progress_bar=False)
    assert np.abs(vectors - ws.as_model(str(out)).encode(SENTENCES).numpy()).max() < 1e-5
    assert found.unseen.before.kinds["negation"].median_opposite > 0.9
    assert found.seen.before.identity != found.seen.after.identity


def test_the_adapter_begins_where_the_model_is(tiny, short):
    phi = ws.as_model(str(tiny)).features()
    expected = torch.nn.functional.normalize(phi.encode(SENTENCES), dim=1)
    for adapter in ("layers", "low-rank", "linear"):
        trainee = trainee_of(phi, short(adapter=adapter), 0)
        trainee.keep(SENTENCES)
        assert torch.allclose(trainee.exactly(SENTENCES).double(), expected, atol=1e-5)
        assert torch.allclose(trainee.vectors(SENTENCES).double(), expected, atol=0.05)


def test_the_loss_falls(tiny, short):
    chance = random.Random(0)
    made = from_frames(20, chance)
    plain = [example.text for example in from_frames(20, chance)]
    material, plan = training.Material(made, [], plain), short(batch=20, steps=1)
    trainee = trainee_of(ws.as_model(str(tiny)).features(), plan, 0)
    near = training._neighbours(trainee, plain)
    optimizer = torch.optim.AdamW(trainee.parameters(), lr=3e-3)
    losses = []
    for _ in range(15):
        loss = training._loss(trainee, material, near, plan, random.Random(1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.8 * losses[0]


def test_a_stopped_run_goes_on_as_it_would_have_gone(tiny, short, pairs, texts, tmp_path, monkeypatch):
    monkeypatch.setattr(training, "_EVERY", 2)
    whole = ws.training.tune(tiny, tmp_path / "whole", pairs, texts, plan=short())

    def stop(now, share):
        if now == "training" and share > 0.5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ws.training.tune(tiny, tmp_path / "parts", pairs, texts, plan=short(), told=stop)
    assert not (tmp_path / "parts").exists()
    steps = []
    told = lambda now, share: steps.append(now)  # noqa: E731
    parts = ws.training.tune(tiny, tmp_path / "parts", pairs, texts, plan=short(), told=told)
    assert steps.count("training") < 6
    vectors = [ws.as_model(str(tmp_path / name)).encode(SENTENCES) for name in ("whole", "parts")]
    assert torch.allclose(*vectors, atol=1e-6)
    # States of frozen layers are computed anew, in other batches: float32 rounds them otherwise.
    for row, as_whole in zip(parts.unseen.rows(()), whole.unseen.rows(()), strict=True):
        assert row == {
            name: pytest.approx(value, abs=1e-6) if isinstance(value, float) else value
            for name, value in as_whole.items()
        }


def test_what_is_kept_apart_is_not_trained_on():
    pairs = ws.read_pairs()
    split = split_pairs(pairs, ("health", "law"), None, seed=0)
    assert split.kinds == ("entity", "modality")
    assert {pair.columns["domain"] for pair in split.unseen} == {"health", "law"}
    assert not {pair.columns["domain"] for pair in split.train} & {"health", "law"}
    assert not {pair.kind for pair in split.train if not pair.same} & set(split.kinds)
    assert {pair.kind for pair in split.seen} >= set(split.kinds)


def test_without_domains_no_text_is_on_both_sides():
    rows = [
        (kind, f"{where} {at}", f"{where} {at} {kind}", kind == "same")
        for at in range(12)
        for kind, where in (("not", "place"), ("same", "place"))
    ]
    split = split_pairs(ws.read_pairs(rows), None, None, seed=1)
    assert split.domains == () and split.kinds == ()
    assert not {pair.first for pair in split.train} & {pair.first for pair in split.unseen}
    assert len(split.train) + len(split.unseen) == len(rows)


def test_no_plain_sentence_is_on_both_sides(texts):
    train, apart = split_sentences(texts, seed=0, apart=20)
    assert len(apart) == 20 and not set(train) & set(apart)


def test_recall_counts_queries_both_ways():
    place = {"one": [1, 0, 0], "eins": [0.9, 0.3, 0], "two": [0, 1, 0], "zwei": [0, 0.2, 1], "rain": [0, 0.5, 0.9]}
    pairs = ws.read_pairs([("p", "one", "eins", True), ("p", "two", "zwei", True), ("n", "one", "two", False)])
    found = recall_at_one(ws.as_model(lambda texts: [place.get(text, [1, 1, 1]) for text in texts]), pairs, ["rain"])
    assert found.found == (True, False, True, False)
    assert (found.value, found.queries, found.among) == (0.5, 4, 3)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"plan": {"depth": 9}}, "`depth` (=9) must be at most the 2 layers"),
        ({"held_out": ws.training.HeldOut(domains=("sea",))}, "`held_out` (='sea') must be one of everyday"),
        ({"held_out": ws.training.HeldOut(kinds=("sea",))}, "`held_out_kinds` (='sea') must be one of antonym"),
        ({"texts": ["No."]}, "`texts` holds 1 texts and too few sentences"),
    ],
)
def test_wrong_input_is_refused_and_nothing_is_written(changes, message, tiny, short, pairs, texts, tmp_path):
    given = {"texts": texts, **changes, "plan": short(**changes.get("plan", {}))}
    with pytest.raises(ws.InputError) as refused:
        ws.training.tune(tiny, tmp_path / "out", pairs, **given)
    assert message in str(refused.value)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_empty_is_refused(tiny, tmp_path):
    (tmp_path / "file").write_text("kept")
    with pytest.raises(ws.InputError, match="exists and is not an empty folder"):
        ws.training.tune(tiny, tmp_path)
    with pytest.raises(ws.InputError, match="must be in a folder that exists"):
        ws.training.tune(tiny, tmp_path / "no" / "folder")


def test_the_plan_refuses_what_makes_no_sense():
    with pytest.raises(ws.InputError, match=r"`adapter` .* must be one of parity, layers, low-rank, linear"):
        ws.training.TunePlan(adapter="lora")
    with pytest.raises(ws.InputError, match=r"`paragraphs` .* must be a share from 0 to 1"):
        ws.training.TunePlan(paragraphs=2.0)
