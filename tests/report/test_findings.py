"""Sentences: each number with how it is known, and no claim that an interval contradicts."""

import re
from dataclasses import replace

import pytest
import torch

from tests.report.conftest import write_records
from wordsens import RandomFeatures, SearchPlan, gaussian_text, word_sensitivity
from wordsens.display.view import Finding, Table, View
from wordsens.report.load import load_runs
from wordsens.report.tables import part_view
from wordsens.report.write import report_view
from wordsens.sensitivity.measured import MeasuredMap, MeasuredText, texts_view


def given_parts(records, tmp_path):
    (run,) = load_runs([write_records(tmp_path, records)])
    parts = part_view(run.parts[0]).parts
    (table,) = [
        part for part in parts if isinstance(part, Table) and part.title[:10] == "Your texts"
    ]
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


@pytest.mark.parametrize("in_range", [True, False])
def test_a_prediction_that_is_untested_at_such_sizes_says_so(make_record, tmp_path, in_range):
    known = {"predicted": 2.0, "predicted_of": "a typical word", "predicted_in_range": in_range}
    record = make_record(text="given", tokens=None, whole_words=None, **known)
    _, columns = given_parts([record], tmp_path)
    (predicted_for,) = columns["predicted for"]
    assert predicted_for.startswith("a typical word")
    assert ("untested at such sizes" in predicted_for) != in_range


def test_the_first_table_has_the_note_and_the_others_fold(everything):
    (run,) = load_runs([everything])
    parts = part_view(run.parts[0]).parts
    first, *others = [
        part for part in parts if isinstance(part, Table) and part.title[:10] != "Your texts"
    ]
    assert first.note and not first.folded and others
    assert all(table.folded and not table.note for table in others)


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


def test_a_report_of_two_runs_shows_each_by_itself(tmp_path, make_record):
    for name, value in (("before", 2.0), ("after", 0.5)):
        records = [make_record(n=n, draw=draw, value=value) for n in (10, 40) for draw in range(3)]
        write_records(tmp_path / name, records)
    parts = report_view(load_runs([tmp_path / "before", tmp_path / "after"]), pictures=False).parts
    for name, value in (("before", 2.0), ("after", 0.5)):
        sections = [part for part in parts if isinstance(part, View)]
        (section,) = [part for part in sections if part.headline == f"{name}: Sensitivity"]
        table = next(part for part in section.parts if isinstance(part, Table))
        assert set(table.columns["S"]) == {value}
