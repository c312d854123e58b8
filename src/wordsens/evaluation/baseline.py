"""A model's measured similarities, kept in a file, and the test of a later model against them."""

import hashlib
import json
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from wordsens.errors import InputError
from wordsens.evaluation.kinds import Measured
from wordsens.files import named_path, small_text, writing
from wordsens.seeds import Seed
from wordsens.statistics.paired_drop import Drop, paired_drops
from wordsens.text.pairs import Pair

LEVEL = 0.05
"""The chance of at least one false alarm among all kinds of a check."""

_FORMAT = 1
_MOST_BYTES = 100_000_000
"""Of a baseline: a line of 150 bytes for each of half a million pairs."""


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
        """The change of every kind's AUC over the pairs that both checks have, and notes on what is left out.

        Raises:
            InputError: the two have no opposites or no paraphrases in common.
        """
        now = measured.values
        before = np.array([self.values.get(pair_key(pair), np.nan) for pair in measured.pairs])
        known = ~np.isnan(before)
        same = measured.paraphrases & known
        kinds = {kind: members & known for kind, members in measured.opposites.items()}
        compared = {kind: members for kind, members in kinds.items() if members.any()}
        if not compared or not same.any():
            raise InputError(
                "`baseline` has no pairs in common with this check; save a new one for these pairs with --save-baseline"
            )
        notes = [f"{kind}: none of its pairs is in the baseline" for kind in kinds if kind not in compared]
        new = int((~known).sum())
        if new:
            notes.append(f"{new} of {len(known)} pairs are not in the baseline and were left out of the comparison")
        firsts = {kind: (before[members], now[members]) for kind, members in compared.items()}
        return paired_drops(firsts, (before[same], now[same]), seed=seed), notes


def write_baseline(path: str | PathLike[str], measured: Measured, *, model: str, identity: str) -> None:
    """Keep a check's similarities in a JSON file, without its texts: a pair is named by a hash.

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
