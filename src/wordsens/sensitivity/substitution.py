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
`flips`. The profile is s_{i}(x) by the place of i.

None of them is a sup: S allows any vector within a ball, for the farthest word; these are means
over real words.
"""  # noqa: E501

import itertools
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from jaxtyping import Float
from torch import Tensor

from wordsens.display.numbers import Estimate
from wordsens.errors import InputError, require_count
from wordsens.intervals import mean_estimate
from wordsens.models.black_box import Model
from wordsens.models.function import require_texts
from wordsens.models.load import as_model
from wordsens.results import Result
from wordsens.search.objective import Progress
from wordsens.seeds import Seed, derive_seed
from wordsens.text.english import Alternatives, SameKind
from wordsens.text.whole_words import with_word, word_spans

_over_texts = partial(mean_estimate, over="texts")

FIFTHS = 5
"""Parts of a text that a profile tells apart."""

Label = Callable[[Float[Tensor, "m d"]], Sequence[Any]]


@dataclass(frozen=True, eq=False, repr=False)
class TextSubstitution(Result):
    """The numbers of one text.

    Attributes:
        words: its words.
        per_word: (n,), s_{i}; their sum is `average`.
        average, block, random: as(x); bs(x); rs(x).
        blocks: the places of the words of each block that `block` is the sum over.
        every_block: whether blocks may be any words, so that `block` is bs(x), exactly. If not,
            they are of a few neighbouring words, and `block` is an estimate that is on average no
            more than bs(x), though one text's may be.
        flips: the share of random words that change the label; None without one.
        exact: whether every alternative was tried; if not, alternatives were drawn.
        encoded: texts that the model was given.
    """

    words: tuple[str, ...]
    per_word: tuple[float, ...]
    average: float
    block: float
    random: float
    blocks: tuple[tuple[int, ...], ...]
    every_block: bool
    flips: float | None
    exact: bool
    encoded: int


@dataclass(frozen=True, eq=False, repr=False)
class SubstitutionSensitivity(Result):
    """Means over texts, each with a 95 % interval over them.

    Attributes:
        average, block, random, flips: the means of the texts' numbers; `flips` is None without a
            label.
        every_block: whether `block` is over all blocks in every text; if not, it is an estimate,
            on average no more than the mean of bs.
        profile: the mean of s_{i} in each fifth of the texts, first to last; None where no text has
            a word.
        texts: one entry a text.
        seed: of the draws.
    """

    average: Estimate
    block: Estimate
    every_block: bool
    random: Estimate
    flips: Estimate | None
    profile: tuple[Estimate | None, ...]
    texts: tuple[TextSubstitution, ...]
    seed: int

    @property
    def headline(self) -> str:
        """Both means."""
        return (
            f"Words exchanged at random: average sensitivity {self.average}, block sensitivity "
            f"{self.block}"
        )

    def columns(self) -> dict[str, Any]:
        """One row per text."""
        names = ("average", "block", "random", "flips", "exact", "encoded")
        return {name: [getattr(text, name) for text in self.texts] for name in names}


def substitution_sensitivity(
    model: Any,
    texts: Sequence[str],
    alternatives: Alternatives | None = None,
    seed: Seed = 0,
    *,
    draws: int = 16,
    enumerated: int = 4096,
    longest_block: int = 3,
    most_words: int = 60,
    label: Label | None = None,
    progress: Progress = lambda done, total: None,
) -> SubstitutionSensitivity:
    """Average, block and random sensitivity of a model on texts, and its profile over words; black
    boxes too.

    Where alternatives are drawn, as, rs and every s_P are unbiased; the blocks are chosen on one
    half of the draws and measured on the other, both ways, so that bs is on average no more than
    the best blocks of neighbouring words have, and so no more than bs over all blocks. Where every
    text that the alternatives can make is tried, up to about ten words of two alternatives each, bs
    is over all blocks, and exact; `every_block` says which. A text costs at most `draws` encodings
    for each of about n * longest_block blocks, or `enumerated`.

    Args:
        model: whatever `as_model` takes.
        texts: of one word or more.
        alternatives: a function from a word to those that may stand in its place; None: the words
            of the same kind (`SameKind`) in all of the texts.
        seed: of the draws.
        draws: random words a block, four at least; where it has no more alternatives than that, all
            are tried, once.
        enumerated: where the alternatives of a text of ten words at most make no more texts than
            this, all are tried, and blocks may be any words.
        longest_block: neighbouring words that a block may have elsewhere.
        most_words: a longer text keeps its first words.
        label: a function from vectors (m, d) to m labels, for `flips`.
        progress: called with (done, total) in texts.

    Raises:
        InputError: no such model, a text without a word, or a word without alternatives.

    >>> def parity(texts):
    ...     return [[(-1.0) ** text.split().count("one")] for text in texts]
    >>> means = substitution_sensitivity(parity, ["one zero one"], lambda word: ("zero", "one"))
    >>> means.average.value, means.block.value
    (3.0, 3.0)
    """
    require_count("draws", draws, least=4)
    require_count("enumerated", enumerated, least=0)
    require_count("longest_block", longest_block)
    require_count("most_words", most_words)
    listed = require_texts(texts)
    black_box = as_model(model)
    offer = alternatives or SameKind(listed)
    measured = []
    for done, text in enumerate(listed, start=1):
        spans = word_spans(text)[:most_words]
        if not spans:
            raise InputError(f"`texts` has {text[:40]!r}, which holds no word; leave it out")
        chance = random.Random(derive_seed(seed, "substitution", text))
        substituted = _SubstitutedText(text, spans, offer, draws, enumerated, longest_block, chance)
        measured.append(substituted.measured(black_box, label))
        progress(done, len(listed))
    return SubstitutionSensitivity(
        average=_over_texts([text.average for text in measured]),
        block=_over_texts([text.block for text in measured]),
        every_block=all(text.every_block for text in measured),
        random=_over_texts([text.random for text in measured]),
        flips=None
        if label is None
        else _over_texts([text.flips or 0.0 for text in measured], (0.0, 1.0)),
        profile=_profile(measured),
        texts=tuple(measured),
        seed=int(seed),
    )


def _profile(texts: Sequence[TextSubstitution]) -> tuple[Estimate | None, ...]:
    parts: list[list[float]] = [[] for _ in range(FIFTHS)]
    for text in texts:
        fifths = np.arange(len(text.words)) * FIFTHS // len(text.words)
        for part, values in enumerate(parts):
            if (fifths == part).any():
                values.append(float(np.array(text.per_word)[fifths == part].mean()))
    return tuple(_over_texts(values) if values else None for values in parts)


_MOST_ENUMERATED = 10
"""Words of a text all of whose 2^n - 1 blocks are tried; they are combined in 4^n / 3 steps."""

Block = tuple[int, ...]
"""The places of its words, in order."""


class _SubstitutedText:
    """One text with random words in the places of its blocks."""

    def __init__(
        self,
        text: str,
        spans: Sequence[tuple[int, int]],
        alternatives: Alternatives,
        draws: int,
        enumerated: int,
        longest_block: int,
        chance: random.Random,
    ):
        self._text, self._spans, count = text[: spans[-1][1]], spans, len(spans)
        self._words = tuple(text[start:stop] for start, stop in spans)
        self._offered = [tuple(alternatives(word)) for word in self._words]
        for word, offered in zip(self._words, self._offered, strict=True):
            if not offered:
                raise InputError(
                    f"`alternatives` gives none for {word!r}; give it one word at least"
                )
        texts = math.prod(
            len({word, *offered}) for word, offered in zip(self._words, self._offered, strict=True)
        )
        self._every_block = count <= _MOST_ENUMERATED and texts <= enumerated
        longest = count if self._every_block else min(longest_block, count)
        self._blocks: list[Block] = [
            block
            for length in range(1, longest + 1)
            for block in (
                itertools.combinations(range(count), length)
                if self._every_block
                else (tuple(range(first, first + length)) for first in range(count - length + 1))
            )
        ]
        self._drawn = {block: self._replacements(block, draws, chance) for block in self._blocks}

    def measured(self, model: Model, label: Label | None) -> TextSubstitution:
        texts = {
            block: [self._with(block, words) for words in drawn]
            for block, (drawn, _) in self._drawn.items()
        }
        ordered = sorted(
            {self._text, *itertools.chain.from_iterable(texts.values())},
            key=lambda text: (len(text), text),
        )
        rows = model.encode(ordered)
        place = {text: index for index, text in enumerate(ordered)}
        unchanged = rows[place[self._text]]
        rows_of = {block: [place[text] for text in variants] for block, variants in texts.items()}
        scaled = rows / unchanged.norm()
        per_word = [
            self._variance(scaled[rows_of[word,]], (word,)) for word in range(len(self._words))
        ]
        halves = [
            {
                block: self._variance(scaled[places], block, half)
                for block, places in rows_of.items()
            }
            for half in (0, 1)
        ]
        block, blocks = self._best_blocks(halves)
        labels = None if label is None else list(label(rows))
        moved, flipped = [], []
        for word in range(len(self._words)):
            drawn, changed = (
                self._drawn[word,][0],
                scaled[rows_of[word,]] - unchanged / unchanged.norm(),
            )
            others = [index for index, (new,) in enumerate(drawn) if new != self._words[word]]
            if others:
                moved.append(float(changed[others].norm(dim=1).mean()))
            if others and labels is not None:
                variants = texts[word,]
                flips = [
                    labels[place[variants[index]]] != labels[place[self._text]] for index in others
                ]
                flipped.append(sum(flips) / len(flips))
        return TextSubstitution(
            words=self._words,
            per_word=tuple(per_word),
            average=math.fsum(per_word),
            block=block,
            random=math.fsum(moved) / max(len(moved), 1),
            blocks=blocks,
            every_block=self._every_block,
            flips=None if labels is None else math.fsum(flipped) / max(len(flipped), 1),
            exact=all(whole for _, whole in self._drawn.values()),
            encoded=len(ordered),
        )

    def _replacements(
        self, block: Block, draws: int, chance: random.Random
    ) -> tuple[list[tuple[str, ...]], bool]:
        """Words for the block's places: all combinations, or as many as there are draws; and
        whether they are all."""
        offered = [self._offered[place] for place in block]
        if self._every_block or math.prod(map(len, offered)) <= draws:
            return list(itertools.product(*offered)), True
        return [tuple(chance.choice(words) for words in offered) for _ in range(draws)], False

    def _with(self, block: Block, words: Sequence[str]) -> str:
        text = self._text
        for place, word in reversed(list(zip(block, words, strict=True))):
            text = with_word(text, self._spans[place], word)
        return text

    def _variance(
        self, rows: Float[Tensor, "draws d"], block: Block, half: int | None = None
    ) -> float:
        """s_P of a block; from half of the draws where not every combination is there."""
        whole = self._drawn[block][1]
        if half is not None and not whole:
            rows = rows[half::2]
        return float((rows - rows.mean(dim=0)).square().sum()) / (len(rows) - (not whole))

    def _best_blocks(self, halves: Sequence[dict[Block, float]]) -> tuple[float, tuple[Block, ...]]:
        """The largest sum over disjoint blocks, each half of the draws choosing for the other; one
        half's blocks.

        By dynamic programming over sets of words, as bits of a number: the best blocks of a set are
        one that ends with its last word and the best of the others. Where blocks are of neighbours,
        the sets are the text's beginnings.
        """
        count = len(self._words)
        ending: list[list[tuple[int, Block]]] = [[] for _ in range(count)]
        for block in self._blocks:
            ending[block[-1]].append((sum(1 << place for place in block), block))
        sets = (
            range(1, 1 << count)
            if self._every_block
            else [(1 << size) - 1 for size in range(1, count + 1)]
        )
        totals, chosen = [], ()
        for choosing, measuring in (halves, halves[::-1]):
            most, last = {0: 0.0}, dict[int, tuple[int, Block]]()
            for words in sets:
                most[words], bits, block = max(
                    (most[words ^ bits] + choosing[block], bits, block)
                    for bits, block in ending[words.bit_length() - 1]
                    if bits & words == bits
                )
                last[words] = bits, block
            chosen, left = (), (1 << count) - 1
            while left:
                bits, block = last[left]
                chosen, left = (block, *chosen), left ^ bits
            totals.append(math.fsum(measuring[block] for block in chosen))
        return math.fsum(totals) / 2, chosen
