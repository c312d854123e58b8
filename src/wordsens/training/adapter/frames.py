"""Meanings in several wordings, with places to fill and switches to turn.

The wordings of one share few words, and the two sides of a switch nearly all.
"""

import random
import re
from dataclasses import dataclass
from functools import cache

from wordsens.training.adapter.rewordings import capital
from wordsens.training.adapter.word_lists import DAYS, MONTHS, NUMBERS, lines

_PEOPLE_LISTED = """
    Anna Ben Clara David Emma Felix Grace Hugo Irene Jack Karen Leo Maria Noah Olga Peter Rosa Simon Tina Victor
    the#teacher the#pupil the#baker the#neighbour the#driver the#guest the#cook the#waiter the#manager the#assistant
    the#tourist the#guide the#coach the#player the#farmer the#painter the#singer the#reporter the#mayor the#visitor
    my#brother my#sister my#uncle my#aunt our#boss our#client the#seller the#buyer the#pilot the#editor
"""
_THINGS_LISTED = """
    the#red#model/the#blue#model the#old#bridge/the#new#bridge tea/coffee the#front#room/the#back#room
    the#first#version/the#second#version the#laptop/the#tablet the#church/the#town#hall the#server/the#database
    the#green#sofa/the#grey#sofa the#north#gate/the#south#gate cotton/wool the#bus/the#tram plan#A/plan#B
    the#upper#shelf/the#lower#shelf the#printer/the#scanner the#school/the#library the#long#route/the#short#route
"""
_CITIES_LISTED = (
    "London Paris Berlin Madrid Rome Vienna Prague Oslo Dublin Lisbon Athens Warsaw Leeds Boston Tokyo Sydney"
)
_PEOPLE, _THINGS, _CITIES = (
    [name.replace("#", " ") for name in listed.split()] for listed in (_PEOPLE_LISTED, _THINGS_LISTED, _CITIES_LISTED)
)
_SWITCHES = {"negation": "[]", "antonym": "<>", "time": "()", "quantity": "##"}
_SWITCH = {
    kind: re.compile(rf"\{left}([^|\{left}\{right}]*)\|([^|\{left}\{right}]*)\{right}")
    for kind, (left, right) in _SWITCHES.items()
}
_SLOT = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True)
class Meaning:
    """A frame whose places are filled and whose switches are set.

    Attributes:
        wordings: of the frame, with their places and switches.
        filled: from a place's name to what stands there.
        turned: the kinds of switches that stand on their second half.
    """

    wordings: tuple[str, ...]
    filled: dict[str, str]
    turned: frozenset[str]

    def text(self, wording: int, chance: random.Random) -> str:
        """The meaning in one of its wordings; a number is spelled out or in digits by chance."""
        text = self.wordings[wording]
        for kind, switch in _SWITCH.items():
            side = 2 if kind in self.turned else 1
            text = switch.sub(lambda found, side=side: found[side], text)

        def fill(found: re.Match[str]) -> str:
            value = self.filled[found[1]]
            return (
                NUMBERS[int(value) - 1]
                if value.isdigit() and int(value) <= len(NUMBERS) and chance.random() < 0.5
                else value
            )

        return capital(_SLOT.sub(fill, text))

    def flips(self) -> list[str]:
        """The kinds of change that the frame has a place for."""
        whole = " ".join(self.wordings)
        kinds = [kind for kind, (left, _) in _SWITCHES.items() if left in whole]
        kinds += ["role"] * any(_pair(self.filled, names) for names in _PAIRS)
        kinds += ["quantity"] * ("n" in self.filled) + ["time"] * bool({"day", "month"} & set(self.filled))
        return list(dict.fromkeys(kinds))

    def flipped(self, kind: str, chance: random.Random) -> "Meaning":
        """The meaning after one change of that kind."""
        whole = " ".join(self.wordings)
        ways = []
        if kind in _SWITCHES and _SWITCHES[kind][0] in whole:
            ways.append(Meaning(self.wordings, self.filled, self.turned ^ {kind}))
        if kind == "role":
            for one, other in filter(None, (_pair(self.filled, names) for names in _PAIRS)):
                swapped = {**self.filled, one: self.filled[other], other: self.filled[one]}
                ways.append(Meaning(self.wordings, swapped, self.turned))
        for name in {"quantity": ("n",), "time": ("day", "month")}.get(kind, ()):
            if name in self.filled:
                other = chance.choice([value for value in _values(name) if value != self.filled[name]])
                ways.append(Meaning(self.wordings, {**self.filled, name: other}, self.turned))
        return chance.choice(ways)


_PAIRS = (("A", "B"), ("A2", "B2"), ("city", "city2"))


def draw_meaning(chance: random.Random) -> Meaning:
    """A frame drawn at random, filled at random."""
    wordings = chance.choice(_frames())
    names = set(_SLOT.findall(" ".join(wordings)))
    filled = {name: chance.choice(_values(name)) for name in sorted(names) if name in ("n", "day", "month")}
    people = chance.sample(_PEOPLE, 2)
    things = chance.choice(_THINGS).split("/")
    chance.shuffle(things)
    for pair, values in zip(_PAIRS, (people, things, chance.sample(_CITIES, 2)), strict=True):
        filled |= {name: value for name, value in zip(pair, values, strict=True) if name in names}
    turned = frozenset(kind for kind in _SWITCHES if chance.random() < 0.5)
    return Meaning(wordings, filled, turned)


def _values(name: str) -> list[str]:
    return {
        "day": DAYS,
        "month": MONTHS,
        "n": [str(number) for number in (*range(2, 21), 25, 30, 40, 50, 60, 75, 80, 90, 120, 200, 500)],
    }[name]


def _pair(filled: dict[str, str], names: tuple[str, str]) -> tuple[str, str] | None:
    return names if set(names) <= set(filled) else None


@cache
def _frames() -> list[tuple[str, ...]]:
    return [tuple(part.strip() for part in line.split(" / ")) for line in lines("frames.txt")]
