"""The gate of a command: requirements such as "negation.false_hits <= .2", and the similarities of
an earlier check."""

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import ge, gt, le, lt
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from wordsens.errors import InputError, argument, require_choice
from wordsens.evaluation.pairs import ScoredPairs
from wordsens.files import named_path, small_text, writing
from wordsens.intervals import TOGETHER, auc, auc_changes, auc_estimate
from wordsens.results import Answered
from wordsens.seeds import Seed
from wordsens.text.pairs import Pair

# In the place of a row's name: the requirement holds for every row.
EVERY = "all"

# The chance of at least one false alarm among all kinds of a check, or all rows of a comparison.
LEVEL = 0.05

_FORMAT = 1

# Of a baseline: a line of 150 bytes for each of half a million pairs.
_MOST_BYTES = 100_000_000

# An area under the curve whose interval reaches down to this can hardly fall.
_FLOOR = 0.01

# Pairs of a kind below which the notes say that the comparison is a coarse one.
_FEW = 20

_SIGNS: dict[str, Callable[[float, float], bool]] = {">=": ge, "<=": le, ">": gt, "<": lt}
_FORM = re.compile(
    r"\s*((?P<kind>\S.*)\.)?(?P<field>[a-z_]\w*)\s*(?P<sign>>=|<=|>|<)\s*(?P<bound>[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?)\s*",
    re.IGNORECASE | re.ASCII,
)


@dataclass(frozen=True)
class Requirement:
    """A bound on one number of one row (a kind, a label, ...), of every row, or of the whole.

    Attributes:
        text: as it was given.
        kind: the row's name, or EVERY; "" of the whole.
        field: the number's name.
        sign: >=, <=, > or <.
        bound: the number.
    """

    text: str
    kind: str
    field: str
    sign: str
    bound: float

    @classmethod
    def read_all(
        cls, texts: Sequence[str], fields: Sequence[str], example: str, whole: Sequence[str] = ()
    ) -> "tuple[Requirement, ...]":
        """The requirements that the texts, or a single one, state on fields of a row, or of the
        whole.

        >>> (requirement,) = Requirement.read_all("negation.auc >= .5", ["auc"], "negation.auc >= .5")
        >>> requirement.kind, requirement.field, requirement.sign, requirement.bound
        ('negation', 'auc', '>=', 0.5)
        """  # noqa: E501
        requirements = []
        for text in [texts] if isinstance(texts, str) else texts:
            match = _FORM.fullmatch(text) if isinstance(text, str) else None
            if match is None or (match["kind"] is None and not whole):
                forms = "KIND.FIELD >= NUMBER" + (" or FIELD >= NUMBER" if whole else "")
                raise InputError(
                    f"{argument('requirements')} (={text!r}) cannot be read; write it as {forms}, "
                    f"such as {example!r}"
                )
            field = require_choice(
                f"the field of {text!r}", match["field"], fields if match["kind"] else whole
            )
            kind = (match["kind"] or "").strip()
            requirements.append(
                cls(text.strip(), kind, field, match["sign"], float(match["bound"]))
            )
        return tuple(requirements)

    def unmet(
        self,
        rows: Mapping[str, Any],
        *,
        number: Callable[[Any, str], float | None] = getattr,
        detail: Callable[[Any, str], str] = lambda row, field: "",
        missing: str = "there is no such row",
    ) -> "Iterator[Unmet]":
        """What is outside the bound, or has no number.

        Args:
            rows: by their names; "" is the whole.
            number: a row's number of a field.
            detail: what is said behind that number, such as its interval.
            missing: what is said where no row is named.
        """
        names = [name for name in rows if (name if self.kind == EVERY else name == self.kind)]
        if not names:
            yield Unmet("", self.text, f"{self.text}: {missing}")
        for name in names:
            value = number(rows[name], self.field)
            if value is None or not _SIGNS[self.sign](value, self.bound):
                what = f"{name}.{self.field}" if name else self.field
                shown = ("none" if value is None else f"{value:.4g}") + detail(
                    rows[name], self.field
                )
                yield Unmet(
                    name, self.text, f"{what} is {shown}, required {self.sign} {self.bound:g}"
                )


@dataclass(frozen=True)
class Unmet:
    """A requirement that fails.

    Attributes:
        kind: the row that fails it; "" of the whole.
        requirement: as it was given.
        sentence: what is required, and what is.
    """

    kind: str
    requirement: str
    sentence: str


class Gated(Answered):
    """Something that was measured with requirements on it.

    Attributes:
        unmet: the requirements that fail.
    """

    unmet: tuple[Unmet, ...]

    @property
    def passed(self) -> bool:
        """True where every requirement is met."""
        return not self.unmet

    @property
    def failures(self) -> tuple[str, ...]:
        """A sentence for every requirement that is not met."""
        return tuple(each.sentence for each in self.unmet)

    def __str__(self) -> str:
        return "\n".join([*self.answer, *(f"FAILED: {failure}" for failure in self.failures)])


def numbers_of(row: Mapping[str, Any], *estimates: str) -> dict[str, Any]:
    """The numbers of a row, the estimates of these names split into value, low and high; None for
    one that is None.

    >>> from wordsens.results import Estimate
    >>> numbers_of({"pairs": 9, "auc": Estimate(0.5, 0.4, 0.6)}, "auc")
    {'pairs': 9, 'auc': 0.5, 'auc_low': 0.4, 'auc_high': 0.6}
    """
    parts = {"": "value", "_low": "low", "_high": "high"}
    numbers: dict[str, Any] = {}
    for name, value in row.items():
        split = {name + end: getattr(value, part, None) for end, part in parts.items()}
        numbers |= split if name in estimates else {name: value}
    return numbers


def read_baseline(path: str | PathLike[str]) -> dict[str, float]:
    """The similarities of an earlier check, by the pairs' keys.

    Raises:
        InputError: there is no such file, or it was not written by `write_baseline`.
    """
    path = named_path("baseline", path)
    text = small_text(path, "baseline", most=_MOST_BYTES)
    try:
        document = json.loads(text)
        if document["format"] != _FORMAT:
            raise ValueError(f"its format is {document['format']!r}, not {_FORMAT}")
        values = {str(key): float(value) for key, value in document["similarities"].items()}
        if not np.isfinite(list(values.values())).all():
            raise ValueError("a similarity is not a finite number")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f"{argument('baseline')}: the file {str(path)!r} is no baseline "
            f"({type(error).__name__}: {error}); write one with --save-baseline"
        ) from error
    return values


def write_baseline(path: str | PathLike[str], scored: ScoredPairs) -> None:
    """Save the similarities of the first model as JSON, each pair named by a hash.

    Raises:
        InputError: the file cannot be written, or every kind is at the floor.
    """
    opposites = {kind: scored.values[each] for kind, each in scored.opposites.items()}
    _require_room(opposites, scored.values[scored.near])
    keys = map(pair_key, scored.pairs)
    document = {
        "format": _FORMAT,
        "model": scored.models[0],
        "identity": scored.identities[0],
        "similarities": dict(zip(keys, scored.values.tolist(), strict=True)),
    }
    place = Path(path).expanduser()
    with writing("path", place):
        place.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def auc_drops(
    earlier: Mapping[str, float], scored: ScoredPairs, *, seed: Seed
) -> tuple[dict[str, dict[str, float]], list[str]]:
    """The AUC of every kind against near-duplicates before and after, over the pairs that both
    checks have, with the joint p-value of a fall; and notes on what is left out.

    Raises:
        InputError: the two have no opposites or no near-duplicates in common, or every kind is at
            the floor.
    """
    before = np.array([earlier.get(pair_key(pair), np.nan) for pair in scored.pairs])
    known = ~np.isnan(before)
    near = scored.near & known
    kinds = {kind: members & known for kind, members in scored.opposites.items()}
    compared = {kind: members for kind, members in kinds.items() if members.any()}
    if not compared or not near.any():
        raise InputError(
            f"{argument('baseline')} has no opposites or no near-duplicates in common with this "
            "check; save a new one for these pairs with --save-baseline"
        )
    sides = {kind: (before[members], scored.values[members]) for kind, members in compared.items()}
    floor = _require_room({kind: side[0] for kind, side in sides.items()}, before[near])
    few = [f"{kind} ({len(side[0])})" for kind, side in sides.items() if len(side[0]) < _FEW]
    absent = [kind for kind in kinds if kind not in compared]
    notes = {
        f"no pair of {', '.join(absent)} is in the baseline": absent,
        f"the baseline protects nothing for {', '.join(floor)}: its AUC was at the floor": floor,
        f"few pairs of a kind show only a large drop: {', '.join(few)}": few,
        f"{(~known).sum()} of {len(known)} pairs are not in the baseline and were left out of the "
        "comparison": not known.all(),
    }
    drops = {}
    second = before[near], scored.values[near]
    for kind, change in auc_changes(sides, second, falls=True, seed=seed).items():
        members = np.any([*compared.values()], axis=0) if kind == TOGETHER else compared[kind]
        was = auc(before[members], second[0])
        p = 1.0 if change.p is None else change.p
        drops[kind] = {"before": was, "after": was + change.value, "p": p}
    return drops, [note for note, holds in notes.items() if holds]


def _require_room(opposites: Mapping[str, np.ndarray], near: np.ndarray) -> list[str]:
    """The kinds whose AUC has an interval that reaches down to the floor, so that a fall could not
    be seen; InputError where all do."""
    floor = [
        kind
        for kind, values in opposites.items()
        if (auc_estimate(values, near).low or 0.0) < _FLOOR
    ]
    if len(floor) == len(opposites):
        raise InputError(
            f"{argument('baseline')} is vacuous: the AUC of {', '.join(floor)} is at the floor, "
            "where no model can be worse, so that the gate would pass whatever replaces this "
            "model; require numbers instead, such as --require 'recall >= .8'"
        )
    return floor


def pair_key(pair: Pair) -> str:
    """The first 16 hexadecimal digits of SHA-256 over kind, texts and whether they mean the
    same."""
    parts = "\x1f".join((pair.kind, pair.first, pair.second, str(pair.same)))
    return hashlib.sha256(parts.encode()).hexdigest()[:16]
