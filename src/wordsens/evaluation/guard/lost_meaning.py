"""What a rewriting lost: negations, quantities, dates, conditions, "only", modals and names without
a counterpart."""

import re
from bisect import bisect_right
from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Literal

from wordsens.errors import InputError
from wordsens.evaluation.guard.clauses import Sides, without_counterpart
from wordsens.evaluation.guard.judge import take_acronyms, token_relation
from wordsens.evaluation.guard.lexer import read
from wordsens.evaluation.guard.lexicon import Lexicon, english
from wordsens.evaluation.guard.order import aligned
from wordsens.evaluation.guard.tokens import ONE, Reading, Token
from wordsens.results import Result

LostKind = Literal["condition", "negation", "only", "quantity", "time", "modality", "name"]

# Also a blank line, and the entry of a list.
_SENTENCE_END = re.compile(r"""[.!?]["'”’)\]]*\s+|\n+(?=\s*(?:\n|[-*#•]|\d+[.)]\s))""")


@dataclass(frozen=True)
class LostPart(Result):
    """A part of the original that changes its meaning and has no counterpart in the rewritten text.

    Attributes:
        kind: negation, quantity (a number with its unit), time (a date, time of day, weekday or
            month, "today", "daily"), condition ("if", "unless", "until", "except", "at most"; "up
            to", "within", "over" before a number), only, modality or name. "Avoid" is a negation,
            and so is "unless" that has become "if".
        text: its characters in the original.
        start, stop: their positions.
        sentence: the sentence of the original that contains it.
    """

    kind: LostKind
    text: str
    start: int
    stop: int
    sentence: str

    @property
    def headline(self) -> str:
        """What is lost."""
        return f"{self.kind}: {self.text}"


def lost_meaning(original: str, rewritten: str) -> tuple[LostPart, ...]:
    """The parts of an English text that have no counterpart in a rewriting, such as a compressed
    prompt or a summary.

    Sentences may change places, and the wording may differ: "isn't" is "is not", "two" is "2", 2000
    ms are 2 seconds, "not allowed" is "forbidden". Every negation, number, condition and modal
    counts: if two of three are kept, one is lost. For a name one mention is enough. Two numbers
    that changed places are both lost. It works by rules, without a model. Exchange the arguments to
    see what the rewriting added.

    Returns:
        The losses in the order of the original; empty if everything is kept.

    Raises:
        InputError: an argument that is not a string.

    >>> lost_meaning("Refund only if the seal isn't broken.", "Refund if the seal is broken.")
    (LostPart(kind='only', text='only', start=7, ...), LostPart(kind='negation', text="isn't", start=24, ...))
    """  # noqa: E501
    for name, text in (("original", original), ("rewritten", rewritten)):
        if not isinstance(text, str):
            raise InputError(f"`{name}` (={type(text).__name__}) must be a text")
    lexicon = english()
    one, other = read(original, lexicon), read(rewritten, lexicon)
    marks, others = _marks(one, lexicon), _marks(other, lexicon)
    sides = Sides(one, other, aligned(one.content, other.content), lexicon)
    moving = {token.key for _, token in marks}
    missing, spare = without_counterpart(
        sides, [[token for _, token in each] for each in (marks, others)], moving
    )
    kinds: dict[int, LostKind] = {id(token): kind for kind, token in marks}
    known = [{token.key for token in reading.tokens} for reading in (one, other)]
    # Words that only the rewriting has may mean the same in another way.
    new = [*spare, *(token for token in other.tokens if token.key not in known[0])]
    names = [token for token in missing if kinds[id(token)] == "name" and token.key not in known[1]]
    take_acronyms(new, names, least=2)
    lost: dict[tuple[int, int], LostKind] = {}
    kept = set[tuple[int, int]]()
    for token in missing:
        kind = kinds[id(token)]
        if kind == "name" and token not in names:
            continue
        meant = one.content[token.place :][:2] if kind == "negation" else [token]
        stands = (
            (word, said)
            for word in new
            for said in meant
            if _stands_for(word, said, kind == "negation" and said.start != token.start, lexicon)
        )
        if pair := next(stands, None):
            new.remove(pair[0])
            kept |= {(pair[1].start, pair[1].end)}  # of "not allowed", "forbidden" keeps both
        else:
            lost.setdefault((token.start, token.end), kind)
    lost |= {(token.start, token.end): "quantity" for token in _exchanged(one, other, lexicon)}
    sentences = [0, *(match.end() for match in _SENTENCE_END.finditer(original)), len(original)]
    losses: list[LostPart] = []
    for start, stop in sorted(lost.keys() - kept):
        at = bisect_right(sentences, start, hi=len(sentences) - 1)
        sentence = original[sentences[at - 1] : sentences[at]].strip()
        losses.append(LostPart(lost[start, stop], original[start:stop], start, stop, sentence))
    return tuple(losses)


def _marks(reading: Reading, lexicon: Lexicon) -> list[tuple[LostKind, Token]]:
    """The tokens that must be kept; of two in one place, as of "unless", which is read as "if not",
    the condition first. Those that restrict in the same way have the same key."""
    marks: list[tuple[LostKind, Token]] = []
    for token, after in zip(reading.tokens, [*reading.tokens[1:], None], strict=False):
        if kind := _kind(token, after, lexicon):
            group = next(
                (
                    lexicon.grammar[part][word]
                    for part in ("restrictions", "limits", "exclusion", "negating")
                    for word in (token.word, str(token.key))
                    if word in lexicon.grammar[part]
                ),
                token.key,
            )
            marks.append((kind, replace(token, key=group)))
    return marks


def _kind(token: Token, after: Token | None, lexicon: Lexicon) -> LostKind | None:
    """What a token is that a rewriting must keep; None of other words."""
    grammar, meaning = lexicon.grammar, lexicon.kind(token.key)
    number = after is not None and after.kind == "number"
    # "One" is a pronoun where no word with content follows: "the one that you sent".
    counted = after is not None and not after.initial and after.kind in ("word", "name")
    counts = (counted and after and not after.light) or token.amount != ONE or token.text.isdigit()
    month = token.word in lexicon.months and token.text[:1].isupper()
    modal = not token.light or token.word in grammar["obliges"]
    kinds: dict[LostKind, bool] = {
        "negation": token.key in grammar["negating"],
        "quantity": token.kind == "number" and bool(counts),
        "condition": token.word in grammar["restrictions"]
        or (token.word in grammar["limits"] and number),
        "only": token.word in grammar["exclusion"],
        "time": token.kind in ("time", "date")
        or token.word in grammar["days"]
        or (month and (meaning == "time" or not token.initial)),
        "modality": meaning == "modality" and modal,
        "name": token.kind == "name",
    }
    return next((kind for kind, is_one in kinds.items() if is_one), None)


def _stands_for(
    token: Token,
    word: Token,
    negated: bool,
    lexicon: Lexicon,
) -> bool:
    """Whether a word that only the rewriting has means what a word of the original means, or, where
    that is negated, the opposite; a time or a date must be as precise."""
    if negated:
        return lexicon.relation(str(word.key), str(token.key)) == "antonym"
    if word.moments:
        return bool(token.moments) and all(
            moment[1:] == other[1:] and other[0] in (None, moment[0])
            for moment, other in zip(token.moments, word.moments * len(token.moments), strict=False)
        )
    same_class = any(
        word.word in lexicon.grammar[part]
        and lexicon.grammar[part][word.word] == lexicon.grammar[part].get(token.word)
        for part in ("links", "limits", "tenses")
    )
    return same_class or token_relation(word, token, lexicon) == "same"


def _exchanged(one: Reading, other: Reading, lexicon: Lexicon) -> list[Token]:
    """The numbers of the original that stand in each other's places in the rewriting: "0.5 mg, not
    5 mg"."""
    skipped = lexicon.grammar["articles"].keys() | lexicon.grammar["tenses"].keys()
    before: list[dict[Hashable, Hashable]] = [{}, {}]
    for side, reading in enumerate((one, other)):
        last: Hashable = ""
        for token in reading.tokens:
            if token.kind == "number":
                before[side][token.key] = last if token.key not in before[side] else None
            elif token.word not in skipped:
                last = token.key
    swapped = {
        key
        for key, last in before[0].items()
        for partner, behind in before[1].items()
        if key != partner
        and None is not last == behind != before[1].get(key)
        and before[0].get(partner) == before[1].get(key)
    }
    return [token for token in one.tokens if token.kind == "number" and token.key in swapped]
