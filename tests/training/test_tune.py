"""`tune` on a tiny transformer with random weights, by sentence-transformers' own trainer."""

import stat
from dataclasses import replace

import pytest
import torch

import wordsens as ws
from tests.training.animals import ANIMALS, PAIRS, PLACES, TEXTS, SentenceTransformer, tiny_model
from wordsens.training import tune
from wordsens.training.held_out import split_pairs
from wordsens.training.tuning import _split_texts

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
    result, _ = tuned
    before, after = result.before.check.kinds["negation"], result.after.check.kinds["negation"]
    assert before.auc < 0.2 and after.auc > 0.8
    assert before.pairs == after.pairs == len(ANIMALS) * len(PLACES) // 3


def test_the_table_has_every_kind_and_recall_with_intervals(tuned):
    result, _ = tuned
    rows = {row["what"]: row for row in result.rows()}
    assert list(rows) == ["negation", "recall@1"]
    for row in rows.values():
        for side in ("before", "after"):
            assert row[f"{side}_low"] <= row[side] <= row[f"{side}_high"]
    # "not" is trained on: none of these opposites is called new.
    assert (rows["negation"]["new"], rows["negation"]["new_after"]) == (0, None)
    assert rows["recall@1"]["count"] == result.queries


def test_a_kind_counts_as_told_where_its_whole_interval_is_above_a_coin(tuned):
    def said(auc, low):
        side = tuned[0].after
        kinds = {"negation": replace(side.check.kinds["negation"], auc=auc, auc_low=low)}
        return replace(
            tuned[0], after=replace(side, check=replace(side.check, kinds=kinds))
        ).reached

    assert said(0.6, 0.45) == said(0.6, 0.2) != said(0.6, 0.55)


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
    short = tune(model, out, PAIRS, TEXTS, steps=4, batch=8, rate=1e-2, lora=True)
    assert short.triples == 4 * 8
    first, second = load(model).state_dict(), load(out).state_dict()
    assert first.keys() == second.keys()
    changed = {name for name, value in first.items() if not torch.equal(value, second[name])}
    assert changed
    assert all(first[name].ndim == 2 and "embeddings" not in name for name in changed)
    assert not list(out.glob("adapter*"))


def test_pairs_with_a_long_text_are_not_trained_on(model, tmp_path, monkeypatch):
    lengths = []

    def stop(pairs, *_):
        lengths.extend(len(text.split()) for pair in pairs for text in (pair.first, pair.second))
        raise KeyboardInterrupt

    monkeypatch.setattr("wordsens.training.tuning.make_triples", stop)
    long = [
        (kind, first, f"{second} {'And so on. ' * 10}", same) for kind, first, second, same in PAIRS
    ]
    with pytest.raises(KeyboardInterrupt):
        tune(model, tmp_path / "out", [*PAIRS, *long], TEXTS, **PLAN)
    assert 0 < max(lengths) <= 30


def test_sentences_that_are_trained_on_are_not_searched_among():
    ours, apart = _split_texts(TEXTS, 0)
    own = {text.split(". ")[0] + "." for text in TEXTS}
    shared = "It can sleep there."
    assert shared in ours and sorted([*ours, *apart]) == sorted([*own, shared])


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
        ({"model": len}, "cannot be trained"),
        ({"model": "./nowhere"}, "there is no model folder"),
        ({"pairs": PAIRS[:2]}, "each part needs opposites and near-duplicates"),
        ({"out": "full"}, "is not an empty folder"),
        ({"out": "no/where"}, "in a folder that exists"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(unchecked_types, model, tmp_path, change, message):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    (tmp_path / "taken.checkpoints").mkdir()
    given = {"model": model, "out": "out", "pairs": PAIRS, "texts": TEXTS, **change}
    with pytest.raises(ws.InputError, match=message) as error:
        tune(given["model"], tmp_path / given["out"], given["pairs"], given["texts"], **PLAN)
    assert "\n" not in str(error.value)


def test_a_model_without_trainable_weights_is_refused(model, tmp_path, monkeypatch):
    frozen = load(model).requires_grad_(False)
    monkeypatch.setattr("wordsens.training.tuning.load_library_model", lambda *_: frozen)
    with pytest.raises(ws.InputError, match="no weights that can be trained"):
        tune(model, tmp_path / "out", PAIRS, TEXTS, **PLAN)
