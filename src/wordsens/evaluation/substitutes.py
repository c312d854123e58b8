"""English words that a writer could use in place of a word of a text: the list
`words/substitutes.txt`."""

import re
from collections import defaultdict
from collections.abc import Collection, Mapping
from functools import cache
from itertools import chain
from typing import Any

from wordsens.evaluation.word_lists import in_case, inflected, sections
from wordsens.text.whole_words import Span

_BEFORE_NOUNS = """
    a an the my your his her its our their these those every each some any no of in on at with without from for by about
    two three four five six seven eight nine ten many few several all both new old good bad
"""  # noqa: E501
_BEFORE_VERBS = """
    i you we they he she to not don't doesn't didn't can can't cannot could couldn't will won't would wouldn't must
    should shouldn't may might
"""  # noqa: E501
_LINKING = "is are was were be been being am isn't aren't wasn't weren't very too so"

# The words behind which there is no such form: no finite verb behind "the", no singular without an
# article behind "can".
_NOT_AFTER = {
    "base": f"{_BEFORE_NOUNS} {_LINKING} this that".split(),
    "third": _BEFORE_NOUNS.split(),
    "singular": f"{_BEFORE_VERBS} {_LINKING}".split(),
    "mass": _BEFORE_VERBS.split(),
}

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
    match = _PREVIOUS.search(text[: span[0]])
    previous = match[1].lower().replace("’", "'") if match else ""
    lists = _lists()
    readings = lists.get(word) or lists.get(word.lower()) or {}
    allowed = [
        others for form, others in readings.items() if previous not in _NOT_AFTER.get(form, ())
    ]
    shared = [other for other in chain(*allowed[:1]) if all(other in others for others in allowed)]
    if previous in ("a", "an"):
        shared = [other for other in shared if (other[0].lower() in "aeiou") == (previous == "an")]
    return tuple(in_case(word, other) for other in shared)


@cache
def _lists() -> Mapping[str, Mapping[str, Collection[str]]]:
    """For every word of the list its readings, such as "plural" or "past", and what can replace it
    in each."""
    readings: Any = defaultdict(lambda: defaultdict(dict))
    for part, group in sections("substitutes.txt"):
        replaced, _, further = group.partition(" > ")
        forms = {word: inflected(part, word) for word in f"{replaced} {further}".split()}
        for word in replaced.split():
            for form in set(forms[word].values()):
                # A form that is past and participle is replaced by a form that is both.
                names = [name for name, spelling in forms[word].items() if spelling == form]
                alike = [{others[name] for name in names} for others in forms.values()]
                # The keys: each once, in their order.
                readings[form][names[0]] |= {
                    other.pop(): None for other in alike if len(other) == 1 and form not in other
                }
    return readings
