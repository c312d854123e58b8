"""The texts that the benchmarks use, by kind."""

from collections.abc import Callable
from functools import partial

import torch

import wordsens as ws
from wordsens.text import read_documents


def gaussian(n: int, d: int, seed: int = 0) -> ws.TextMatrix:
    """n rows uniform on the sphere of radius sqrt(d)."""
    return ws.gaussian_text(n, d, seed=seed)


def review(n: int, d: int = 384, seed: int = 0, *, data: str | None = None) -> ws.TextMatrix:
    """The first n words of a shipped review, or of one of `data`, at MiniLM's embedding layer, rows of length sqrt(d).

    MiniLM has 384 coordinates. Fewer: the first d, rescaled. More: the rows of several reviews side by side, row j of
    the one before row j of the other, so that 768 takes two.
    """
    reviews = -(-d // MINILM_WIDTH)
    documents = ws.shipped_reviews() if data is None else read_documents(data, labels=False, skip_empty=True)
    found = ws.texts_of_length(documents, n, count=reviews * (seed + 1))[-reviews:]
    rows = torch.cat([text.rows for text in ws.embed(found, max_words=n)], dim=1)
    name = "shipped review" if data is None else "review"
    source = f"a {name}" if reviews == 1 else f"{reviews} {name}s side by side"
    return ws.TextMatrix(rows, source=source).truncated(n, d)


MINILM_WIDTH = 384

KINDS: dict[str, Callable[[int, int, int], ws.TextMatrix]] = {"gaussian": gaussian, "review": review}


def kinds(data: str | None = None) -> dict[str, Callable[[int, int, int], ws.TextMatrix]]:
    """The kinds of text that can be made here; reviews from `data`, or shipped; says so where MiniLM is missing."""
    try:
        review(2, data=data)
    except ws.WordsensError as error:
        print(f"\nreview texts skipped: {error}")
        return {"gaussian": gaussian}
    return KINDS if data is None else {**KINDS, "review": partial(review, data=data)}
