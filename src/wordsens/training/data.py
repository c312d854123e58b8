"""The data of `tune`: what is held out, and training triples: a text, the same in other words, and
a text that one change turned around."""

import random
from collections.abc import Iterable, Sequence

from wordsens.errors import InputError, argument
from wordsens.evaluation.near_misses import RULES, SENTENCE_END, near_misses
from wordsens.evaluation.word_lists import NEGATED, exchange, groups, synonyms
from wordsens.seeds import Seed, derive_seed
from wordsens.text.document import Document
from wordsens.text.pairs import LENGTHS, Pair

# A text, one of the same meaning, and one of another meaning.
Triple = tuple[str, str, str]

# Every third domain is held out; where pairs have no domains, every third text.
_SHARE = 3

# The most near misses of a kind.
_MOST_NEAR_MISSES = 300

# The most sentences whose embeddings are held where they were, and the most that are searched.
_MOST_STEADY, _MOST_SEARCHED = 600, 1000

# Words of a sentence: a shorter one has no room for a change, a longer one costs time.
_SENTENCE = range(4, 21)

# Words and their other spelling.
_SPELLED = {
    "i'm": "i am",
    "it's": "it is",
    "that's": "that is",
    "there's": "there is",
    "i've": "i have",
    "i'll": "i will",
    "we're": "we are",
    "they're": "they are",
    "you're": "you are",
    "we've": "we have",
    "you'll": "you will",
    **{short: f"{verb} not" for short, verb in NEGATED.items() if short != "cannot"},
    "two": "2",
    "three": "3",
    "four": "4",
    "five": "5",
    "six": "6",
    "seven": "7",
    "eight": "8",
    "nine": "9",
    "ten": "10",
    "eleven": "11",
    "twelve": "12",
}


def split_pairs(
    pairs: Sequence[Pair], *, seed: Seed
) -> tuple[list[Pair], list[Pair], tuple[str, ...]]:
    """The pairs that are trained on, those that are held out, and the domains of the latter.

    Every third domain, or where a pair has no domain every third text, is held out.

    Raises:
        InputError: a part lacks opposites or near-duplicates.
    """
    domains = {pair.columns.get("domain") for pair in pairs}
    by_domain = None not in domains and len(domains) > 1
    keys = [str(pair.columns["domain"]) if by_domain else pair.first for pair in pairs]
    names = sorted(set(keys))
    chance = random.Random(derive_seed(seed, "held out"))
    apart = set(chance.sample(names, max(1, len(names) // _SHARE)))
    held_out = [pair for pair, key in zip(pairs, keys, strict=True) if key in apart]
    texts = {text for pair in held_out for text in pair.texts}
    train = [pair for pair in pairs if texts.isdisjoint(pair.texts)]
    for part, use in ((train, "to train on"), (held_out, "to judge by")):
        if not any(pair.near for pair in part) or all(pair.same for pair in part):
            raise InputError(
                f"{argument('pairs')} leaves {len(part)} of {len(pairs)} pairs {use}, and each "
                "part needs opposites and near-duplicates: give more pairs, or none for the "
                "package's own"
            )
    return train, held_out, tuple(sorted(apart)) if by_domain else ()


def split_texts(texts: Iterable[str | Document], *, seed: Seed) -> tuple[list[str], list[str]]:
    """Sentences of one half of the texts to train on, and at most 1000 of the other half among
    which paraphrases are searched.

    Raises:
        InputError: one half of the texts has no sentence of 4 to 20 words.
    """
    listed = [text.text if isinstance(text, Document) else text for text in texts]
    random.Random(derive_seed(seed, "texts")).shuffle(listed)
    train = _sentences(listed[0::2])
    searched = sorted(set(_sentences(listed[1::2])) - set(train))
    if not train or not searched:
        raise InputError(
            f"{argument('texts')} (={len(listed)} texts) has too few sentences of 4 to 20 words to "
            "train on one half and search the other; give more texts, or none for the package's "
            "reviews"
        )
    chance = random.Random(derive_seed(seed, "searched"))
    return train, chance.sample(searched, min(_MOST_SEARCHED, len(searched)))


def _sentences(texts: Iterable[str]) -> list[str]:
    """The sentences of 4 to 20 words, each once."""
    parts = (part.split() for text in texts for part in SENTENCE_END.split(text))
    return list(dict.fromkeys(" ".join(words) for words in parts if len(words) in _SENTENCE))


def training_data(
    pairs: Sequence[Pair], sentences: Sequence[str], *, seed: Seed
) -> tuple[list[Triple], list[str], list[str]]:
    """Triples, texts whose embeddings should stay where they are, and what a reader should know.

    Opposites give triples in both directions; near-duplicates that a rule turns into an opposite
    give one in each direction; near misses of the sentences give one. Pairs with a text of more
    than 50 words are left out where there are shorter ones: they take most of the time.
    """
    chance = random.Random(derive_seed(seed, "triples"))
    opposites, notes = [], []
    try:
        opposites = near_misses(sentences, most=_MOST_NEAR_MISSES, seed=seed)
    except InputError as error:
        notes.append(f"the opposites come from the pairs alone: {error}")
    short = [pair for pair in pairs if pair.length == LENGTHS[0]] or pairs
    triples: list[Triple] = []
    for pair in short:
        for first, second in ((pair.first, pair.second), (pair.second, pair.first)):
            if pair.near:
                made = (rule(first) for rule in RULES.values())
                triples += [(first, second, other) for other in made if other]
            elif not pair.same:
                triples.append((first, _reword(first, chance), second))
    for pair in opposites:
        first, second = chance.sample((pair.first, pair.second), 2)
        triples.append((first, _reword(first, chance), second))
    distinct = dict.fromkeys(triple for triple in triples if triple[2] not in triple[:2])
    same = [text for pair in short if pair.same for text in (pair.first, pair.second)]
    steady = chance.sample(sentences, min(_MOST_STEADY, len(sentences)))
    return list(distinct), [*steady, *same], notes


def _reword(sentence: str, chance: random.Random) -> str:
    """The sentence with at most two words replaced by a synonym or by their other spelling."""
    alike = {**synonyms(), **groups(_SPELLED.items())}
    once = exchange(sentence, alike, chance) or sentence
    return exchange(once, alike, chance) or once
