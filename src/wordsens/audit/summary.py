"""From the records of an audit to what a person reads: categories, words it overreacts to or ignores, length."""

import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from wordsens.audit.categories import frequency_bands, kind_of, place_of
from wordsens.audit.record import AuditRecord
from wordsens.errors import InputError
from wordsens.experiments.summary import PowerLaw, fit_power_law

_LEAST_OCCURRENCES = 2
"""A word is listed when it was measured this often at least: one measurement says more of its text than of the word."""


@dataclass(frozen=True)
class Measured:
    """One measured word."""

    word: str
    kind: str
    place: str
    band: str
    tokens: int
    sensitivity: float
    removal: float
    swap: float


@dataclass(frozen=True)
class Group:
    """The words of one category: how many, and the mean of each measure."""

    category: str
    count: int
    sensitivity: float
    removal: float
    swap: float | None


@dataclass(frozen=True)
class AuditSummary:
    """What an audit says.

    Attributes:
        texts, words: how many were measured.
        groups: by kind, place and frequency band.
        overreacts: function words whose removal moves the features most, with mean removal and how often measured.
        ignores: content words and negations whose removal moves them least.
        exponents: of each kind's sensitivity ("sensitivity"), and of its removal's effect ("removal"), in the number of
            tokens, over texts of different length.
    """

    texts: int
    words: int
    groups: tuple[Group, ...]
    overreacts: tuple[tuple[str, float, int], ...]
    ignores: tuple[tuple[str, float, int], ...]
    exponents: dict[str, dict[str, PowerLaw]]

    def to_dict(self) -> dict[str, Any]:
        """Plain Python values."""
        return {
            "texts": self.texts,
            "words": self.words,
            "groups": [vars(group) for group in self.groups],
            "overreacts": [{"word": word, "removal": value, "count": count} for word, value, count in self.overreacts],
            "ignores": [{"word": word, "removal": value, "count": count} for word, value, count in self.ignores],
            "exponents": {
                kind: {
                    name: {"exponent": fit.exponent, "standard_error": fit.standard_error} for name, fit in own.items()
                }
                for kind, own in self.exponents.items()
            },
        }


def summarise_audit(records: Iterable[AuditRecord], counts: Counter[str], *, listed: int = 8) -> AuditSummary:
    """The summary of the finished records.

    Args:
        records: of one audit.
        counts: how often each word occurs in the data.
        listed: words in each list.

    Raises:
        InputError: when no text could be measured.
    """
    done = [record for record in records if record.done]
    if not done:
        raise InputError("no text of the dataset could be measured; give texts of two words or more")
    bands = frequency_bands(counts)
    words = [word for record in done for word in _words(record, bands)]
    groups = [
        _group(f"{name}: {value}", [word for word in words if getattr(word, name) == value])
        for name in ("kind", "place", "band")
        for value in dict.fromkeys(sorted({getattr(word, name) for word in words}))
    ]
    means = _means(words)
    function = [one for one in means if kind_of(one[0]) == "function word"]
    content = [one for one in means if kind_of(one[0]) in ("content word", "negation")]
    return AuditSummary(
        texts=len(done),
        words=len(words),
        groups=tuple(groups),
        overreacts=tuple(sorted(function, key=lambda one: -one[1])[:listed]),
        ignores=tuple(sorted(content, key=lambda one: one[1])[:listed]),
        exponents={
            kind: fits
            for kind in sorted({word.kind for word in words})
            if (fits := _exponents([word for word in words if word.kind == kind]))
        },
    )


def _words(record: AuditRecord, bands: dict[str, str]) -> list[Measured]:
    names = json.loads(record.measured)
    swaps = record.swap or (math.nan,) * len(names)
    return [
        Measured(name, kind_of(name), place_of(place), bands.get(name.lower(), "rare"), record.tokens, *values)
        for name, place, *values in zip(names, record.places, record.sensitivity, record.removal, swaps, strict=True)
    ]


def _group(category: str, words: Sequence[Measured]) -> Group:
    swaps = [word.swap for word in words if not math.isnan(word.swap)]
    return Group(
        category,
        len(words),
        _mean([word.sensitivity for word in words]),
        _mean([word.removal for word in words]),
        _mean(swaps) if swaps else None,
    )


def _means(words: Sequence[Measured]) -> list[tuple[str, float, int]]:
    by_word: dict[str, list[float]] = defaultdict(list)
    for word in words:
        by_word[word.word.lower()].append(word.removal)
    return [(word, _mean(own), len(own)) for word, own in sorted(by_word.items()) if len(own) >= _LEAST_OCCURRENCES]


def _exponents(words: Sequence[Measured]) -> dict[str, PowerLaw]:
    found = {}
    for name in ("sensitivity", "removal", "swap"):
        own = [(word.tokens, getattr(word, name)) for word in words if getattr(word, name) > 0]
        if len(own) >= 3 and len({tokens for tokens, _ in own}) >= 2:
            found[name] = fit_power_law([tokens for tokens, _ in own], [value for _, value in own])
    return found


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)
