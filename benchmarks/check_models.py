"""Three trained models and a bag of words in one table: which kinds of opposites each tells from paraphrases.

    python -m benchmarks.check_models

Needs what `make test-models` installs. The table stands in docs/benchmarks.md.
"""

import tempfile
import time
import zlib
from collections.abc import Sequence
from datetime import date
from pathlib import Path

import numpy as np
import torch

import wordsens as ws
from benchmarks.pypi_models import glove, write_paraphrase_minilm

PLACES = 4096
"""Of the bag of words' counts."""


def bag_of_words(texts: Sequence[str]) -> np.ndarray:
    """The counts of the lower-cased words."""
    vectors = np.zeros((len(texts), PLACES))
    for at, text in enumerate(texts):
        for word in text.lower().split():
            vectors[at, zlib.crc32(word.strip(".,;:?!").encode()) % PLACES] += 1
    return vectors


def main() -> None:
    """Check every model on the shipped pairs and print the AUCs with their intervals as Markdown."""
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "paraphrase-MiniLM-L3-v2"
        place.mkdir()
        write_paraphrase_minilm(place)
        models = {
            "MiniLM-L6": "minilm",
            "paraphrase-MiniLM-L3": str(place),
            "GloVe 6B 50d": glove(),
            "bag of words": bag_of_words,
        }
        found = {}
        for name, model in models.items():
            begin = time.perf_counter()
            found[name] = ws.check(model)
            print(f"{name}: {time.perf_counter() - begin:.0f} s", flush=True)
    print(f"\n{date.today()}\n\n| kind | {' | '.join(found)} |\n| --- |{' ---: |' * len(found)}")
    for kind in next(iter(found.values())).kinds.names:
        rows = [result.kinds[kind] for result in found.values()]
        cells = (f"{row.auc:.3f} ({row.auc_low:.3f} to {row.auc_high:.3f}), {row.median_opposite:.3f}" for row in rows)
        print(f"| {kind} | {' | '.join(cells)} |")
    for at, name in enumerate(("paraphrase", "synonym")):
        print(f"| {name}, median | {' | '.join(f'{result.controls[at].median:.3f}' for result in found.values())} |")


if __name__ == "__main__":
    main()
