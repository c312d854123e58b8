"""The pytest example of docs/check.md is run: it fails for a model that is blind and passes for one that is not."""

import re
import sys
from pathlib import Path
from types import ModuleType

import pytest
from tests.evaluation.stand_ins import Oracle, bag_of_words

import wordsens as ws

GUIDE = (Path(__file__).parents[2] / "docs" / "check.md").read_text(encoding="utf-8")
EXAMPLE = next(block for block in re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL) if "def test_" in block)
CSV = next(re.finditer(r"```text\n(kind,.*?)```", GUIDE, re.DOTALL))[1]


def run_example(encode, folder, monkeypatch):
    """Run the example's test with this function for the user's own, beside the guide's file of pairs."""
    project = ModuleType("my_project")
    project.encode = encode
    monkeypatch.setitem(sys.modules, "my_project", project)
    monkeypatch.chdir(folder)
    Path("pairs.csv").write_text(CSV, encoding="utf-8")
    names = {}
    exec(compile(EXAMPLE, "docs/check.md", "exec"), names)
    names["test_the_model_tells_enable_from_disable"]()


def test_it_fails_for_a_bag_of_words(tmp_path, monkeypatch):
    with pytest.raises(AssertionError, match=re.escape("switch.false_hits is 1")):
        run_example(bag_of_words, tmp_path, monkeypatch)


def test_it_passes_for_a_model_that_sees(tmp_path, monkeypatch):
    (tmp_path / "known.csv").write_text(CSV, encoding="utf-8")
    run_example(Oracle(ws.read_pairs(tmp_path / "known.csv")).encode, tmp_path, monkeypatch)
