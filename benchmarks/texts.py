"""The texts that the benchmarks use, by kind."""

from collections.abc import Callable

import torch

import wordsens as ws


def gaussian(n: int, d: int, seed: int = 0) -> ws.TextMatrix:
    """n rows uniform on the sphere of radius sqrt(d)."""
    return ws.gaussian_text(n, d, seed=seed)


def review(n: int, d: int = 384, seed: int = 0) -> ws.TextMatrix:
    """The first n words of a shipped review at MiniLM's embedding layer, rows of length sqrt(d).

    MiniLM has 384 coordinates. Fewer: the first d, rescaled. More: the rows of several reviews side by side, row j of
    the one before row j of the other, so that 768 takes two.
    """
    reviews = -(-d // MINILM_WIDTH)
    found = ws.texts_of_length(ws.shipped_reviews(), n, count=reviews * (seed + 1))[-reviews:]
    rows = torch.cat([text.rows for text in ws.embed(found, max_words=n)], dim=1)
    source = "a shipped review" if reviews == 1 else f"{reviews} shipped reviews side by side"
    return ws.TextMatrix(rows, source=source).truncated(n, d)


MINILM_WIDTH = 384

KINDS: dict[str, Callable[[int, int, int], ws.TextMatrix]] = {"gaussian": gaussian, "review": review}


def kinds() -> dict[str, Callable[[int, int, int], ws.TextMatrix]]:
    """The kinds of text that can be made here; says so where MiniLM's weights are not installed."""
    try:
        review(2)
    except ws.WordsensError as error:
        print(f"\nreview texts skipped: {error}")
        return {"gaussian": gaussian}
    return KINDS
