"""Pairs and plain sentences to train on, and those that are kept apart for the judgement."""

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from wordsens.errors import InputError, require_choice
from wordsens.evaluation.near_misses.make import SENTENCE_END
from wordsens.seeds import Seed, derive_seed
from wordsens.text.document import Document
from wordsens.text.pairs import Pair
from wordsens.training.adapter.flips import KINDS

DOMAIN = "domain"
"""The column of pairs that says what they are about."""

_SHARE = 3
"""Every third domain is kept apart; of pairs without domains, every third text."""

_LENGTHS = range(4, 36)
"""Words of a plain sentence: shorter ones hold no change, longer ones are hardly ever one sentence."""

MOST_APART = 1500
"""Plain sentences among which a paraphrase has to be found."""


@dataclass(frozen=True)
class Split:
    """The pairs of a tuning.

    Attributes:
        train: what is trained on.
        seen: all pairs of the domains that are trained on; their kinds may include some that are not.
        unseen: all pairs of the other domains.
        domains: the latter's names; of pairs without domains, empty.
        kinds: those that are not trained on.
    """

    train: tuple[Pair, ...]
    seen: tuple[Pair, ...]
    unseen: tuple[Pair, ...]
    domains: tuple[str, ...]
    kinds: tuple[str, ...]


def split_pairs(
    pairs: Sequence[Pair], domains: Sequence[str] | None, kinds: Sequence[str] | None, *, seed: Seed
) -> Split:
    """The pairs, whole domains of them kept apart.

    Args:
        pairs: opposites and paraphrases.
        domains: those that are kept apart; None for every third, drawn at random; without the column, every third text.
        kinds: kinds of opposites that are not trained on; None for those that no rule can make.
        seed: of the draw.

    Raises:
        InputError: no such domain or kind, or a side on which opposites or paraphrases are missing.
    """
    offered = sorted({pair.kind for pair in pairs if not pair.same})
    for kind in kinds or ():
        require_choice("held_out_kinds", kind, offered)
    untrained = tuple(kinds) if kinds is not None else tuple(kind for kind in offered if kind not in KINDS)
    if kinds is None and len(untrained) == len(offered):
        untrained = ()
    named = sorted({str(pair.columns[DOMAIN]) for pair in pairs if DOMAIN in pair.columns})
    for domain in domains or ():
        require_choice("held_out", domain, named)
    chance = random.Random(derive_seed(seed, "held out"))
    apart = tuple(domains or sorted(chance.sample(named, max(1, len(named) // _SHARE))) if len(named) > 1 else ())
    firsts = sorted({pair.first for pair in pairs})
    drawn = set() if apart else set(chance.sample(firsts, len(firsts) // _SHARE))
    away = [str(pair.columns.get(DOMAIN)) in apart or pair.first in drawn for pair in pairs]
    unseen = tuple(pair for pair, each in zip(pairs, away, strict=True) if each)
    texts = {text for pair in unseen for text in (pair.first, pair.second)}
    seen = tuple(
        pair for pair, each in zip(pairs, away, strict=True) if not each and not texts & {pair.first, pair.second}
    )
    for side, name in ((seen, "to train on"), (unseen, "that are kept apart")):
        if {pair.same for pair in side} != {True, False}:
            raise InputError(
                f"`pairs` leaves {len(side)} pairs {name}, and there must be opposites and paraphrases among them: "
                "give more pairs, or other domains in held_out"
            )
    train = tuple(pair for pair in seen if pair.same or pair.kind not in untrained)
    return Split(train, seen, unseen, apart, untrained)


def split_sentences(
    texts: Iterable[str | Document], *, seed: Seed, apart: int = MOST_APART
) -> tuple[list[str], list[str]]:
    """The sentences of the texts, to train on, and at most `apart` of half of the texts that are kept apart."""
    read = [text.text if isinstance(text, Document) else text for text in texts]
    random.Random(derive_seed(seed, "texts")).shuffle(read)
    sides = [sentences_of(read[0::2]), sentences_of(read[1::2])]
    away = [sentence for sentence in sides[1] if sentence not in set(sides[0])]
    chance = random.Random(derive_seed(seed, "distractors"))
    if not sides[0] or not away:
        raise InputError(
            f"`texts` holds {len(read)} texts and too few sentences of {_LENGTHS.start} to {_LENGTHS.stop - 1} words "
            "to train on and to keep apart; give more texts"
        )
    return sides[0], chance.sample(away, min(apart, len(away)))


def sentences_of(texts: Iterable[str]) -> list[str]:
    """Their sentences of a usual length, each once."""
    found = (" ".join(sentence.split()) for text in texts for sentence in SENTENCE_END.split(text))
    return list(dict.fromkeys(sentence for sentence in found if len(sentence.split()) in _LENGTHS))
