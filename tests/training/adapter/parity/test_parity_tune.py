"""`tune` with the adapter "parity": what is written, what it does to a "not", and what is refused."""

import json
import shutil

import numpy as np
import pytest
import torch

import wordsens as ws
from wordsens.text.pretrained import minilm_folder

SMALL = ws.training.TunePlan(parity=ws.training.ParityPlan(waves=200, sentences=300, changes=200))
SENTENCES = ["The door is open.", "The door is not open.", "a", "Eleven people waited for the tram in the rain. " * 30]


def same_in_sentence_transformers(folder):
    from sentence_transformers import SentenceTransformer

    ours = ws.as_model(str(folder)).encode(SENTENCES).numpy()
    theirs = SentenceTransformer(str(folder), device="cpu").encode(SENTENCES, show_progress_bar=False)
    assert np.abs(ours - theirs).max() < 1e-5
    assert np.allclose(np.linalg.norm(theirs, axis=1), 1, atol=1e-5)
    return torch.tensor(theirs)


def test_a_not_parts_near_duplicates_alone(encoder, pairs, texts, tmp_path):
    found = ws.training.tune(encoder, tmp_path / "tuned", pairs, texts, plan=SMALL)
    vectors = same_in_sentence_transformers(tmp_path / "tuned")
    before = torch.nn.functional.normalize(ws.as_model(str(encoder)).encode(SENTENCES), dim=1)
    old, new = before @ before.T, (vectors @ vectors.T).double()
    assert vectors.shape == (4, 126 + 200)
    assert old[0, 1] > 0.9 and new[0, 1] < old[0, 1] - 0.4
    row = found.unseen.rows(())[0]
    assert row["kind"] == "negation" and row["median_opposite"] < row["median_opposite_before"] - 0.3
    assert [path.name for path in tmp_path.iterdir()] == ["tuned"]
    assert json.loads(json.dumps(found.to_dict()))["plan"]["parity"]["waves"] == 200


def test_another_pooling_is_refused_and_nothing_is_written(encoder, pairs, texts, tmp_path):
    with pytest.raises(ws.InputError, match="does not give the mean over all its tokens alone"):
        ws.training.tune(encoder, tmp_path / "tuned", pairs, texts, plan=SMALL, pool="cls")
    assert list(tmp_path.iterdir()) == []


def test_texts_in_which_no_word_turns_are_refused(encoder, pairs, tmp_path):
    animals = ("cat", "dog", "horse", "cow", "sheep", "goat", "mouse", "duck")
    texts = [f"The {one} and the {other} are in the garden." for one in animals for other in animals]
    with pytest.raises(ws.InputError, match="no word turns a meaning"):
        ws.training.tune(encoder, tmp_path / "tuned", pairs, texts, plan=SMALL)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_minilm_sees_a_not(pairs, texts, tmp_path):
    few = [pair for pair in pairs if pair.columns["domain"] != "everyday"]
    plan = ws.training.TunePlan(parity=ws.training.ParityPlan(sentences=600, changes=600))
    found = ws.training.tune("minilm", tmp_path / "tuned", few, [each.text for each in ws.shipped_reviews()], plan=plan)
    same_in_sentence_transformers(tmp_path / "tuned")
    for both in (found.unseen, found.seen):
        for kind in ("negation", "antonym"):
            assert both.before.kinds[kind].median_opposite > 0.85
            assert both.after.kinds[kind].median_opposite < 0.55
    assert found.recall[1].value > found.recall[0].value - 0.15
    shutil.rmtree(tmp_path / "tuned")
    assert minilm_folder().is_dir()
