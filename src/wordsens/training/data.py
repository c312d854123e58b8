"""The data of `tune`: what is held out, and training triples: a text, the same in other words, and
a text that one change turned around."""

import random
import re
from collections.abc import Callable, Iterable, Sequence

from wordsens.errors import InputError
from wordsens.evaluation.near_misses import RULES, SENTENCE_END, near_misses
from wordsens.evaluation.word_lists import NEGATED, exchange, synonyms
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

_CONTRACTED = {
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
}
_NUMBERS = [
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
]
_SPELLED = {**_CONTRACTED, **{word: str(value) for value, word in enumerate(_NUMBERS, start=2)}}
_SPELLINGS = {one: (other,) for pair in _SPELLED.items() for one, other in (pair, pair[::-1])}

_OPENINGS = ("Well, ", "In fact, ", "By the way, ", "Just so you know, ", "As it happens, ")
_ENDINGS = (", please", ", as far as I know", ", by the way", ", in any case")
_JOINING = "when|because|if|although|while|after|before|until|once"
_CLAUSES = re.compile(rf"^([^,;:]{{12,}}?),? ({_JOINING}) ([^,;:]{{8,}})([.!])$")
_FRONTED = re.compile(
    rf"^({_JOINING}|on|in|at|during) ([^,;:]{{2,}}), ([^,;:]{{12,}})([.!])$", re.IGNORECASE
)
_CAPITAL = re.compile(r"(I|I'\w+|[A-Z]\w*[A-Z]\w*|(Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day)\b")


def split_pairs(
    pairs: Sequence[Pair], *, seed: Seed
) -> tuple[list[Pair], list[Pair], tuple[str, ...]]:
    """The pairs that are trained on, those that are held out, and the domains of the latter.

    Every third domain, or where a pair has no domain every third text, is held out.

    Raises:
        InputError: a part lacks opposites or near-duplicates.
    """
    by_domain = all("domain" in pair.columns for pair in pairs)
    by_domain = by_domain and len({pair.columns["domain"] for pair in pairs}) > 1
    keys = [str(pair.columns["domain"]) if by_domain else pair.first for pair in pairs]
    groups = sorted(set(keys))
    chance = random.Random(derive_seed(seed, "held out"))
    apart = set(chance.sample(groups, max(1, len(groups) // _SHARE)))
    held_out = [pair for pair, key in zip(pairs, keys, strict=True) if key in apart]
    texts = {text for pair in held_out for text in (pair.first, pair.second)}
    train = [pair for pair in pairs if texts.isdisjoint((pair.first, pair.second))]
    for part, name in ((train, "to train on"), (held_out, "to judge by")):
        if not any(pair.near for pair in part) or all(pair.same for pair in part):
            raise InputError(
                f"`pairs` leaves {len(part)} of {len(pairs)} pairs {name}, and each part needs "
                "opposites and "
                "near-duplicates: give more pairs, or none for the package's own"
            )
    return train, held_out, tuple(sorted(apart)) if by_domain else ()


def split_texts(texts: Iterable[str | Document], *, seed: Seed) -> tuple[list[str], list[str]]:
    """Sentences of one half of the texts to train on, and at most 1000 of the other half among
    which paraphrases are searched.

    Raises:
        InputError: a half has no sentence of 4 to 20 words.
    """
    listed = [text.text if isinstance(text, Document) else text for text in texts]
    random.Random(derive_seed(seed, "texts")).shuffle(listed)
    train = _sentences(listed[0::2])
    searched = sorted(set(_sentences(listed[1::2])) - set(train))
    if not train or not searched:
        raise InputError(
            f"`texts` (={len(listed)} texts) has too few sentences of 4 to 20 words to train on "
            "one half and search "
            "the other; give more texts, or none for the package's reviews"
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
                triples.append((first, reword(first, chance), second))
    for pair in opposites:
        first, second = chance.sample((pair.first, pair.second), 2)
        triples.append((first, reword(first, chance), second))
    distinct = dict.fromkeys(triple for triple in triples if triple[2] not in triple[:2])
    same = [text for pair in short if pair.same for text in (pair.first, pair.second)]
    steady = chance.sample(sentences, min(_MOST_STEADY, len(sentences)))
    return list(distinct), [*steady, *same], notes


def reword(sentence: str, chance: random.Random, *, changes: int = 2) -> str:
    """The sentence after so many changes that keep its meaning; after fewer where no more rules
    apply.

    >>> "It is not ready." in {reword("It isn't ready.", random.Random(seed), changes=1) for seed in range(60)}
    True
    """  # noqa: E501
    applied = 0
    for rule in chance.sample(_REWORDINGS, k=len(_REWORDINGS)):
        reworded = rule(sentence, chance) or sentence
        applied += reworded != sentence
        sentence = reworded
        if applied == changes:
            break
    return sentence


def _synonym(sentence: str, chance: random.Random) -> str | None:
    return exchange(sentence, synonyms(), chance)


def _spelling(sentence: str, chance: random.Random) -> str | None:
    """A contraction written out or made, a number word in digits or the other way round."""
    return exchange(sentence, _SPELLINGS, chance)


def _filler(sentence: str, chance: random.Random) -> str | None:
    if chance.random() < 0.5:
        return chance.choice(_OPENINGS) + _lower(sentence)
    return (
        f"{sentence[:-1]}{chance.choice(_ENDINGS)}{sentence[-1]}"
        if sentence[-1:] in (".", "!")
        else None
    )


def _order(sentence: str, chance: random.Random) -> str | None:
    """Two clauses in the other order."""
    if match := _FRONTED.match(sentence):
        return f"{_upper(match[3])} {match[1].lower()} {match[2]}{match[4]}"
    if match := _CLAUSES.match(sentence):
        return f"{_upper(match[2])} {match[3]}, {_lower(match[1])}{match[4]}"
    return None


def _typo(sentence: str, chance: random.Random) -> str | None:
    """Two letters inside a long word exchanged, or the sentence in small letters."""
    if chance.random() < 0.3:
        return sentence.lower().rstrip(".")
    words = list(re.finditer(r"[a-z]{6,}", sentence))
    if not words:
        return None
    at = chance.choice(words).start() + chance.randint(1, 3)
    return sentence[:at] + sentence[at + 1] + sentence[at] + sentence[at + 2 :]


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]


def _lower(text: str) -> str:
    return text if _CAPITAL.match(text) else text[:1].lower() + text[1:]


_REWORDINGS: tuple[Callable[[str, random.Random], str | None], ...] = (
    _synonym,
    _synonym,
    _spelling,
    _spelling,
    _filler,
    _order,
    _typo,
)
