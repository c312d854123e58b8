"""The audit of a model on texts: the effect of removing words, by kind and by place, and how long a
passage may be."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import fmean
from typing import Any

from wordsens.display.numbers import Estimate
from wordsens.display.view import View
from wordsens.errors import InputError, require_choice, require_count
from wordsens.evaluation.length import LengthAdvice, advise_length
from wordsens.evaluation.pairs import require_threshold
from wordsens.evaluation.requirement import EVERY, Gated, Requirement, Unmet
from wordsens.evaluation.texts import NEGATION
from wordsens.evaluation.word_effects import COPY, WordEffect, WordEffects, word_effects
from wordsens.intervals import mean_estimate
from wordsens.maps.transformer.features import TransformerFeatures
from wordsens.models.embedding import Texts, as_documents
from wordsens.models.load import as_model
from wordsens.seeds import Seed
from wordsens.text.english import KINDS, PLACES, kind_of, place_of
from wordsens.text.pairs import Pairs, read_pairs

REMOVALS = ("delete", "mask")

# Numbers of a kind of word or a place that a requirement may name.
FIELDS = ("count", "removal")

# Fewer texts give no difference between two categories.
LEAST_TEXTS = 5

# The first texts of an audit: enough for the 30 shortest changed sentences and the words around
# them.
_ADVICE_TEXTS = 200


@dataclass(frozen=True)
class Group:
    """The measured words of one kind or place.

    Attributes:
        name: the kind or the place.
        count: how many words.
        removal: the relative change by a removal: the mean over texts of the texts' own means.
    """

    name: str
    count: int
    removal: Estimate


@dataclass(frozen=True)
class CutText:
    """A text that was not read to its end, and how many of its words were not read."""

    source: str
    words_lost: int
    negations_lost: int


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Audit(Gated):
    """The effects of removing words, by kind and by place, and the advice on length.

    Attributes:
        effects: one row per measured word.
        removal: "delete" or "mask".
        sources: where each measured text came from.
        copies: how many texts are equal to an earlier one; each text is measured once.
        left_out: the source of each text that cannot be measured, and the reason.
        advice: on length; None where `no_advice` says why.
        unmet: the requirements that fail.
    """

    effects: WordEffects
    removal: str
    sources: tuple[str, ...]
    copies: int
    left_out: tuple[tuple[str, str], ...]
    advice: LengthAdvice | None
    no_advice: str = ""
    unmet: tuple[Unmet, ...] = ()

    @property
    def groups(self) -> list[Group]:
        """One row per kind of word and per place that occurs."""
        words = {name: self.words(name) for name in (*KINDS, *PLACES)}
        return [
            Group(name, len(members), mean_change(members))
            for name, members in words.items()
            if members
        ]

    @property
    def cut(self) -> list[CutText]:
        """The texts that were not read to their end, those that lost most words first."""
        unread = [(source, self.effects.unread(at)) for at, source in enumerate(self.sources)]
        cut = [
            CutText(source, len(words), sum(kind_of(word) == NEGATION for word in words))
            for source, words in unread
            if words
        ]
        return sorted(cut, key=lambda text: -text.words_lost)

    def words(self, *categories: str) -> list[WordEffect]:
        """The rows of the words that are of all these kinds and places."""
        return [
            effect
            for effect in self.effects.effects
            if {*categories} <= {effect.kind, place_of(effect.place)}
        ]

    def difference(
        self, first: Sequence[str], second: Sequence[str]
    ) -> tuple[Estimate, ...] | None:
        """The mean changes by removing words of the first categories and of the second, and the
        first minus the second, over the texts that have both; None for fewer than LEAST_TEXTS."""
        means = [text_means(self.words(*categories)) for categories in (first, second)]
        both = sorted(means[0].keys() & means[1].keys())
        if len(both) < LEAST_TEXTS:
            return None
        one, other = ([side[text] for text in both] for side in means)
        changes = [value - base for value, base in zip(one, other, strict=True)]
        return tuple(mean_estimate(values, over="texts") for values in (one, other, changes))

    def view(self) -> View:
        """The answer, and one row per kind of word and per place."""
        from wordsens.findings.audit import view

        return view(self)

    def columns(self) -> dict[str, Any]:
        """One row per kind of word and per place."""
        return {
            "words": [group.name for group in self.groups],
            "count": [group.count for group in self.groups],
            "removal": [group.removal for group in self.groups],
        }

    def to_dict(self) -> dict[str, Any]:
        """Plain Python values, as the JSON document has them."""
        lists = {"groups": self.groups, "cut": self.cut, "effects": self.effects.effects}
        return {
            "model": self.effects.model,
            "passed": self.passed,
            "failures": list(self.failures),
            "answer": list(self.answer),
            **super().to_dict(),
            **{name: list(map(asdict, rows)) for name, rows in lists.items()},
        }


def audit(
    model: Any,
    texts: Texts,
    *,
    removal: str = "delete",
    words_per_text: int = 4,
    max_words: int = 126,
    pairs: Pairs | None = None,
    threshold: float = 0.95,
    requirements: Sequence[str] = (),
    seed: Seed = 0,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Audit:
    """Measure how far removing single words moves a model's output, by kind of word and by place,
    and how long a passage may be before a negation is lost.

    A removal is one change, ‖f(text without the word) - f(text)‖ / ‖f(text)‖, as in `word_effects`;
    intervals are Student's t over texts. The advice is that of `advise_length` on the first texts.
    A text that cannot be measured is left out, and the first line of the answer says so.

    Args:
        model: whatever `as_model` takes; a TransformerFeatures with output="probabilities" is
            audited by its class probabilities, without an advice on length.
        texts: strings or Documents; each text is measured once.
        removal: "delete", or "mask", which measures the effect of the mask token too.
        words_per_text: words that are removed, one by one: negations first, then a random draw.
        max_words: a longer text keeps its first tokens, without a tokenizer its first words.
        pairs, threshold: for the advice on length, as in `advise_length`.
        requirements: such as "negation.removal >= .05" or "all.removal <= .5"; "all" stands for
            every kind of word.
        seed: of the draw of words.
        progress: called with (done, total).

    Raises:
        InputError: no such model, removal or threshold, pairs or a requirement that cannot be read,
            or no text that can be measured.

    >>> def letters(texts):
    ...     return [[text.count("o") + 1.0, text.count("n") + 1.0] for text in texts]
    >>> found = audit(letters, ["no one is in", "he is not in"])
    >>> [(group.name, group.count, round(group.removal.value, 2)) for group in found.groups][:1]
    [('negation', 2, 0.34)]
    """
    require_choice("removal", removal, REMOVALS)
    require_count("words_per_text", words_per_text)
    require_count("max_words", max_words, least=2)
    require_threshold(threshold, cosines=True)
    gate = Requirement.read_all(requirements, FIELDS, "negation.removal >= .05")
    pairs = None if pairs is None else read_pairs(pairs)
    documents, loaded = as_documents(texts), as_model(model)
    effects = word_effects(
        loaded,
        [document.text for document in documents],
        [removal],
        words_per_text=words_per_text,
        max_words=max_words,
        seed=seed,
        progress=lambda done, total: progress(done, 2 * total),
    )
    sources = [document.source or f"text {number}" for number, document in enumerate(documents)]
    reasons = dict(effects.left_out)
    found = Audit(
        effects=effects,
        removal=removal,
        sources=tuple(source for number, source in enumerate(sources) if number not in reasons),
        copies=list(reasons.values()).count(COPY),
        left_out=tuple(
            (sources[number], reason) for number, reason in reasons.items() if reason != COPY
        ),
        advice=None,
        no_advice="it is for embeddings",
    )
    found = replace(found, unmet=tuple(_unmet(gate, found.groups)))
    if isinstance(loaded, TransformerFeatures) and loaded.output != "states":
        progress(1, 1)
        return found
    try:
        advice = advise_length(
            loaded,
            effects.texts[:_ADVICE_TEXTS],
            pairs,
            threshold,
            progress=lambda done, total: progress(total + done, 2 * total),
        )
    except InputError as error:
        return replace(found, no_advice=str(error))
    finally:
        progress(1, 1)
    return replace(found, advice=advice, no_advice="")


def _unmet(requirements: Sequence[Requirement], groups: Sequence[Group]) -> Iterator[Unmet]:
    rows = {group.name: {"count": group.count, "removal": group.removal.value} for group in groups}
    kinds = {name: row for name, row in rows.items() if name in KINDS}
    for each in requirements:
        missing = f"no measured word is of {each.kind!r}; there are {', '.join(rows)}"
        named = kinds if each.kind == EVERY else rows
        yield from each.unmet(named, number=dict.__getitem__, missing=missing)


def text_means(words: Sequence[WordEffect]) -> dict[int, float]:
    """The mean change of the words of each text."""
    changes: dict[int, list[float]] = {}
    for word in words:
        changes.setdefault(word.text, []).append(word.change)
    return {text: fmean(values) for text, values in changes.items()}


def mean_change(words: Sequence[WordEffect]) -> Estimate:
    """The mean over texts of the texts' own means; no change is below 0."""
    mean = mean_estimate(list(text_means(words).values()), over="texts")
    return mean if mean.low is None else replace(mean, low=max(0.0, mean.low))
