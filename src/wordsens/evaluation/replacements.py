"""Words that a writer could have meant in the place of another: opposites, the model's nearest words, words alike."""

import random
from collections.abc import Iterable, Sequence

import torch
from torch.nn.functional import normalize

from wordsens.evaluation.word_lists import ANTONYMS, QUANTITIES, TIMES
from wordsens.maps.transformer.features import TransformerFeatures
from wordsens.maps.transformer.vocabulary import whole_word_tokens
from wordsens.seeds import Seed, derive_seed
from wordsens.text.alternatives import SameKind
from wordsens.text.english import kind_of

MOST = 24
"""Words that are offered for one: a batch of most models."""

_ENDINGS = ("ing", "ed", "ly", "est", "ness", "ion", "s")
"""Of content words: they tell verb forms, adverbs and plurals apart well enough for a sentence to stay one."""

_LOOKED_AT = 200
"""Nearest tokens of the vocabulary among which those of a word's kind are taken."""


class Replacements:
    """From a word to at most MOST words that may stand in its place: opposites by list first, then random words of the
    texts, of its kind (negation, function word, ...) and ending, capitalised where it is.

    >>> offered = Replacements(["They disable the sound, enabled once; a walked mile"])
    >>> offered("enable")[0], "walked" in offered("enable"), "walked" in offered("enabled")
    ('disable', False, True)
    """

    def __init__(self, texts: Iterable[str], *, seed: Seed = 0):
        self._alike, self._seed = SameKind(texts), seed

    def __call__(self, word: str) -> tuple[str, ...]:
        named = self.opposites(word)
        others = [other for other in self._alike(word) if fits(word, other) and other not in named]
        chance = random.Random(derive_seed(self._seed, "replacements", word))
        return (*named, *chance.sample(others, min(MOST - len(named), len(others))))

    def opposites(self, word: str) -> list[str]:
        """Those of the lists."""
        listed = [words[word.lower()] for words in (ANTONYMS, QUANTITIES, TIMES) if word.lower() in words]
        return [_cased(word, other) for other in dict.fromkeys(listed) if " " not in other]


@torch.no_grad()
def neighbours(phi: TransformerFeatures | None, words: Sequence[str]) -> dict[str, list[str]]:
    """For each word the words of the model's vocabulary of its kind and ending whose token vectors are nearest.

    None of a model without a map.
    """
    if phi is None or phi.reader is None:
        return {}
    embeddings = phi.stack.base.get_input_embeddings() if hasattr(phi.stack.base, "get_input_embeddings") else None
    if embeddings is None:
        return {}
    table = embeddings.weight.detach().float()
    tokens = whole_word_tokens(phi.reader.tokenizer, rows=len(table))
    spelled = list(tokens.values())
    units = normalize(table[list(tokens)], dim=1)
    near: dict[str, list[str]] = {}
    for word in dict.fromkeys(words):
        ids = phi.reader.tokenizer(f" {word}" if word[0].isalnum() else word, add_special_tokens=False)["input_ids"]
        if not ids:
            continue
        order = (units @ normalize(table[ids].mean(dim=0), dim=0)).topk(min(_LOOKED_AT, len(units))).indices.tolist()
        fitting = dict.fromkeys(_cased(word, spelled[at].lower()) for at in order if fits(word, spelled[at]))
        near[word] = [other for other in fitting if not _same_stem(word.lower(), other.lower())][:MOST]
    return near


def fits(word: str, other: str) -> bool:
    """True for another word of the same kind and ending."""
    word, other = word.lower(), other.lower()
    return word != other and kind_of(word) == kind_of(other) and _ending(word) == _ending(other)


def _same_stem(word: str, other: str) -> bool:
    short, long = sorted((word, other), key=len)
    return long.startswith(short) and len(short) > 2


def _ending(word: str) -> str:
    if kind_of(word) != "content word":
        return ""
    return next((ending for ending in _ENDINGS if word.endswith(ending)), "")


def _cased(pattern: str, word: str) -> str:
    return word[0].upper() + word[1:] if pattern[0].isupper() else word
