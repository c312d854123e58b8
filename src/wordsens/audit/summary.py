"""From audited texts to what a person reads: categories, words that a model reacts to or ignores, length."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from wordsens.audit.categories import frequency_bands, kind_of, place_of
from wordsens.audit.reactions import Reaction, least_texts, reactions
from wordsens.audit.text import AuditedText, AuditedWord
from wordsens.errors import InputError
from wordsens.statistics.power_law import PowerLaw, fit_power_law, unfit_for_power_law

MEASURES = ("sensitivity", "removal", "swap")


@dataclass(frozen=True)
class Group:
    """The words of one category: how many, and the mean of each measure."""

    category: str
    count: int
    sensitivity: float
    removal: float
    swap: float | None


@dataclass(frozen=True)
class Exponent:
    """How one measure of one kind of word goes with the number of tokens: a power law, or the reason for none.

    Attributes:
        fit: over the words, with a standard error by text; None where `reason` says why.
        reason: why there is no fit.
        texts: of how many texts the words are.
    """

    fit: PowerLaw | None
    reason: str | None
    texts: int


@dataclass(frozen=True)
class AuditSummary:
    """What an audit says.

    Attributes:
        texts, words: how many were measured.
        groups: by kind, place and frequency band.
        compared: how many words were measured in enough texts (`least_texts`) to be listed; about one in forty of them
            is in a list by chance.
        most_texts: the most texts that any word was measured in.
        overreacts: of these, the function words that move their texts more than the texts' other words do.
        ignores: the content words and negations that move them less.
        exponents: of each kind's measures in the number of tokens.
    """

    texts: int
    words: int
    groups: tuple[Group, ...]
    compared: int
    most_texts: int
    overreacts: tuple[Reaction, ...]
    ignores: tuple[Reaction, ...]
    exponents: dict[str, dict[str, Exponent]]

    def to_dict(self) -> dict[str, Any]:
        """Plain Python values."""
        return {
            "texts": self.texts,
            "words": self.words,
            "groups": [asdict(group) for group in self.groups],
            "compared": self.compared,
            "overreacts": [_reaction_dict(reaction) for reaction in self.overreacts],
            "ignores": [_reaction_dict(reaction) for reaction in self.ignores],
            "exponents": {
                kind: {name: _exponent_dict(one) for name, one in own.items()} for kind, own in self.exponents.items()
            },
        }


@dataclass(frozen=True)
class _Sorted:
    """A measured word with its categories and its text."""

    measured: AuditedWord
    text: int
    tokens: int
    kind: str
    place: str
    band: str


def summarise_audit(texts: Iterable[AuditedText], counts: Counter[str], *, listed: int = 8) -> AuditSummary:
    """The summary of the texts that were measured.

    Args:
        texts: of one audit.
        counts: how often each word occurs in the data.
        listed: the most words in each list.

    Raises:
        InputError: there is no text.
    """
    done = list(texts)
    if not done:
        raise InputError("no text of the dataset could be measured; give texts of two words or more")
    bands = frequency_bands(counts)
    words = [
        _Sorted(word, at, text.tokens, kind_of(word.word), place_of(word.place), bands.get(word.word.lower(), "rare"))
        for at, text in enumerate(done)
        for word in text.measured
    ]
    groups = [
        _group(f"{name}: {value}", [word.measured for word in words if getattr(word, name) == value])
        for name in ("kind", "place", "band")
        for value in sorted({getattr(word, name) for word in words})
    ]
    found, most = reactions(done)
    function = [one for one in found.values() if one.more and kind_of(one.word) == "function word"]
    content = [one for one in found.values() if one.less and kind_of(one.word) in ("content word", "negation")]
    return AuditSummary(
        texts=len(done),
        words=len(words),
        groups=tuple(groups),
        compared=len(found),
        most_texts=most,
        overreacts=tuple(sorted(function, key=lambda one: -one.low)[:listed]),
        ignores=tuple(sorted(content, key=lambda one: one.high)[:listed]),
        exponents={
            kind: _exponents([word for word in words if word.kind == kind])
            for kind in sorted({word.kind for word in words})
        },
    )


def _group(category: str, words: Sequence[AuditedWord]) -> Group:
    swaps = [word.swap for word in words if not math.isnan(word.swap)]
    return Group(
        category,
        len(words),
        _mean([word.sensitivity for word in words]),
        _mean([word.removal for word in words]),
        _mean(swaps) if swaps else None,
    )


def _exponents(words: Sequence[_Sorted]) -> dict[str, Exponent]:
    found = {}
    for name in MEASURES:
        own = [word for word in words if not math.isnan(getattr(word.measured, name))]
        if own:
            found[name] = _exponent(own, [getattr(word.measured, name) for word in own])
    return found


def _exponent(words: Sequence[_Sorted], values: Sequence[float]) -> Exponent:
    sizes, owners = [word.tokens for word in words], [word.text for word in words]
    texts = len(set(owners))
    reason = unfit_for_power_law(sizes, owners)
    zeros = sum(value == 0 for value in values)
    if reason is None and zeros:
        reason = f"{zeros} of its {len(values)} values are 0, and a power law has none"
    return Exponent(None if reason else fit_power_law(sizes, values, texts=owners), reason, texts)


def _reaction_dict(reaction: Reaction) -> dict[str, Any]:
    """Numbers that JSON has: an infinite ratio is None."""
    return {key: None if value == math.inf else value for key, value in asdict(reaction).items()}


def _exponent_dict(exponent: Exponent) -> dict[str, Any]:
    fit = exponent.fit
    return {
        "exponent": None if fit is None else fit.exponent,
        "standard_error": None if fit is None else fit.standard_error,
        "texts": exponent.texts,
        "reason": exponent.reason,
    }


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


__all__ = ["AuditSummary", "Exponent", "Group", "Reaction", "least_texts", "summarise_audit"]
