"""What the whole suite shares: devices, hypothesis and threads, and records made up for tests."""

from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

import hypothesis
import jaxtyping
import pytest
import torch

from tests import shape_checks  # noqa: F401 - before the package is imported
from tests.made_records import made_record
from wordsens.certificates.attention import multipliers
from wordsens.maps.attention import change as attention_change
from wordsens.maps.registry import base_name

pytest.register_assert_rewrite("tests.laws.feature_map_laws", "tests.laws.mixins")

hypothesis.settings.register_profile("wordsens", deadline=None, derandomize=True, max_examples=30)
hypothesis.settings.load_profile("wordsens")

# The tests' matrices are small: threads would spend their time waiting for each other, and xdist
# shares the cores.
torch.set_num_threads(1)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Of tests with `slow_cases`, those cases are slow whose name one of its patterns fits."""
    for item in items:
        patterns = [pattern for named in item.iter_markers("slow_cases") for pattern in named.args]
        if any(fnmatchcase(item.callspec.id, pattern) for pattern in patterns):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(params=["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"])
def device(request) -> str:
    """Every device at hand: a test that asks for it runs on each."""
    return request.param


@pytest.fixture
def unchecked_types():
    """Types are not checked at the call, as outside of the tests: what users see when they pass a
    wrong one."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.fixture
def loose_bounds(monkeypatch):
    """Attention's upper bounds after one step of tightening: as valid, wider, and a tenth of the
    time."""
    monkeypatch.setattr(multipliers, "_FIRST_TEMPERATURES", (0.3,))
    monkeypatch.setattr(multipliers, "_NEXT_TEMPERATURES", ())


TOLD = ("app", "cli", "evaluation", "hostile", "report", "studies", "sweeps")
"""Where what is told of a measurement is tested, not how narrow a bracket is."""


@pytest.fixture(autouse=True)
def _cheap_bounds(request):
    """There attention's bounds are loose: they are two thirds of a measurement's time."""
    if request.path.relative_to(Path(__file__).parent).parts[0] in TOLD:
        request.getfixturevalue("loose_bounds")


@pytest.fixture
def short_searches(monkeypatch):
    """Attention's own stages with few starts and one generation: for tests of what is reported, not
    of its size."""
    usual = attention_change.attention_stages

    def stages(words, d):
        few = {
            "starts": 4,
            "halvings": (),
            "generations": 1,
            "population": 4,
            "children": 4,
            "finalists": 1,
        }
        return replace(usual(words, d), **few, leaders=0)

    monkeypatch.setattr(attention_change, "attention_stages", stages)


@pytest.fixture(scope="session")
def make_record():
    """A function that gives a record; its keyword arguments take the place of the usual values.

    `asked` holds keys of the spec, `asked={"text": {"mean_cosine": 0.3}, "temperature": 2.0}`.
    """

    def made(*, asked=None, **changes):
        recorded = changes.get("map", "raf")
        keys = {"map": base_name(recorded), "n": 10, "d": 8}
        if (depth := recorded.removeprefix(keys["map"])).isdigit():
            keys["depth"] = int(depth)
        keys |= {name: changes[name] for name in ("n", "d", "draw", "seed") if name in changes}
        keys |= asked or {}
        keys["text"] = {"kind": changes.get("text", "gaussian"), **keys.get("text", {})}
        values = {
            "map": "raf",
            "n": 10,
            "d": 8,
            "source": "gaussian(seed=0)",
            "seed": 0,
            "draw": 0,
            "map_seed": 0,
            "words": changes.get("n", 10),
            "word": 0,
            "token": "#0",
            "value": 1.0,
            "evaluations": 1,
            "converged": 1.0,
            "dtype": "float64",
            **changes,
        }
        return made_record("sensitivity", keys, **values)

    return made
