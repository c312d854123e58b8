"""The gate of a check: requirements such as "negation.false_hits <= .2", and the similarities of an earlier check."""

import hashlib
import json
import operator
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from wordsens.errors import InputError, require_choice
from wordsens.evaluation.similarities import Measured
from wordsens.files import named_path, small_text, writing
from wordsens.seeds import Seed
from wordsens.statistics.auc import auc_interval
from wordsens.statistics.paired import Drop, paired_drops
from wordsens.text.pairs import Pair

EVERY = "all"
"""In a kind's place: the requirement is one on every kind."""

LEVEL = 0.05
"""The chance of at least one false alarm among all kinds of a check."""

_FORMAT = 1
_MOST_BYTES = 100_000_000
"""Of a baseline: a line of 150 bytes for each of half a million pairs."""

_FLOOR = 0.01
"""An area under the curve whose interval reaches down to this can hardly fall."""

_FEW = 20
"""Pairs of a kind below which the notes say that the comparison is a coarse one."""

_SIGNS: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}
_FORM = re.compile(
    r"\s*((?P<kind>\S.*)\.)?(?P<field>[a-z_]\w*)\s*(?P<sign>>=|<=|>|<)\s*(?P<bound>[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?)\s*",
    re.IGNORECASE | re.ASCII,
)


@dataclass(frozen=True)
class Requirement:
    """A bound on one number of one kind, of every kind, or of the whole.

    Attributes:
        text: as it was given.
        kind: its name, or EVERY; "" of the whole.
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
    def read(cls, text: str, fields: Sequence[str], example: str, whole: Sequence[str] = ()) -> "Requirement":
        """The requirement that the text states, on one of the fields of a kind, or of the whole.

        >>> requirement = Requirement.read("negation.auc >= .5", ["auc"], "negation.auc >= .5")
        >>> requirement.kind, requirement.field, requirement.sign, requirement.bound
        ('negation', 'auc', '>=', 0.5)
        """
        result = _FORM.fullmatch(text) if isinstance(text, str) else None
        if result is None or (result["kind"] is None and not whole):
            forms = "KIND.FIELD >= NUMBER" + (" or FIELD >= NUMBER" if whole else "")
            raise InputError(f"`requirements` (={text!r}) cannot be read; write it as {forms}, such as {example!r}")
        field = require_choice(f"the field of {text!r}", result["field"], fields if result["kind"] else whole)
        return cls(text.strip(), (result["kind"] or "").strip(), field, result["sign"], float(result["bound"]))

    def met(self, number: int | float | None) -> bool:
        """True where the number is within the bound; None never is."""
        return number is not None and _SIGNS[self.sign](number, self.bound)

    def failure(self, name: str, number: int | float | None, interval: str = "") -> str:
        """The sentence that says what is required, and what is."""
        shown = "none" if number is None else f"{number:.4g}"
        return f"{name} is {shown}{interval}, required {self.sign} {self.bound:g}"


@dataclass(frozen=True)
class Baseline:
    """The similarities of an earlier check.

    Attributes:
        model: its name then.
        identity: of its weights then.
        values: the similarity of every pair, by the pair's key.
    """

    model: str
    identity: str
    values: dict[str, float]

    @classmethod
    def read(cls, path: str | PathLike[str]) -> "Baseline":
        """The baseline in the file.

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
            return cls(str(document["model"]), str(document["identity"]), values)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise InputError(
                f"`baseline`: the file {str(path)!r} is no baseline ({type(error).__name__}: {error}); write one with "
                "--save-baseline"
            ) from error

    def drops(self, measured: Measured, *, seed: Seed) -> tuple[dict[str, Drop], list[str]]:
        """The change of every kind's AUC against near-duplicates over the pairs that both checks have, and notes on
        what is left out.

        Raises:
            InputError: the two have no opposites or no near-duplicates in common, or the baseline is vacuous.
        """
        now = measured.values
        before = np.array([self.values.get(pair_key(pair), np.nan) for pair in measured.pairs])
        known = ~np.isnan(before)
        same = measured.near & known
        kinds = {kind: members & known for kind, members in measured.opposites.items()}
        compared = {kind: members for kind, members in kinds.items() if members.any()}
        if not compared or not same.any():
            raise InputError(
                "`baseline` has no opposites or no near-duplicates in common with this check; save a new one for these "
                "pairs with --save-baseline"
            )
        firsts = {kind: (before[members], now[members]) for kind, members in compared.items()}
        floor = on_the_floor({kind: sides[0] for kind, sides in firsts.items()}, before[same], seed=seed)
        if len(floor) == len(firsts):
            raise InputError(vacuous(floor))
        notes = [f"{kind}: none of its pairs is in the baseline" for kind in kinds if kind not in compared]
        if floor:
            notes.append(f"the baseline protects nothing for {', '.join(floor)}: its AUC was at the floor")
        if few := [f"{kind} ({members.sum()})" for kind, members in compared.items() if members.sum() < _FEW]:
            notes.append(f"so few pairs of a kind show only a large drop: {', '.join(few)}")
        new = int((~known).sum())
        if new:
            notes.append(f"{new} of {len(known)} pairs are not in the baseline and were left out of the comparison")
        return paired_drops(firsts, (before[same], now[same]), seed=seed), notes


def on_the_floor(opposites: dict[str, np.ndarray], near: np.ndarray, *, seed: Seed) -> list[str]:
    """The kinds whose AUC has an interval that reaches down to the floor, so that a fall could not be seen."""
    return [kind for kind, values in opposites.items() if auc_interval(values, near, seed=seed).low < _FLOOR]


def vacuous(kinds: Iterable[str]) -> str:
    """What is said of a baseline that no model can fail."""
    return (
        f"`baseline` is vacuous: the AUC of {', '.join(kinds)} is at the floor, where no model can be worse, so that "
        "the gate would pass whatever replaces this model; require numbers instead, such as --require 'recall >= .8'"
    )


def write_baseline(path: str | PathLike[str], measured: Measured, *, model: str, identity: str) -> None:
    """Save a check's similarities in a JSON file, without its texts: a pair is named by a hash.

    Raises:
        InputError: the file cannot be written.
    """
    document: dict[str, Any] = {
        "format": _FORMAT,
        "model": model,
        "identity": identity,
        "similarities": {
            pair_key(pair): float(value) for pair, value in zip(measured.pairs, measured.values, strict=True)
        },
    }
    place = Path(path).expanduser()
    with writing("path", place):
        place.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def pair_key(pair: Pair) -> str:
    """The first 16 hexadecimal digits of SHA-256 over kind, texts and whether they mean the same."""
    parts = "\x1f".join((pair.kind, pair.first, pair.second, str(pair.same)))
    return hashlib.sha256(parts.encode()).hexdigest()[:16]
