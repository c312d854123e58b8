"""English words that a writer could use in place of a word of a text: the list
`words/substitutes.txt`."""

import re
from collections import defaultdict
from functools import cache

from wordsens.evaluation.word_lists import inflected, sections
from wordsens.text.whole_words import Span

# After these there is no verb in a finite form.
_BEFORE_NOUNS = """
    a an the my your his her its our their these those every each some any no of in on at with without from for by about
    two three four five six seven eight nine ten many few several all both new old good bad
"""  # noqa: E501

# After these there is no noun that needs an article, and no base form of a verb.
_LINKING = "is are was were be been being am isn't aren't wasn't weren't very too so"

# After these there is no noun in the singular without an article.
_BEFORE_VERBS = """
    i you we they he she to not don't doesn't didn't can can't cannot could couldn't will won't would wouldn't must
    should shouldn't may might
"""  # noqa: E501

# Parts of the list with irregular forms.
_IRREGULAR = ("plural", "past", "double")

_PREVIOUS = re.compile(r"([\w'’]+)\s+$")


def substitutes(text: str, span: Span) -> tuple[str, ...]:
    """The words that a writer could use at that place of the text, the commonest first; empty where
    none is listed.

    They are of the same part of speech, form and field as the word and of another meaning:
    "paracetamol" for "ibuprofen", "sold" for "bought". A word that may be of several parts of
    speech is read by the word before it, and where that does not decide, has those that serve as
    all of them. Articles, most prepositions and other words without a meaning of their own have
    none, as have words that the lists do not know.

    >>> substitutes("She bought an orange.", (4, 10)), substitutes("She bought an orange.", (14, 20))
    (('sold', 'rented'), ('apple',))
    >>> substitutes("She bought an orange.", (11, 13))
    ()
    """  # noqa: E501
    word = text[slice(*span)].replace("’", "'")
    previous = (
        match[1].lower().replace("’", "'") if (match := _PREVIOUS.search(text[: span[0]])) else ""
    )
    lists = _lists()
    readings = lists.get(word) or lists.get(word.lower()) or {}
    allowed = {part: others for part, others in readings.items() if not _excluded(part, previous)}
    if not allowed:
        return ()
    first, *further = allowed.values()
    shared = [other for other in first if all(other in others for others in further)]
    if previous in ("a", "an"):
        shared = [other for other in shared if (other[0].lower() in "aeiou") == (previous == "an")]
    return tuple(other[0].upper() + other[1:] if word[0].isupper() else other for other in shared)


def _excluded(part: str, previous: str) -> bool:
    """True where a word of that part and form cannot follow that word."""
    linking = previous in _LINKING.split()
    if part in ("base", "third"):
        return previous in _BEFORE_NOUNS.split() or (
            part == "base" and (linking or previous in ("this", "that"))
        )
    bare = part in ("singular", "mass") and previous in _BEFORE_VERBS.split()
    return bare or (part == "singular" and linking)


@cache
def _lists() -> dict[str, dict[str, tuple[str, ...]]]:
    """For every word of the list its readings, such as "plural" or "past", and what can replace it
    in each."""
    readings: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for part, group in sections("substitutes.txt"):
        if part in _IRREGULAR:
            continue
        replaced, _, further = group.partition(" > ")
        forms = {word: inflected(part, word) for word in f"{replaced} {further}".split()}
        for word in replaced.split():
            for form in set(forms[word].values()):
                # A form that is past and participle is replaced by a form that is both.
                names = [name for name, spelling in forms[word].items() if spelling == form]
                alike = [{others[name] for name in names} for others in forms.values()]
                readings[form][names[0]] += [
                    other.pop() for other in alike if len(other) == 1 and form not in other
                ]
    return {
        word: {name: tuple(dict.fromkeys(others)) for name, others in parts.items()}
        for word, parts in readings.items()
    }
