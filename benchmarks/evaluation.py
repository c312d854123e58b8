"""What check, explain and audit of an embedding model cost, beside encoding the same texts once.

python -m benchmarks.evaluation
"""

import time
from collections.abc import Callable
from statistics import fmean

import torch

import wordsens as ws
from benchmarks.reporting import header, seconds, table

MODEL, REPEATS, PAIRS, TEXTS = "minilm", 3, 60, 4


def cpu(action: Callable[[], object]) -> float:
    """CPU seconds."""
    began = time.process_time()
    action()
    return time.process_time() - began


def main() -> None:
    """Print the table."""
    torch.set_num_threads(1)
    print(header("Evaluations of an embedding model"), flush=True)
    model = ws.as_model(MODEL)
    model.encode(["A first call loads what is loaded late."])
    pairs = ws.read_pairs()[:PAIRS]
    texts = [text for pair in pairs for text in (pair.first, pair.second)]
    first = "How do I cancel my subscription?", "How do I keep my subscription?"
    reviews = [" ".join(review.text.split()[:64]) for review in ws.shipped_reviews()[:TEXTS]]
    cases = {
        f"check, {len(pairs)} pairs": (lambda: ws.check(model, pairs), texts, REPEATS),
        "explain a pair": (lambda: ws.explain(model, *first), first, REPEATS),
        "explain it without moved vectors": (
            lambda: ws.explain(model, *first, vectors=False),
            first,
            REPEATS,
        ),
        f"audit {TEXTS} texts": (lambda: ws.audit(model, reviews), reviews, 1),
    }
    rows = []
    for name, (action, encoded, repeats) in cases.items():
        began, rounds = time.process_time(), 10
        for _ in range(rounds):
            model.encode(list(encoded))
        encode = (time.process_time() - began) / rounds
        took = fmean(cpu(action) for _ in range(repeats))
        rows.append([name, str(repeats), seconds(encode), seconds(took), f"{took / encode:,.0f}"])
    print(
        table(
            f"{MODEL}: CPU, means of runs",
            ["what", "runs", "encoding its texts", "what it costs", "factor"],
            rows,
        )
    )


if __name__ == "__main__":
    main()
