"""Words a second of an audit's search against the straightforward loop over words, on MiniLM's own embedding.

python -m benchmarks.audit_speed [--data D] [--texts 2] [--words 8] [--tokens 64] [--steps 30] [--quick]

Wall-clock and processor time of both, in turns, and the values they reach for the same words.
"""

import argparse
import time

import torch
from transformers import AutoModel

import wordsens as ws
from benchmarks.reporting import header, table
from benchmarks.straightforward_transformer import PlainEmbedding, plain_sensitivity
from wordsens.text.pretrained import minilm_folder


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default="shipped")
    parser.add_argument("--texts", type=int, default=2)
    parser.add_argument("--words", type=int, default=8)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    print(header("Audit against the straightforward loop"), flush=True)
    model = AutoModel.from_pretrained(minilm_folder(), dtype=torch.float32)
    plain = PlainEmbedding(model, model.encoder.layer)
    phi = ws.TransformerFeatures.from_pretrained("minilm", pool="own")
    documents = ws.read_documents(arguments.data, labels=False, skip_empty=True)
    count, words = (1, 2) if arguments.quick else (arguments.texts, arguments.words)
    texts = ws.texts_of_length(documents, arguments.tokens - 2, count=count)
    spent = {"loop": [0.0, 0.0], "audit": [0.0, 0.0]}
    ratios: list[float] = []
    for at, document in enumerate(texts):
        (X,) = phi.embed(document, max_words=arguments.tokens - 2)
        whole = [index for index, word in enumerate(X.whole_words or ()) if len(word.rows) == 1][:: max(1, 40 // words)]
        chosen = whole[:words]
        rows = [(X.whole_words or ())[index].rows[0] for index in chosen]
        if at == 0:  # the first call sets up what later calls share
            ws.whole_word_sensitivity(phi, X, chosen[:1], search=ws.SearchPlan(steps=0, generations=0))
        begin, cpu = time.perf_counter(), time.process_time()
        found = ws.whole_word_sensitivity(phi, X, chosen, search=ws.SearchPlan(steps=0, generations=0))
        _add(spent["audit"], begin, cpu)
        begin, cpu = time.perf_counter(), time.process_time()
        values = [plain_sensitivity(plain, X.rows, row, steps=arguments.steps, seed=row) for row in rows]
        _add(spent["loop"], begin, cpu)
        ratios += [float(ours) / theirs for ours, theirs in zip(found.per_word, values, strict=True)]
    done = len(ratios)
    lines = [[name, f"{done / wall:.2f}", f"{done / processor:.2f}"] for name, (wall, processor) in spent.items()]
    lines.append(["ratio", *(f"{spent['loop'][at] / spent['audit'][at]:.1f}" for at in (0, 1))])
    print(table(f"{done} words, n = {arguments.tokens}", ["", "words / s", "words / processor s"], lines))
    print(f"\nvalue reached, audit / loop: mean {sum(ratios) / done:.3f}, {min(ratios):.3f} to {max(ratios):.3f}")


def _add(spent: list[float], begin: float, cpu: float) -> None:
    spent[0] += time.perf_counter() - begin
    spent[1] += time.process_time() - cpu


if __name__ == "__main__":
    main()
