"""What function words and inflections say: prepositions, conjunctions, persons, tense, number,
negation. Each edit of them is explained where it stands, or it is left over."""

from collections import Counter
from collections.abc import Container, Hashable, Iterable, Sequence
from itertools import pairwise, product
from typing import Any, NamedTuple

from wordsens.evaluation.guard.lexicon import Lexicon
from wordsens.evaluation.guard.tokens import Reading, Token

# Texts of which more words than this differ are no near-duplicates.
MANY = 40


class Edit(NamedTuple):
    """A difference that no relation explains away: `kind` is how it changes the meaning, "" where
    it only may; `label` and the tokens are its reason."""

    kind: str
    label: str
    first: Sequence[Token]
    second: Sequence[Token]


class Sides:
    """Two readings with the pairs of their corresponding content words.

    Attributes:
        pairs: the places of corresponding words, in the order of the first text.
        tokens: these words.
        turned: whether their order differs.
        dative: whether a verb gives something to somebody.
        voices: whether a verb is active in one text and passive in the other.
    """

    def __init__(
        self, one: Reading, other: Reading, pairs: list[tuple[int, int]], lexicon: Lexicon
    ) -> None:
        self.readings, self.pairs = (one, other), sorted(pairs)
        self.tokens = [(one.content[at], other.content[place]) for at, place in self.pairs]
        self.turned = any(b > d for (_, b), (_, d) in pairwise(self.pairs))
        self.dative = any(token.key in lexicon.grammar["dative"] for token, _ in self.tokens)
        self.voices = any(a.passive != b.passive and a.key == b.key for a, b in self.tokens)
        self._places = [
            _places(len(reading.content), [pair[side] for pair in self.pairs])
            for side, reading in enumerate(self.readings)
        ]

    def place(self, side: int, token: Token) -> tuple[Hashable, Hashable]:
        """The pairs of content words before and behind a token without content."""
        before, behind = self._places[side]
        return before[token.place], behind[token.place]


def _places(size: int, paired: list[int]) -> tuple[list[Hashable], list[Hashable]]:
    number = {at: k for k, at in enumerate(paired)}
    before: list[Hashable] = ["start"]
    behind: list[Hashable] = ["end"]
    for at in range(size):
        before.append(number.get(at, before[-1]))
        behind.append(number.get(size - 1 - at, behind[-1]))
    return before, behind[::-1]


def light_edits(sides: Sides, used: set[int], lexicon: Lexicon) -> list[Edit]:
    """The function words that have no counterpart at the same place in the other text, and that
    nothing explains there; without those that stand for a word with content."""
    elsewhere = lexicon.grammar["articles"].keys() | lexicon.grammar["tenses"].keys()
    left = [
        [
            token
            for token in reading.light
            if token.word not in elsewhere or token is reading.tokens[-1]
            if id(token) not in used
        ]
        for reading in sides.readings
    ]
    moving = [*lexicon.grammar["moving"]] * sides.turned
    moving += [*lexicon.grammar["receivers"]] * sides.dative
    ones, others = left = without_counterpart(sides, left, moving)
    if sum(map(len, left)) > MANY:
        return [Edit("", "function words", ones, others)]
    changes, used = disjoint(
        (change, one, other)
        for one, other in product(ones, others)
        if one.word != other.word
        if any(a == b for a, b in zip(sides.place(0, one), sides.place(1, other), strict=True))
        if (change := _exchange(one.word, other.word, lexicon)) is not None
    )
    edits = [Edit(kind, label, [one], [other]) for (kind, label), one, other in changes if label]
    return edits + [
        alone(token, side, "function word")
        for side in (0, 1)
        for token in left[side]
        if id(token) not in used and not _says_nothing(token, side, sides, lexicon)
    ]


def alone(token: Token, side: int, label: str) -> Edit:
    """The edit of a word that only one text has."""
    tokens = [[token], []]
    return Edit("", label, tokens[side], tokens[1 - side])


def disjoint(
    matches: Iterable[tuple[Any, Token, Token]],
) -> tuple[list[tuple[Any, Token, Token]], set[int]]:
    """The matches of two tokens that no earlier match has, and the identities of these tokens."""
    chosen = []
    used = set[int]()
    for what, one, other in matches:
        if used.isdisjoint((id(one), id(other))):
            used |= {id(one), id(other)}
            chosen.append((what, one, other))
    return chosen, used


def without_counterpart(
    sides: Sides, tokens: Sequence[list[Token]], moving: Container[Hashable] = ()
) -> tuple[list[Token], list[Token]]:
    """The tokens whose word the other text lacks at the place: between the same words with content,
    behind the same, or before the same. Those of `moving` may stand anywhere."""
    ones, others = tokens
    for part in (slice(0, 2), slice(1, 2), slice(0, 1), slice(0)):
        if not (ones and others):
            break
        waiting: dict[Hashable, list[Token]] = {}
        for token in others:
            key = _meant(token), sides.place(1, token)[part]
            waiting.setdefault(key, []).append(token)
        met = set[int]()
        for token in ones:
            partners = waiting.get((_meant(token), sides.place(0, token)[part]))
            if partners and (part != slice(0) or token.key in moving):
                met |= {id(token), id(partners.pop())}
        ones, others = ([t for t in side if id(t) not in met] for side in (ones, others))
    return ones, others


def _meant(token: Token) -> Hashable:
    """What is equal for tokens that say the same; of "only" and the like with the word behind."""
    return (token.key, token.after) if token.key in _FOCUS else token.key


def _exchange(one: str, other: str, lexicon: Lexicon) -> tuple[str, str] | None:
    """The kind and label of the edit of a function word in the place of another, without a label
    where it says the same; None where nothing is known."""
    relation = lexicon.relation(one, other) or ""
    if relation == "same" or lexicon.linked("pairs", one, other):
        return "", ""
    if relation:
        return relation, relation
    for label, part in _EXCHANGES.items():
        group, partner = (lexicon.grammar[part].get(word) for word in (one, other))
        if group and partner and (group != partner or part != "parts"):
            return "", "" if group == partner and group != "he" else label
    return None


# Words that say of what follows that it is meant.
_FOCUS = ("only", "even", "just", "nearly", "almost")

_EXCHANGES = {
    "conjunction": "links",
    "question": "questions",
    "pointing": "pointing",
    "role": "parts",
    "person": "persons",
    "preposition": "prepositions",
}
"""Parts of the grammar of which a word in the place of another says something else."""


def _says_nothing(
    token: Token,
    side: int,
    sides: Sides,
    lexicon: Lexicon,
) -> bool:
    """Whether a function word that only one text has says nothing where it stands."""
    reading, grammar = sides.readings[side], lexicon.grammar
    after = reading.content[token.place] if token.place < len(reading.content) else None
    verbs = [sum(t.word in ("is", "has") for t in each.light) for each in sides.readings]
    amount = after and after.amount and after.amount.dimension
    timed = after and (after.moments or amount or lexicon.kind(after.key) == "time")
    moved = sides.turned or token.after in grammar["receivers"]
    opens = token.initial or token.before in lexicon.fillers["start"]
    either = token.place and reading.content[token.place - 1].key in grammar["either"]
    partner = next((pair[1 - side] for pair in sides.tokens if pair[side] is after), None)
    says_nothing = {
        "before-clause": token.after in grammar["determiners"] or token.after in grammar["persons"],
        "in-negation": bool(reading.negations),
        "before-content": after is not None,
        "beside-be": token.after in grammar["be"] or token.before in grammar["be"],
        "before-time": timed,
        "to-receiver": either or (sides.dative and moved),
        "in-voice": sides.voices and not timed,
        "after-mark": opens or any(t and (t.comma or t.initial) for t in (after, partner)),
        "before-is": verbs[1 - side] > verbs[side],
    }
    return any(token.word in grammar[part] and here for part, here in says_nothing.items())


def tense_edits(sides: Sides, lexicon: Lexicon) -> list[Edit]:
    """Words in another inflection, and what one text puts ahead or now and the other in the
    past."""
    tenses = [_tenses(side, sides, lexicon) for side in (0, 1)]
    edits: list[Edit] = []
    capitals = all(r.tokens and r.tokens[0].text[:1].isupper() for r in sides.readings)
    for pair in sides.tokens:
        if _determined(pair, lexicon):
            edits.append(Edit("", "article", pair[:1], pair[1:]))
        texts = {token.text.lower() for token in pair}
        cased = None not in (token.capital for token in pair) and pair[0].text != pair[1].text
        if capitals and cased and len(texts) == 1:
            edits.append(Edit("", "capital", pair[:1], pair[1:]))  # Turkey, turkey
        alike = (pair[0].word, pair[0].form) == (pair[1].word, pair[1].form)
        if alike and not sides.voices:
            continue
        if pair[0].key != pair[1].key or not pair[0].kind == pair[1].kind == "word":
            continue
        forms = [token.form or lexicon.form(token.word) for token in pair]
        label = ""
        if "ing" in forms and forms[0] != forms[1]:
            gerund = pair[forms.index("ing")]
            before = gerund.place and sides.readings[forms.index("ing")].content[gerund.place - 1]
            free = before and (before.key in lexicon.grammar["either"] or before.kind == "filler")
            label = "" if free or "is" in tenses[forms.index("ing")] else "form"
        elif set(forms) == {"base", "s"}:
            base, plural = pair if forms[0] == "base" else pair[::-1]
            label = "" if _agree(base, plural, sides, lexicon) else "number"
        if label:
            edits.append(Edit("", label, pair[:1], pair[1:]))
        for tense, token, form in zip(tenses, pair, forms, strict=True):
            told = forms[0] != forms[1] or (sides.voices and "have" not in tense)
            if told and form == "past" and not token.passive:
                tense.setdefault("was", token)
    words = {token.word for token in sides.readings[0].tokens}
    lasting = not words.isdisjoint(("for", "since")) and "'s" not in words
    return edits + _compared(tenses[0], tenses[1], lasting)


def _tenses(side: int, sides: Sides, lexicon: Lexicon) -> dict[str, Token]:
    """The tenses of auxiliaries of one text that those of the other do not have as often."""
    tense = lexicon.grammar["tenses"]
    counts = [
        Counter(tense[token.word] for token in reading.light if token.word in tense)
        for reading in sides.readings
    ]
    more = counts[side] - counts[1 - side]
    light = sides.readings[side].light
    return {tense[t.word]: t for t in light if tense.get(t.word) in more}


def _compared(
    first: dict[str, Token],
    second: dict[str, Token],
    lasting: bool,
) -> list[Edit]:
    """The edit of two tenses, if they differ: "has arrived" and "arrived" do not; "has lived here
    for a year" and "lived here for a year" do."""
    names = [
        next((name for name in ("will", "was", "have", "is") if name in side), "")
        for side in (first, second)
    ]
    alike = () if lasting else ({"was", "have"}, {"have", ""})
    if len({*names}) == 1 or {*names} in ({"is", ""}, *alike):
        return []
    strong = "will" in names and not {"was", "have"}.isdisjoint(names)
    tokens = [
        [side[name]] if name else [] for name, side in zip(names, (first, second), strict=True)
    ]
    return [Edit("time" * strong, "tense", *tokens)]


def _determined(pair: tuple[Token, Token], lexicon: Lexicon) -> bool:
    """Whether an article that only one text has says something: a little, to the prison, the most,
    the secretary and the treasurer."""
    before, word = [token.before for token in pair], pair[0].text.lower()
    if word in ("little", "few") and before.count("a") == 1:
        return not lexicon.grammar["determiners"].keys() >= set(before)
    if "and" in before and not {"a", "an", "the"}.isdisjoint(before):
        return True
    return before.count("the") == 1 and ("" not in before or word in lexicon.grammar["bare"])


def comma_edits(sides: Sides, lexicon: Lexicon) -> list[Edit]:
    """Commas that only one text has, or that stand elsewhere: "lemon, curd", "the drivers, who
    ...". They say nothing before "and", and behind what opens a sentence."""
    grammar = lexicon.grammar
    marked = [
        one if one.comma else other
        for one, other in sides.tokens
        if bool(one.comma) != bool(other.comma)
    ]
    if not marked or sides.turned:
        return []
    openers = grammar["markers"].keys() | grammar["openers"].keys()
    first = [reading.tokens[0] for reading in sides.readings if reading.tokens]
    opened = any(t.word in openers or t.word.endswith("ly") or t.kind == "filler" for t in first)
    free = (*grammar["joining"], *grammar["sequence"], "but", "or")
    telling = [
        token
        for token in marked
        if token.comma not in free and token.kind in ("word", "name")
        if not opened or token.comma in grammar["relative"] or token.text.lower() == token.comma
    ]
    return [Edit("", "comma", telling[:1], [])] * bool(telling)


def _agree(
    base: Token,
    plural: Token,
    sides: Sides,
    lexicon: Lexicon,
) -> bool:
    """Whether two forms of a word differ as a verb agrees with its subject, or as one and any of a
    kind do."""
    grammar = lexicon.grammar
    words = [{token.word for token in reading.light} for reading in sides.readings]
    names = not any(words) and len(sides.tokens) <= 3  # neural network, Neural networks
    generic = base.before in ("any", "each", "every")
    verb = grammar["persons"].get(plural.before) == "he" or base.before in grammar["plain"]
    return (
        verb
        or names
        or "#" in (base.before, plural.before)
        or "does" in words[0] ^ words[1]
        or (generic and plural.before not in grammar["determiners"])
    )


def negation_edits(sides: Sides, edits: list[Edit], lexicon: Lexicon) -> list[Edit]:
    """The edits with those of the negations: one more, or the same of another word. A negated
    opposite is none where it says the same: not valid, invalid."""
    left = without_counterpart(sides, [reading.negations for reading in sides.readings])
    if not any(left):
        return edits
    odd = (len(left[0]) + len(left[1])) % 2 == 1
    asked = any(reading.asks for reading in sides.readings)
    for edit in edits if odd and not asked else ():
        negated = [
            (side, token)
            for side, tokens in enumerate((edit.first, edit.second))
            for token in tokens
            if any(_negates(negation, token, sides.readings[side]) for negation in left[side])
        ]
        if edit.kind == "antonym" and len(negated) == 1:
            rest = [each for each in edits if each is not edit]
            words = {token.key for each in rest for token in (*each.first, *each.second)}
            if "always" in words <= lexicon.grammar["always-never"].keys():
                return []  # never leave it open, always keep it closed
            same = _cancels(sides, *negated[0], edit, lexicon)
            return rest if same else [*rest, edit._replace(kind="", label="negated antonym")]
    if len(left[0]) == len(left[1]):
        return [*edits, Edit("", "negation of another word", *left)]
    bounds = [
        {token.word for token in reading.tokens} & lexicon.grammar["bounds"].keys()
        for reading in sides.readings
    ]
    otherwise = all(bounds) and bounds[0] != bounds[1]  # not until, only after
    kind = "negation" * (odd and not otherwise)
    return [*edits, Edit(kind, "negation", left[0][-1:], left[1][-1:])]


def _negates(negation: Token, token: Token, reading: Reading) -> bool:
    """Whether a word follows a negation in the same clause."""
    between = reading.content[negation.place + 1 : token.place + 1]
    parted = any(each.comma or each.marker in ("and", "but", "or") for each in between)
    return negation.place <= token.place and not parted


def _cancels(
    sides: Sides,
    side: int,
    negated: Token,
    antonyms: Edit,
    lexicon: Lexicon,
) -> bool:
    """Whether a negated word is all that its opposite is: not valid, invalid; is not open, is
    closed. With a word between, after "may" and "all", and in an instruction it is not."""
    reading = sides.readings[side]
    keys = [str(token.key) for token in (*antonyms.first, *antonyms.second)]
    limited = any(
        lexicon.kind(token.key) in ("modality", "quantity", "time")
        for token in reading.content[: negated.place]
    )
    state = negated.passive or negated.before in ("a", "an") or negated.initial
    adjacent = any(negation.place == negated.place for negation in reading.negations)
    all_of_it = lexicon.linked("complements", *keys) or lexicon.complementary(*keys)
    return adjacent and state and not limited and all_of_it
