"""An audit of one text, and what the records say together."""

import json
from collections import Counter
from dataclasses import replace

import pytest
import torch
from tests.maps.tiny_models import model_of, tokenizer

import wordsens as ws
from wordsens.audit.categories import FUNCTION_WORDS, KINDS, NEGATIONS, counted, frequency_bands, kind_of, place_of
from wordsens.audit.layers import layer_sensitivities
from wordsens.audit.record import AuditPlan, AuditRecord
from wordsens.audit.summary import summarise_audit
from wordsens.audit.text import attempt_text, chosen_words
from wordsens.experiments.store import RecordStore
from wordsens.sensitivity import attained

TEXT = ws.Document("the film was not unlikely good and very long", label=1, source="reviews:1")
PLAN = AuditPlan(model="bert", map="m", max_words=20, words_per_text=3, removal="mask", swaps=False, seed=0)


@pytest.fixture(scope="module")
def phi():
    return ws.TransformerFeatures(model_of("bert"), tokenizer(), name="bert", pool="mean")


def test_a_record_holds_what_the_library_measures(phi):
    record = attempt_text(phi, TEXT, PLAN)
    assert (record.status, record.source, record.label, record.tokens, record.words) == ("done", "reviews:1", 1, 13, 9)
    names = json.loads(record.measured)
    assert "not" in names
    (X,) = phi.embed(TEXT)
    chosen = chosen_words(X, 3, seed=0, source="reviews:1")
    assert [X.whole_words[at].text for at in chosen] == names
    assert record.places == tuple(at / 8 for at in chosen)
    found = ws.whole_word_sensitivity(phi, X, chosen, steps=0, generations=0)
    assert record.sensitivity == pytest.approx(tuple(found.per_word.tolist()), rel=1e-6)
    for word, delta, value in zip(found.whole, found.perturbations, record.sensitivity, strict=True):
        again = attained(phi, X.rows, torch.tensor([word.rows]), delta.unsqueeze(0))
        assert float(again) == pytest.approx(value, rel=1e-5)
    removed = ws.removal_effects(phi, TEXT, chosen, way="mask")
    assert record.removal == pytest.approx(tuple(removed.change.tolist()), rel=1e-6)
    assert record.value == max(record.sensitivity)
    assert record.peak_memory_mb > 50


def test_swaps_are_those_of_best_swaps(phi):
    vocabulary = phi.vocabulary()
    record = attempt_text(phi, TEXT, replace(PLAN, swaps=True, words_per_text=9), vocabulary)
    names, swapped = json.loads(record.measured), json.loads(record.swapped_for)
    at = names.index("unlikely")
    assert record.swap[at] != record.swap[at]
    assert swapped[at] == ""
    (X,) = phi.embed(TEXT)
    best = ws.best_swaps(phi, X, vocabulary, words=[4])
    assert record.swap[names.index("not")] == pytest.approx(float(best.per_word), rel=1e-6)
    assert swapped[names.index("not")] == best.swapped_for[0]


def test_a_text_that_cannot_be_measured_gives_a_failed_record(phi):
    record = attempt_text(phi, ws.Document("good", source="x"), PLAN)
    assert record.status == "failed"
    assert record.error == "x has 1 words; an audit compares words, so it is left out"


def test_records_come_back_from_the_store_and_know_their_plan(phi, tmp_path):
    store = RecordStore(tmp_path, AuditRecord)
    record = attempt_text(phi, TEXT, PLAN)
    store.write(record)
    assert store.read([PLAN.cell(TEXT.text)]) == [record]
    assert PLAN.cell(TEXT.text) != replace(PLAN, seed=1).cell(TEXT.text)
    assert PLAN.cell(TEXT.text) != PLAN.cell(TEXT.text + " ")


def test_negations_are_measured_first(phi):
    (X,) = phi.embed("the film was good and very long and not short")
    for seed in range(10):
        assert 8 in chosen_words(X, 1, seed=seed, source="a")
    assert len({tuple(chosen_words(X, 3, seed=seed, source="a")) for seed in range(10)}) > 1


def made(source, tokens, words, sensitivity, removal):
    text = f"{source}"
    return AuditRecord(
        cell=PLAN.cell(text), spec=PLAN.identity(text), status="done", value=max(sensitivity), seconds=1.0,
        source=source, tokens=tokens, words=len(words), measured=json.dumps(words), rows=json.dumps([1] * len(words)),
        places=tuple(at / (len(words) - 1) for at in range(len(words))), sensitivity=sensitivity, removal=removal,
        swap=(), swapped_for="[]", evaluations=1, peak_memory_mb=1.0, started="", wordsens_version="",
        torch_version="", machine="",
    )  # fmt: skip


def test_a_summary_of_made_up_records():
    records = [
        made("a", 10, ["the", "not", "film"], (1.0, 0.8, 0.6), (0.5, 0.01, 0.2)),
        made("b", 20, ["the", "not", "film"], (0.5, 0.4, 0.3), (0.3, 0.03, 0.4)),
        made("c", 40, ["a", "not", "plot"], (0.25, 0.2, 0.15), (0.1, 0.05, 0.6)),
    ]
    summary = summarise_audit(records, Counter(the=50, film=30, plot=10, a=5, **{"not": 5}))
    assert (summary.texts, summary.words) == (3, 9)
    groups = {group.category: group for group in summary.groups}
    assert groups["kind: negation"].count == 3
    assert groups["kind: negation"].removal == pytest.approx(0.03)
    assert groups["band: common"].count == 2
    assert groups["band: common"].sensitivity == pytest.approx(0.75)
    assert summary.overreacts == (("the", pytest.approx(0.4), 2),)
    assert [word for word, _, _ in summary.ignores] == ["not", "film"]
    assert summary.exponents["negation"]["sensitivity"].exponent == pytest.approx(-1.0)
    with pytest.raises(ws.InputError, match="no text of the dataset could be measured"):
        summarise_audit([replace(records[0], status="failed")], Counter())


def test_categories():
    assert not NEGATIONS & FUNCTION_WORDS
    assert {kind_of(word) for word in ("Never", "Won’t", "THE", "camera", "9", "...")} == set(KINDS)
    assert [place_of(share) for share in (0.0, 0.5, 1.0)] == ["first fifth", "middle", "last fifth"]
    assert counted(["The", "the", "a"]) == {"the": 2, "a": 1}
    bands = frequency_bands(Counter({f"w{at}": 1 for at in range(100)}))
    assert Counter(bands.values()) == {"common": 50, "frequent": 40, "rare": 10}


def test_layers_and_heads(phi):
    found = layer_sensitivities(phi.at(), [TEXT], words=2, max_words=20)
    assert [layer.layer for layer in found] == [1, 2, 3]
    (X,) = phi.embed(TEXT)
    chosen = chosen_words(X, 2, seed=0, source=TEXT.source)
    for layer in found:
        one = phi.at(layer=layer.layer)
        r = ws.whole_word_sensitivity(one, X, chosen, steps=0, generations=0)
        assert layer.sensitivity == pytest.approx(r.value, rel=1e-5)
        head = phi.at(layer=layer.layer, head=3)
        changes = []
        for word, delta in zip(r.whole, r.perturbations, strict=True):
            changes.append(float(attained(head, X.rows, torch.tensor([word.rows]), delta.unsqueeze(0))))
        assert layer.heads[3] == pytest.approx(max(changes), rel=1e-5)
