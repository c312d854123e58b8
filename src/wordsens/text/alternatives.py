"""Words that may stand in another's place: those of the same kind that a collection of texts uses."""

from collections.abc import Callable, Iterable, Sequence

from wordsens.errors import InputError
from wordsens.text.english import KINDS, kind_of
from wordsens.text.whole_words import reading_words

Alternatives = Callable[[str], Sequence[str]]
"""From a word to the words that may stand in its place, each as likely as the others; itself among them or not."""


class SameKind:
    """The words of the texts by kind: negations, function words, content words, numbers and signs.

    Args:
        texts: whose words are used; each word counts once, however often it occurs.

    >>> same_kind = SameKind(["The film is good.", "A dull book"])
    >>> same_kind("good"), same_kind("The")
    (('book', 'dull', 'film', 'good'), ('A', 'Is', 'The'))
    """

    def __init__(self, texts: Iterable[str]):
        words = sorted({word.lower() for text in texts for word in reading_words(text)})
        self._plain = {kind: tuple(word for word in words if kind_of(word) == kind) for kind in KINDS}
        self._capital = {
            kind: tuple(word[0].upper() + word[1:] for word in members) for kind, members in self._plain.items()
        }
        if not words:
            raise InputError("`texts` holds no word; give texts of two words or more")

    def __call__(self, word: str) -> tuple[str, ...]:
        """The words of its kind, capitalised where it is."""
        return (self._capital if word[0].isupper() else self._plain)[kind_of(word)]
