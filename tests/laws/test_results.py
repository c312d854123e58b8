"""Laws of every public result: it compares by content, goes to a file and back, and says the same
as DataFrame, text, HTML, Markdown, JSON and figure."""

import functools
import json
import pickle
import tempfile
from dataclasses import dataclass

import numpy as np
import pytest
import torch

import wordsens as ws
from wordsens.display.html import html_page
from wordsens.display.markdown import markdown
from wordsens.display.view import Table, View
from wordsens.evaluation.guard import lost_meaning
from wordsens.results import Estimate, Result, split_estimates
from wordsens.sensitivity.measured import MeasuredMap, MeasuredText
from wordsens.sensitivity.replacements import Replacements
from wordsens.sensitivity.result import SensitivityResult
from wordsens.text.matrix import Word
from wordsens.training.tuning import Tuned

X = ws.TextMatrix(
    ws.gaussian_text(4, 6, seed=1).rows, whole_words=(Word("un", (0, 1)), Word("a", (3,)))
)
PHI = ws.RandomAttentionFeatures(6)
VOCABULARY = ws.Vocabulary.of_rows(["a", "b", "c"], ws.gaussian_text(3, 6, seed=8).rows)
NINTH = ws.gaussian_text(4, 6, seed=9)
NEW = ws.NewText(
    ws.fit_min_norm(PHI, [ws.gaussian_text(4, 6, seed=seed) for seed in range(4)], [1, -1, 1, -1]),
    NINTH,
    1,
)
SHORT = ws.SearchPlan("quick", starts=2, steps=3)

SEARCHED = {
    "sensitivity": lambda: ws.word_sensitivity(PHI, X, search=SHORT, certificate=False),
    "groups": lambda: ws.group_sensitivity(PHI, X, [(0, 1), (2,)], search=SHORT),
    "several words": lambda: ws.several_words_sensitivity(PHI, X, 2, search=SHORT),
    "whole words": lambda: ws.whole_word_sensitivity(PHI, X, search=SHORT),
    "one word": lambda: NEW.generalization(search=SHORT),
    "frontier": lambda: NEW.frontier(gammas=(0.5,), search=SHORT),
}
OTHERS = {
    "outcomes": lambda: NEW.outcomes(gammas=(0.5,), search=SHORT),
    "several texts": lambda: ws.word_sensitivities(PHI, [X, X], search=SHORT, certificate=False)[1],
    "swaps": lambda: ws.best_swaps(PHI, X, vocabulary=VOCABULARY),
    "limit": lambda: ws.jacobian_sensitivity(PHI, X),
    "substitutions": lambda: ws.substitution_sensitivity(
        lambda texts: [[1.0 + len(t)] for t in texts], "a b", vowels
    ),
    "profile": lambda: ws.sensitivity_profile(PHI, X, search=SHORT),
    "one swap": lambda: NEW.swap(vocabulary=(["b"], X.rows[1:2])),
    "witness": lambda: ws.theorem_witness(PHI, X),
    "certificate": lambda: ws.certificate(ws.RandomFeatures(4, 6), X),
    "attention": lambda: ws.attention_pair(PHI, X, X),
    "text": lambda: ws.TextMatrix(X.rows.clone(), whole_words=X.whole_words),
    "ball": lambda: ws.Ball(torch.ones(2)),
}
MAKE = SEARCHED | OTHERS


def vowels(_word):
    return ("a", "eau")


@functools.cache
def made(name):
    return MAKE[name]()


@pytest.mark.parametrize("name", MAKE)
def test_results_compare_by_content_and_have_a_short_repr(name):
    one, again = made(name), MAKE[name]()
    assert isinstance(one, Result)
    assert one == again
    assert (one == 3, one != again, one == None) == (False, False, False)  # noqa: E711
    assert pickle.loads(pickle.dumps(one)) == one
    shown = repr(one)
    assert shown.startswith(type(one).__name__)
    assert "tensor(" not in shown
    assert "\n" not in shown


@pytest.mark.parametrize("name", SEARCHED)
def test_a_search_says_what_was_asked_for_and_spent(name):
    found = made(name)
    assert (found.search, found.seed) == ("quick, starts=2, steps=3", 0)
    assert found.evaluations > 0
    assert 0 < found.seconds < 600


@pytest.mark.parametrize(
    "name", ["sensitivity", "groups", "several words", "whole words", "swaps", "limit"]
)
def test_every_measurement_has_one_shape(name):
    found = made(name)
    assert isinstance(found, SensitivityResult)
    values = found.per_word
    assert found.value == float(values.max())
    witnesses = getattr(found, "witnesses", found.perturbations)
    assert len(witnesses) == len(values)
    assert found.converged is None or len(found.converged) == len(values)
    assert found.upper is None or found.upper >= found.value
    plain = json.loads(json.dumps(found.to_dict()))
    assert plain["value"] == found.value and "perturbations" not in plain


def test_seconds_do_not_count_and_nan_equals_nan():
    found = MAKE["sensitivity"]()
    changed = pickle.loads(pickle.dumps(found))
    object.__setattr__(changed, "seconds", found.seconds + 1)
    assert changed == found
    for one in (found, changed):
        object.__setattr__(one, "value", float("nan"))
        object.__setattr__(one, "per_word", found.per_word * float("nan"))
    assert changed == found


UNSAFE = ("<script>", "</b>", '"onmouseover=', "שלום", "😀")


def removals():
    return Replacements(
        value=1.0,
        way="delete",
        word=1,
        words=torch.arange(2),
        tokens=(UNSAFE[0], "b"),
        per_word=torch.tensor([0.5, 1.0]),
        distance=torch.ones(2),
        perturbations=(),
        converged=None,
    )


def letters(texts):
    return [
        [t.lower().count(letter) + 0.1 for letter in "abcdefghijklmnopqrstuvwxyz"] for t in texts
    ]


def sentiment(texts):
    return [[0.9, 0.1] if "good" in text else [0.2, 0.8] for text in texts]


PAIRS = [
    (kind, f"{number} {first}", f"{number} {second}", kind == "typo")
    for number in range(12)
    for kind, first, second in (("role", "ab cd", "cd ab"), ("typo", "lift up", "liftt up"))
]


def summary():
    grid = {"map": ["rf", "raf"], "n": [4, 6], "d": 4, "text": "gaussian", "draw": [0, 1, 2]}
    with tempfile.TemporaryDirectory() as folder:
        grids = [{**grid, "starts": 1, "steps": 2}]
        return ws.summarize(ws.run_sweep({"name": "small", "grids": grids}, folder))


def measured_text():
    found = made("sensitivity")
    predicted = ws.theory.predict(PHI, X)
    return MeasuredText((MeasuredMap(X, found, 0.1, predicted, ()),))


def tuned(kinds=("role",), lows=(0.4,)):
    recall = Estimate(0.5, 0.4, 0.6, n=9)
    areas = (*(Estimate(0.7, low, 0.9, n=9) for low in lows), recall)
    scores = {"kind": (*kinds, "recall@1"), "before": areas, "after": areas}
    check = result_of("check")
    return Tuned("a", "b", 9, 8, (), check, check, scores, 9, ("a note",))


EVALUATIONS = {
    "check": lambda: ws.check(letters, PAIRS, requirements=["role.false_hits <= .5"], guard=True),
    "calibration": lambda: ws.calibrate(letters, PAIRS, 0.3),
    "carried threshold": lambda: ws.carry_threshold(letters, letters, 0.9, PAIRS),
    "collisions": lambda: ws.collisions(letters, [first for _, first, *_ in PAIRS], 0.3),
    "comparison": lambda: ws.compare(letters, letters, [f"a b {n}" for n in range(8)], PAIRS),
    "explanation": lambda: ws.explain(letters, "the lift is up", "the lift is not up"),
    "flips": lambda: ws.explain_classes(sentiment, ["a good film", "a bad film"]),
    "judgement": lambda: ws.guard("turn it on", "turn it off"),
    "guarded pairs": lambda: ws.guard_pairs([("mw-3", "MW 3"), ("<b>", "c")]),
    "length": lambda: ws.advise_length(letters, ["the river runs " * 30] * 2, PAIRS, longest=64),
    "summary": summary,
    "measured text": measured_text,
    "tuned": tuned,
    "lost part": lambda: lost_meaning("Do not open it.", "Open it.")[0],
}
RESULTS = {name: (lambda name=name: made(name)) for name in MAKE} | {"removals": removals}
RESULTS |= EVALUATIONS


@functools.cache
def result_of(name):
    return RESULTS[name]()


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_says_the_same_everywhere(name):
    found = result_of(name)
    columns = found.columns()
    assert len({len(cells) for cells in columns.values()}) <= 1
    frame = found.table()
    assert list(frame.columns) == list(split_estimates(columns))
    assert len(frame) == len(next(iter(columns.values()), ()))
    view = found.view()
    assert isinstance(view, View)
    headline = view.headline
    assert headline and "\n" not in headline
    assert " ".join(found.show().split()).startswith(" ".join(headline.split()))
    assert found._repr_html_().startswith('<div class="wordsens">')
    page = html_page(view, title="t", heading="h", version="0")
    assert page.count("<h1>") == 1 and "<script" not in page
    written = markdown(view, heading="h")
    for table in [part for part in view.parts if isinstance(part, Table) and len(part)]:
        assert len({len(cells) for cells in table.columns.values()}) == 1
        assert written.count("\n|") >= len(table) + 2
    json.dumps(found.to_dict(), allow_nan=False)


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_goes_to_a_file_and_back(name, tmp_path):
    found = result_of(name)
    found.save(tmp_path / "found")
    loaded = type(found).load(tmp_path / "found")
    assert loaded == found
    assert loaded.show() == found.show()


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_is_drawn_or_says_why_not(name):
    found = result_of(name)
    if found.view().chart is None and name not in ("frontier", "attention"):
        with pytest.raises(ws.InputError, match=r"without a number to draw; use show\(\)"):
            found.plot()
    else:
        assert found.plot().axes


@dataclass(frozen=True, eq=False, repr=False)
class Named(Result):
    """Numbers, tensors and arrays by names."""

    numbers: dict[str, float]
    tensors: dict[str, torch.Tensor | np.ndarray]
    estimate: Estimate


def test_every_name_keeps_its_value_and_its_place(tmp_path):
    tensors = {name: torch.tensor([float(ord(name))]) for name in "bca"} | {"array": np.arange(3)}
    named = Named({"b": 1.0, "c": float("nan"), "a": 2.0}, tensors, Estimate(0.5, 0.4, 0.6, n=9))
    named.save(tmp_path / "named")
    found = Named.load(tmp_path / "named")
    assert found == named
    assert list(found.numbers) == ["b", "c", "a"]
    assert list(found.tensors) == ["b", "c", "a", "array"]
    assert isinstance(found.tensors["array"], np.ndarray)
    for other in ([0.0], [float("nan")], [97.0, 97.0], np.float32([97.0])):
        other = other if isinstance(other, np.ndarray) else torch.tensor(other)
        assert Named(named.numbers, tensors | {"a": other}, named.estimate) != named
    double = tensors["a"].double()
    assert Named(named.numbers, tensors | {"a": double}, named.estimate) != named


def test_words_of_users_are_shown_as_text_and_in_order():
    X = ws.TextMatrix(ws.gaussian_text(5, 6, seed=1).rows, tokens=UNSAFE)
    found = ws.word_sensitivity(PHI, X, search="quick", certificate=False)
    html = found._repr_html_()
    assert "<script" not in html
    assert "</b>," not in html
    assert 'title="' in html and '"onmouseover' not in html
    places = [
        html.index(word)
        for word in ("&lt;script&gt;", "&lt;/b&gt;", "&#34;onmouseover=", "שלום", "😀")
    ]
    assert places == sorted(places)
    assert "&lt;script&gt;" in removals()._repr_html_()


def test_a_table_of_words_has_the_most_sensitive_first_and_the_figure_reads_in_order():
    found = made("sensitivity")
    (table,) = [part for part in found.view().parts if isinstance(part, Table)]
    values = list(table.columns[found.ranked])
    assert values == sorted(values, reverse=True) == sorted(found.per_word.tolist(), reverse=True)


def test_tuning_says_what_it_reached_by_the_interval():
    view = tuned(("role", "time"), (0.6, 0.4)).view()
    said = [part for part in view.parts if isinstance(part, str)]
    assert "little for time:" in said[-1] and len(said) == 2


def test_the_bars_are_the_numbers():
    found = made("sensitivity")
    heights = [bar.get_height() for bar in found.plot().axes[0].patches]
    assert heights == pytest.approx(found.per_word.tolist())


def test_a_folder_that_is_missing_is_named(tmp_path):
    with pytest.raises(
        ws.InputError,
        match=r"`path` \(='.*missing.x'\) must be a file in a folder that can be written",
    ):
        made("sensitivity").save(tmp_path / "missing" / "x")


def test_an_estimate_is_split_into_its_numbers():
    split = split_estimates({"S": [Estimate(0.5, 0.4, 0.6, n=9), None], "map": ["rf", "raf"]})
    assert split == {
        "S": [0.5, None],
        "S low": [0.4, None],
        "S high": [0.6, None],
        "S n": [9, None],
        "map": ["rf", "raf"],
    }
