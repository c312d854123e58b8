"""docs/architecture.md says how a measurement goes through the rooms: traced here."""

import re
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

import wordsens

DOCS = Path(__file__).parents[1] / "docs"


@pytest.mark.usefixtures("loose_bounds", "short_searches")
def test_a_measurement_enters_each_stage_once_in_the_documented_order():
    spec = spec_from_file_location("walk", DOCS / "walk.py")
    assert spec is not None
    assert spec.loader is not None
    walk = module_from_spec(spec)
    spec.loader.exec_module(walk)
    entered, files = walk.walk()
    assert entered == list(walk.STAGES)
    documented = re.findall(r"^\d\. `([\w.]+)`", (DOCS / "architecture.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert documented == [stage.split(".py:")[0].replace("/", ".") for stage in entered]
    assert len(files) > len(entered)


def test_every_room_is_in_the_list():
    root = Path(wordsens.__file__).parent
    text = (DOCS / "architecture.md").read_text(encoding="utf-8").split("## One text")[0]
    rooms = {path.name for path in root.iterdir() if (path / "__init__.py").exists()}
    assert rooms <= set(re.findall(r"`(\w+)`", text))
