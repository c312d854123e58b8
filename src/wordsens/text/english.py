"""Kinds of English words (negations, function words, content words), and words of the same kind."""

from collections.abc import Callable, Iterable, Sequence

from wordsens.errors import InputError, argument
from wordsens.text.whole_words import reading_words

_NEGATIONS = (
    "no not never none nobody nothing neither nor nowhere without cannot hardly barely scarcely"
)

# English words that negate. Words that end in n't count too.
NEGATIONS = frozenset(_NEGATIONS.split())

_FUNCTION_WORDS = """
    a an the this that these those some any each every either all both
    half several many much few little more most other another such
    what which whose whatever i me my mine myself you your yours
    yourself yourselves he him his himself she her hers herself it its
    itself we us our ours ourselves they them their theirs themselves
    who whom one ones there here and or but if because as until while
    of at by for with about against between into through during before
    after above below to from up down in out on off over under again
    further then once when where why how than so too very just only
    own same also though although since unless whether yet still even
    upon among within along across behind beyond near toward towards
    per via am is are was were be been being do does did doing have
    has had having can could may might must shall should will would
    ought i'm you're he's she's it's we're they're i've you've we've
    they've i'd you'd he'd she'd we'd they'd i'll you'll he'll she'll
    we'll they'll that's who's what's here's there's let's
"""

# English articles, pronouns, prepositions, conjunctions, auxiliaries and a few adverbs of degree
# and place.
FUNCTION_WORDS = frozenset(_FUNCTION_WORDS.split())

KINDS = ("negation", "function word", "content word", "number or sign")


def kind_of(word: str) -> str:
    """The kind of the word by these lists, one of KINDS.

    >>> [kind_of(word) for word in ("Isn't", "the", "film", "!")]
    ['negation', 'function word', 'content word', 'number or sign']
    """
    plain = word.lower().replace("’", "'")
    if plain in NEGATIONS or plain.endswith("n't"):
        return "negation"
    if plain in FUNCTION_WORDS:
        return "function word"
    return "content word" if any(letter.isalpha() for letter in plain) else "number or sign"


PLACES = ("first fifth", "middle", "last fifth")


def place_of(share: float) -> str:
    """One of PLACES, for a word's place as a share of its text: 0 is the first word, 1 the last."""
    return PLACES[0] if share < 0.2 else PLACES[2] if share > 0.8 else PLACES[1]


# From a word to its replacements, all equally likely; the word itself may be one of them.
Alternatives = Callable[[str], Sequence[str]]


class SameKind:
    """The words of the texts by kind: negations, function words, content words, numbers and signs.

    Args:
        texts: their words are used; each word counts once, however often it occurs.

    >>> same_kind = SameKind(["The film is good.", "A dull book"])
    >>> same_kind("good"), same_kind("The")
    (('book', 'dull', 'film', 'good'), ('A', 'Is', 'The'))
    """

    def __init__(self, texts: Iterable[str]):
        words = sorted({word.lower() for text in texts for word in reading_words(text)})
        self._plain = {
            kind: tuple(word for word in words if kind_of(word) == kind) for kind in KINDS
        }
        self._capital = {
            kind: tuple(word[0].upper() + word[1:] for word in members)
            for kind, members in self._plain.items()
        }
        if not words:
            raise InputError(f"{argument('texts')} holds no word; give texts of two words or more")

    def __call__(self, word: str) -> tuple[str, ...]:
        """The words of its kind, capitalised where it is."""
        return (self._capital if word[0].isupper() else self._plain)[kind_of(word)]
