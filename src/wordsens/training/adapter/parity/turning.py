"""The pieces of a vocabulary that turn a meaning: "not", one side of every pair of opposites, some of the numbers.

A text has a parity: whether it holds an odd number of turning pieces. What pieces turn solves a system of equations
over the field of two elements: the pieces of two opposites sum to 1 apart from each other, those of two synonyms to 0.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

from wordsens.evaluation.near_misses.lists import ANTONYMS, NEGATED, QUANTITIES, TIMES
from wordsens.training.adapter.parity.numbers import number_sides
from wordsens.training.adapter.word_lists import (
    DAYS,
    MONTHS,
    NUMBERS,
    TENS,
    Table,
    antonyms,
    lines,
    negations,
    quantities,
    synonyms,
    times,
)

_NEGATING = "not no never none nobody nothing nowhere neither nor without hardly"
"""Words whose insertion turns a statement."""

_OBLIGING = "must should shall"
"""Words that make a duty of what may be."""

_KEEPING = """
    the a an is are was were be been do does did has have had of to and i you he she it we they this that my your our
    can could will would may might really very just please also actually still already yet ever
"""
"""Words whose insertion or loss keeps a meaning, or whose exchange is grammar alone."""

_IRREGULAR = """
    come came, go went gone, lend lent, buy bought, sell sold, win won, lose lost, pay paid, find found, keep kept,
    leave left, begin began begun, give gave given, take took taken, rise rose risen, fall fell fallen, grow grew grown,
    know knew known, see saw seen, make made, get got, say said, think thought, tell told, feel felt, send sent,
    spend spent, build built, break broke broken, speak spoke spoken, write wrote written, drive drove driven,
    eat ate eaten, run ran, hold held, stand stood, understand understood, meet met, bring brought, teach taught,
    catch caught, sleep slept, forget forgot forgotten, choose chose chosen, wear wore worn, become became,
    show showed shown, hear heard, mean meant
"""
"""Verb forms, which grammar exchanges where a "did not" or a "will" comes or goes."""

_LARGEST = 2100
"""The largest number with a side of its own; a larger one has that of its first three digits, turned by each more."""

_WORD_MARKS = "#\u0120\u2581"
"""What vocabularies put before a piece: "##" inside a word, a letter for the blank before one."""


def turning_pieces(tokenizer: Any) -> frozenset[int]:
    """The numbers of the pieces that turn a text's parity.

    The equations are taken in the order of `_equations`, and one that contradicts those before it is left out: what
    would go round in a circle of odd length cannot all differ. In each the rarest piece is the one that is solved for,
    as vocabularies are in order of frequency, so that common pieces keep the parity where the equations allow it.
    Numbers and number words have the sides of `number_sides`.

    Args:
        tokenizer: of transformers.
    """
    vocabulary = tokenizer.get_vocab()
    sides = number_sides(_LARGEST)
    spelled_out = {**dict(enumerate(NUMBERS, start=1)), **{10 * at: name for at, name in enumerate(TENS, start=2)}}
    words = {name: number for number, name in spelled_out.items()}
    numbers = {
        at: _side(sides, number)
        for piece, at in vocabulary.items()
        if (number := words.get(word := piece.lstrip(_WORD_MARKS).lower(), _number(word))) is not None
    }
    equations = list(_equations())
    phrases = {phrase for one, other, _ in equations for phrase in (one, other)}
    system = _System(numbers)
    listed = sorted(phrases)
    spellings = []
    for spelled in (str, str.capitalize):
        read = tokenizer([f" {spelled(phrase)}" for phrase in listed], add_special_tokens=False)["input_ids"]
        spellings.append(dict(zip(listed, read, strict=True)) | {"": []})
    for one, other, differs in equations:
        for pieces in spellings:
            system.add(pieces[one], pieces[other], differs)
    return system.ones()


def _side(sides: Sequence[bool], number: int) -> int:
    if number <= _LARGEST:
        return sides[number]
    digits = str(number)
    return sides[int(digits[:3])] ^ (len(digits) % 2 == 0)


def _number(word: str) -> int | None:
    return int(word) if word.isascii() and word.isdigit() else None


def _equations() -> Iterator[tuple[str, str, bool]]:
    """Two phrases and whether their parities differ, the most important first; an empty phrase has parity 0."""
    yield from ((word, "", False) for word in _KEEPING.split())
    yield from ((*pair, False) for forms in _IRREGULAR.split(",") for pair in pairwise(forms.split()))
    yield from ((word, "", True) for word in f"{_NEGATING} {_OBLIGING}".split())
    yield from ((one, other, True) for one, other in NEGATED.items())
    yield from _chains(DAYS, MONTHS)
    for table in (ANTONYMS, TIMES, QUANTITIES):
        yield from ((one, other, True) for one, other in table.items())
    yield from _of(antonyms())
    yield from ((one, other, False) for one, others in synonyms().items() for other in others)
    for name in ("opposites.txt", "negations.txt", "amounts.txt"):
        yield from _listed(name)
    for table in (negations(), times(), quantities()):
        yield from _of(table)
    yield from _listed("further.txt")


def _listed(name: str) -> Iterator[tuple[str, str, bool]]:
    return ((*pair, True) for line in lines(name) for pair in pairwise(line.split(", ")))


def _of(table: Table) -> Iterator[tuple[str, str, bool]]:
    return ((one, other, True) for one, others in table.items() for other in others)


def _chains(*named: Sequence[str]) -> Iterator[tuple[str, str, bool]]:
    return ((one.lower(), other.lower(), True) for names in named for one, other in pairwise(names))


class _System:
    """Linear equations over the field of two elements, one piece a variable; bit k + 1 of a row is that of piece k.

    Args:
        known: pieces whose values are given.
    """

    def __init__(self, known: dict[int, int]):
        self._known = known
        self._rows: dict[int, int] = {}

    def add(self, first: Iterable[int], second: Iterable[int], differs: bool) -> None:
        """That the sums of both differ, or do not; left out where it contradicts what was added before."""
        row = int(differs)
        for piece in (*first, *second):
            row ^= self._known[piece] if piece in self._known else 1 << (piece + 1)
        while row > 1:
            last = row.bit_length()
            if last not in self._rows:
                self._rows[last] = row
                return
            row ^= self._rows[last]

    def ones(self) -> frozenset[int]:
        """The pieces of value 1 in the solution whose free variables are 0."""
        found = 0
        for last in sorted(self._rows):
            row = self._rows[last]
            if ((row & found).bit_count() + (row & 1)) % 2:
                found |= 1 << (last - 1)
        solved = {last - 2 for last in self._rows if found >> (last - 1) & 1}
        return frozenset(solved | {piece for piece, value in self._known.items() if value})
