"""Labelled real texts to learn from, and what a change of one word does to the label of held-out
ones."""

import random
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice

import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.evaluation.word_lists import AUXILIARIES, antonyms, exchange, groups, synonyms
from wordsens.models.embedding import load_encoder
from wordsens.seeds import derive_seed, generator
from wordsens.studies.control.networks import TextNetwork
from wordsens.studies.control.tasks import Task, texts_task
from wordsens.studies.control.training import TEXTS_AT_ONCE
from wordsens.sweeps.texts import Embedded, long_enough, text_rows
from wordsens.text import Document
from wordsens.text.matrix import TextMatrix
from wordsens.text.whole_words import lettered_spans, without

# The ways in which a word of a text is changed: a word is deleted, "not" is inserted behind a verb
# such as "is", or deleted where it stands there, a word is exchanged for an antonym or a synonym.
EDITS = ("deletion", "negation", "antonym", "synonym")

# The held-out texts that are edited, the edits of each kind in each of them, and the characters
# behind its n words that an edited text keeps, from which words move up.
EDITED, TRIES, TAIL = 200, 4, 100

Edit = tuple[str, int, str]
"""A kind, the number of a text, and that text with one word changed."""


def review_task(
    source: Embedded,
    shape: tuple[int, int],
    most: int,
    *,
    seed: int,
    draw_seed: int,
) -> Task:
    """The task of up to `most` labelled texts of n words. A fifth is held out, the same for every
    draw; a tenth is for validation, the others are for training.

    Raises:
        InputError: a text without a label, or too few texts.
    """
    rows = _rows(_in_order(source, shape[0], most, seed), source, shape)
    test, looks = len(rows) // 5, len(rows) // 10
    return texts_task(rows, (len(rows) - test - looks, looks, test), draw_seed)


def label_flips(
    network: TextNetwork,
    source: Embedded,
    shape: tuple[int, int],
    most: int,
    *,
    seed: int,
) -> dict[str, float | None]:
    """By kind of edit, the share of edits of held-out texts that change the label that the network
    gives; None where no text has such a word."""
    texts = _in_order(source, shape[0], most, seed)
    edits, unchanged, edited = _edited(texts, source, shape, seed)
    before, after = _positive(network, unchanged), _positive(network, edited)
    flipped: dict[str, list[bool]] = {kind: [] for kind in EDITS}
    for (kind, number, _), label in zip(edits, after.tolist(), strict=True):
        flipped[kind].append(label != bool(before[number]))
    return {kind: sum(flips) / len(flips) if flips else None for kind, flips in flipped.items()}


def _in_order(source: Embedded, n: int, most: int, seed: int) -> tuple[Document, ...]:
    """Up to `most` labelled texts of n words, each once, in an order that depends on the seed: the
    first are held out."""
    found = long_enough(source, n, generator(seed, "held-out reviews"), labelled=True)
    return tuple({text.text: text for text in islice(found, most)}.values())


@lru_cache(maxsize=1)
def _rows(
    texts: tuple[Document, ...],
    source: Embedded,
    shape: tuple[int, int],
) -> list[TextMatrix]:
    """The cells of a run ask for the same ones."""
    return text_rows(texts, source, *shape, dtype=torch.float32)


@lru_cache(maxsize=1)
def _edited(
    texts: tuple[Document, ...],
    source: Embedded,
    shape: tuple[int, int],
    seed: int,
) -> tuple[list[Edit], Float[Tensor, "t n d"], Float[Tensor, "m n d"]]:
    """The edits of held-out texts, the rows of these texts and of the edited ones; edits that leave
    fewer than n words are left out."""
    encoder = load_encoder(source.encoder)
    unchanged = _rows(texts, source, shape)[: min(EDITED, len(texts) // 5)]
    words = [text.whole_words or () for text in unchanged]
    ends = [max((word.stop for word in some), default=0) for some in words]
    edits = [
        edit
        for edit in edits_of([text.text for text in texts[: len(ends)]], ends, seed)
        if encoder.count_tokens(edit[2], special=source.keep_special_tokens) >= shape[0]
    ]
    documents = [*texts[: len(unchanged)], *(Document(text) for _, _, text in edits)]
    found = text_rows(documents, source, *shape, dtype=torch.float32)
    rows = torch.stack([text.rows for text in found])
    return edits, rows[: len(unchanged)], rows[len(unchanged) :]


def edits_of(texts: list[str], ends: list[int], seed: int) -> Iterator[Edit]:
    """For each kind of edit and each text, TRIES versions with one word changed before that text's
    end in `ends`; fewer where no word can be changed in that way.

    >>> next(edits_of(["It is good. Is it?"], [8], 0))
    ('deletion', 0, 'It good. Is it?')
    """
    chance = random.Random(derive_seed(seed, "edits"))
    negated = groups((verb, f"{verb} not") for verb in AUXILIARIES)
    tables = {
        "negation": negated,
        "antonym": antonyms(),
        "synonym": synonyms(),
    }
    for kind in EDITS:
        for number, (text, end) in enumerate(zip(texts, ends, strict=True)):
            head = text[:end]
            tail = text[end:][:TAIL]
            spans = lettered_spans(head)
            for _ in range(TRIES if spans else 0):
                changed = (
                    exchange(head, tables[kind], chance)
                    if kind in tables
                    else without(head, chance.choice(spans))
                )
                if changed is not None:
                    yield kind, number, changed + tail


@torch.no_grad()
def _positive(network: TextNetwork, texts: Float[Tensor, "m n d"]) -> Tensor:
    weight = network.head.weight
    logits = [network(rows.to(weight)) for rows in texts.split(TEXTS_AT_ONCE)]
    return torch.cat(logits) > 0
