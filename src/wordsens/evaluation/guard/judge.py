"""Whether two near-duplicates mean the same: what is left of each text beside what they share,
judged by rules."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import groupby, pairwise, product
from typing import Literal, NamedTuple

from wordsens.errors import InputError
from wordsens.evaluation.guard.labels import are_labels, difference, leading_zeros, same_label
from wordsens.evaluation.guard.language import Language, english
from wordsens.evaluation.guard.tokens import ONE, Amount, Moment, ReadText, Token, read

Verdict = Literal["same", "different", "unsure"]
SecondOpinion = Callable[[str, str], float]
"""From two texts to the probability that they mean the same, such as an NLI model's entailment both
ways."""

_KINDS = ("negation", "antonym", "quantity", "time", "modality", "role", "entity", "")
"""The strongest evidence first; "" for words that nothing explains."""

_FAR = 3
"""A negation that moves by more words than this is taken to negate something else."""

_MANY = 40
"""Texts of which more words than this differ are no near-duplicates; nothing further is
compared."""

_SHOWN = 60
"""Characters of a token that a reason quotes."""

_PAST = ("ed", "en", "id", "ld", "nt", "ght", "wn")
"""How most English participles end."""


@dataclass(frozen=True)
class Judgement:
    """Whether two near-duplicates may be treated as the same.

    Attributes:
        verdict: "same", "different" or "unsure".
        kind: negation, antonym, quantity, time, modality, role or entity; None where it is none of
            these.
        reason: a phrase, such as "quantity: 2 GB / 3 GB".
        first, second: the (start, end) of the characters that the verdict rests on, in each text.
    """

    verdict: Verdict
    kind: str | None
    reason: str
    first: tuple[tuple[int, int], ...] = ()
    second: tuple[tuple[int, int], ...] = ()

    def __bool__(self) -> bool:
        """Refused: "different" would be true as well."""
        raise InputError("a Judgement is neither true nor false; compare its `verdict`")


class Guard:
    """Judges pairs of near-duplicates in English by rules: deterministic, without a model.

    Args:
        second_opinion: called where the rules are unsure: from two texts to the probability that
            they mean the same.
        sure: at least this probability is "same", at most 1 - sure "different".

    Raises:
        InputError: a `sure` that is not between .5 and 1; of a call, texts that are not strings,
            or a second opinion that is no probability.

    >>> Guard()("The lift is working.", "The lift is not working.").reason
    "negation: 'not'"
    >>> Guard()("Send 2 GB by 5 pm", "send two gigabytes by 17:00").verdict
    'same'
    """

    def __init__(self, *, second_opinion: SecondOpinion | None = None, sure: float = 0.9):
        if not 0.5 < sure <= 1:
            raise InputError(f"`sure` (={sure!r}) must be more than .5 and at most 1")
        self._language, self._second_opinion, self._sure = english(), second_opinion, sure

    def __call__(self, first: str, second: str) -> Judgement:
        for name, text in (("first", first), ("second", second)):
            if not isinstance(text, str):
                raise InputError(f"`{name}` (={type(text).__name__}) must be a text")
        judgement = _judge_labels(first, second, self._language)
        if judgement.verdict != "unsure" or self._second_opinion is None:
            return judgement
        probability = float(self._second_opinion(first, second))
        if not 0 <= probability <= 1:
            raise InputError(
                f"`second_opinion` (={probability}) must return a probability, between 0 and 1"
            )
        verdict = (
            "same"
            if probability >= self._sure
            else "different"
            if probability <= 1 - self._sure
            else "unsure"
        )
        reason = f"{judgement.reason}; second opinion {probability:.2f}"
        return Judgement(verdict, judgement.kind, reason, judgement.first, judgement.second)


def guard(first: str, second: str) -> Judgement:
    """`Guard()` of one pair of English texts.

    >>> guard("How do I enable the alarm?", "How do I disable the alarm?")
    Judgement(verdict='different', kind='antonym', reason='antonym: enable / disable', first=..., second=...)
    """  # noqa: E501
    return _english()(first, second)


_english = cache(Guard)


_read = lru_cache(maxsize=256)(read)
"""A text meets several others where the nearest neighbours of a cache or a memory are judged."""

_SAME = Judgement("same", None, "no difference of meaning was met")


class _Evidence(NamedTuple):
    """What speaks for a difference; `strong` where it is one, else it may be."""

    strong: bool
    kind: str
    reason: str
    first: Sequence[Token]
    second: Sequence[Token]


def _judge_labels(first: str, second: str, language: Language) -> Judgement:
    """The judgement of two texts, of which names of things are compared by how such names are
    written first."""
    if not are_labels(first, second):
        return _judge(first, second, language)
    if same_label(first, second, language):
        return _SAME
    judgement = _judge(first, second, language)
    if judgement.verdict == "same" and (counts := difference(first, second)):
        return Judgement("unsure", None, f"{counts}: {_quoted(first)} / {_quoted(second)}")
    if judgement.verdict == "different" and leading_zeros(first, second):
        return Judgement("unsure", None, f"leading zeros: {_quoted(first)} / {_quoted(second)}")
    return judgement


def _judge(first: str, second: str, language: Language) -> Judgement:
    if first == second:
        return _SAME
    one, other = _read(first, language), _read(second, language)
    shared, left, right = _aligned(one.content, other.content)
    size = max(2, min(len(one.content), len(other.content)))
    if max(len(left), len(right)) > _MANY:
        return _judgement(_Evidence(False, "", "too much differs", left, right))
    turned = any(b < a for (_, a), (_, b) in pairwise(shared))
    evidence: list[_Evidence] = []
    # The light words of each text that the other does not have.
    keys = [{token.key for token in side.light} for side in (other, one)]
    light = (
        [t for t in one.light if t.key not in keys[0]],
        [t for t in other.light if t.key not in keys[1]],
    )
    if left or right:
        without_acronyms(left, right)
        without_acronyms(right, left)
        evidence, left, right = _replaced(left, right, light, language)
    evidence += _marked(one.content, other.content, shared, language)
    evidence += _voices(one.content, other.content, shared)
    evidence += [_alone(token, True, language) for token in left] + [
        _alone(token, False, language) for token in right
    ]
    apart = len(left) + len(right) > size
    evidence = _negated(one, other, evidence, turned, language)
    if not apart and (
        turned or any(token.passive for side in (one, other) for token in side.content)
    ):
        evidence += _reordered(one, other, shared, language)
    if not turned:
        evidence += _persons(one, other, language)
    evidence += _exchanged(*light, language)
    evidence += _foretold(one, other, shared, language)
    evidence += _joined(one, other, language)
    if any(one) != any(other):
        evidence.append(_Evidence(False, "", "one text is empty", [], []))
    if not evidence:
        return _SAME
    strongest = min(evidence, key=lambda each: (not each.strong, _KINDS.index(each.kind)))
    return _judgement(strongest._replace(strong=strongest.strong and not apart))


def _judgement(evidence: _Evidence) -> Judgement:
    spans = (
        tuple((token.start, token.end) for token in side)
        for side in (evidence.first, evidence.second)
    )
    return Judgement(
        "different" if evidence.strong else "unsure", evidence.kind or None, evidence.reason, *spans
    )


def _shown(token: Token) -> str:
    return _quoted(token.text)


def _quoted(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _aligned(
    first: list[Token], second: list[Token]
) -> tuple[list[tuple[int, int]], list[Token], list[Token]]:
    """The places of tokens that both texts have, in the order of the first; and the tokens left in
    each."""
    places: dict[object, list[int]] = {}
    for place in range(len(second) - 1, -1, -1):
        places.setdefault(second[place].key, []).append(place)
    shared, left = [], []
    for at, token in enumerate(first):
        if options := places.get(token.key):
            shared.append((at, options.pop()))
        else:
            left.append(token)
    rest = sorted(place for options in places.values() for place in options)
    return shared, left, [second[place] for place in rest]


def _replaced(
    left: list[Token],
    right: list[Token],
    light: tuple[list[Token], list[Token]],
    language: Language,
) -> tuple[list[_Evidence], list[Token], list[Token]]:
    """The evidence of words that exclude each other, and what is left of both sides without them
    and without words that mean the same. A light word may stand for one with content: "on" for
    "off", "will" for "may"."""
    related = [
        (kind, a, b) for a in left for b in right if (kind := token_relation(a, b, language))
    ]
    some = [*product(left, light[1]), *product(light[0], right)]
    related += [
        (kind, a, b) for a, b in some if (kind := language.relation(str(a.key), str(b.key)))
    ]
    evidence, used = [], set[int]()
    for kind, one, other in sorted(related, key=lambda each: each[0] != "same"):
        if id(one) in used or id(other) in used:
            continue
        used |= {id(one), id(other)}
        if kind == "spelling":
            reason = f"entity: {_shown(one)} / {_shown(other)}, spelt alike"
            evidence.append(_Evidence(False, "entity", reason, [one], [other]))
        elif kind != "same":
            evidence.append(
                _Evidence(True, kind, f"{kind}: {_shown(one)} / {_shown(other)}", [one], [other])
            )
    left, right = (
        [
            t
            for t in side
            if id(t) not in used and (t.amount != ONE or (t.text.isdigit() and not said))
        ]
        for side, said in ((left, light[1]), (right, light[0]))
    )
    return evidence, left, right


def token_relation(one: Token, other: Token, language: Language) -> str | None:
    """Of two tokens: "same", "spelling" of names that may be slips of each other, the kind of the
    change, or None."""
    if one.moments or other.moments:
        if not {one.kind, other.kind} <= {"number", "time", "date"}:
            return None
        amount = one.amount or other.amount
        if amount and (amount.dimension or amount.value not in range(25)):
            return None  # a date and a span of time do not exclude each other
        return "same" if _same_moment(one, other) else "time"
    if one.amount and other.amount:
        if one.amount.value == other.amount.value and "ordinal" in (
            one.amount.dimension,
            other.amount.dimension,
        ):
            return None  # the first day, day one
        if one.amount[:2] == other.amount[:2]:
            return None
        return "same" if _share(one.amount) == _share(other.amount) else "quantity"
    if {one.kind, other.kind} <= {"word", "name"}:
        if (
            relation := "same"
            if one.word == other.word
            else language.relation(str(one.key), str(other.key))
        ):
            return relation
        capitals = [token.text[:1].isupper() for token in (one, other)]
        if (
            one.kind == other.kind == "word"
            and not any(capitals)
            and language.misspelt(one.word, other.word)
        ):
            return "same"
        if one.kind == other.kind == "name" and language.misspelt(one.word, other.word):
            return "spelling"
        if "name" in (one.kind, other.kind) and (all(capitals) or one.kind == other.kind):
            return "entity"
    return None


def _share(amount: Amount) -> tuple[str, float]:
    """50 % and one half are the same."""
    if amount.dimension == "percent":
        return "", round(amount.value / 100, 9)
    return amount.dimension, round(amount.value, 9) if amount.value < 1 else amount.value


def _same_moment(one: Token, other: Token) -> bool:
    """Whether two times or dates may be the same: where both can be read in two ways, in the same
    way."""
    a, b = _moments(one), _moments(other)
    if not a or not b or {one.kind, other.kind} not in ({"time"}, {"date"}, {"time", "number"}):
        return False
    pairs = zip(a, b, strict=True) if len(a) == len(b) else ((x, y) for x in a for y in b)
    return any(x[1:] == y[1:] and (x[0] is None or y[0] is None or x[0] == y[0]) for x, y in pairs)


def _moments(token: Token) -> tuple[Moment, ...]:
    """What a time or a date may mean; of a bare number, as in "at 5", the hour."""
    amount = token.amount
    if amount is None or amount.dimension or amount.value not in range(25):
        return token.moments
    return tuple((None, hour, 0) for hour in (int(amount.value), int(amount.value) + 12))


def without_acronyms(short: list[Token], long: list[Token]) -> None:
    """Takes 'GUI' out of one side and 'graphical user interface' out of the other."""
    for token in list(short):
        size = len(token.text)
        if token.text.isupper() and token.text.isalpha() and 1 < size < 7:
            initials = "".join(word.text[:1].upper() or " " for word in long)
            at = initials.find(token.text)
            if at >= 0:
                short.remove(token)
                del long[at : at + size]


def _voices(
    first: list[Token], second: list[Token], shared: list[tuple[int, int]]
) -> list[_Evidence]:
    """The same verb in the other voice, where nothing says by whom: I paid, I was paid."""
    if any(token.marker == "by" for token in (*first, *second)):
        return []
    pairs = [
        (first[at], second[place])
        for at, place in shared
        if first[at].passive != second[place].passive
    ]
    return [
        _Evidence(False, "role", f"role: the voice of '{one.text}'", [one], [other])
        for one, other in pairs
        if all(token.word.endswith(_PAST) for token in (one, other) if token.passive)
    ]


def _marked(
    first: list[Token], second: list[Token], shared: list[tuple[int, int]], language: Language
) -> list[_Evidence]:
    """The same word with another preposition or conjunction: to Rome, from Rome; and cold, or cold;
    and an infinitive for a gerund after a verb that means another thing with it: stopped to smoke,
    stopped smoking."""
    pairs = [
        (first[at], second[place])
        for at, place in shared
        if first[at].marker != second[place].marker
    ]
    evidence: list[_Evidence] = []
    for one, other in pairs:
        reason = f"role: {one.marker} / {other.marker} '{one.text}'"
        if (
            language.relation(language.word(one.marker).key, language.word(other.marker).key)
            == "role"
        ):
            evidence.append(_Evidence(True, "role", reason, [one], [other]))
        elif one.marker in language.joining and other.marker in language.joining:
            evidence.append(
                _Evidence(False, "", reason.replace("role", "conjunction"), [one], [other])
            )
        elif any(
            infinitive.marker == "to"
            and gerund.word.endswith("ing")
            and gerund.place
            and tokens[gerund.place - 1].key in language.infinitive_or_gerund
            for infinitive, gerund, tokens in ((one, other, second), (other, one, first))
        ):
            reason = f"infinitive: '{one.text}' / '{other.text}'"
            evidence.append(_Evidence(False, "", reason, [one], [other]))
    return evidence


def _alone(token: Token, in_first: bool, language: Language) -> _Evidence:
    """Weak evidence of a word that only one text has."""
    kinds = {"number": "quantity", "time": "time", "date": "time", "name": "entity"}
    kind = language.kind(str(token.key)) if token.kind == "word" else kinds.get(token.kind)
    reason = f"{kind or 'unexplained'}: '{_shown(token)}'"
    return _Evidence(
        False, kind or "", reason, [token] if in_first else [], [] if in_first else [token]
    )


def _negated(
    one: ReadText, other: ReadText, evidence: list[_Evidence], turned: bool, language: Language
) -> list[_Evidence]:
    """The evidence with that of the negations: one more, or the same on another word; a negated
    antonym cancels."""
    odd = (len(one.negations) - len(other.negations)) % 2 == 1
    for each in evidence if odd else ():
        negated = [
            (side, token)
            for side, token in ((one, each.first), (other, each.second))
            if _negates(side, *token)
        ]
        if each.kind == "antonym" and len(negated) == 1:
            rest = [item for item in evidence if item is not each]
            if not _cancels(*negated[0], each, language):
                rest.append(
                    each._replace(strong=False, reason=f"{each.reason}, one of them negated")
                )
            return rest
    if len(one.negations) != len(other.negations):
        sides = [side.negations[-1:] for side in (one, other)]
        fewer = len(one.negations) > len(other.negations)
        shown, sides[fewer] = sides[not fewer][0], []
        bounds = [
            {t.word for t in (*side.content, *side.light)} & set(language.grammar["bounds"])
            for side in (one, other)
        ]
        otherwise = all(bounds) and bounds[0] != bounds[1]  # not until, only after
        return [
            *evidence,
            _Evidence(odd and not otherwise, "negation", f"negation: '{shown.text}'", *sides),
        ]
    if one.negations and (moved := _scope_moved(one, other, turned, language)):
        reason = "negation: of another word"
        return [
            *evidence,
            _Evidence(moved == "far", "negation", reason, one.negations, other.negations),
        ]
    return evidence


def _negates(text: ReadText, *tokens: Token) -> bool:
    """Whether a negation stands before a word, or before the one ahead of it."""
    return any(
        0 <= token.place - negation.place <= 1 for token in tokens for negation in text.negations
    )


def _cancels(
    text: ReadText, negated: Sequence[Token], antonyms: _Evidence, language: Language
) -> bool:
    """Whether a negated word is all that its opposite is: not valid, invalid; is not open, is
    closed. With a word between, or after "may" and "all", it is not: not always useful, may not be
    useful."""
    both = (*antonyms.first, *antonyms.second)
    keys = [str(token.key) for token in both]
    place = negated[0].place
    # "All are not" and "may not" say another thing than "all are un-" and "may be un-".
    limited = any(
        language.kind(str(token.key)) in ("modality", "quantity") for token in text.content[:place]
    )
    listed = keys[1] in language.complements.get(keys[0], ()) and all(
        token.passive for token in both
    )
    adjacent = any(negation.place == place for negation in text.negations)
    return adjacent and not limited and (listed or language.complementary(*keys))


def _scope_moved(one: ReadText, other: ReadText, turned: bool, language: Language) -> str:
    """ "far", "near" or "": whether a negation stands before another word than in the other
    text."""
    following = [
        [
            side.content[no.place].key if no.place < len(side.content) else ""
            for no in side.negations
        ]
        for side in (one, other)
    ]
    quantities = [
        sorted(str(key) for key in side if language.kind(str(key)) == "quantity")
        for side in following
    ]
    if quantities[0] != quantities[1]:
        return "far"
    places = [(a.place, b.place) for a, b in zip(one.negations, other.negations, strict=True)]
    if turned or not any(
        a != b and x != y for (a, b), x, y in zip(places, *following, strict=True)
    ):
        return ""
    return "far" if max(abs(a - b) for a, b in places) > _FAR else "near"


def _persons(one: ReadText, other: ReadText, language: Language) -> list[_Evidence]:
    """Pronouns that change places: I owe you, you owe me."""
    pronouns = [
        [token for token in side.light if token.word in language.persons] for side in (one, other)
    ]
    orders = [
        [person for person, _ in groupby(language.persons[token.word] for token in side)]
        for side in pronouns
    ]
    if orders[0] != orders[1] and sorted(orders[0]) == sorted(orders[1]):
        return [_Evidence(False, "role", "order: of the pronouns", *pronouns)]
    return []


def _joined(one: ReadText, other: ReadText, language: Language) -> list[_Evidence]:
    """An "or" in the place of an "and"."""
    joining = [
        [token for token in side.light if token.word in language.joining] for side in (one, other)
    ]
    if not any(joining):
        return []
    counts = [Counter(token.word for token in side) for side in joining]
    fewer, more = (
        [word for word in language.joining if word in counts[0] - counts[1]],
        [*(counts[1] - counts[0])],
    )
    if fewer and more:
        return [_Evidence(False, "", f"conjunction: '{fewer[0]}' / '{more[0]}'", *joining)]
    return []


def _exchanged(left: list[Token], right: list[Token], language: Language) -> list[_Evidence]:
    """Light words that stand for each other and mean another thing: when / where, my / your, this /
    that, if / because, I / me."""
    evidence: list[_Evidence] = []
    if not left or not right:
        return evidence
    for kind, name, classes in (
        ("", "question", language.questions),
        ("role", "person", language.persons),
        ("entity", "", language.places),
        ("role", "", language.parts),
        ("", "conjunction", language.links),
    ):
        sides = [[token for token in side if token.word in classes] for side in (left, right)]
        meanings = [{classes[token.word] for token in side} for side in sides]
        if meanings[0] - meanings[1] and meanings[1] - meanings[0]:
            shown = " / ".join(f"'{side[0].text}'" for side in sides)
            evidence.append(_Evidence(False, kind, f"{name or kind}: {shown}", *sides))
    return evidence


def _foretold(
    one: ReadText, other: ReadText, shared: list[tuple[int, int]], language: Language
) -> list[_Evidence]:
    """What one text puts ahead and the other in the past: will be shipped, has been shipped; will
    rise, rose."""
    pairs = [(one.content[at], other.content[place]) for at, place in shared]
    if tokens := _ahead_and_past(one, other, pairs, language):
        ahead, past = tokens
        return [_Evidence(False, "time", f"tense: '{ahead.text}' / '{past.text}'", [ahead], [past])]
    if tokens := _ahead_and_past(other, one, [(b, a) for a, b in pairs], language):
        ahead, past = tokens
        return [_Evidence(False, "time", f"tense: '{past.text}' / '{ahead.text}'", [past], [ahead])]
    return []


def _ahead_and_past(
    later: ReadText, earlier: ReadText, pairs: list[tuple[Token, Token]], language: Language
) -> tuple[Token, Token] | None:
    """The words that put the first text ahead and the second in the past, where only one of them
    lies ahead."""
    words = {token.word for token in later.light}
    ahead = [token for token in later.light if token.word in language.grammar["ahead"]]
    if not ahead or any(token.word in language.grammar["ahead"] for token in earlier.light):
        return None
    past = [
        token
        for token in earlier.light
        if token.word in language.grammar["done"] and token.word not in words
    ]
    past += [
        after for before, after in pairs if before.word != after.word and language.past(after.word)
    ]
    return (ahead[0], past[0]) if past else None


def _reordered(
    one: ReadText, other: ReadText, shared: list[tuple[int, int]], language: Language
) -> list[_Evidence]:
    """The same words in other places: harmless where a phrase moves as a whole, a change of roles
    elsewhere."""
    first, second = one.content, other.content
    rank = {place: at for at, place in enumerate(_voiced(second, language))}
    partner = dict(shared)
    places = [at for at in _voiced(first, language) if at in partner]
    ranks = [rank[partner[at]] for at in places]
    position = {value: at for at, value in enumerate(sorted(ranks))}
    sequence = [position[value] for value in ranks]
    if sequence == sorted(sequence):
        return []
    pairs = [(first[at], second[partner[at]]) for at in places]
    exchanged = [
        (*pairs[i], *pairs[k]) for i, k in enumerate(sequence) if i < k and sequence[k] == i
    ]
    if lists := _list_moved(sequence, pairs, (one, other), language):
        uncertain = _in_sequence(one, other, lists, language)
        return [_Evidence(False, "role", "order: of a list", *lists)] if uncertain else []
    moved = _moved(sequence)
    roles = any(
        a.marker == d.marker and b.marker == c.marker and {a.marker, c.marker} != {""}
        for a, b, c, d in exchanged
    )
    if not roles:
        inverse = sorted(range(len(sequence)), key=sequence.__getitem__)
        back = [inverse[at] for at in _moved(inverse)]
        if _phrase_moved(sequence, pairs, language) or any(
            all(_movable(*pairs[at], language) for at in some) for some in (moved, back)
        ):
            return []
    ones, others = zip(*(pairs[at] for at in moved), strict=True)
    strong = not any(
        pairs[at][0].word in language.grammar["focus"]
        for at, value in enumerate(sequence)
        if at != value
    )
    reason = f"order: {' / '.join(repr(_shown(token)) for token in ones[:2])}"
    return [_Evidence(strong, "role", reason, ones, others)]


def _list_moved(
    sequence: list[int],
    pairs: list[tuple[Token, Token]],
    texts: tuple[ReadText, ReadText],
    language: Language,
) -> tuple[list[Token], list[Token]] | None:
    """What changed places in each text, where it is the whole entries of a list, parted by commas,
    "and" or "or"."""
    moved = [at for at, value in enumerate(sequence) if at != value]
    low, high = moved[0], moved[-1] + 1
    by_rank = sorted(range(len(sequence)), key=sequence.__getitem__)
    sides = [pairs[at][0] for at in range(low, high)], [pairs[at][1] for at in by_rank[low:high]]
    entries: list[list[list[object]]] = []
    for side, (tokens, text) in enumerate(zip(sides, texts, strict=True)):
        behind = [pair[side] for pair in pairs[high : high + 1]]
        if any(
            tokens[0].place <= negation.place <= tokens[-1].place for negation in text.negations
        ):
            return None
        # "Before lunch, dinner is served" has a comma, and is no list.
        if all(token.marker not in language.joining for token in (*tokens[1:], *behind)):
            return None
        entries.append([])
        for at, token in enumerate(tokens):
            if at == 0 or token.comma or token.marker in language.joining:
                entries[-1].append([])
            marker = "" if at == 0 or token.marker in language.joining else token.marker
            entries[-1][-1].append((token.key, marker))
    markers = [tokens[0].marker for tokens in sides]
    alike = markers[0] == markers[1] or language.joining.issuperset(markers)
    return (
        sides if alike and sorted(map(repr, entries[0])) == sorted(map(repr, entries[1])) else None
    )


def _in_sequence(
    one: ReadText, other: ReadText, lists: tuple[list[Token], ...], language: Language
) -> bool:
    """Whether the order of a list may count: of what to do, as in "wash, dry and iron it", or with
    "then"."""
    words = {token.word for text in (one, other) for token in (*text.light, *text.content)}
    verbs = any(
        entries[0].initial or entries[0].marker in language.grammar["recipient"]
        for entries in lists
    )
    names = all(token.text[:1].isupper() for entries in lists for token in entries)
    # In "from Rome, Milan and Turin are near" the list begins behind the first entry.
    clause = any(entries[0].marker and entries[0].place == 0 for entries in lists)
    return (verbs and not names) or clause or not words.isdisjoint(language.grammar["sequence"])


def _voiced(tokens: Sequence[Token], language: Language) -> list[int]:
    """The places of the tokens in the order of the active voice: who acts by "by" comes before the
    verb."""
    places = list(range(len(tokens)))
    agents, conjunctions = language.grammar["agent"], language.grammar["conjunctions"]
    verb = None
    for at, token in enumerate(tokens):
        if token.marker in agents and verb is not None:
            stop = at + 1
            while (
                stop < len(tokens)
                and not tokens[stop].marker
                and tokens[stop].start == tokens[stop - 1].end + 1
            ):
                stop += 1
            begin = max((k for k in range(verb) if tokens[k].marker in conjunctions), default=0)
            return (
                places[:begin]
                + places[at:stop]
                + places[verb:at]
                + places[begin:verb]
                + places[stop:]
            )
        if token.passive:
            verb = at
    return places


def _phrase_moved(
    sequence: list[int], pairs: list[tuple[Token, Token]], language: Language
) -> bool:
    """Whether two neighbouring parts changed places of which one is movable: it has its own
    preposition or conjunction, or is a time or an adverb."""
    size = len(sequence)
    low = next(at for at in range(size) if sequence[at] != at)
    high = next(at for at in range(size, 0, -1) if sequence[at - 1] != at - 1)
    middle = sequence[low:high]
    cut = middle.index(low)
    if middle[cut:] + middle[:cut] != list(range(low, high)):
        return False
    parts = pairs[low : low + cut], pairs[low + cut : high]
    heads = [(part[0][0].marker, part[0][1].marker) for part in parts]
    genitive = [marker in language.grammar["genitive"] for head in heads for marker in head]
    return (
        any(_movable(*part[0], language) for part in parts)
        or any(
            len(part) < 4 and any(language.kind(str(a.key)) == "time" for a, _ in part)
            for part in parts
        )
        or (sum(genitive) == 1 and any(a == b for a, b in heads))
    )


def _movable(one: Token, other: Token, language: Language) -> bool:
    """Whether what begins with this word plays the same part in both places."""
    grammar = language.grammar
    links = [language.links.get(token.marker, token.marker) for token in (one, other)]
    if links[0] == links[1] and one.marker not in ("", *language.joining):
        return True
    adverb = one.word.endswith(tuple(grammar["adverbs"])) and one.word not in grammar["focus"]
    dative = "" in (one.marker, other.marker) and not {one.marker, other.marker}.isdisjoint(
        grammar["recipient"]
    )
    often = one.amount is not None and one.amount.dimension == "times"
    return (
        dative
        or adverb
        or often
        or bool(one.moments)
        or language.kind(str(one.key)) in ("time", "modality")
    )


def _moved(sequence: list[int]) -> list[int]:
    """The fewest places to take out for the rest to rise: all but a longest rising part."""
    tails: list[int] = []
    at_tail: list[int] = []
    before: list[int] = []
    for at, value in enumerate(sequence):
        k = bisect_left(tails, value)
        before.append(at_tail[k - 1] if k else -1)
        tails[k : k + 1], at_tail[k : k + 1] = [value], [at]
    rising, at = set[int](), at_tail[-1]
    while at >= 0:
        rising.add(at)
        at = before[at]
    return [at for at in range(len(sequence)) if at not in rising]
