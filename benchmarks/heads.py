"""The brackets of every head of MiniLM on its own input: attained by `word_sensitivity`, bounded by `certify`.

    python -m benchmarks.heads [--words 64] [--search quick] [--layers 1 2 3 4 5 6]

One row a head: S attained and S bounded from above over all words at the words' own radii, their ratio, and the median
over the words of upper / attained; the same at a tenth of the radii.
"""

import argparse
import statistics
import time

import torch

import wordsens as ws

SHARES = (1.0, 0.1)


def bracket(phi: ws.TransformerFeatures, X: ws.TextMatrix, share: float, search: str) -> tuple[float, float, float]:
    """S attained, S from above, and the median of upper / attained, at that share of each word's own length."""
    radius = share * torch.linalg.vector_norm(X.rows, dim=1)
    found = ws.word_sensitivity(phi, X, radius=radius, search=search)
    assert found.upper is not None and found.upper_per_word is not None
    ratio = found.upper_per_word / found.per_word
    assert bool((ratio >= 1).all()), "an attained value above its bound"
    return found.value, found.upper, float(ratio.median())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--words", type=int, default=64, help="tokens, [CLS] and [SEP] among them")
    parser.add_argument("--search", default="quick", help="quick, normal or thorough")
    parser.add_argument("--layers", type=int, nargs="*", default=range(1, 7))
    parser.add_argument("--quick", action="store_true", help="one layer, 12 tokens")
    chosen = parser.parse_args()
    if chosen.quick:
        chosen.layers, chosen.words = [1], 12
    torch.set_num_threads(1)
    whole = ws.TransformerFeatures.from_pretrained("minilm")
    documents = ws.read_documents("shipped", limit=20)
    text = next(one for one in documents if len(whole.embed([one])[0]) >= chosen.words)
    started, medians = time.process_time(), {share: [] for share in SHARES}
    half = "attained | upper | bracket | median word"
    print(f"| layer | head | own radius: {half} | a tenth: {half} |")
    print("| --- " * 10 + "|")
    for layer in chosen.layers:
        for head in range(whole.stack.heads):
            phi = whole.at(layer=layer, head=head, input="its own")
            X = phi.embed([text], max_words=chosen.words - 2)[0]
            cells = []
            for share in SHARES:
                attained, upper, median = bracket(phi, X, share, chosen.search)
                medians[share].append(median)
                cells += [f"{attained:.3g}", f"{upper:.3g}", f"{upper / attained:.2f}", f"{median:.2f}"]
            print(f"| {layer} | {head} | " + " | ".join(cells) + " |", flush=True)
    for share in SHARES:
        closed = sum(value <= 1.5 for value in medians[share])
        print(
            f"{share:g} of the radius: median word's bracket at most 1.5 in {closed} of {len(medians[share])} heads, "
            f"median {statistics.median(medians[share]):.2f}, largest {max(medians[share]):.2f}"
        )
    print(f"{time.process_time() - started:.0f} s of processor time")


if __name__ == "__main__":
    main()
