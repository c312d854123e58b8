"""Word sensitivity of random attention: every effort beside plain gradient ascent, and how the cost grows.

    python -m benchmarks.search [--section NAME ...] [--quick] [--threads 1]

Sections: efforts (all words of a text by each effort: CPU time, S, and every word against "thorough"), plain (every
word of a review against plain ascent, benchmarks.plain: 50 n steps from one start), growth (time and memory of a
search with one start and ten steps, in a process of its own), model (one embedding model, MiniLM). Seconds are of CPU.
"""

import argparse
import json
import sys
import time

import torch
from torch import Tensor

import wordsens as ws
from benchmarks.plain import PlainEmbedding, attention_features, embedding_ascent, plain_ascent
from benchmarks.reporting import apart, gigabytes, header, peak_bytes, seconds, table
from wordsens.text import texts_of_length

EFFORTS = ("thorough", "normal", "quick")


def review(n: int, number: int = 0) -> ws.TextMatrix:
    """The first n tokens of a shipped review, at MiniLM's embedding layer, d = 384."""
    documents = texts_of_length(ws.shipped_reviews(), n, count=number + 1)
    return ws.embed(documents[number : number + 1], max_words=n)[0]


def efforts(quick: bool) -> None:
    """A row an effort; the straightforward way is timed over a few of its 50 n steps."""
    rows = []
    sizes = ((40, 96),) if quick else ((100, 384), (100, 768), (250, 768))
    for score in ("softmax", "relu"):
        for n, d in sizes:
            X, phi = ws.gaussian_text(n, d, seed=11).rows, ws.RandomAttentionFeatures(d, score=score, seed=11)
            began = time.process_time()
            steps = 20
            plain_ascent(phi.weight, X, n // 2, steps=steps)
            plain = (time.process_time() - began) * 50 * n / (steps + 1)
            best = None
            for effort in EFFORTS:
                began = time.process_time()
                result = ws.word_sensitivity(phi, X, search=effort, certificate=False)
                took = time.process_time() - began
                best = best or result
                ratios = result.per_word / best.per_word
                rows.append(
                    [
                        *(score, str(n), str(d), effort, seconds(took), f"{took / plain:.2f}"),
                        *(f"{result.value:.4f}", f"{result.value / best.value:.4f}"),
                        *(f"{ratios.mean():.4f}", f"{ratios.min():.4f}"),
                    ]
                )
    columns = ["score", "n", "d", "search", "CPU", "of one word plainly", "S", "S/thorough", "word: mean", "least"]
    print(table("All words of a Gaussian text", columns, rows))


def plain(quick: bool) -> None:
    """Every word of reviews over plain ascent from one start, through the whole map."""
    rows = []
    for number in range(1 if quick else 5):
        X = review(16 if quick else 60, number).rows
        phi = ws.RandomAttentionFeatures(X.shape[1])
        result = ws.word_sensitivity(phi, X, certificate=False)
        words = range(0, len(X), 4)
        values = torch.tensor([plain_ascent(phi.weight, X, word)[0] for word in words])
        ratios = result.per_word[list(words)] / values
        rows.append(
            [
                *(str(number), str(len(words)), f"{ratios.min():.5f}", f"{ratios.median():.4f}"),
                *(f"{ratios.max():.4f}", str(int((ratios < 1 - 1e-6).sum()))),
            ]
        )
    columns = ["review", "words", "search/plain: least", "median", "largest", "words below plain"]
    print(table("Words of reviews, softmax attention, against plain ascent", columns, rows))


def growth(quick: bool) -> None:
    """The cost of a search with one start a word and ten steps, beside one evaluation of phi."""
    lengths = (50, 100) if quick else (100, 200, 400, 800)
    rows = []
    for n in lengths:
        cost = apart("search", n)
        memory = gigabytes(cost["peak"] - cost["before"])
        rows.append([str(n), seconds(cost["seconds"]), seconds(cost["features"]), memory])
    title = "All words with SearchPlan(starts=1, steps=10), softmax, d = 384"
    print(table(title, ["n", "search", "phi(X) once", "memory"], rows))


def one(n: int) -> None:
    """A row of `growth`, as JSON."""
    X, phi = ws.gaussian_text(n, 384).rows, ws.RandomAttentionFeatures(384)
    ws.word_sensitivity(phi, X[:4], search=ws.SearchPlan(starts=1, steps=1), certificate=False)
    before, began = peak_bytes(), time.process_time()
    ws.word_sensitivity(phi, X, search=ws.SearchPlan(starts=1, steps=10), certificate=False)
    took, began = time.process_time() - began, time.process_time()
    attention_features(phi.weight, X)
    features = time.process_time() - began
    print(json.dumps({"seconds": took, "features": features, "before": before, "peak": peak_bytes()}))


def model(quick: bool) -> None:
    """MiniLM's embedding: words by the quick search against plain ascent through the model, at the same radius."""
    from transformers import AutoModel

    from wordsens.text.pretrained import minilm_folder

    bert = AutoModel.from_pretrained(minilm_folder(), dtype=torch.float32)
    ascent = PlainEmbedding(bert, bert.encoder.layer)
    phi = ws.TransformerFeatures.from_pretrained("minilm", pool="own")
    (X,) = phi.embed(texts_of_length(ws.shipped_reviews(), 62, count=1), max_words=14 if quick else 62)
    words = list(range(1, len(X) - 1, 8))
    began = time.process_time()
    radius = torch.linalg.vector_norm(X.rows, dim=1)
    result = ws.word_sensitivity(phi, X, words, radius[words], search="quick", certificate=False)
    ours, began = time.process_time() - began, time.process_time()
    values: Tensor = torch.tensor([embedding_ascent(ascent, X.rows, word, steps=30, seed=word) for word in words])
    theirs = time.process_time() - began
    ratios = result.per_word / values
    row = [str(len(words)), str(len(X)), seconds(ours), seconds(theirs), f"{ratios.mean():.3f}", f"{ratios.min():.3f}"]
    columns = ["words", "n", "quick search", "plain, 30 steps", "value/plain: mean", "least"]
    print(table("Words of a review, MiniLM's own embedding, float32", columns, [row]))


SECTIONS = {"efforts": efforts, "plain": plain, "growth": growth, "model": model}


def main() -> None:
    """Run the sections that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--section", action="append", choices=list(SECTIONS), help="only this one; may be repeated")
    parser.add_argument("--quick", action="store_true", help="small sizes, under a minute")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    if options.one is not None:
        return one(options.one)
    print(header("Search"))
    for name in options.section or SECTIONS:
        SECTIONS[name](options.quick)
        sys.stdout.flush()
    return None


if __name__ == "__main__":
    main()
