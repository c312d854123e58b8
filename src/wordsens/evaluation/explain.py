"""The words that carry one score or one embedding: deleted, swapped, moved, and two together."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from os.path import commonprefix
from types import SimpleNamespace
from typing import Any

import torch

from wordsens.display.numbers import plural
from wordsens.display.view import View
from wordsens.errors import InputError, argument, require_count
from wordsens.evaluation.text_scores import SimilarityScore, TextScore, score_of, words_read
from wordsens.evaluation.word_effects import WordEffect, WordEffects, effects_of, unchanged_words
from wordsens.results import Answered
from wordsens.text.whole_words import TAKEN_APART, lettered_spans, takes_apart

# Pairs of words that are listed.
LISTED = 8

# Words of each text that are swapped and moved, unless a number is given.
LEADERS = 16


@dataclass(frozen=True, kw_only=True)
class WordPair:
    """Two words, one of each text, deleted together.

    Attributes:
        first, second: the deletion of each alone.
        together: the change of the score without both: one change.
    """

    first: WordEffect
    second: WordEffect
    together: float

    @property
    def alone(self) -> float:
        """The sum of the changes without either."""
        return self.first.change + self.second.change


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Explanation(Answered, WordEffects):
    """The effects of the words of one text, or of two that are compared.

    Attributes:
        value: the score of the texts as they are.
        pairs: pairs of words whose joint deletion differs most from the sum of both.
        changes: the parts of the texts that were not measured, for the first line.
        partners: for each deletion, the word of the other text whose deletion with it raises the
            score most; empty for one text, or where every pair would cost an evaluation.
    """

    value: float
    pairs: tuple[WordPair, ...] = ()
    partners: tuple[WordPair, ...] = ()
    changes: tuple[str, ...] = ()

    @property
    def words(self) -> list[SimpleNamespace]:
        """Every word of the texts with its numbers: side (0 or 1), word, start, stop, removal,
        swap, swapped_for, moved, apart and counterpart; None for what was not measured."""
        found = {(effect.way, effect.text, effect.start): effect for effect in self.effects}
        joint = {
            (effect.text, effect.start): (pair.together, (pair.second, pair.first)[effect.text])
            for effect, pair in zip(self.by("delete"), self.partners, strict=False)
        }
        rows = []
        for side, text in enumerate(self.texts):
            for start, stop in lettered_spans(text):
                deleted, swapped, moved = (
                    found.get((way, side, start)) for way in ("delete", "swap", "move")
                )
                apart, partner = joint.get((side, start), (None, None))
                row = SimpleNamespace(
                    side=side,
                    word=text[start:stop],
                    start=start,
                    stop=stop,
                    removal=deleted and deleted.change,
                    swap=swapped and swapped.change,
                    swapped_for=swapped and swapped.replaced_by,
                    moved=moved and moved.change,
                    apart=apart,
                    counterpart=partner and partner.word,
                )
                rows.append(row)
        return rows

    @property
    def removal(self) -> tuple[float | None, ...]:
        """The change without each word; None for words past what the model reads."""
        return tuple(word.removal for word in self.words)

    def columns(self) -> dict[str, Any]:
        """One row per word: its text (1 or 2) and what deleting, swapping and moving it does."""
        words = self.words
        names = {"word": "word", "deleted": "removal", "best swap": "swap"}
        names |= {"swapped for": "swapped_for", "moved": "moved"}
        names |= {"both deleted": "apart", "with": "counterpart"}
        columns = {title: [getattr(word, name) for word in words] for title, name in names.items()}
        return {"text": [word.side + 1 for word in words], **columns}

    def view(self) -> View:
        """The sentences, the texts with the words coloured by what deleting them does, one row per
        word, and pairs."""
        from wordsens.findings.explain import view

        return view(self)


def explain(
    model: Any,
    text: str,
    other: str | None = None,
    *,
    target: int | None = None,
    tries: int = 8,
    leaders: int = LEADERS,
    vectors: bool = True,
    words: int | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Explanation:
    """The words that carry a number: how it changes when each is deleted, swapped or moved.

    The number is, for two texts, their cosine or the model's own similarity (similarity_fn_name);
    for a model that scores pairs, its score; for a classifier, the probability of a class; for one
    text alone, how far its vector moves. The changed text is encoded again. Words past what the
    model reads have no numbers.

    Cost: one evaluation per word, and `tries` + 2 for each of the leading words, those whose
    deletion changes the score most. Pairs of words cost none, as the vectors of the texts without
    one word are known; models that score two texts have no pairs of words.

    Args:
        model: whatever `as_model` or `as_pair_model` takes; a Classifier or a TransformerFeatures
            with output="probabilities" for classes; two Models, for the first and the second text,
            such as one with two prompts.
        text: the text.
        other: the text that it is compared with.
        target: the class; None for the likeliest.
        tries: the most `substitutes` that are tried in the place of each word; 0 for none.
        leaders: how many words of each text are swapped and moved.
        vectors: whether the leading words are moved, where the model has gradients.
        words: how many words of each text are explained, those around the first place where two
            texts differ; None for all that the model reads.
        progress: called with (evaluations done, evaluations at most).

    Raises:
        InputError: no such model, a text without a word, or a request that the model cannot answer.

    >>> def letters(texts):
    ...     return [[text.count(letter) + 0.1 for letter in "dehinopstu"] for text in texts]
    >>> explained = explain(letters, "the door is open", "the door is shut", tries=0)
    >>> best = max(explained.partners, key=lambda pair: pair.together)
    >>> best.first.word, best.second.word
    ('open', 'shut')
    """
    require_count("tries", tries, least=0)
    require_count("leaders", leaders)
    if words is not None:
        require_count("words", words)
    if not isinstance(text, str):
        raise InputError(
            f"{argument('text')} (a {type(text).__name__}) must be a string; for rows of a map "
            "call word_sensitivity(model, text)"
        )
    score = score_of(model, text, other, target)
    changes: list[str] = []
    explained = [_words(score, side, words, changes) for side in range(len(score.texts))]
    total = sum(
        len(chosen) + min(leaders, len(chosen)) * (tries + 2 * vectors) + vectors
        for chosen in explained
    )
    done = 0

    def count(evaluations: int) -> None:
        nonlocal done
        done += evaluations
        progress(done, total)

    deleted = [
        effects_of(score, chosen, "delete", progress=count)[0] if chosen else []
        for chosen in explained
    ]
    pairs, partners = _pairs(score, deleted)
    effects = [effect for side in deleted for effect in side]
    notes = [TAKEN_APART] * any(map(takes_apart, score.texts))
    for side, whole in enumerate(deleted):
        ranked = sorted(whole, key=lambda effect: -abs(effect.change))
        leading = ranked[:leaders]
        for way in ["swap"] * (tries > 0) + ["move"] * vectors if leading else []:
            found, omitted = effects_of(score, leading, way, tries=tries, progress=count)
            effects += found
            notes += omitted
        if len(leading) < len(whole) and (tries or vectors):
            notes.append(
                f"only the {len(leading)} of {len(whole)} words of {_named(score, side)} whose "
                "deletion changes the score most were swapped and moved; for all of them pass "
                f"leaders={len(whole)}"
            )
    # A word with fewer substitutes, or a model without gradients, needs fewer evaluations.
    progress(total, total)
    return Explanation(
        model=score.model,
        score=score.name,
        texts=score.texts,
        effects=tuple(effects),
        read=score.read,
        changes=tuple(changes),
        notes=tuple(dict.fromkeys(notes)),
        value=score.value,
        pairs=pairs,
        partners=partners,
    )


def _words(score: TextScore, side: int, most: int | None, changes: list[str]) -> list[WordEffect]:
    """The words of the text that are measured, at most so many, unchanged; the others are named.

    Raises:
        InputError: no text has two words.
    """
    read, unread = words_read(score.texts[side], score.read[side])
    count = len(read) + len(unread)
    whose = _named(score, side)
    if count < 2:
        if all(len(lettered_spans(text)) < 2 for text in score.texts):
            raise InputError(
                f"{argument('text')} (={score.texts[0][:40]!r}) has {plural(count, 'word')}; an "
                "explanation compares two or more"
            )
        changes.append(f"{whose} has {plural(count, 'word')}, which cannot be deleted")
        return []
    if unread:
        first, last = (score.texts[side][slice(*unread[at])] for at in (0, -1))
        changes.append(
            f"{len(unread)} of {count} words of {whose}, from '{first}' to '{last}', are past what "
            "the model reads"
        )
    if most is not None and len(read) > most:
        place = len(commonprefix(score.texts)) if len(score.texts) > 1 else 0  # noqa: RUF071
        differing = sum(stop <= place for _, stop in read)
        start = max(0, min(differing - most // 2, len(read) - most))
        read = read[start : start + most]
        first, last = (score.texts[side][slice(*read[at])] for at in (0, -1))
        changes.append(
            f"{most} of {count} words of {whose} have numbers, from '{first}' to '{last}'"
        )
    return unchanged_words(score, side, read)


def _named(score: TextScore, side: int) -> str:
    return ("the first text", "the second text")[side] if len(score.texts) > 1 else "the text"


def _pairs(
    score: TextScore, deleted: Sequence[Sequence[WordEffect]]
) -> tuple[tuple[WordPair, ...], tuple[WordPair, ...]]:
    """The pairs of words, one of each text, whose joint deletion is no sum; and for every word the
    pair with the largest rise."""
    if not isinstance(score, SimilarityScore) or not all(deleted):
        return (), ()
    texts = [
        [score.changed(side, effect.span) for effect in its] for side, its in enumerate(deleted)
    ]
    scores = score.together(*texts)
    together = scores - score.value
    first, second = (torch.tensor([effect.change for effect in its]).to(scores) for its in deleted)
    farthest = (together - first.unsqueeze(1) - second).abs().flatten().argsort(descending=True)
    cells = [divmod(cell, len(second)) for cell in farthest[:LISTED].tolist()]
    cells += enumerate(together.argmax(dim=1).tolist())
    cells += [(row, column) for column, row in enumerate(together.argmax(dim=0).tolist())]
    pairs = [
        WordPair(
            first=deleted[0][row], second=deleted[1][column], together=float(together[row, column])
        )
        for row, column in cells
    ]
    listed = len(cells) - len(first) - len(second)
    return tuple(pairs[:listed]), tuple(pairs[listed:])
