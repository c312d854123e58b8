"""Sentences: each number with how it is known, and no claim that an interval contradicts."""

import re
from collections import Counter
from dataclasses import replace

import pytest
import torch

from tests.report.conftest import write_records
from wordsens import RandomFeatures, SearchPlan, gaussian_text, word_sensitivity
from wordsens.display.content import Finding, minus
from wordsens.evaluation.audit.cell import audited
from wordsens.evaluation.audit.summary import summarise_audit
from wordsens.findings.audit import audit_findings, mean_intervals, save_findings
from wordsens.findings.sensitivity import text_display
from wordsens.report.findings import comparison, given_findings, run_findings
from wordsens.report.load import load_runs
from wordsens.sensitivity.result import MeasuredMap
from wordsens.statistics.operating_point import share_interval
from wordsens.statistics.power_law import BOOTSTRAP, STUDENT, PowerLaw, Trend
from wordsens.studies.generalization import summary as generalization
from wordsens.studies.sensitivity import summary as sensitivity


def test_attention_beside_a_layer_and_a_sentence_for_each_map(series_records):
    contrast, attention, layer = sensitivity.summarize(series_records).findings
    assert contrast.sentence.startswith(
        "One word moves attention 25.3 times as far as a fully connected layer: by 2.02"
    )
    assert "at least 21.3 times as far, whatever the searches missed" in contrast.known
    assert contrast.surety == ("attained", "certified")
    assert "with length it hardly changes, exponent 0.00" in attention.sentence.replace(
        "\N{MINUS SIGN}", ""
    )
    assert (
        "with length it falls as 1/√n, exponent −0.50 (theory at these lengths: −0.50)"
        in layer.sentence
    )
    assert "exponent −0.50 (95 % CI −0.51 to −0.49)" in layer.known
    assert layer.surety == ("attained", "certified", "predicted", "95 % interval")
    assert layer.number == "0.08 times"


@pytest.mark.parametrize(
    ("low", "high", "claim"),
    [
        (-0.1, 0.1, "shows no trend"),
        (0.001, 0.01, "hardly changes"),
        (-0.505, -0.495, "falls as 1/√n"),
        (0.05, 0.1, "grows"),
        (-0.3, -0.1, "falls, but slower than 1/√n"),
        (-0.7, -0.6, "falls faster than 1/√n"),
        (-0.55, -0.45, "falls about as 1/√n"),
        (-0.9, -0.1, "falls"),
    ],
)
def test_a_trend_claims_no_more_than_its_interval(low, high, claim):
    law = Trend.of(PowerLaw((low + high) / 2, 0.1, 1.0), (low, high))
    assert (law.behaviour, law.how) == (claim, BOOTSTRAP)


def test_without_a_bootstrap_students_interval_speaks():
    law = Trend.of(PowerLaw(-0.5, 0.1, 1.0, freedom=2), None)  # t(2) is 4.303
    assert (law.low, law.high, law.how) == (
        pytest.approx(-0.93027, rel=1e-4),
        pytest.approx(-0.06973, rel=1e-3),
        STUDENT,
    )
    assert Trend.of(None, None) is None


def test_shares_have_exact_intervals(generalization_record):
    low, high = share_interval(19, 20)
    # Clopper and Pearson's interval, as scipy.stats.binomtest(19, 20).proportion_ci() gives it.
    assert (low, high) == (pytest.approx(0.7513, abs=1e-4), pytest.approx(0.9987, abs=1e-4))
    made = {
        "objective": "frontier",
        "limits": (0.5,),
        "least_gammas": (0.4,),
        "least_alignments": (0.0,),
    }
    records = [
        generalization_record(sample=at, least_errors=(0.1 if at else 2.0,), **made)
        for at in range(4)
    ]
    (found, theory) = generalization.summarize(records).findings
    assert found.number == "3 of 4 texts"
    assert "in 3 of 4 texts fine-tuned (19% to 99%)" in found.sentence
    assert "predicted" in theory.surety


def test_a_maps_finding_speaks_of_every_row(generalization_record):
    made = {
        "objective": "frontier",
        "limits": (0.5,),
        "least_gammas": (0.4,),
        "least_alignments": (0.0,),
    }
    records = [
        generalization_record(map=name, n=n, texts=texts, sample=at, least_errors=(error,), **made)
        for name, n, texts, error in (
            ("raf", 40, 300, 0.1),
            ("raf", 40, 100, 1.2),
            ("raf", 120, 300, 1.6),
            ("rf", 40, 300, 2.5),
        )
        for at in range(3)
    ]
    summary = generalization.summarize(records)
    assert summary.leading == 2
    attention, layer = sorted(summary.findings[:2], key=lambda claim: "connected" in claim.sentence)
    assert attention.number == layer.number == "0 of 3 texts"
    assert (
        "in 3 of 3 texts fine-tuned (29% to 100%; 0% with N = 100): Gaussian texts of 40 words"
        in attention.sentence
    )
    assert (
        "in 0 of 3 texts fine-tuned (0% to 71%): Gaussian texts of 120 words, N = 300"
        in attention.sentence
    )
    assert all(claim.sentence in str(summary) for claim in (attention, layer))


def test_the_theory_is_kept_above_its_error_and_broken_below_it(generalization_record):
    """(2 - 0.5)² = 2.25, whatever the model notices."""

    def said(error):
        records = [
            generalization_record(
                sample=at,
                objective="frontier",
                limits=(0.5,),
                least_gammas=(0.4,),
                least_alignments=(0.0,),
                least_errors=(error,),
            )
            for at in range(20)
        ]
        return generalization.summarize(records).findings[-1].sentence

    assert said(0.5) == said(1.5) == said(2.2)
    assert said(2.3) == said(3.0) != said(2.2)


def test_the_contrast_names_texts_that_speak_against_it(make_record):
    records = [
        make_record(
            map=name, n=n, d=384, text=text, value=value, source=f"{text}-{n}-{draw}", draw=draw
        )
        for text, attention in (("reviews", 3.0), ("gaussian", 0.2))
        for name, value in (("raf", attention), ("rf", 0.4))
        for n in (10, 20)
        for draw in range(2)
    ]
    sentence = sensitivity.summarize(records).findings[0].sentence
    assert sentence.startswith("One word moves attention 7.5 times as far")
    assert sentence.endswith("On Gaussian texts of 20 words, d = 384: 0.5 times.")


def findings_of(records):
    texts = [audited(record) for record in records]
    return audit_findings(texts, summarise_audit(texts, Counter()))


def test_negations_are_compared_only_as_far_as_the_interval_goes(audit_record):
    alike = [
        audit_record([("not", 1.0), ("film", 1.0 + 0.1 * (-1) ** at)], tokens=9 + at)
        for at in range(6)
    ]
    assert "do not tell which counts for more" in findings_of(alike)[0].sentence
    apart = [
        audit_record([("not", 0.5 + 0.01 * at), ("film", 1.0)], tokens=9 + at) for at in range(6)
    ]
    (first, *_) = findings_of(apart)
    assert "moves the output less than taking out a word of content" in first.sentence
    assert "“wordsens check” measures it" in first.sentence
    few = [audit_record([("not", 0.5), ("film", 1.0)], tokens=9 + at) for at in range(4)]
    assert not any("“not” or its like" in finding.sentence for finding in findings_of(few))


def test_one_data_set_has_one_interval_whatever_its_order(audit_record):
    records = [
        audit_record(
            [("not", 0.5 + 0.1 * at), ("film", 1.0), ("good", 2.0 / (1 + at))], tokens=9 + at
        )
        for at in range(6)
    ]
    assert (
        findings_of(records)
        == findings_of(records[::-1])
        == findings_of([*records[3:], *records[:3]])
    )


def test_an_audits_report_says_what_its_command_said(tmp_path, audit_record):
    """Advice and changes since an earlier audit are not in the records: the command writes its
    findings down."""
    write_records(
        tmp_path, [audit_record([("not", 0.5), ("film", 1.0)], tokens=9 + at) for at in range(6)]
    )
    (run,) = load_runs([tmp_path])
    said = [
        Finding(
            "64",
            "Keep passages under 64 tokens.",
            "95 %, 30 changed sentences.",
            ("95 % interval",),
        )
    ]
    assert run_findings(run) != said
    save_findings(tmp_path, "a", said)
    save_findings(tmp_path, "another", [])
    assert run_findings(run) == said


def test_every_large_number_has_a_unit_and_stands_in_its_sentence(
    everything, tmp_path, make_record, audit_record
):
    """Those of studies, audits and given texts, and of two runs side by side."""
    texts = {f"text {at}": at for at in (1, 2, 10)}
    given = [
        make_record(map=name, text="given", source=source, text_content=source, value=value + at)
        for name, value in (("raf", 3.0), ("rf", 0.2))
        for source, at in texts.items()
    ]
    audits = [
        audit_record(
            [("not", 0.5 + 0.01 * at), ("film", 1.0)],
            words_lost=1100,
            negations_lost=3,
            tokens=9 + at,
        )
        for at in range(6)
    ]
    runs = load_runs([everything, write_records(tmp_path / "b", [*given, *audits])])
    findings = [one for run in runs for one in run_findings(run)] + comparison([runs[0], runs[0]])
    assert len(findings) > 20
    assert [one for one in findings if minus(one.number) not in minus(one.sentence)] == []
    assert [one for one in findings if one.number.replace(".", "").isdigit()] == []


def test_of_several_given_texts_the_ratio_leads_and_the_most_sensitive_is_named(make_record):
    records = [
        make_record(
            map=name,
            text="given",
            source=f"text {at}",
            text_content=f"{at}",
            value=value,
            token=f"word{at}",
        )
        for at, pair in ((1, (3.0, 0.5)), (2, (4.0, 0.4)), (3, (2.0, 0.25)))
        for name, value in zip(("raf", "rf"), pair, strict=True)
    ]
    records = [record.replace(whole_words=None) for record in records]
    (ratio,), (attention, layer) = given_findings(records)
    assert (ratio.number, ratio.value) == ("8 times", 8.0)
    assert "3 texts; 6 to 10 times in each" in ratio.sentence
    assert (
        "“word2” in text 2, by 4." in attention.sentence
        and "“word1” in text 1, by 0.5." in layer.sentence
    )
    assert given_findings(records[:-1])[0] == []  # one text has no layer beside it


def test_claims_name_the_words_that_were_searched(make_record):
    record = make_record(
        n=17, words=4, text="given", tokens=None, whole_words=None, token="film", value=0.3
    )
    _, (found,) = given_findings([record])
    assert found.sentence.startswith("One of the words searched, its vector pushed")
    assert found.known.startswith("At least this; 4 of 17 words searched")
    _, (found,) = given_findings([record.replace(words=17)])
    assert found.sentence.startswith("One word, its vector pushed")


def test_kinds_of_words_stand_in_an_order_only_where_an_interval_says_so(audit_record):
    apart = [
        audit_record([("not", 0.5 + 0.01 * at), ("film", 1.0)], tokens=9 + at) for at in range(6)
    ]
    assert (
        "a content word (25 %) counts for more than a negation" in findings_of(apart)[-1].sentence
    )
    alike = [
        audit_record([("not", 1.0), ("film", 1.0 + 0.1 * (-1) ** at)], tokens=9 + at)
        for at in range(6)
    ]
    assert "counts for more" not in findings_of(alike)[-1].sentence
    few = findings_of([audit_record([("not", 0.5), ("film", 1.0)], tokens=9)])[-1]
    assert few.surety == () and "difference" not in few.sentence


def test_searches_that_did_not_end_are_said(make_record):
    record = make_record(n=17, words=16, text="given", whole_words=None, value=0.3, converged=0.75)
    assert "4 of 16 searches" in given_findings([record])[-1][-1].known
    assert "searches (" not in given_findings([record.replace(converged=1.0)])[-1][-1].known


@pytest.mark.parametrize(
    ("search", "option"),
    [
        ("quick", ["--search"]),
        ("normal, starts=9", ["--search"]),
        ("normal, steps=5", ["--steps"]),
        ("thorough", []),
        ("thorough, steps=5", ["--steps"]),
    ],
)
def test_a_search_that_has_not_converged_is_sent_only_to_what_helps(search, option):
    """After a thorough search more of it finds nothing: see `tests/search/test_quality.py`."""
    X = gaussian_text(3, 8, seed=0)
    found = word_sensitivity(RandomFeatures(3, 8, seed=0), X, search=SearchPlan(starts=1, steps=1))
    lost = replace(found, converged=torch.zeros(3, dtype=torch.bool), search=search)
    shown = text_display([MeasuredMap(X, lost, 0.0, None, ())], verbose=True)
    assert re.findall(r"--\w+", " ".join(shown.notes)) == option


def test_bounds_are_called_certified_only_where_those_of_every_map_are():
    X = gaussian_text(3, 8, seed=0)
    found = word_sensitivity(RandomFeatures(3, 8, seed=0), X, search="quick")
    likely = replace(found, rigor="with probability 1 - 1e-9 over the weights")
    for results in ((found, found), (found, likely), (likely, found)):
        shown = text_display([MeasuredMap(X, each, 0.0, None, ()) for each in results])
        assert ("certified" in shown.parts[0].note) == (likely not in results)


def test_only_maps_of_one_d_are_compared(make_record):
    def records(d):
        return [
            make_record(map=name, n=n, d=size, value=value / n, source=f"{n}-{draw}", draw=draw)
            for name, size, value in (("raf", 384, 40.0), ("rf", d, 1.0))
            for n in (10, 20)
            for draw in range(2)
        ]

    def sentences(records):
        return " ".join(claim.sentence for claim in sensitivity.summarize(records).findings)

    assert "40 times as far as a fully connected layer" in sentences(records(384))
    assert "times as far" not in sentences(records(192))


def test_intervals_cover_the_mean_as_often_as_they_say():
    # 200 experiments of 12 texts: the share that covers 0 has a standard error of 1.5 %; a
    # percentile bootstrap of 12 covers a little less often than 95 %. Fixed seed.
    import numpy as np

    random = np.random.default_rng(0)
    covered = sum(
        low <= 0 <= high
        for low, high in (
            mean_intervals([[value] for value in random.normal(size=12).tolist()])[0]
            for _ in range(200)
        )
    )
    assert 0.86 <= covered / 200 <= 0.99


def test_two_runs_are_compared_with_an_error(tmp_path, make_record):
    for name, shift in (("a", 0.0), ("b", 1.0), ("c", 0.02)):
        write_records(
            tmp_path / name,
            [
                make_record(draw=draw, value=2.0 + shift + 0.05 * draw, source=f"{draw}")
                for draw in range(4)
            ],
        )
    runs = load_runs([tmp_path / name for name in "abc"])
    first, second, third = comparison(runs)
    assert "b is higher by 1 ± 0.11" in first.sentence
    assert "no difference can be told (+0.02 ± 0.11)" in second.sentence
    assert "c is lower by 0.98" in third.sentence
