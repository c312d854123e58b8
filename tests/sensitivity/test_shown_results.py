"""Every result shows itself in a terminal, a notebook, a table and a figure, and goes to a file and back."""

import json

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from tests.sensitivity.test_results import MAKE, PHI, made

import wordsens as ws
from wordsens.errors import InputError
from wordsens.sensitivity.removals import Removals
from wordsens.sensitivity.swaps import Swaps
from wordsens.text.matrix import Word

LIGHT = 9_000
"""Bytes of one result in a notebook: fifty stay under half a megabyte."""

UNSAFE = ("<script>", "</b>", '"onmouseover=', "שלום", "😀")


def removals():
    return Removals("delete", (0, 1), (Word(UNSAFE[0], (0,)), Word("b", (1,))), torch.tensor([0.5, 1.0]), torch.ones(2))


RESULTS = {name: (lambda name=name: made(name)) for name in MAKE} | {"removals": removals}


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_shows_itself_everywhere_with_the_same_columns(name):
    found = RESULTS[name]()
    columns = list(found.result_table().columns)
    assert list(found.to_pandas().columns) == columns
    assert found.show().splitlines()[0] == found.result_table().heading
    html = found._repr_html_()
    assert len(html.encode()) < LIGHT
    assert html.startswith('<div class="wordsens">')


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_goes_to_a_file_and_back(name, tmp_path):
    found = RESULTS[name]()
    found.save(tmp_path / "found")
    assert type(found).load(tmp_path / "found") == found


def test_what_is_not_such_a_file_is_refused(tmp_path):
    found = made("sensitivity")
    with pytest.raises(
        InputError, match=r"`path` \(='.*missing.found'\) must be a file in a folder that can be written"
    ):
        found.save(tmp_path / "missing" / "found")
    found.save(tmp_path / "found")
    with pytest.raises(InputError, match=r"is not a file that Swaps.save wrote: it holds a Sensitivity"):
        Swaps.load(tmp_path / "found")
    with safe_open(tmp_path / "found", framework="pt") as file:
        metadata, tensors = file.metadata(), {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    save_file(tensors, tmp_path / "later", metadata={**metadata, "wordsens.format": "99"})
    with pytest.raises(InputError, match="its format is 99, and this version reads 1; save it again"):
        ws.Sensitivity.load(tmp_path / "later")
    evil = json.loads(metadata["wordsens.content"])
    evil["class"] = "Popen"
    save_file(tensors, tmp_path / "evil", metadata={**metadata, "wordsens.content": json.dumps(evil)})
    with pytest.raises(InputError, match=r"wrote: 'Popen'"):
        ws.Sensitivity.load(tmp_path / "evil")


def test_words_of_users_are_shown_as_text_and_in_order():
    X = ws.TextMatrix(ws.gaussian_text(5, 6, seed=1).rows, tokens=UNSAFE)
    found = ws.word_sensitivity(PHI, X, search="quick", certificate=False)
    html = found._repr_html_()
    assert "<script" not in html
    assert "</b>," not in html
    assert 'title="' in html and '"onmouseover' not in html
    places = [html.index(word) for word in ("&lt;script&gt;", "&lt;/b&gt;", "&#34;onmouseover=", "שלום", "😀")]
    assert places == sorted(places)
    assert "&lt;script&gt;" in removals()._repr_html_()


def test_a_long_text_stays_light():
    tokens = tuple(f"word{number}" for number in range(300))
    X = ws.TextMatrix(ws.gaussian_text(300, 6, seed=1).rows, tokens=tokens)
    plan = ws.SearchPlan("quick", starts=1, steps=1)
    found = ws.word_sensitivity(PHI, X, search=plan, certificate=False)
    assert len(found._repr_html_().encode()) < LIGHT
    assert "and 220 more" in found._repr_html_()


@pytest.mark.parametrize(
    "name", ["sensitivity", "groups", "whole words", "frontier", "swaps", "certificate", "attention"]
)
def test_a_result_is_drawn(name):
    assert made(name).plot().axes


def test_the_bars_are_the_numbers():
    found = made("sensitivity")
    heights = [bar.get_height() for bar in found.plot().axes[0].patches]
    assert heights == pytest.approx(found.per_word.tolist())
    with pytest.raises(InputError, match=r"a OneWordGeneralization is a table without a number to draw; use show\(\)"):
        made("one word").plot()
