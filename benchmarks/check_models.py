"""Three trained models and a bag of words in one table: which kinds of opposites each tells from paraphrases.

Then how alike the cosines of two models are, MiniLM-L6 being one: what the power of a baseline depends on.

    python -m benchmarks.check_models

Needs what `make test-models` installs. The table stands in docs/measurements.md.
"""

import tempfile
import time
import zlib
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import torch

import wordsens as ws
from benchmarks.pypi_models import glove, write_paraphrase_minilm
from wordsens.evaluation.baseline import LEVEL
from wordsens.text.pretrained import minilm_folder

PLACES = 4096
"""Of the bag of words' counts."""


def bag_of_words(texts: Sequence[str]) -> np.ndarray:
    """The counts of the lower-cased words."""
    vectors = np.zeros((len(texts), PLACES))
    for at, text in enumerate(texts):
        for word in text.lower().split():
            vectors[at, zlib.crc32(word.strip(".,;:?!").encode()) % PLACES] += 1
    return vectors


def rounded_minilm(bits: int) -> Any:
    """MiniLM-L6 with every row of every weight matrix rounded to that many bits, zero included."""
    from sentence_transformers import SentenceTransformer

    model, most = SentenceTransformer(str(minilm_folder()), device="cpu"), 2 ** (bits - 1) - 1
    with torch.no_grad():
        for weight in model.parameters():
            if weight.ndim == 2:
                step = weight.abs().amax(dim=1, keepdim=True) / most
                weight.copy_((weight / step).round() * step)
    return model


def print_correlations(before: ws.Check, others: dict[str, ws.Check]) -> None:
    """Pearson's correlation of the cosines with those of the first model: of every kind's opposites, of paraphrases."""
    print("\n| model | least kind | median kind | most kind | paraphrases | drops found, p of the least |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "baseline.json"
        before.save_baseline(path)
        baseline = ws.Baseline.read(path)
    for name, after in others.items():
        groups = [*before.measured.opposites.values(), before.measured.paraphrases]
        *kinds, same = (np.corrcoef(before.measured.values[one], after.measured.values[one])[0, 1] for one in groups)
        drops = baseline.drops(after.measured, seed=0)[0].values()
        told = f"{sum(drop.p <= LEVEL for drop in drops)}, {min(drop.p for drop in drops):.2g}"
        print(f"| {name} | {min(kinds):.3f} | {np.median(kinds):.3f} | {max(kinds):.3f} | {same:.3f} | {told} |")


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
        rounded = {f"MiniLM-L6 in {bits} bits": rounded_minilm(bits) for bits in (8, 4)}
        found = {}
        for name, model in {**models, **rounded}.items():
            begin = time.perf_counter()
            found[name] = ws.check(model)
            print(f"{name}: {time.perf_counter() - begin:.0f} s", flush=True)
    others = {name: found[name] for name in (*rounded, "paraphrase-MiniLM-L3", "GloVe 6B 50d")}
    found = {name: found[name] for name in models}
    print(f"\n{date.today()}\n\n| kind | {' | '.join(found)} |\n| --- |{' ---: |' * len(found)}")
    for kind in next(iter(found.values())).kinds.names:
        rows = [result.kinds[kind] for result in found.values()]
        cells = (f"{row.auc:.3f} ({row.auc_low:.3f} to {row.auc_high:.3f}), {row.median_opposite:.3f}" for row in rows)
        print(f"| {kind} | {' | '.join(cells)} |")
    for at, name in enumerate(("paraphrase", "synonym")):
        print(f"| {name}, median | {' | '.join(f'{result.controls[at].median:.3f}' for result in found.values())} |")
    print_correlations(found["MiniLM-L6"], others)


if __name__ == "__main__":
    main()
