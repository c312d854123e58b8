"""Words that a writer could have meant in the place of another: opposites, the model's nearest words, words alike."""

import random
from collections.abc import Iterable
from typing import Any

from torch import Tensor
from torch.nn.functional import normalize

from wordsens.evaluation.word_lists import ANTONYMS, QUANTITIES, TIMES
from wordsens.maps.transformer.features import TransformerFeatures
from wordsens.maps.transformer.vocabulary import whole_word_tokens
from wordsens.seeds import Seed, derive_seed
from wordsens.text.english import SameKind, kind_of

MOST = 24
"""Words that are offered for one: a batch of most models."""

_ENDINGS = ("ing", "ed", "ly", "est", "ness", "ion", "s")
"""Of content words: they tell verb forms, adverbs and plurals apart well enough for a sentence to stay one."""

_LOOKED_AT = 200
"""Nearest tokens of the vocabulary among which those of a word's kind are taken."""


class Replacements:
    """From a word to at most `most` words that may stand in its place: opposites by list first, then others of its kind
    (negation, function word, ...) and ending, capitalised where it is: the nearest in the vocabulary of a model with a
    map, else random words of the texts.

    >>> offered = Replacements(["They disable the sound, enabled once; a walked mile"])
    >>> offered("enable")[0], "walked" in offered("enable"), "walked" in offered("enabled")
    ('disable', False, True)
    """

    def __init__(self, texts: Iterable[str], *, seed: Seed = 0, phi: TransformerFeatures | None = None):
        self._alike, self._seed = SameKind(texts), seed
        self._vocabulary = None if phi is None else _Vocabulary.of(phi)

    def __call__(self, word: str, most: int = MOST) -> tuple[str, ...]:
        named = self.opposites(word)
        near = [] if self._vocabulary is None else self._vocabulary.nearest(word)
        others = dict.fromkeys([*named, *(near or self._random(word, named))])
        return tuple(other for other in others if other.lower() != word.lower())[:most]

    def opposites(self, word: str) -> list[str]:
        """Those of the lists."""
        listed = [words[word.lower()] for words in (ANTONYMS, QUANTITIES, TIMES) if word.lower() in words]
        return [_cased(word, other) for other in dict.fromkeys(listed) if " " not in other]

    def _random(self, word: str, named: list[str]) -> list[str]:
        others = [other for other in self._alike(word) if fits(word, other) and other not in named]
        chance = random.Random(derive_seed(self._seed, "replacements", word))
        return chance.sample(others, min(MOST - len(named), len(others)))


class _Vocabulary:
    """The words of a model's vocabulary with their token vectors at length one."""

    def __init__(self, tokenizer: Any, table: Tensor):
        self._tokenize, self._table = tokenizer, table
        tokens = whole_word_tokens(tokenizer, rows=len(table))
        self._words, self._units = list(tokens.values()), normalize(table[list(tokens)], dim=1)

    @classmethod
    def of(cls, phi: TransformerFeatures) -> "_Vocabulary | None":
        """That of the map; None where it has no tokenizer or no table of token vectors."""
        embeddings = getattr(phi.stack.base, "get_input_embeddings", lambda: None)()
        if phi.reader is None or embeddings is None:
            return None
        return cls(phi.reader.tokenizer, embeddings.weight.detach().float())

    def nearest(self, word: str) -> list[str]:
        """The nearest words of the same kind and ending, without those that only add an ending."""
        ids = self._tokenize(f" {word}" if word[0].isalnum() else word, add_special_tokens=False)["input_ids"]
        if not ids:
            return []
        cosines = self._units @ normalize(self._table[ids].mean(dim=0), dim=0)
        order = cosines.topk(min(_LOOKED_AT, len(cosines))).indices.tolist()
        near = dict.fromkeys(_cased(word, self._words[at].lower()) for at in order if fits(word, self._words[at]))
        return [other for other in near if not _same_stem(word.lower(), other.lower())][:MOST]


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
