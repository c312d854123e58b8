"""English words that a writer could put in the place of a word of a text: the list
`words/substitutes.txt`."""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache

from wordsens.evaluation.word_lists import lines_of
from wordsens.text.whole_words import Span

_BEFORE_NOUNS = """
    a an the my your his her its our their these those every each some any no of in on at with without from for by about
    two three four five six seven eight nine ten many few several all both new old good bad
"""  # noqa: E501
"""Behind these stands no verb in a finite form."""

_LINKING = "is are was were be been being am isn't aren't wasn't weren't very too so"
"""Behind these stand no noun that needs an article and no base form of a verb."""

_BEFORE_VERBS = """
    i you we they he she to not don't doesn't didn't can can't cannot could couldn't will won't would wouldn't must
    should shouldn't may might
"""  # noqa: E501
"""Behind these stands no noun in the singular without an article."""

_IRREGULAR = ("plural", "past", "double")
"""Parts of the list that hold irregular forms."""

_PREVIOUS = re.compile(r"([\w'’]+)\s+$")


def substitutes(text: str, span: Span) -> tuple[str, ...]:
    """The words that a writer could put in that place of the text, the commonest first; empty where
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
    """True where a word of that part and form cannot stand behind that word."""
    linking = previous in _LINKING.split()
    if part in ("base", "third"):
        return previous in _BEFORE_NOUNS.split() or (
            part == "base" and (linking or previous in ("this", "that"))
        )
    bare = part in ("singular", "mass") and previous in _BEFORE_VERBS.split()
    return bare or (part == "singular" and linking)


@cache
def _lists() -> dict[str, dict[str, tuple[str, ...]]]:
    """Of every word of the list its readings, such as "plural" or "past", and what may stand for it
    in each."""
    sections = re.split(r"(?:^| )(\w+):", " ".join(lines_of("substitutes.txt")))[1:]
    groups = [
        (part, group.split())
        for part, body in zip(sections[::2], sections[1::2], strict=True)
        for group in body.strip().strip(",").split(",")
    ]
    irregular = {
        part: {words[0]: words[1:] for each, words in groups if each == part} for part in _IRREGULAR
    }
    readings: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for part, group in groups:
        if part in _IRREGULAR:
            continue
        replaced, words = ([group[0]], [group[0], *group[2:]]) if ">" in group else (group, group)
        forms = {word: _forms(part, word, irregular) for word in words}
        for word in replaced:
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


def _forms(
    part: str, word: str, irregular: Mapping[str, Mapping[str, Sequence[str]]]
) -> dict[str, str]:
    """The forms of a word of that part, by name."""
    if part not in ("noun", "verb"):
        return {part: word}
    y_turns = word.endswith("y") and word[-2] not in "aeiou"
    hisses = word.endswith(("s", "sh", "ch", "x", "z"))
    with_s = word[:-1] + "ies" if y_turns else word + ("es" if hisses else "s")
    if part == "noun":
        return {"singular": word, "plural": irregular["plural"].get(word, [with_s])[0]}
    stem = word
    if word in irregular["double"] or re.fullmatch(r"[^aeiou]*[aeiou][bdgmnpt]", word):
        stem = word + word[-1]
    past = word[:-1] + "ied" if y_turns else stem.removesuffix("e") + "ed"
    pasts = irregular["past"].get(word, [past])
    ending = word[:-2] + "ying" if word.endswith("ie") else stem.removesuffix("e") + "ing"
    return {"base": word, "third": with_s, "past": pasts[0], "participle": pasts[-1], "ing": ending}
