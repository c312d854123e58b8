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
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import fmean
from typing import Any

from jaxtyping import Float
from torch import Tensor

from wordsens.display.numbers import Estimate
from wordsens.errors import InputError, require_count
from wordsens.intervals import mean_estimate
from wordsens.models.function import require_texts
from wordsens.models.load import as_model
from wordsens.models.model import Model
from wordsens.results import Result
from wordsens.search.objective import Progress
from wordsens.seeds import Seed, derive_seed
from wordsens.text.english import Alternatives, SameKind
from wordsens.text.whole_words import Span, with_word, word_spans

# Parts of a text that a profile tells apart.
FIFTHS = 5

# Words of a text all of whose 2^n - 1 blocks are tried; they are combined in 4^n / 3 steps.
_MOST_ENUMERATED = 10

Label = Callable[[Float[Tensor, "m d"]], Sequence[Any]]

# The places of a block's words, in order; and what is put there: several times a word for each, and
# whether these are all combinations of the words offered.
Block = tuple[int, ...]
Drawn = tuple[list[tuple[str, ...]], bool]


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
        words = tuple(text[start:stop] for start, stop in spans)
        offered = [tuple(offer(word)) for word in words]
        if () in offered:
            word = words[offered.index(())]
            raise InputError(f"`alternatives` gives none for {word!r}; give it one word at least")
        pairs = zip(words, offered, strict=True)
        combinations = math.prod(len({word, *others}) for word, others in pairs)
        every_block = len(words) <= _MOST_ENUMERATED and combinations <= enumerated
        most, longest = (combinations, None) if every_block else (draws, longest_block)
        chance = random.Random(derive_seed(seed, "substitution", text))
        drawn = {
            block: _drawn([offered[place] for place in block], most, chance)
            for block in _blocks(len(words), longest)
        }
        text = text[: spans[-1][1]]
        measured.append(_text_substitution(text, spans, drawn, every_block, black_box, label))
        progress(done, len(listed))
    over_texts = partial(mean_estimate, over="texts")
    flips = [text.flips for text in measured if text.flips is not None]
    in_fifths = defaultdict(list)
    for text in measured:
        of_fifth = defaultdict(list)
        for place, value in enumerate(text.per_word):
            of_fifth[place * FIFTHS // len(text.words)].append(value)
        for fifth, values in of_fifth.items():
            in_fifths[fifth].append(fmean(values))
    return SubstitutionSensitivity(
        average=over_texts([text.average for text in measured]),
        block=over_texts([text.block for text in measured]),
        every_block=all(text.every_block for text in measured),
        random=over_texts([text.random for text in measured]),
        flips=over_texts(flips, (0.0, 1.0)) if flips else None,
        profile=tuple(
            over_texts(in_fifths[fifth]) if fifth in in_fifths else None for fifth in range(FIFTHS)
        ),
        texts=tuple(measured),
        seed=int(seed),
    )


def _blocks(count: int, longest: int | None) -> Iterator[Block]:
    """All sets of the words, or with `longest` those of so many neighbours at most."""
    for size in range(1, min(longest or count, count) + 1):
        neighbours = zip(*(range(first, count) for first in range(size)), strict=False)
        yield from neighbours if longest else itertools.combinations(range(count), size)


def _drawn(offered: Sequence[tuple[str, ...]], most: int, chance: random.Random) -> Drawn:
    """All combinations of the words offered, or where there are more than `most`, this many."""
    if math.prod(map(len, offered)) <= most:
        return list(itertools.product(*offered)), True
    return [tuple(map(chance.choice, offered)) for _ in range(most)], False


def _text_substitution(
    text: str,
    spans: Sequence[Span],
    drawn: dict[Block, Drawn],
    every_block: bool,
    model: Model,
    label: Label | None,
) -> TextSubstitution:
    # The texts that the model reads, each once, by number: the unchanged one has number 0.
    number, numbers = {text: 0}, {}
    for block, (replacements, _) in drawn.items():
        numbers[block] = []
        for new in replacements:
            variant = text
            for place, word in reversed([*zip(block, new, strict=True)]):
                variant = with_word(variant, spans[place], word)
            numbers[block].append(number.setdefault(variant, len(number)))
    rows = model.encode(list(number))
    scaled = rows / rows[0].norm()
    words = range(len(spans))

    def variance(block: Block, draws: slice = slice(None)) -> float:
        """s_P of the block, from these of its draws where they are not all combinations."""
        exact = drawn[block][1]
        some = scaled[numbers[block][slice(None) if exact else draws]]
        return float((some - some.mean(dim=0)).square().sum()) / (len(some) - (not exact))

    def mean_over_words(changes: Sequence[float]) -> float:
        """The mean over words of the mean over the draws that are other words."""
        others = [[number for number in numbers[word,] if number] for word in words]
        means = [fmean(changes[number] for number in other) for other in others if other]
        return fmean(means or [0.0])

    # Each half of the draws chooses the blocks for the other.
    first, second = (
        {block: variance(block, slice(half, None, 2)) for block in drawn} for half in (0, 1)
    )
    chosen = [_best_blocks(len(words), half, every_block) for half in (first, second)]
    sums = [second[block] for block in chosen[0]] + [first[block] for block in chosen[1]]
    per_word = tuple(variance((word,)) for word in words)
    labels = None if label is None else list(label(rows))
    changed = labels and [float(other != labels[0]) for other in labels]
    return TextSubstitution(
        words=tuple(text[start:stop] for start, stop in spans),
        per_word=per_word,
        average=math.fsum(per_word),
        block=math.fsum(sums) / 2,
        random=mean_over_words((scaled - scaled[0]).norm(dim=1).tolist()),
        blocks=chosen[1],
        every_block=every_block,
        flips=None if changed is None else mean_over_words(changed),
        exact=all(exact for _, exact in drawn.values()),
        encoded=len(rows),
    )


def _best_blocks(count: int, variances: dict[Block, float], every_block: bool) -> tuple[Block, ...]:
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
