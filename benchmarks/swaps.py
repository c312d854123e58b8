"""Real swaps: a scan of MiniLM's whole vocabulary for random attention; the shortlist's recall on MiniLM itself.

python -m benchmarks.swaps [scan] [recall] [--words 40] [--fresh SKIP] [--keep FILE] [--quick]

`scan`: all words of a 100-word review times all entries, random attention of MiniLM's rescaled rows, d = 384.
`recall`: for words of short sentences, MiniLM's mean embedding: the shortlist against a full scan of the vocabulary.
The plan was tuned on the first 40 words. With `--fresh SKIP` words are drawn at random from the other sentences and the
first SKIP are left out; the plan was tuned on 60 of those too, so that `--fresh 60` gives words that nobody looked at.
A full scan takes one pass of the model for every entry; it runs in bfloat16 where that is fast, and what cannot be told
from the best is evaluated again in float32. With `--keep` its results are written to a file, and read from there when
the shortlist has changed and the scan has not.
"""

import argparse
import json
import random
import time
from pathlib import Path

import wordsens as ws
from benchmarks.reporting import header, seconds, table
from wordsens.text import minimal_pairs, shipped_reviews

TUNED_ON = 40

_SAME = 1 - 1e-4
"""A swap counts as the best when its value is that close to the best's."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sections", nargs="*", default=["scan", "recall"])
    parser.add_argument("--words", type=int, default=40)
    parser.add_argument("--fresh", type=int, metavar="SKIP", help="random words of other sentences; skip the first")
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    print(header("Real swaps"), flush=True)
    model = ws.TransformerFeatures.from_pretrained("minilm", pool="mean")
    if "scan" in arguments.sections:
        _scan(model, 20 if arguments.quick else 100)
    if "recall" in arguments.sections:
        count = 2 if arguments.quick else arguments.words
        skip = arguments.fresh
        _recall(model, _shortest(model, count) if skip is None else _fresh(model, skip, count), arguments.keep)


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


def _recall(model: ws.TransformerFeatures, chosen: list[tuple[str, list[int]]], keep: Path | None) -> None:
    vocabulary = model.vocabulary(case="lower")
    kept = json.loads(keep.read_text()) if keep is not None and keep.exists() else {}
    ratios: list[float] = []
    spent = 0
    times = {"scan": 0.0, "shortlist": 0.0}
    for sentence, rows in chosen:
        (X,) = model.embed(sentence)
        begin = time.perf_counter()
        short = ws.best_swaps(model, X, vocabulary, words=rows, method="shortlist")
        times["shortlist"] += time.perf_counter() - begin
        begin = time.perf_counter()
        for row in rows:
            if f"{row} {sentence}" not in kept:
                full = ws.best_swaps(model, X, vocabulary, words=row, method="scan")
                kept[f"{row} {sentence}"] = [float(full.per_word[0]), full.swapped_for[0]]
                if keep is not None:
                    keep.write_text(json.dumps(kept, indent=1))
        times["scan"] += time.perf_counter() - begin
        spent += short.evaluations
        for row, value, entry in zip(rows, short.per_word.tolist(), short.swapped_for, strict=True):
            best, other = kept[f"{row} {sentence}"]
            ratios.append(value / best)
            if value < best * _SAME:
                print(f"missed: {X.word(row)} -> {other} ({best:.4f}); found {entry} ({value:.4f})", flush=True)
    done, hits = len(ratios), sum(ratio > _SAME for ratio in ratios)
    cells = [str(done), str(len(vocabulary)), f"{hits / done:.3f}", f"{sum(ratios) / done:.4f}", f"{min(ratios):.4f}"]
    cells += [f"{spent / done:.0f}", *(seconds(total / done) for total in times.values())]
    columns = ["words", "entries", "recall of the best", "mean value ratio", "least", "evaluations a word"]
    print(table("Shortlist", [*columns, "scan, a word (0: kept)", "shortlist, a word"], [cells]))


def _shortest(model: ws.TransformerFeatures, count: int) -> list[tuple[str, list[int]]]:
    """The shortest sentences of the minimal pairs, and up to four words of each that are one token: `count` in all."""
    found: list[tuple[str, list[int]]] = []
    for sentence in sorted({pair.first for pair in minimal_pairs()}, key=lambda text: (len(text), text)):
        single = _single(model, sentence)[: min(4, count - sum(len(rows) for _, rows in found))]
        if single:
            found.append((sentence, single))
    return found


def _fresh(model: ws.TransformerFeatures, skip: int, count: int) -> list[tuple[str, list[int]]]:
    """Other sentences in a random order (seed 0), two random words of each: `count` words after the first `skip`."""
    tuned_on = {sentence for sentence, _ in _shortest(model, TUNED_ON)}
    sentences = sorted({pair.first for pair in minimal_pairs()} - tuned_on)
    stream = random.Random(0)
    stream.shuffle(sentences)
    drawn: list[tuple[str, int]] = []
    for sentence in sentences:
        single = _single(model, sentence)
        drawn += [(sentence, row) for row in sorted(stream.sample(single, min(2, len(single))))]
    wanted = drawn[skip : skip + count]
    return [(sentence, [row for one, row in wanted if one == sentence]) for sentence in dict(wanted)]


def _single(model: ws.TransformerFeatures, sentence: str) -> list[int]:
    (X,) = model.embed(sentence)
    return [word.rows[0] for word in X.whole_words or () if len(word.rows) == 1 and word.text.isalpha()]


if __name__ == "__main__":
    main()
