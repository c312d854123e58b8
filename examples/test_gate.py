"""A build gate in pytest: the threshold that the cache serves with, and what it must keep to.

The fixture comes with wordsens; there is nothing to import. Put your model and your pairs in the
place of these.
"""

from pathlib import Path

PAIRS = str(Path(__file__).with_name("pairs.csv"))


def test_the_cache_serves_few_wrong_answers(wordsens_assert) -> None:
    wordsens_assert(
        "minilm", "guarded_false_hits <= .05", "guarded_recall >= .7", pairs=PAIRS, threshold=0.948
    )
