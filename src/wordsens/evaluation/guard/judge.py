"""Whether two near-duplicates mean the same: what is left of each text beside what they share, judged by rules."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from wordsens.errors import InputError
from wordsens.evaluation.guard.language import Language, language
from wordsens.evaluation.guard.tokens import DATE, NAME, NEGATION, NUMBER, TIME, WORD, Token, read

Verdict = Literal["same", "different", "unsure"]
SecondOpinion = Callable[[str, str], float]
"""From two texts to the probability that they mean the same, such as an NLI model's entailment both ways."""

_ORDER = ("negation", "antonym", "quantity", "time", "modality", "role", "entity")
_NEAR = 3
"""Words by which a negation may stand earlier or later: 'does the app not remember', 'doesn't the app remember'."""

_CONVERSES = tuple(
    frozenset(pair.split())
    for pair in ("befor after", "above below", "over under", "mor les", "buy sel", "lend borow", "send receiv")
)
"""Pairs that say the same when what stands around them changes places."""

_CONJUNCTIONS = frozenset(
    ("if", "when", "because", "while", "although", "though", "once", "whenever", "where", "unless", "so", "that")
)

_JOINING = ("and", "or")

_SHARE_OF_CHANGE = 0.5
"""Where more than this share of the words is unexplained the texts are no near-duplicates: the verdict is unsure."""


@dataclass(frozen=True)
class Judgement:
    """Whether two near-duplicates may be treated as the same.

    Attributes:
        verdict: "same", "different" or "unsure".
        kind: negation, antonym, quantity, time, modality, role or entity; None where nothing of these was met.
        reason: a phrase, such as "quantity: 2 GB / 3 GB".
        first, second: the (start, end) of the characters that the verdict rests on, in each text.
    """

    verdict: Verdict
    kind: str | None
    reason: str
    first: tuple[tuple[int, int], ...] = ()
    second: tuple[tuple[int, int], ...] = ()


class Guard:
    """Judges pairs of near-duplicates by rules: deterministic, without a model, in about a tenth of a millisecond.

    Args:
        language: "en" or "de".
        second_opinion: asked where the rules are unsure: from two texts to the probability that they mean the same.
        sure: at least this probability is "same", at most 1 - sure "different".

    Raises:
        InputError: an unknown language, a `sure` that is not between .5 and 1; of a call, texts that are not strings.

    >>> Guard()("The lift is working.", "The lift is not working.").reason
    "negation: 'not'"
    >>> Guard()("Send 2 GB by 5 pm", "send two gigabytes by 17:00").verdict
    'same'
    """

    def __init__(self, *, language: str = "en", second_opinion: SecondOpinion | None = None, sure: float = 0.9):
        if not 0.5 < sure <= 1:
            raise InputError(f"`sure` (={sure!r}) must be more than .5 and at most 1")
        self._language, self._second_opinion, self._sure = _language(language), second_opinion, sure

    def __call__(self, first: str, second: str) -> Judgement:
        for name, text in (("first", first), ("second", second)):
            if not isinstance(text, str):
                raise InputError(f"`{name}` (={type(text).__name__}) must be a text")
        result = _Pair(read(first, self._language), read(second, self._language), self._language).judged()
        if result.verdict != "unsure" or self._second_opinion is None:
            return result
        probability = float(self._second_opinion(first, second))
        verdict: Verdict = (
            "same" if probability >= self._sure else "different" if probability <= 1 - self._sure else "unsure"
        )
        reason = f"{result.reason}; second opinion {probability:.2f}"
        return Judgement(verdict, result.kind, reason, result.first, result.second)


def guard(first: str, second: str) -> Judgement:
    """`Guard()` of one pair of English texts.

    >>> guard("How do I enable the alarm?", "How do I disable the alarm?")
    Judgement(verdict='different', kind='antonym', reason='antonym: enable / disable', first=..., second=...)
    """
    return _default()(first, second)


class _Pair:
    """Two token sequences, what they share, and what only one of them has."""

    def __init__(self, first: list[Token], second: list[Token], language: Language):
        self._language = language
        self._negations = [[token for token in side if token.key == NEGATION] for side in (first, second)]
        self._sides = first, second
        words = [[token for token in side if token.key != NEGATION] for side in (first, second)]
        self._content = words
        self._shared, self._left = self._aligned(*words)
        self._evidence: list[tuple[str, str, tuple[Token, ...], tuple[Token, ...]]] = []
        self._flips = 0

    def judged(self) -> Judgement:
        """The verdict, the strongest kind of evidence first."""
        weak = self._explained()
        self._polarity()
        unexplained = sum(map(len, self._left))
        size = max(1, min(map(len, self._content)))
        apart = unexplained > 2 and unexplained > _SHARE_OF_CHANGE * 2 * size
        if not apart:
            self._order()
        strong = sorted(self._evidence, key=lambda evidence: _ORDER.index(evidence[0]))
        if strong and not apart:
            return _judgement("different", *strong[0])
        if strong or weak or unexplained:
            kind, reason, one, other = (strong or weak or [self._rest()])[0]
            return _judgement("unsure", kind, reason, one, other)
        return Judgement("same", None, "no difference of meaning was met")

    def _aligned(
        self, first: list[Token], second: list[Token]
    ) -> tuple[list[tuple[int, int]], tuple[list[Token], list[Token]]]:
        """The places of tokens that both have, in the order of the first text; and what is left of each."""
        places: dict[object, list[int]] = {}
        for place, token in enumerate(second):
            places.setdefault(token.key, []).append(place)
        shared, left, taken = [], [], set[int]()
        for at, token in enumerate(first):
            options = places.get(token.key)
            if options:
                place = options.pop(0)
                taken.add(place)
                shared.append((at, place))
            else:
                left.append(token)
        return shared, (left, [token for place, token in enumerate(second) if place not in taken])

    def _explained(self) -> list[tuple[str | None, str, tuple[Token, ...], tuple[Token, ...]]]:
        """Takes pairs that are explained out of what is left; what is weak evidence alone is returned."""
        one, other = self._left
        self._left = one, other = [t for t in one if not _single(t)], [t for t in other if not _single(t)]
        if not one and not other:
            return []
        _without_acronyms(one, other)
        _without_acronyms(other, one)
        for rule in (self._alike, self._opposed, self._exclusive, self._measured, self._misspelt, self._named):
            for left in list(one):
                for right in list(other):
                    if rule(left, right):
                        one.remove(left)
                        other.remove(right)
                        break
        weak: list[tuple[str | None, str, tuple[Token, ...], tuple[Token, ...]]] = []
        for side, tokens in enumerate((one, other)):
            for token in tokens:
                if kind := self._kind_alone(token):
                    weak.append((kind, f"{kind}: '{token.text}'", *(((token,), ()) if side == 0 else ((), (token,)))))
        return weak

    def _alike(self, left: Token, right: Token) -> bool:
        if TIME in (left.kind, right.kind) or DATE in (left.kind, right.kind):
            return _may_equal(left, right)
        if left.kind == right.kind == NUMBER:
            return _shares(left) == _shares(right)
        if not (isinstance(left.key, str) and isinstance(right.key, str)):
            return False
        return left.text.lower() == right.text.lower() or (
            not self._language.opposite(left.key, right.key)
            and (self._language.synonymous(left.key, right.key) or self._language.excluded(left.key, right.key) == "")
        )

    def _opposed(self, left: Token, right: Token) -> bool:
        if not (isinstance(left.key, str) and isinstance(right.key, str)):
            return False
        if not self._language.opposite(left.key, right.key):
            return False
        if frozenset((left.key, right.key)) in _CONVERSES and self._turned():
            return True
        kind = self._language.excluded(left.key, right.key) or "antonym"
        if kind == "antonym":
            self._flips += 1
        self._evidence.append((kind, f"{kind}: {left.text} / {right.text}", (left,), (right,)))
        return True

    def _exclusive(self, left: Token, right: Token) -> bool:
        if not (isinstance(left.key, str) and isinstance(right.key, str)):
            return False
        kind = self._language.excluded(left.key, right.key)
        if not kind:
            return False
        if frozenset((left.key, right.key)) in _CONVERSES and self._turned():
            return True
        self._evidence.append((kind, f"{kind}: {left.text} / {right.text}", (left,), (right,)))
        return True

    def _measured(self, left: Token, right: Token) -> bool:
        kinds = {left.kind, right.kind}
        if not kinds <= {NUMBER, TIME, DATE}:
            return False
        kind = "quantity" if kinds == {NUMBER} and not (_is_time(left) and _is_time(right)) else "time"
        if kinds == {NUMBER} and kind == "time":
            kind = "quantity"
        self._evidence.append((kind, f"{kind}: {left.text} / {right.text}", (left,), (right,)))
        return True

    def _misspelt(self, left: Token, right: Token) -> bool:
        one, other = left.text.lower(), right.text.lower()
        return WORD in (left.kind, right.kind) and _typo(one, other)

    def _named(self, left: Token, right: Token) -> bool:
        if NAME not in (left.kind, right.kind) or not {left.kind, right.kind} <= {NAME, WORD, NUMBER}:
            return False
        if left.kind != right.kind and not (left.text[:1].isupper() and right.text[:1].isupper()):
            return False
        self._evidence.append(("entity", f"entity: {left.text} / {right.text}", (left,), (right,)))
        return True

    def _kind_alone(self, token: Token) -> str | None:
        """The kind that a token is of which only one text has."""
        if token.kind is not WORD:
            return {NUMBER: "quantity", TIME: "time", DATE: "time", NAME: "entity"}[token.kind]
        choices = self._language.choices.get(str(token.key), ())
        return choices[0].kind if choices else None

    def _polarity(self) -> None:
        """Negations and antonyms together: two that cancel are no difference."""
        one, other = self._negations
        odd = (len(one) - len(other)) % 2 == 1
        if odd and self._flips % 2 == 1:
            self._evidence = [evidence for evidence in self._evidence if evidence[0] != "antonym"]
            return
        if odd:
            more, side = (one, 0) if len(one) > len(other) else (other, 1)
            shown = more[-1]
            spans = ((shown,), ()) if side == 0 else ((), (shown,))
            self._evidence.append(("negation", f"negation: '{shown.text}'", *spans))
        elif one and other and self._flips == 0 and self._elsewhere():
            self._evidence.append(("negation", "negation: of another word", tuple(one), tuple(other)))

    def _elsewhere(self) -> bool:
        """Whether a negation stands in a far place of the other text, or before a quantity that it did not concern."""
        places, quantities = [], []
        for side in self._sides:
            content, before, concerned = 0, [], []
            for at, token in enumerate(side):
                if token.key != NEGATION:
                    content += 1
                    continue
                before.append(content)
                following = next((t.key for t in side[at + 1 :] if t.key != NEGATION), None)
                choices = self._language.choices.get(str(following), ())
                concerned += [following] if any(choice.kind == "quantity" for choice in choices) else []
            places.append(before)
            quantities.append(sorted(map(str, concerned)))
        far = any(abs(a - b) > _NEAR for a, b in zip(*places, strict=False))
        return quantities[0] != quantities[1] or (far and not self._turned())

    def _turned(self) -> bool:
        """Whether some of the shared words stand in another order."""
        return any(later[1] < earlier[1] for earlier, later in pairwise(self._shared))

    def _order(self) -> None:
        """The same words in other places: harmless where a phrase moves as a whole, a change of roles elsewhere."""
        if not self._turned():
            return
        first, second = self._content
        order = dict(self._shared)
        rank = {place: at for at, place in enumerate(self._voiced(second))}
        places = [at for at in self._voiced(first) if at in order]
        sequence = [rank[order[at]] for at in places]
        moved = _moved(sequence)
        if not moved:
            return
        exchanged = [(i, k) for i, rank_i in enumerate(sequence) if i < (k := _place(sequence, rank_i)) != -1]
        pairs = [(first[places[i]], first[places[k]]) for i, k in exchanged]
        if pairs and all(_joined(one, other) for one, other in pairs):
            return
        tokens = [(first[places[at]], second[order[places[at]]]) for at in moved]
        if not any(one.marker == other.marker != "" or _dative(one, other) for one, other in pairs) and (
            self._phrase_moved(places, sequence) or all(_movable(*pair, self._language) for pair in tokens)
        ):
            return
        ones, others = zip(*tokens, strict=True)
        reason = f"order: {' / '.join(repr(token.text) for token in ones[:2])}"
        self._evidence.append(("role", reason, ones, others))

    def _phrase_moved(self, places: list[int], sequence: list[int]) -> bool:
        """Whether one of two neighbouring parts that changed places is a phrase with its own preposition, a clause with
        its conjunction, a time or an adverb, or both are joined by "and"."""
        first, second = self._content
        order = dict(self._shared)
        ranked = sorted(sequence)
        low = next(at for at, (a, b) in enumerate(zip(sequence, ranked, strict=True)) if a != b)
        high = len(sequence) - next(
            at for at, (a, b) in enumerate(zip(reversed(sequence), reversed(ranked), strict=True)) if a != b
        )
        middle, right_order = sequence[low:high], ranked[low:high]
        cut = middle.index(right_order[0])
        if middle[cut:] + middle[:cut] != right_order:
            return False
        for part in (places[low : low + cut], places[low + cut : high]):
            left, right = first[part[0]], second[order[part[0]]]
            if _movable(left, right, self._language):
                return True
        return False

    def _voiced(self, tokens: Sequence[Token]) -> list[int]:
        """The places of the tokens in the order of the active voice: who acts by "by" comes before the verb."""
        places = list(range(len(tokens)))
        for at, token in enumerate(tokens):
            verb = next((k for k in range(at - 1, -1, -1) if tokens[k].passive), None) if token.marker == "by" else None
            if verb is None:
                continue
            stop = at + 1
            while stop < len(tokens) and not tokens[stop].marker and tokens[stop].start == tokens[stop - 1].end + 1:
                stop += 1
            begin = max((k for k in range(verb) if tokens[k].marker in _CONJUNCTIONS), default=0)
            return places[:begin] + places[at:stop] + places[verb:at] + places[begin:verb] + places[stop:]
        return places

    def _rest(self) -> tuple[None, str, tuple[Token, ...], tuple[Token, ...]]:
        one, other = (tuple(side) for side in self._left)
        texts = [" ".join(token.text for token in side[:3]) for side in (one, other)]
        return None, "unexplained: " + " / ".join(repr(text) if text else "nothing" for text in texts), one, other


def _place(sequence: list[int], rank: int) -> int:
    """Where the word stands whose place this rank is, if the two have exchanged theirs; -1 if not."""
    at = sequence.index(rank)
    ranked = sorted(sequence)
    target = ranked.index(rank)
    return target if target != at and sequence[target] == ranked[at] else -1


def _joined(one: Token, other: Token) -> bool:
    """Neighbours joined by "and" or "or", which may exchange their places."""
    return other.marker in _JOINING and other.start - one.end < 6


def _dative(one: Token, other: Token) -> bool:
    """'Anna ... to Paul': who gives and who is given to."""
    return {one.marker, other.marker} in ({"", "to"}, {"", "for"})


def _movable(left: Token, right: Token, language: Language) -> bool:
    """Whether what begins with this word plays the same part in both places."""
    markers = {left.marker, right.marker}
    if (left.marker == right.marker and left.marker not in ("", *_JOINING)) or markers in ({"", "to"}, {"", "for"}):
        return True
    if left.kind in (TIME, DATE) or left.text.lower().endswith("ly") or left.key == ("times", 2.0):
        return True
    choices = language.choices.get(str(left.key), ())
    return any(choice.kind in ("time", "modality") for choice in choices)


def _judgement(
    verdict: Verdict, kind: str | None, reason: str, one: Sequence[Token], other: Sequence[Token]
) -> Judgement:
    spans = (tuple((token.start, token.end) for token in side) for side in (one, other))
    return Judgement(verdict, kind, reason, *spans)


def _without_acronyms(short: list[Token], long: list[Token]) -> None:
    """Takes 'GUI' out of one side and 'graphical user interface' out of the other."""
    for token in list(short):
        size = len(token.text)
        if not (token.text.isupper() and 1 < size < 7):
            continue
        for at in range(len(long) - size + 1):
            if "".join(str(word.key)[:1] for word in long[at : at + size]).upper() == token.text:
                short.remove(token)
                del long[at : at + size]
                break


def _single(token: Token) -> bool:
    """'one ticket' and 'a ticket'."""
    return token.kind is NUMBER and token.key == ("", 1.0)


def _is_time(token: Token) -> bool:
    return token.kind in (TIME, DATE)


def _shares(token: Token) -> object:
    """50 % and one half."""
    assert isinstance(token.key, tuple)
    dimension, amount = token.key
    return ("", round(amount / 100, 9)) if dimension == "percent" else (dimension, round(amount, 9))


def _may_equal(left: Token, right: Token) -> bool:
    """Whether two times or dates, or a time and a bare number, may be the same."""
    one, other = left.key, right.key
    if left.kind == NUMBER or right.kind == NUMBER:
        (number, times) = (one, other) if left.kind == NUMBER else (other, one)
        if not isinstance(number, tuple) or number[0] or not isinstance(times, frozenset):
            return False
        minutes = int(number[1]) * 60 + round(number[1] % 1 * 100)
        return DATE not in (left.kind, right.kind) and bool({minutes, minutes + 720} & times)
    if not isinstance(one, frozenset) or not isinstance(other, frozenset) or left.kind != right.kind:
        return False
    if left.kind == TIME:
        return not one.isdisjoint(other)
    return any(a[1:] == b[1:] and (a[0] is None or b[0] is None or a[0] == b[0]) for a in one for b in other)


def _typo(one: str, other: str) -> bool:
    """One letter more or less, one vowel for another, two exchanged, or doubled ones: behind the first letter, of words
    of five and more."""
    if min(len(one), len(other)) < 5 or one[0] != other[0] or not (one.isalpha() and other.isalpha()):
        return False
    short, long = sorted((_undoubled(one), _undoubled(other)), key=len)
    if len(long) - len(short) > 1:
        return False
    at = next((k for k, (a, b) in enumerate(zip(short, long, strict=False)) if a != b), len(short))
    if len(long) > len(short):
        return short[at:] == long[at + 1 :]
    if at == len(short) or (short[at : at + 2] == long[at : at + 2][::-1] and short[at + 2 :] == long[at + 2 :]):
        return True
    return len(short) > 5 and short[at] in "aeiou" and long[at] in "aeiou" and short[at + 1 :] == long[at + 1 :]


def _undoubled(word: str) -> str:
    return "".join(letter for letter, before in zip(word, " " + word, strict=False) if letter != before)


def _moved(sequence: list[int]) -> list[int]:
    """The fewest places to take out for the rest to rise: all but a longest rising part."""
    if not sequence:
        return []
    best: list[int] = []
    length, before = [1] * len(sequence), [-1] * len(sequence)
    for at, value in enumerate(sequence):
        for earlier in range(at):
            if sequence[earlier] < value and length[earlier] + 1 > length[at]:
                length[at], before[at] = length[earlier] + 1, earlier
    at = max(range(len(sequence)), key=length.__getitem__)
    while at >= 0:
        best.append(at)
        at = before[at]
    rising = set(best)
    return [at for at in range(len(sequence)) if at not in rising]


_made: dict[str, Guard] = {}


def _default() -> Guard:
    if "en" not in _made:
        _made["en"] = Guard()
    return _made["en"]


_language = language
