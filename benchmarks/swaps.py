"""Real swaps: a scan of MiniLM's whole vocabulary for random attention; the shortlist's recall on MiniLM itself.

python -m benchmarks.swaps [scan] [recall] [--words 40] [--quick]

`scan`: all words of a 100-word review times all entries, random attention of MiniLM's rescaled rows, d = 384.
`recall`: for words of short sentences, MiniLM's mean embedding: the shortlist against a full scan of the vocabulary.
A full scan takes one pass of the model for every entry; it runs in bfloat16 where that is fast, and what cannot be told
from the best is evaluated again in float32.
"""

import argparse
import time

import wordsens as ws
from benchmarks.reporting import header, seconds, table
from wordsens.text import minimal_pairs, shipped_reviews


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sections", nargs="*", default=["scan", "recall"])
    parser.add_argument("--words", type=int, default=40)
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    print(header("Real swaps"), flush=True)
    model = ws.TransformerFeatures.from_pretrained("minilm", pool="mean")
    if "scan" in arguments.sections:
        _scan(model, 20 if arguments.quick else 100)
    if "recall" in arguments.sections:
        _recall(model, 2 if arguments.quick else arguments.words)


def _scan(model: ws.TransformerFeatures, n: int) -> None:
    review = ws.texts_of_length(shipped_reviews(), n, count=1)[0]
    (X,) = ws.embed(review, max_words=n)
    vocabulary = model.vocabulary(pieces=True, special=True, signs=True, special_tokens=False, rescale=True)
    phi = ws.RandomAttentionFeatures(384, seed=0)
    started = time.perf_counter()
    found = ws.best_swaps(phi, X, vocabulary)
    rows = [[str(n), str(len(vocabulary)), str(found.evaluations), seconds(time.perf_counter() - started)]]
    rows[0] += [f"{found.value:.4f}", f"{found.tokens[int(found.per_word.argmax())]} -> "]
    rows[0][-1] += found.swapped_for[int(found.per_word.argmax())]
    print(table("Scan", ["words", "entries", "evaluations", "time", "best value", "best swap"], rows), flush=True)
    ratio = ws.swap_ratio(phi, X, found)
    print(
        f"\ncontinuous sup within each swap's own length / best swap: mean {ratio.ratio.mean():.3f}, "
        f"{ratio.ratio.min():.3f} to {ratio.ratio.max():.3f}",
        flush=True,
    )


def _recall(model: ws.TransformerFeatures, count: int) -> None:
    vocabulary = model.vocabulary(case="lower")
    sentences = sorted({pair.first for pair in minimal_pairs()}, key=lambda text: (len(text), text))
    hits, ratios, spent, done = 0, [], 0, 0
    times = {"scan": 0.0, "shortlist": 0.0}
    for sentence in sentences:
        (X,) = model.embed(sentence)
        single = [word.rows[0] for word in X.whole_words or () if len(word.rows) == 1 and word.text.isalpha()][:4]
        words = single[: count - done]
        if not words:
            continue
        found = {}
        for method in times:
            started = time.perf_counter()
            found[method] = ws.best_swaps(model, X, vocabulary, words=words, method=method)
            times[method] += time.perf_counter() - started
        full, short = found["scan"], found["shortlist"]
        ratio = short.per_word / full.per_word
        hits += int((ratio > 1 - 1e-4).sum())
        ratios += ratio.tolist()
        spent += short.evaluations
        done += len(words)
        print(f"{done} words: recall {hits / done:.3f}, value ratio {sum(ratios) / done:.4f}", flush=True)
        if done >= count:
            break
    each = [seconds(total / done) for total in times.values()]
    mean = f"{sum(ratios) / done:.4f}"
    rows = [
        [
            str(done),
            str(len(vocabulary)),
            f"{hits / done:.3f}",
            mean,
            f"{min(ratios):.4f}",
            f"{spent / done:.0f}",
            *each,
        ]
    ]
    columns = ["words", "entries", "recall of the best", "mean value ratio", "least", "evaluations a word"]
    print(table("Shortlist", [*columns, "scan, a word", "shortlist, a word"], rows))


if __name__ == "__main__":
    main()
