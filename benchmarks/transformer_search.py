"""Search plans on a trained model: the value each reaches against a long search, at how many evaluations a word.

python -m benchmarks.transformer_search [--quick]
"""

import argparse
import time

import wordsens as ws
from benchmarks.reporting import header
from wordsens.maps.transformer.word_change import TransformerChange
from wordsens.search.plan import SearchPlan
from wordsens.text import shipped_reviews

_LONG = SearchPlan(
    starts=10, climb_steps=10, population=3, children=3, generations=2, finalists=2, steps=50, tolerance=1e-5,
    rule="momentum",
)  # fmt: skip
_SHORT = SearchPlan(
    starts=2, climb_steps=3, population=1, children=1, finalists=1, steps=10, tolerance=1e-4, rule="momentum"
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one text, one map, four words")
    arguments = parser.parse_args()
    print(header("Search plans on a trained model"))
    plans = {"a long search": _LONG, "2 starts": _SHORT, "the map's own": TransformerChange.plan}
    every = ws.TransformerFeatures.from_pretrained("minilm")
    maps = [every] if arguments.quick else [every, every.at(pool="mean"), every.at(layer=2)]
    texts = [review.text for review in shipped_reviews() if len(review.text.split()) > 80]
    words = list(range(4, 40, 10)) if arguments.quick else list(range(3, 75, 8))
    print("| text | map | plan | evaluations a word | mean ratio | least ratio | seconds |")
    print("| --- | --- | --- | ---: | ---: | ---: | ---: |")
    for at, text in enumerate(texts[: 1 if arguments.quick else 3]):
        for phi in maps:
            (X,) = phi.embed(text, max_words=40 if arguments.quick else 80)
            best = None
            for name, plan in plans.items():
                TransformerChange.plan = plan
                started = time.perf_counter()
                found = ws.word_sensitivity(phi, X, words=words)
                seconds = time.perf_counter() - started
                best = found.per_word if best is None else best
                ratio = found.per_word / best
                print(
                    f"| {at} | {phi.name} | {name} | {found.evaluations / len(words):.0f} | {ratio.mean():.3f} "
                    f"| {ratio.min():.3f} | {seconds:.1f} |"
                )


if __name__ == "__main__":
    main()
