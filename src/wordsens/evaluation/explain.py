"""The words that carry one score, one embedding, or one text's sensitivity under a map."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch
from torch.nn.functional import normalize

from wordsens.display.view import View
from wordsens.errors import InputError, require_count
from wordsens.evaluation.substitutes import substitutes
from wordsens.evaluation.text_scores import TextScore, gradient, score_of
from wordsens.evaluation.texts import Progress, encoded
from wordsens.maps.base import FeatureMap
from wordsens.maps.mapping import perturbed_texts
from wordsens.results import Result
from wordsens.seeds import Seed
from wordsens.sensitivity.one_word import word_sensitivity
from wordsens.text.matrix import TextMatrix
from wordsens.text.whole_words import (
    TAKEN_APART,
    Span,
    lettered_spans,
    takes_apart,
    with_word,
    without,
    words_at,
)

LISTED = 8
"""Words and pairs that are listed."""

LEADERS = 16
"""Words of each text that are exchanged and moved as vectors, unless a number is given."""

BATCH = 32
"""Moved texts that run together."""


@dataclass(frozen=True, kw_only=True)
class WordEffect:
    """One word, and what becomes of the score without it, or with something else in its place.

    Attributes:
        side: 0 of a word of the first text, 1 of the second.
        word, start, stop: the word and its place in the text.
        removal: the score without the word, less the score: one change, by encoding the text again;
            None, as all other numbers, of a word past what the model reads.
        swap, swapped_for: the largest change of the score by one of `tried` words that a writer
            could have put there, and that word; None where none was tried: no word is listed for
            it, or it is none of the leading ones.
        tried: other words that were tried.
        lowers, raises: the farthest that the score was found to fall and to rise when the word's
            rows move by up to their own length: a lower bound each of what a vector in the word's
            place can do; None without gradients, and of all words but the leading ones. A score
            that cannot fall has no `lowers`.
        upper: a proved upper bound of the farthest change; None where the map has none.
        apart: the largest rise of the score when this word and one of the other text are removed
            together: one change for each of those words; None of one text, or where every pair
            would cost an evaluation.
        counterpart: that word of the other text.
        shared: whether one of its tokens is also that of another word, which is moved with it as a
            vector.
    """

    side: int
    word: str
    start: int
    stop: int
    removal: float | None = None
    swap: float | None = None
    swapped_for: str | None = None
    tried: int = 0
    lowers: float | None = None
    raises: float | None = None
    upper: float | None = None
    apart: float | None = None
    counterpart: str | None = None
    shared: bool = False

    @property
    def span(self) -> Span:
        """Its place."""
        return self.start, self.stop

    @property
    def farthest(self) -> float | None:
        """The larger of `lowers` and `raises`, with its sign."""
        return max(
            (end for end in (self.lowers, self.raises) if end is not None), key=abs, default=None
        )

    @property
    def rise(self) -> float:
        """The largest rise of the score without the word, alone or with one of the other text."""
        return max(self.removal or 0.0, self.apart or 0.0)


@dataclass(frozen=True, kw_only=True)
class PairEffect:
    """Two words, one of each text: what removing both does, less what removing each does.

    Attributes:
        first, second: the words; first_at and second_at their numbers in `words`.
        together: the change of the score without both: one change.
        alone: the sum of the changes without either.
    """

    first: str
    second: str
    first_at: int
    second_at: int
    together: float
    alone: float


@dataclass(frozen=True, eq=False, repr=False)
class Explanation(Result):
    """An explanation of one number by its words.

    Attributes:
        model: its name.
        score: what the number is, such as "cosine".
        value: the number.
        texts: one or two.
        words: one entry a word, in the order of the texts; signs are no words.
        pairs: pairs of words, the farthest from the sum of their parts first.
        notes: what could not be said, and why.
    """

    model: str
    score: str
    value: float
    texts: tuple[str, ...]
    words: tuple[WordEffect, ...]
    pairs: tuple[PairEffect, ...]
    notes: tuple[str, ...]

    @property
    def removal(self) -> tuple[float | None, ...]:
        """Every word's removal, in the order of `words`."""
        return tuple(word.removal for word in self.words)

    @property
    def dividing(self) -> WordEffect | None:
        """The word that keeps the two texts apart most: without it, or without it and its
        counterpart of the other text, the score rises most."""
        known = [word for word in self.words if word.removal is not None and len(self.texts) > 1]
        return max(known, key=lambda word: word.rise, default=None)

    def most(self, name: str, count: int = LISTED) -> list[WordEffect]:
        """The words with the largest values of that name, such as "removal" or "apart", by size."""
        known = [word for word in self.words if getattr(word, name) is not None]
        return sorted(known, key=lambda word: -abs(getattr(word, name)))[:count]

    @property
    def answer(self) -> tuple[str, ...]:
        """The findings in sentences, each saying whether a number is one change or the farthest
        that was found."""
        from wordsens.findings.explain import answer

        return answer(self)

    @property
    def headline(self) -> str:
        """The number."""
        return self.answer[0]

    def columns(self) -> dict[str, Any]:
        """One row per word: its text (1 or 2) and what deleting, replacing and moving it does."""
        names = ("word", "removal", "swap", "swapped_for", "lowers", "raises", "upper", "apart")
        rows = {name: [getattr(word, name) for word in self.words] for name in names}
        return {"text": [word.side + 1 for word in self.words], **rows}

    def view(self) -> View:
        """The sentences, the texts with the words coloured by what deleting them does, one row per
        word, and pairs."""
        from wordsens.findings.explain import view

        return view(self)

    def to_dict(self) -> dict[str, Any]:
        """Plain Python values."""
        plain = asdict(self)
        return plain | {name: list(plain[name]) for name in ("texts", "words", "pairs", "notes")}

    def __str__(self) -> str:
        return "\n".join(self.answer)


def explain(
    model: Any,
    text: str | TextMatrix,
    other: str | None = None,
    *,
    target: int | None = None,
    tries: int = 8,
    leaders: int = LEADERS,
    vectors: bool = True,
    seed: Seed = 0,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Explanation:
    """The words that carry a number: what becomes of it without each, with another in its place, or
    moved as a vector.

    The number is the cosine of two texts, or what else the model compares by (similarity_fn_name);
    of a model that scores pairs, its score; of a classifier, the probability of a class; of one
    text alone, how far its vector moves. A removal and a swap are one change each, by encoding the
    text again; `lowers` and `raises` are lower bounds: the score at x_G ± the longest step along
    its slope, ‖x_j‖ for every row j of the word G. Words past what the model reads have no numbers.

    Cost: one evaluation a word, and `tries` + 2 for each of the leading words, those whose removal
    changes the score most; a note says where a text has more words than that. Pairs of words cost
    none, as the vectors of the texts without one word each are known; models that score pairs have
    no such pairs.

    Args:
        model: whatever `as_model` or `as_pair_model` takes; a Classifier or a TransformerFeatures
            with output="probabilities" for classes; or any feature map, with `text` as rows: its
            sensitivities and their upper bounds. Two Models, for the first and the second text,
            such as one with two prompts.
        text: the text.
        other: the text that it is compared with.
        target: the class; None for the likeliest.
        tries: at most so many of its `substitutes`, words that a writer could put there, are tried
            in its place; a word that has none has no swap.
        leaders: how many words of each text are exchanged and moved as vectors.
        vectors: whether each of them is also moved as a vector, where the model has gradients.
        seed: of the search of a map that takes rows.
        progress: called with (evaluations done, evaluations at most).

    Raises:
        InputError: no such model, a text without a word, or what the model cannot be asked.

    >>> def letters(texts):
    ...     return [[text.count(letter) + 0.1 for letter in "abcdefghijklmnopqrstuvwxyz"] for text in texts]
    >>> explained = explain(letters, "the door is open", "the door is shut", tries=0)
    >>> explained.most("apart", 1)[0].word, explained.most("apart", 1)[0].counterpart
    ('open', 'shut')
    """  # noqa: E501
    require_count("tries", tries, least=0)
    require_count("leaders", leaders)
    if isinstance(text, TextMatrix):
        return _of_rows(model, text, seed)
    score = score_of(model, text, other, target)
    words = [
        WordEffect(side=side, word=its[start:stop], start=start, stop=stop)
        for side, its in enumerate(score.texts)
        for start, stop in lettered_spans(its)
    ]
    longest = max(sum(word.side == side for word in words) for side in range(len(score.texts)))
    if longest < 2:
        raise InputError(
            f"`text` (={text[:40]!r}) has {longest} words; an explanation compares two or more"
        )
    notes: list[str] = []
    # Of each text the numbers in `words` of those that are measured.
    if any(map(takes_apart, score.texts)):
        notes.append(TAKEN_APART)
    measured = [_read(score, side, words, notes) for side in range(len(score.texts))]
    total = sum(
        len(numbers) + min(leaders, len(numbers)) * (tries + 2 * vectors) + vectors
        for numbers in measured
    )
    done = 0

    def count(evaluations: int) -> None:
        nonlocal done
        done += evaluations
        progress(done, total)

    for side, numbers in enumerate(measured):
        changed = [without(score.texts[side], words[number].span) for number in numbers]
        for number, change in zip(numbers, _changes(score, side, changed, count), strict=True):
            words[number] = replace(words[number], removal=change)
    pairs = _pair_effects(score, words, measured)
    unlisted: list[str] = []
    for side, numbers in enumerate(measured):
        leading = sorted(numbers, key=lambda number: -abs(words[number].removal or 0))[:leaders]
        if leading and tries:
            unlisted += _swap(score, side, words, leading, tries, count)
        if leading and vectors:
            note = _move(score, side, words, leading, count)
            notes += [note] if note and note not in notes else []
        if len(leading) < len(numbers) and (tries or vectors):
            notes.append(
                f"only the {len(leading)} of {len(numbers)} words of {_named(score, side)} whose "
                "removal moves the "
                "score most were exchanged or moved as vectors; for all of them pass "
                f"leaders={len(numbers)}"
            )
    if unlisted:
        named = ", ".join(dict.fromkeys(f"'{word}'" for word in unlisted))
        notes.append(f"No swap: no word is listed that a writer could put in the place of {named}.")
    progress(
        total, total
    )  # a word with fewer candidates than `tries`, or a model without gradients, needs fewer
    return Explanation(
        score.model, score.name, score.value, score.texts, tuple(words), pairs, tuple(notes)
    )


def _read(score: TextScore, side: int, words: Sequence[WordEffect], notes: list[str]) -> list[int]:
    """The numbers of a text's words that the model reads, where it has several; a note names the
    others."""
    start, stop = score.read_span(side)
    every = [number for number, word in enumerate(words) if word.side == side]
    whose = _named(score, side)
    if len(every) < 2:
        notes.append(
            f"{whose} has {'one word' if every else 'no word'}: nothing would be left without it, "
            "so that it has no "
            "numbers"
        )
        return []
    read = [
        number for number in every if start <= words[number].start and words[number].stop <= stop
    ]
    if lost := [words[number].word for number in every if number not in read]:
        notes.append(
            f"{len(lost)} of {len(every)} words of {whose}, from '{lost[0]}' to '{lost[-1]}', are "
            "past what the model "
            "reads and have no numbers; explain a shorter passage"
        )
    return read


def _named(score: TextScore, side: int) -> str:
    return ("the first text", "the second text")[side] if len(score.texts) > 1 else "the text"


def _changes(score: TextScore, side: int, texts: Sequence[str], progress: Progress) -> list[float]:
    """The change of the score with each of the texts in the place of the text on that side."""
    return (encoded(lambda some: score.of(side, some), texts, progress) - score.value).tolist()


def _pair_effects(
    score: TextScore, words: list[WordEffect], measured: Sequence[Sequence[int]]
) -> tuple[PairEffect, ...]:
    """The pairs of words, one of each text, whose removal is no sum; and into `words` every word's
    counterpart."""
    if len(measured) < 2 or not all(measured):
        return ()
    shortened = [
        [without(text, words[number].span) for number in numbers]
        for text, numbers in zip(score.texts, measured, strict=True)
    ]
    scores = score.together(*shortened)
    if scores is None:
        return ()
    together = scores - score.value
    removals = [
        torch.tensor([words[n].removal for n in numbers], dtype=together.dtype)
        for numbers in measured
    ]
    alone = removals[0].unsqueeze(1) + removals[1]
    for side, table in enumerate((together, together.T)):
        rises, partners = (column.tolist() for column in table.max(dim=1))
        for number, rise, partner in zip(measured[side], rises, partners, strict=True):
            counterpart = words[measured[1 - side][partner]].word
            words[number] = replace(words[number], apart=rise, counterpart=counterpart)
    pairs = []
    for cell in (together - alone).abs().flatten().argsort(descending=True)[:LISTED].tolist():
        row, column = divmod(cell, len(measured[1]))
        first, second = measured[0][row], measured[1][column]
        pairs.append(
            PairEffect(
                first=words[first].word,
                second=words[second].word,
                first_at=first,
                second_at=second,
                together=float(together[row, column]),
                alone=float(alone[row, column]),
            )
        )
    return tuple(pairs)


def _swap(
    score: TextScore,
    side: int,
    words: list[WordEffect],
    leading: Sequence[int],
    tries: int,
    progress: Progress,
) -> list[str]:
    """Into `words` the farthest swap of each leading word of that text; returned are those without
    substitutes."""
    text = score.texts[side]
    spans = [words[number].span for number in leading]
    tried = [substitutes(text, span)[:tries] for span in spans]
    changed = [
        with_word(text, span, other)
        for span, others in zip(spans, tried, strict=True)
        for other in others
    ]
    changes = iter(_changes(score, side, changed, progress))
    for number, others in zip(leading, tried, strict=True):
        if others:
            change, other = max(
                ((next(changes), other) for other in others), key=lambda swap: abs(swap[0])
            )
            words[number] = replace(
                words[number], swap=change, swapped_for=other, tried=len(others)
            )
    return [words[number].word for number, others in zip(leading, tried, strict=True) if not others]


def _move(
    score: TextScore, side: int, words: list[WordEffect], leading: Sequence[int], progress: Progress
) -> str | None:
    """Into `words` the score with the rows of each leading word moved as far as they are long, up
    and down its slope; and a note."""
    try:
        phi, X, function = score.function(side)
    except InputError as error:
        return f"No vectors: {error}"
    rows = X.rows
    if score.signed:
        slope = gradient(function, rows)
    else:
        # A distance has no slope where it is 0: that of the features along a random direction.
        direction = torch.randn(phi(rows).numel(), generator=torch.Generator().manual_seed(0))
        slope = gradient(lambda moved: phi.features(moved).flatten(1) @ direction.to(moved), rows)
    step = torch.linalg.vector_norm(rows, dim=1, keepdim=True) * normalize(slope, dim=1)
    whole = words_at(X.whole_words, [words[number].span for number in leading])
    placed = [
        (number, word) for number, word in zip(leading, whole, strict=True) if word is not None
    ]
    texts = [rows.unsqueeze(0)]
    for _, word in placed:
        delta = step[list(word.rows)].unsqueeze(0)
        texts += [
            perturbed_texts(rows, torch.tensor([word.rows]), sign * delta) for sign in (1, -1)
        ]
    scores = []
    for part in torch.cat(texts).split(BATCH):
        with torch.no_grad():
            scores.append(function(part).double())
        progress(len(part))
    values = torch.cat(scores)
    for (number, word), (up, down) in zip(
        placed, (values[1:] - values[0]).view(-1, 2).tolist(), strict=True
    ):
        lowers = min(up, down, 0.0) if score.signed else None
        words[number] = replace(
            words[number], raises=max(up, down, 0.0), lowers=lowers, shared=word.shared
        )
    if not placed:
        return "No vectors: the tokenizer does not tell which tokens belong to which word."
    shared = [words[number].word for number, _ in placed if words[number].shared]
    note = (
        "A token is shared by several words, which move together as vectors: "
        f"{', '.join(shared[:LISTED])}."
    )
    return note if shared else None


def _of_rows(phi: Any, X: TextMatrix, seed: Seed) -> Explanation:
    """The sensitivities of a map that takes rows, and their upper bounds where it has any."""
    if not isinstance(phi, FeatureMap):
        raise InputError(
            "`text` as rows goes with a feature map as `model`; pass a text for a model"
        )
    measured = word_sensitivity(phi, X, seed=seed)
    uppers = (
        [None] * len(X) if measured.upper_per_word is None else measured.upper_per_word.tolist()
    )
    start, words = 0, []
    for row, (value, upper) in enumerate(zip(measured.per_word.tolist(), uppers, strict=True)):
        name = X.word(row)
        words.append(
            WordEffect(
                side=0, word=name, start=start, stop=start + len(name), raises=value, upper=upper
            )
        )
        start += len(name) + 1
    text = " ".join(word.word for word in words)
    surety = () if measured.rigor is None else (f"at most: {measured.rigor}",)
    return Explanation(
        phi.name, "relative change", 0.0, (text,), tuple(words), (), (*surety, *phi.notes)
    )
