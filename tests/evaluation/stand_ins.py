"""Small models for checks: functions from a list of texts to an array, each blind or not in a known
way."""

import re
import zlib

import numpy as np

import wordsens as ws

DIMENSION = 4096
"""Of the counts of words; large enough that hardly two words share a place."""

NEGATIONS = re.compile(r"\b(not|never|no|without|cannot)\b|n't\b", re.IGNORECASE)


def bag_of_words(texts):
    """The counts of the lower-cased words: blind to their order."""
    vectors = np.zeros((len(texts), DIMENSION))
    for at, text in enumerate(texts):
        for word in re.findall(r"[^\W_]+", text.lower()):
            vectors[at, zlib.crc32(word.encode()) % DIMENSION] += 1
    return vectors


def deaf_to_negations(texts):
    """A bag of words that deletes every negation first."""
    return bag_of_words([NEGATIONS.sub("", text) for text in texts])


class Oracle:
    """A model that knows the pairs: opposites are orthogonal, and texts that mean the same are
    equal."""

    def __init__(self, pairs):
        self.place = {}
        for at, pair in enumerate(pairs):
            self.place[pair.first] = 2 * at
            self.place[pair.second] = 2 * at + (not pair.same)

    def encode(self, texts):
        vectors = np.full((len(texts), 2 * len(self.place) + 1), 1e-3)
        vectors[range(len(texts)), [self.place.get(text, -1) for text in texts]] += 1
        return vectors


SHORT = [pair for pair in ws.read_pairs() if pair.length == "question"]


def few_pairs(kinds=("negation", "antonym"), opposites=12, paraphrases=30, synonyms=5, near=20):
    """Some of the shipped pairs: short, and quickly encoded."""
    wanted = dict.fromkeys(kinds, opposites) | {"paraphrase": paraphrases, "synonym": synonyms}
    some = [
        pair
        for kind, most in wanted.items()
        for pair in [one for one in SHORT if one.kind == kind][:most]
    ]
    return [*some, *ws.near_duplicates()[: 12 * near : 12]]
