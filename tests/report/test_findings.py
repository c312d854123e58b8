"""Sentences: each number with how it is known, and no claim that an interval contradicts."""

import re
from dataclasses import replace

import pytest
import torch

from tests.report.conftest import write_records
from wordsens import RandomFeatures, SearchPlan, gaussian_text, word_sensitivity
from wordsens.display.view import Finding, Table
from wordsens.evaluation.audit.cell import audited
from wordsens.findings.audit import audit_findings, save_findings
from wordsens.report.comparison import comparison
from wordsens.report.load import load_runs
from wordsens.report.tables import part_view
from wordsens.sensitivity.measured import MeasuredMap, MeasuredText, texts_view


def findings_of(records):
    return audit_findings([audited(record) for record in records])


def test_negations_are_compared_only_as_far_as_the_interval_goes(audit_record):
    alike = [
        audit_record([("not", 1.0), ("film", 1.0 + 0.1 * (-1) ** at)], tokens=9 + at)
        for at in range(6)
    ]
    assert "No difference is claimed" in findings_of(alike)[0].sentence
    apart = [
        audit_record([("not", 0.5 + 0.01 * at), ("film", 1.0)], tokens=9 + at) for at in range(6)
    ]
    (first, *_) = findings_of(apart)
    assert "Deleting a negation changes the output by 13.1 % of its size" in first.sentence
    assert "“wordsens check” measures it" in first.sentence
    few = [audit_record([("not", 0.5), ("film", 1.0)], tokens=9 + at) for at in range(4)]
    assert findings_of(few) == []


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
    said = Finding("Keep passages under 64 tokens.", "95 %, 30 changed sentences.")
    assert said not in part_view(run.parts[0], run).parts
    save_findings(tmp_path, "a", [said])
    save_findings(tmp_path, "another", [])
    found = [part for part in part_view(run.parts[0], run).parts if isinstance(part, Finding)]
    assert found == [said]


def given_parts(records, tmp_path):
    (run,) = load_runs([write_records(tmp_path, records)])
    parts = part_view(run.parts[0], run).parts
    (table,) = [part for part in parts if isinstance(part, Table) and "given" in part.title]
    return [part.sentence for part in parts if isinstance(part, Finding)], table.columns


def test_of_several_given_texts_the_ratio_leads_and_the_most_sensitive_is_named(
    make_record, tmp_path
):
    records = [
        make_record(
            map=name,
            text="given",
            source=f"text {at}",
            asked={"text": {"content": f"{at}"}},
            value=value,
            token=f"word{at}",
            whole_words=None,
        )
        for at, pair in ((1, (3.0, 0.5)), (2, (4.0, 0.4)), (3, (2.0, 0.25)))
        for name, value in zip(("raf", "rf"), pair, strict=True)
    ]
    (sentence, *_), columns = given_parts(records, tmp_path / "a")
    assert "8 times as far" in sentence and "3 texts (from 6 to 10 times)" in sentence
    assert (columns["text"][0], columns["S"][0], columns["word"][0]) == ("text 2", 4.0, "word2")
    sentences, columns = given_parts(records[:-1], tmp_path / "b")
    assert not any("times as far" in sentence for sentence in sentences)
    assert len(columns["S"]) == 5


def test_what_a_row_rests_on_are_columns(make_record, tmp_path):
    record = make_record(
        n=17, words=4, text="given", tokens=None, whole_words=None, value=0.3, converged=0.75
    )
    _, columns = given_parts([record], tmp_path)
    known = {name: columns[name] for name in ("n", "words searched", "converged")}
    assert known == {"n": [17], "words searched": [4], "converged": [0.75]}


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
    shown = MeasuredText((MeasuredMap(X, lost, 0.0, None, ()),)).view(verbose=True)
    assert re.findall(r"--\w+", " ".join(shown.notes)) == option


def test_bounds_are_called_certified_only_where_those_of_every_map_are():
    X = gaussian_text(3, 8, seed=0)
    found = word_sensitivity(RandomFeatures(3, 8, seed=0), X, search="quick")
    likely = replace(found, rigor="with probability 1 - 1e-9 over the weights")
    for results in ((found, found), (found, likely), (likely, found)):
        text = MeasuredText(tuple(MeasuredMap(X, each, 0.0, None, ()) for each in results))
        for shown in (text.view(), texts_view([text, text])):
            assert ("certified" in shown.parts[0].note) == (likely not in results)


def test_two_runs_are_compared_with_an_error(tmp_path, make_record):
    for name, shift in (("a", 0.0), ("b", 1.0), ("c", 0.02)):
        write_records(
            tmp_path / name,
            [
                make_record(draw=draw, value=2.0 + shift + 0.05 * draw, source=f"{draw}")
                for draw in range(4)
            ],
        )
    table = comparison(load_runs([tmp_path / name for name in "abc"]))
    ab, ac, bc = table.columns["difference"]
    assert (ab.value, bc.value) == (pytest.approx(1.0), pytest.approx(-0.98))
    assert ab.low > 0.5 and bc.high < -0.5
    assert ac.low < 0 < ac.high
    assert "no difference is claimed" in table.note


def test_the_place_whose_words_count_for_more_is_named(audit_record):
    words = ("film", "plot", "actor", "script", "scene", "river", "town", "house", "garden", "lamp")
    told = {}
    for place, values in (("beginning", (2.0, 0.4)), ("end", (0.4, 2.0))):
        texts = [
            audit_record(
                [(word, values[at > 4] + 0.01 * draw) for at, word in enumerate(words)],
                tokens=12 + draw,
            )
            for draw in range(6)
        ]
        (told[place],) = [
            one.sentence for one in findings_of(texts) if "count for more" in one.sentence
        ]
    for place, other in (("beginning", "end"), ("end", "beginning")):
        assert f"count for more at the {place} of a text" in told[place]
        assert told[place].endswith(f"Do not hide what matters at the {other}.")
