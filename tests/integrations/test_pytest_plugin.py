"""The pytest plugin, in a pytest of its own."""

import pytest

MODELS = """
    import wordsens as ws

    PAIRS = [
        ("switch", "turn the alarm on", "turn the alarm off", False),
        ("switch", "lock the outer door", "unlock the outer door", False),
        ("same", "turn the alarm on", "please turn the alarm on", True),
        ("same", "lock the outer door", "please lock the outer door", True),
    ]
    CALLS = []

    def letters(texts):
        CALLS.append(len(texts))
        return [[text.count(letter) + .1 for letter in "abcdefghijklmnopqrstuvwxyz"] for text in texts]
"""  # noqa: E501


@pytest.fixture
def suite(pytester):
    """A folder with a model, and the plugin found by its entry point."""
    pytester.makepyfile(models=MODELS)
    return pytester


def test_a_requirement_that_is_met_passes(suite):
    suite.makepyfile(
        test_model="""
        from models import CALLS, PAIRS, letters

        def test_meaning(wordsens_assert):
            result = wordsens_assert(letters, "recall >= .5", pairs=PAIRS)
            assert result.kinds["switch"].pairs == 2

        def test_again(wordsens_assert):
            before = len(CALLS)
            wordsens_assert(letters, "recall >= .5", pairs=PAIRS)
            assert len(CALLS) == before
            other = wordsens_assert(letters, "recall >= .5", pairs=PAIRS[1:])
            assert other.kinds["switch"].pairs == 1
        """
    )
    suite.runpytest_subprocess().assert_outcomes(passed=2)


def test_one_that_is_not_met_fails_and_shows_the_pairs(suite):
    suite.makepyfile(
        test_model="""
        from models import PAIRS, letters

        def test_meaning(wordsens_assert):
            wordsens_assert(letters, "switch.false_hits <= .1", pairs=PAIRS, threshold=.5)
        """
    )
    run = suite.runpytest_subprocess()
    run.assert_outcomes(failed=1)
    run.stdout.fnmatch_lines(
        [
            "switch.false_hits is 1*required <= 0.1",
            "*switch: 'turn the alarm on' / 'turn the alarm off'",
            "*wordsens*",
            "switch * 2 * 100 % *",
        ]
    )


def test_a_wrong_requirement_is_one_line(suite):
    suite.makepyfile(
        test_model="""
        from models import PAIRS, letters

        def test_meaning(wordsens_assert):
            wordsens_assert(letters, "switch is fine", pairs=PAIRS)
        """
    )
    run = suite.runpytest_subprocess()
    run.assert_outcomes(failed=1)
    run.stdout.fnmatch_lines(["`requirements` (='switch is fine') cannot be read*"])
    run.stdout.no_fnmatch_line("*Traceback*")
