"""Sensitivity to words exchanged at random, in the terms of the literature on Boolean functions.

For a model f and a text x of n words, let X_P be x with random words in the places P: each an
alternative of the word that it replaces, all equally likely, independent of the others. In units of
the squared length of f(x),

    s_P(x) = E ‖f(X_P) - E f(X_P)‖² / ‖f(x)‖²                       the subset sensitivity of P,
    average sensitivity  as(x) = sum over words i of s_{i}(x),
    block sensitivity    bs(x) = max over disjoint sets of words P, the blocks, of sum of s_P(x),
    random sensitivity   rs(x) = mean over words i and alternatives v != x_i of ‖f(x with v for x_i) - f(x)‖ / ‖f(x)‖.

s_P and bs are those of Hahn, Jurafsky and Futrell (2021) for outputs of several numbers (theirs is
one number between -1 and 1, where ‖f(x)‖ = 1 for a decision); on bits, with both as alternatives of
either, as is the average sensitivity of Boolean functions. rs is the sensitivity to random tokens
of Bhattamishra et al. (2022) and Vasudeva et al. (2024) for vectors; theirs, for labels, is
`explain_classes`.

None of them is a sup: S allows any vector within a ball, for the farthest word; these are means
over real words.
"""  # noqa: E501

import itertools
import math
import random
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from wordsens.display.numbers import number
from wordsens.errors import InputError, argument, require_count, require_kind
from wordsens.models.load import as_model
from wordsens.results import Result
from wordsens.seeds import Seed, derive_seed
from wordsens.text.english import Alternatives
from wordsens.text.whole_words import with_word, word_spans

# Words of a text all of whose 2^n - 1 blocks are tried; they are combined in 4^n / 3 steps.
_MOST_ENUMERATED = 10

# The places of a block's words, in order.
Block = tuple[int, ...]


@dataclass(frozen=True, eq=False, repr=False)
class Substitution(Result):
    """The sensitivity of a model to random words in one text.

    Attributes:
        words: the words of the text.
        per_word: (n,), s_{i}; their sum is `average`.
        average, block, random: as(x); bs(x); rs(x).
        blocks: the places of the words of each block that `block` is the sum over.
        every_block: whether blocks may be any words, so that `block` is bs(x), exactly. If not,
            they are of a few neighbouring words, and `block` is an estimate that is on average no
            more than bs(x), though one text's may be.
        exact: whether every alternative was tried; if not, alternatives were drawn.
        evaluations: texts that the model was given.
        seed: of the draws.
    """

    words: tuple[str, ...]
    per_word: tuple[float, ...]
    average: float
    block: float
    random: float
    blocks: tuple[Block, ...]
    every_block: bool
    exact: bool
    evaluations: int
    seed: int

    ranked = "sensitivity"
    row_names = "word"

    @property
    def headline(self) -> str:
        """Average and block sensitivity."""
        drawn = "" if self.exact else ", estimated from random draws"
        return (
            f"Words exchanged at random: average sensitivity {number(self.average)}, block "
            f"sensitivity {number(self.block)}{drawn}"
        )

    def columns(self) -> dict[str, Any]:
        """One row per word."""
        return {"word": self.words, "sensitivity": self.per_word}


def substitution_sensitivity(
    model: Any,
    text: str,
    alternatives: Alternatives,
    seed: Seed = 0,
    *,
    draws: int = 16,
    enumerated: int = 4096,
    longest_block: int = 3,
    most_words: int = 60,
) -> Substitution:
    """Average, block and random sensitivity of a model on a text; black boxes too.

    Where alternatives are drawn, as, rs and every s_P are unbiased. The blocks are chosen on one
    half of the draws and measured on the other, and the reverse: on average bs is then at most that
    of the best blocks of neighbouring words, and so at most bs over all blocks. Where every text
    that the alternatives can make is tried (up to about ten words with two alternatives each), bs
    covers all blocks and is exact; `every_block` says whether it does. The cost is at most `draws`
    encodings for each of about n * longest_block blocks, or `enumerated`.

    Args:
        model: whatever `as_model` takes.
        text: of one word or more.
        alternatives: a function from a word to those that may replace it, such as
            `SameKind(texts)`, the words of the same kind in these texts. Each counts once.
        seed: of the draws.
        draws: random words for each block, at least four; if a block has no more alternatives than
            that, all are tried once.
        enumerated: if the alternatives of a text of at most ten words make no more texts than this,
            all are tried, and blocks may be any words.
        longest_block: the most neighbouring words in a block otherwise.
        most_words: a longer text keeps its first words.

    Raises:
        InputError: no such model, a text without a word, or a word without alternatives.

    >>> def parity(texts):
    ...     return [[(-1.0) ** text.split().count("one")] for text in texts]
    >>> result = substitution_sensitivity(parity, "one zero one", lambda word: ("zero", "one"))
    >>> result.average, result.block
    (3.0, 3.0)
    """
    require_kind("text", text, str, remedy="give one text at a time")
    require_count("draws", draws, least=4)
    require_count("enumerated", enumerated, least=0)
    require_count("longest_block", longest_block)
    require_count("most_words", most_words)
    spans = word_spans(text)[:most_words]
    if not spans:
        raise InputError(
            f"{argument('text')} (={text[:40]!r}) holds no word; give a text of one word or more"
        )
    text = text[: spans[-1][1]]
    words = tuple(text[start:stop] for start, stop in spans)
    offered = [tuple(dict.fromkeys(alternatives(word))) for word in words]
    if () in offered:
        word = words[offered.index(())]
        raise InputError(f"`alternatives` gives none for {word!r}; give it one word at least")
    pairs = zip(words, offered, strict=True)
    combinations = math.prod(len({word, *others}) for word, others in pairs)
    every_block = len(words) <= _MOST_ENUMERATED and combinations <= enumerated

    # Of each block the numbers of the texts that the model reads; the text itself has number 0.
    number_of, numbers, drawn = {text: 0}, {}, set[Block]()
    chance = random.Random(derive_seed(seed, "substitution", text))
    for block in _blocks(len(words), None if every_block else longest_block):
        choices = [offered[place] for place in block]
        replacements = itertools.product(*choices)
        if not every_block and math.prod(map(len, choices)) > draws:
            replacements = [tuple(map(chance.choice, choices)) for _ in range(draws)]
            drawn.add(block)
        numbers[block] = []
        for new_words in replacements:
            variant = text
            for place, word in reversed([*zip(block, new_words, strict=True)]):
                variant = with_word(variant, spans[place], word)
            numbers[block].append(number_of.setdefault(variant, len(number_of)))
    rows = as_model(model).encode(list(number_of))
    scaled = rows / rows[0].norm()

    def variance(block: Block, half: slice = slice(None)) -> float:
        """s_P of the block, of words that were drawn from a half of the draws."""
        correction = int(block in drawn)
        some = scaled[numbers[block][half] if correction else numbers[block]]
        return float(some.var(dim=0, correction=correction).sum())

    # Each half of the draws chooses the blocks for the other.
    first, second = (
        {block: variance(block, slice(start, None, 2)) for block in numbers} for start in (0, 1)
    )
    blocks, others = (_best_blocks(len(words), half, every_block) for half in (second, first))
    sums = [first[block] for block in blocks] + [second[block] for block in others]
    per_word = tuple(variance((place,)) for place in range(len(words)))
    changes = (scaled - scaled[0]).norm(dim=1).tolist()
    changed = [[text for text in numbers[place,] if text] for place in range(len(words))]
    means = [fmean(changes[text] for text in texts) for texts in changed if texts]
    return Substitution(
        words=words,
        per_word=per_word,
        average=math.fsum(per_word),
        block=math.fsum(sums) / 2,
        random=fmean(means or [0.0]),
        blocks=blocks,
        every_block=every_block,
        exact=not drawn,
        evaluations=len(rows),
        seed=int(seed),
    )


def _blocks(count: int, longest: int | None) -> list[Block]:
    """All sets of the words, or with `longest` those of this many neighbours at most."""
    sizes = range(1, min(longest or count, count) + 1)
    if longest is None:
        return [block for size in sizes for block in itertools.combinations(range(count), size)]
    return [
        tuple(range(first, first + size)) for size in sizes for first in range(count - size + 1)
    ]


def _best_blocks(
    count: int, variances: Mapping[Block, float], every_block: bool
) -> tuple[Block, ...]:
    """The disjoint blocks with the largest sum of variances.

    By dynamic programming over sets of words, as bits of a number: the best blocks of a set are one
    that ends with its last word and the best of the others. Where blocks are of neighbours, the
    sets are the text's beginnings.
    """
    ending = defaultdict(list)
    for block in variances:
        ending[block[-1]].append((sum(1 << place for place in block), block))
    every, beginnings = range(1, 1 << count), [(2 << last) - 1 for last in range(count)]
    best: dict[int, tuple[float, tuple[Block, ...]]] = {0: (0.0, ())}
    for words in every if every_block else beginnings:
        best[words] = max(
            (best[words ^ bits][0] + variances[block], (*best[words ^ bits][1], block))
            for bits, block in ending[words.bit_length() - 1]
            if bits & words == bits
        )
    return best[(1 << count) - 1][1]
