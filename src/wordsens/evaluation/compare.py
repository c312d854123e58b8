"""Comparing two models on the same texts."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from wordsens.errors import InputError, require_count, require_positive
from wordsens.evaluation.check import choose_pairs
from wordsens.evaluation.comparison import Comparison, MatchedThreshold
from wordsens.evaluation.difference import ALL_KINDS, CHECK, FAMILIES, Difference, Gate
from wordsens.evaluation.neighbours import explained, neighbour_differences
from wordsens.evaluation.similarities import Measured, gives_cosines, readable, similarities
from wordsens.evaluation.texts import ChosenWords, choose_words, common_span
from wordsens.evaluation.word_differences import Seen, encodings, see, word_differences
from wordsens.models.black_box import SIMILARITIES, Model
from wordsens.models.load import as_model, as_pair_model, is_pair_model
from wordsens.models.pairs import PairModel
from wordsens.seeds import Seed, derive_seed
from wordsens.statistics.mean import LEAST
from wordsens.statistics.paired import TOGETHER, paired_areas
from wordsens.text.document import Document
from wordsens.text.pairs import Pair, Pairs

NO_PAIRS = "none"
"""In the place of pairs: no check."""


@dataclass(frozen=True, kw_only=True)
class ComparePlan:
    """The effort of a comparison, and the size from which a difference counts.

    Attributes:
        words_per_text: words that are removed from a text one by one: negations first, others at random.
        word_texts: texts that words are removed from, at random where there are more; all texts have neighbours.
        neighbours: neighbours of a text whose recall is measured.
        explained: texts with another first neighbour whose words are looked at.
        tolerance: differences up to this do not count: of areas under the curve, ranks and shares of texts the number
            itself, of removals a share of their mean.
        threshold: a cosine from which on two texts count as the same with the first model; the one of the second that
            keeps as many near-duplicates is given beside it.
    """

    words_per_text: int = 8
    word_texts: int = 300
    neighbours: int = 10
    explained: int = 5
    tolerance: float = 0.01
    threshold: float | None = None

    def __post_init__(self) -> None:
        for name in ("words_per_text", "word_texts", "neighbours"):
            require_count(name, getattr(self, name))
        require_count("explained", self.explained, least=0)
        require_positive("tolerance", self.tolerance)


Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Prepared:
    """All of a comparison that needs no model.

    Attributes:
        texts: each once.
        sources: where each comes from.
        chosen: those whose words are removed, with their numbers.
        pairs: of the check; empty for none.
        plan, gate, seed: as asked.
        notes: on texts and pairs.
    """

    texts: tuple[str, ...]
    sources: tuple[str, ...]
    chosen: tuple[tuple[int, ChosenWords], ...]
    pairs: tuple[Pair, ...]
    plan: ComparePlan
    gate: Gate
    seed: Seed
    notes: tuple[str, ...]


def compare(
    first: Any,
    second: Any,
    texts: Sequence[str | Document],
    pairs: Pairs | None = None,
    seed: Seed = 0,
    *,
    plan: ComparePlan | None = None,
    requirements: Sequence[str] = (),
) -> Comparison:
    """Compare two models, or one before and after a change, on the same texts and pairs.

    Three parts, each paired: how well flipped meanings show (the areas under the curve of `check`); how far an
    embedding moves without a word, by category, by word, and a word's rank in its text; and each text's neighbours
    among the others, with the words that decide where the first one changed. A difference counts where its 95 %
    interval, over pairs or texts, lies beyond the plan's tolerance and a test of all rows together says so: of two
    models that can be exchanged at most 5 % of comparisons find any (for neighbours measured, not proved). All
    numbers are attained on these texts; a removal is one change (docs/compare.md).

    Args:
        first, second: whatever `as_model` or `as_pair_model` takes. Of models that score pairs, the check alone.
        texts: the user's own, or Documents; six at least.
        pairs: of the check, as there; "none" for no check.
        seed: of the words, the texts drawn, and the tests.
        plan: the effort.
        requirements: such as "check.negation.difference >= -.02", "neighbours.nearest.second <= .05" or
            "all.differs <= 0".

    Raises:
        InputError: no such model, too few texts, a wrong pair, or a requirement that cannot be read or asked.

    >>> def letters(texts):
    ...     return [[text.lower().count(letter) + 0.1 for letter in "abcdefghijklmnopqrstuvwxyz"] for text in texts]
    >>> texts = [f"The {thing} is {state}." for thing in ("door", "lift", "road") for state in ("open", "not open")]
    >>> compare(letters, letters, texts, pairs="none").differs
    False
    """
    prepared = prepare(texts, pairs, plan or ComparePlan(), requirements, seed)
    models = [as_pair_model(model) if is_pair_model(model) else as_model(model) for model in (first, second)]
    return compare_models((models[0], models[1]), prepared)


def prepare(
    texts: Sequence[str | Document],
    pairs: Pairs | None,
    plan: ComparePlan,
    requirements: Sequence[str],
    seed: Seed,
) -> Prepared:
    """The texts and pairs of a comparison, its words chosen; InputError as of `compare`, before a model is loaded."""
    derive_seed(seed)
    saved, notes = _texts(texts)
    drawn = range(len(saved))
    if len(saved) > plan.word_texts:
        random = np.random.default_rng(derive_seed(seed, "compared texts"))
        drawn = sorted(random.choice(len(saved), plan.word_texts, replace=False).tolist())
        notes.append(f"words were removed from {plan.word_texts} of the {len(saved)} texts, drawn at random")
    words = [(at, choose_words(saved[at], plan.words_per_text, seed)) for at in drawn]
    chosen = tuple((at, each) for at, each in words if each.length > 1 and each.words)
    if len(chosen) < len(words):
        notes.append(f"{len(words) - len(chosen)} texts have fewer than two words, and none was removed from them")
    read, pair_notes = ([], []) if isinstance(pairs, str) and pairs == NO_PAIRS else choose_pairs(pairs, None)
    gate = Gate.read(requirements)
    gate.require_askable([pair.kind for pair in read if not pair.same], [each for _, each in chosen])
    named = {each.text: each.source for each in texts if isinstance(each, Document)}
    sources = tuple(named.get(text) or f"text {at}" for at, text in enumerate(saved))
    return Prepared(tuple(saved), sources, chosen, tuple(read), plan, gate, seed, (*notes, *pair_notes))


def compare_models(
    models: tuple[Model | PairModel, Model | PairModel],
    prepared: Prepared,
    *,
    progress: Progress = lambda done, total: None,
) -> Comparison:
    """The comparison of two loaded models; `progress` is called with texts encoded, and how many there are."""
    prepared = _read_by_both(_readable(prepared, models), models)
    counted = _Counter(prepared, models, progress)
    notes = list(prepared.notes)
    rows, matched = _checked(models, prepared, counted, notes) if prepared.pairs else ([], None)
    changed, apart = (), None
    first, second = models
    if isinstance(first, Model) and isinstance(second, Model):
        if not prepared.chosen:
            raise InputError("`texts` holds none of two words or more that both models read; a removal takes one away")
        notes += [
            f"{model.name} compares by the {SIMILARITIES[model.similarity]} (similarity_fn_name): so does the check of "
            "its pairs; neighbours and distances are by cosines all the same"
            for model in models
            if isinstance(model, Model) and not gives_cosines(model)
        ]
        observed = (
            see(first, prepared.texts, prepared.chosen, counted.told),
            see(second, prepared.texts, prepared.chosen, counted.told),
        )
        plan, chosen = prepared.plan, [each for _, each in prepared.chosen]
        rows += word_differences(chosen, *observed, tolerance=plan.tolerance, seed=prepared.seed)
        near, results = neighbour_differences(
            prepared.texts, *observed, most=plan.neighbours, tolerance=plan.tolerance, seed=prepared.seed
        )
        rows += near
        looked = explained(results[: plan.explained], (first, second), observed, lambda done: None)
        changed, apart = (*looked, *results[plan.explained :]), _apart(observed)
    elif not rows:
        raise InputError("`pairs` (='none') leaves nothing to compare: a model of pairs has the check alone")
    else:
        notes.append("a model that scores pairs gives texts no vectors: words and neighbours were not compared")
    result = Comparison(
        first=_named(models)[0],
        second=_named(models)[1],
        identities=(first.identity(), second.identity()),
        texts=len(prepared.texts),
        apart=apart,
        rows=tuple(rows),
        changed=tuple(changed),
        matched=matched,
        tolerance=prepared.plan.tolerance,
        failures=(),
        requirements=tuple(requirement.text for requirement in prepared.gate.requirements),
        notes=tuple(notes),
    )
    return replace(result, failures=tuple(prepared.gate.failures(rows)))


def _readable(prepared: Prepared, models: tuple[Model | PairModel, Model | PairModel]) -> Prepared:
    """Without the texts that one of the models refuses, such as one of emoji alone; a note counts and names them."""
    readers = [model for model in models if isinstance(model, Model)]
    reasons = {
        at: reason
        for at, text in enumerate(prepared.texts)
        if (reason := next(filter(None, (model.unreadable(text) for model in readers)), None)) is not None
    }
    if not reasons:
        return prepared
    saved = [at for at in range(len(prepared.texts)) if at not in reasons]
    if len(saved) < LEAST + 1:
        raise InputError(f"`texts` holds {len(saved)} texts that both models read; give {LEAST + 1} or more")
    place = {old: new for new, old in enumerate(saved)}
    first = min(reasons)
    note = (
        f"{len(reasons)} texts cannot be read and were left out; the first, {prepared.sources[first]}: {reasons[first]}"
    )
    return replace(
        prepared,
        texts=tuple(prepared.texts[at] for at in saved),
        sources=tuple(prepared.sources[at] for at in saved),
        chosen=tuple((place[at], each) for at, each in prepared.chosen if at in place),
        notes=(*prepared.notes, note),
    )


def _read_by_both(prepared: Prepared, models: tuple[Model | PairModel, Model | PairModel]) -> Prepared:
    """The words that both models read, and a note on the others."""
    readers = [model for model in models if isinstance(model, Model)]
    limits = {
        at: common_span([model.read_span(each.text) for model in readers] or [(0, len(each.text))])
        for at, each in prepared.chosen
    }
    if all(limits[at] == (0, len(each.text)) for at, each in prepared.chosen):
        return prepared
    plan = prepared.plan
    again = [
        (at, choose_words(each.text, plan.words_per_text, prepared.seed, limits[at])) for at, each in prepared.chosen
    ]
    unread = [each for _, each in again if each.unread]
    if not unread:
        return replace(prepared, chosen=tuple((at, each) for at, each in again if each.words))
    note = (
        f"{sum(each.unread for each in unread)} words of {len(unread)} texts are past what one of the models reads: "
        f"none of them was removed, and their change is unknown; the first text is {unread[0].text[:40]!r}..."
    )
    chosen = tuple((at, each) for at, each in again if each.words)
    return replace(prepared, chosen=chosen, notes=(*prepared.notes, note))


def _texts(texts: Sequence[str | Document]) -> tuple[list[str], list[str]]:
    """The texts, each once, and notes."""
    if isinstance(texts, str | Document):
        raise InputError(f"`texts` (={str(texts)[:40]!r}) must be a list of texts; put it into a list")
    listed = [text.text if isinstance(text, Document) else text for text in texts]
    if odd := [text for text in listed if not isinstance(text, str)]:
        raise InputError(f"`texts` must be a list of strings or Documents; got {odd[0]!r}")
    saved = list(dict.fromkeys(text for text in listed if text.strip()))
    notes = []
    if len(saved) < len(listed):
        notes.append(f"{len(listed) - len(saved)} texts are empty or equal another, and were left out")
    if len(saved) < LEAST + 1:
        raise InputError(
            f"`texts` holds {len(saved)} different texts; give {LEAST + 1} or more, for intervals over texts"
        )
    return saved, notes


def _named(models: tuple[Model | PairModel, Model | PairModel]) -> tuple[str, str]:
    """The models' names; "(second)" behind the second where both have one name."""
    first, second = models[0].name, models[1].name
    return first, second if second != first else f"{second} (second)"


def _checked(
    models: tuple[Model | PairModel, Model | PairModel], prepared: Prepared, counted: "_Counter", notes: list[str]
) -> tuple[list[Difference], MatchedThreshold | None]:
    """The differences in the check's areas under the curve, and the thresholds that keep as many near-duplicates."""
    pairs = list(prepared.pairs)
    for model in models:
        pairs, unread = readable(model, pairs)
        notes += unread
    before, after = (similarities(model, pairs, progress=counted.pairs()) for model in models)
    measured = Measured(pairs, before, cosines=all(map(gives_cosines, models)))
    same = measured.near
    sides = {kind: (before[members], after[members]) for kind, members in measured.opposites.items()}
    result = paired_areas(sides, (before[same], after[same]), seed=prepared.seed)
    counts = {kind: len(numbers[0]) for kind, numbers in sides.items()}
    rows = [
        Difference(
            part=CHECK, name=ALL_KINDS if name == TOGETHER else name, count=counts.get(name, sum(counts.values())),
            first=area.before, second=area.after, difference=area.change.value, low=area.change.low,
            high=area.change.high, margin=prepared.plan.tolerance, p=min(1.0, FAMILIES * area.p),
        )
        for name, area in result.items()
    ]  # fmt: skip
    threshold = prepared.plan.threshold
    if threshold is None:
        return rows, None
    opposite = np.logical_or.reduce(list(measured.opposites.values()))
    return rows, MatchedThreshold.of(threshold, (before, after), same, opposite, seed=prepared.seed)


def _apart(observed: tuple[Seen, Seen]) -> float | None:
    """The mean distance of a text's two vectors, both at length one; None where they have not one dimension."""
    first, second = (each.units for each in observed)
    return float((first - second).norm(dim=1).mean()) if first.shape == second.shape else None


class _Counter:
    """Texts that both models have encoded, of all that they will."""

    def __init__(self, prepared: Prepared, models: Sequence[Model | PairModel], progress: Progress):
        self._progress, self._done = progress, 0
        of_pairs = len({text for pair in prepared.pairs for text in (pair.first, pair.second)})
        vectors = all(isinstance(model, Model) for model in models)
        self._total = 2 * (of_pairs + (encodings(prepared.texts, prepared.chosen) if vectors else 0))

    def told(self, done: int) -> None:
        """So many texts more."""
        self._done += done
        self._progress(min(self._done, self._total), self._total)

    def pairs(self) -> Progress:
        """The progress of one model's pairs."""
        last = 0

        def progress(done: int, total: int) -> None:
            nonlocal last
            self.told(done - last)
            last = done

        return progress
