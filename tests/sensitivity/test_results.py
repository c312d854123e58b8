"""Results: equality by content, files, dictionaries, and how they show themselves."""

import functools
import json
import pickle
from dataclasses import dataclass

import pytest
import torch

import wordsens as ws
from wordsens.display.content import Shade
from wordsens.display.result_table import ResultTable
from wordsens.results import Result
from wordsens.saved import Saved
from wordsens.sensitivity.removals import Removals
from wordsens.sensitivity.result import SensitivityResult
from wordsens.text.matrix import Word

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
        lambda texts: [[1.0 + len(t)] for t in texts], ["a b"], vowels
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
    values = found.per_group if name in ("groups", "several words") else found.per_word
    assert found.value == float(values.max())
    assert len(found.perturbations) == len(values)
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
    return Removals(
        value=1.0,
        way="delete",
        words=(0, 1),
        whole=(Word(UNSAFE[0], (0,)), Word("b", (1,))),
        per_word=torch.tensor([0.5, 1.0]),
        distance=torch.ones(2),
        perturbations=(),
        converged=None,
    )


RESULTS = {name: (lambda name=name: made(name)) for name in MAKE} | {"removals": removals}


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_shows_itself_everywhere_with_the_same_columns(name):
    found = RESULTS[name]()
    columns = list(found.result_table().columns)
    assert list(found.to_pandas().columns) == columns
    assert found.show().splitlines()[0] == found.result_table().heading
    assert found._repr_html_().startswith('<div class="wordsens">')


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_goes_to_a_file_and_back(name, tmp_path):
    found = RESULTS[name]()
    found.save(tmp_path / "found")
    assert type(found).load(tmp_path / "found") == found


@dataclass(frozen=True)
class Named(Saved):
    """Numbers and tensors by names."""

    numbers: dict[str, float]
    tensors: dict[str, torch.Tensor]


def test_every_name_keeps_its_value_and_its_place(tmp_path):
    tensors = {name: torch.tensor([float(ord(name))]) for name in "bca"}
    Named({"b": 1.0, "c": 3.0, "a": 2.0}, tensors).save(tmp_path / "named")
    found = Named.load(tmp_path / "named")
    assert list(found.numbers.items()) == [("b", 1.0), ("c", 3.0), ("a", 2.0)]
    assert list(found.tensors) == list("bca")
    assert all(torch.equal(found.tensors[name], tensors[name]) for name in "bca")


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


def test_the_shade_of_a_word_rises_evenly_from_0_to_a_sensitivity_of_4():
    values = [4.0, 0.0, 1.0, 9.0, 2.0]
    table = ResultTable("", {"word": list("abcde"), "S": values}, ranked="S", names="word")
    (words, _) = table.display().parts
    shades = {piece.text: piece.level for piece in words.pieces if isinstance(piece, Shade)}
    assert shades == {"a": 8, "b": 0, "c": 2, "d": 8, "e": 4}


@pytest.mark.parametrize(
    "name",
    ["sensitivity", "groups", "whole words", "frontier", "swaps", "certificate", "attention"],
)
def test_a_result_is_drawn(name):
    assert made(name).plot().axes


def test_the_bars_are_the_numbers():
    found = made("sensitivity")
    heights = [bar.get_height() for bar in found.plot().axes[0].patches]
    assert heights == pytest.approx(found.per_word.tolist())
    with pytest.raises(
        ws.InputError,
        match=r"a OneWordGeneralization is a table without a number to draw; use show\(\)",
    ):
        made("one word").plot()


def test_a_folder_that_is_missing_is_named(tmp_path):
    with pytest.raises(
        ws.InputError,
        match=r"`path` \(='.*missing.x'\) must be a file in a folder that can be written",
    ):
        made("sensitivity").save(tmp_path / "missing" / "x")
