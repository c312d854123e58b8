"""Strategies near what readers take, and the one rule for every input: it is taken, or refused in one line.

`WORDSENS_FUZZ=5000 pytest tests/hostile/test_fuzz.py` tries so many inputs of each kind, other ones every time, instead
of the suite's few fixed ones; what it finds is kept in .hypothesis and tried first the next time.
"""

import os
from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from wordsens.errors import WordsensError

INPUTS = int(os.environ.get("WORDSENS_FUZZ", "0"))


def fuzzed(few: int) -> Callable[..., Any]:
    """The settings of a test that tries `few` inputs in the suite, and WORDSENS_FUZZ in a campaign."""
    unhurried = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.data_too_large]
    return settings(
        max_examples=INPUTS or few, derandomize=not INPUTS, deadline=None, suppress_health_check=unhurried,
        print_blob=True,
    )  # fmt: skip


def survives(call: Callable[[], Any]) -> Any:
    """What the call gives; None where it refuses its input, in one line."""
    try:
        return call()
    except WordsensError as error:
        message = str(error)
        assert message
        assert "\n" not in message, message
        assert len(message) < 3000, message[:500]
        return None


ODD_NUMBERS = st.sampled_from([0, -1, 1, 2, 10**6, 2**31, 2**63 - 1, 2**63, 10**30, -(2**63) - 1, 1.5, 1e308, 5e-324])
NUMBERS = st.one_of(st.integers(-3, 20), ODD_NUMBERS, st.floats(), st.booleans(), st.none())
SIGNS = st.characters(codec=None, exclude_categories=())
TEXTS = st.one_of(
    st.text(st.sampled_from("the film was not good.,!\"'\n\t;"), max_size=30),
    st.text(max_size=20),
    st.text(SIGNS, max_size=8),
)
WORDS = st.sampled_from(
    ["a", "text", "label", "kind", "first", "second", "same", "pos", "1", "0", "true", "", "\0", "~"]
)


def json_values(keys: st.SearchStrategy[str] = WORDS) -> st.SearchStrategy[Any]:
    """Anything that JSON has, its keys mostly those given."""
    scalars = st.one_of(NUMBERS, TEXTS, WORDS)
    return st.recursive(
        scalars, lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(keys, inner, max_size=4)),
        max_leaves=8,
    )  # fmt: skip


@st.composite
def damaged(draw: st.DrawFn, content: bytes) -> bytes:
    """The content with some bytes cut out, doubled, or replaced."""
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(content)))
        stop = min(len(content), start + draw(st.sampled_from([0, 1, 2, 8, 64, 4096])))
        put = draw(st.one_of(st.binary(max_size=8), st.just(content[start:stop] * 2)))
        content = content[:start] + put + content[stop:]
    return content
