"""What check, compare, explain and audit of an embedding model cost, in seconds of wall clock and of CPU.

python -m benchmarks.evaluation [--model minilm] [--texts 20] [--quick]
"""

import argparse
import contextlib
import io
import tempfile
import time
from collections.abc import Callable

import torch

import wordsens as ws
from benchmarks.reporting import header, seconds, table
from wordsens.cli import main as wordsens


def audit(model: str, texts: int, words: int) -> None:
    """`wordsens audit` of shipped reviews into a folder that is deleted again."""
    with tempfile.TemporaryDirectory() as folder:
        command = f"audit {model} --dataset shipped --limit {texts} --max-words 64 --words-per-text {words} --quiet"
        with contextlib.redirect_stdout(io.StringIO()):
            code = wordsens([*command.split(), "--out", folder])
        if code:
            raise SystemExit(f"the audit failed with exit code {code}")


def main() -> None:
    """Each evaluation once."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="minilm")
    parser.add_argument("--texts", type=int, default=20, help="for compare and audit")
    parser.add_argument("--quick", action="store_true", help="few pairs and texts")
    options = parser.parse_args()
    torch.set_num_threads(1)
    print(header("Evaluations of an embedding model"))
    model = ws.as_model(options.model)
    pairs = ws.read_pairs()[:: 8 if options.quick else 1]
    documents = [document.text for document in ws.shipped_reviews()[: 6 if options.quick else options.texts]]
    if options.quick:
        documents = [" ".join(document.split()[:25]) for document in documents]
    first, second = "The lift is working.", "The lift is not working."
    count, words = len(documents), 2 if options.quick else 8
    actions: dict[str, Callable[[], object]] = {
        f"check, {len(pairs)} pairs": lambda: ws.check(model, pairs),
        f"compare with itself, {count} texts": lambda: ws.compare(model, model, documents),
        "explain a pair": lambda: ws.explain(model, first, second),
        f"audit, {words} words of {count} texts": lambda: audit(options.model, count, words),
    }
    rows = []
    for name, action in actions.items():
        start, processor = time.perf_counter(), time.process_time()
        action()
        rows.append([name, seconds(time.perf_counter() - start), seconds(time.process_time() - processor)])
    print(table(options.model, ["what", "wall clock", "CPU"], rows))


if __name__ == "__main__":
    main()
