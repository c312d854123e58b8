"""A pytest plugin: a test that a model tells opposites from texts of the same meaning.

    def test_the_model_tells_opposites_apart(wordsens_assert):
        wordsens_assert("my-model", "negation.false_hits <= .3", "recall >= .85", threshold=0.9)

It is loaded wherever wordsens is installed, and imports nothing of it before a test asks for a
fixture.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from wordsens.evaluation.check import Check


@pytest.fixture(scope="session")
def wordsens_check() -> "Callable[..., Check]":
    """`wordsens.check`; a model with the same options is checked once per session."""
    import wordsens

    checks: dict[tuple[int | str, str], tuple[Any, Check]] = {}

    def run(model: Any, **options: Any) -> "Check":
        key = model if isinstance(model, str) else id(model), repr(sorted(options.items()))
        if key not in checks:
            # With the model: no other object may get its id.
            checks[key] = model, wordsens.check(model, **options)
        return checks[key][1]

    return run


@pytest.fixture
def wordsens_assert(
    request: pytest.FixtureRequest, wordsens_check: "Callable[..., Check]"
) -> "Callable[..., Check]":
    """A function (model, *requirements, **options of `wordsens.check`) that fails the test where a
    requirement is not met, with the pairs behind it, adds the tables of the check to the test's
    report, and returns the Check."""

    def require(model: Any, *requirements: str, **options: Any) -> "Check":
        __tracebackhide__ = True
        from wordsens.errors import InputError
        from wordsens.findings.check import pair_line

        try:
            check = wordsens_check(model, requirements=requirements, **options)
        except InputError as error:
            pytest.fail(str(error), pytrace=False)
        request.node.add_report_section("call", "wordsens", check.show())
        if not check.passed:
            pairs = [f"  {pair_line(row)}" for row in check.failing_pairs()]
            pytest.fail("\n".join([*check.failures, "", *pairs]).rstrip(), pytrace=False)
        return check

    return require
