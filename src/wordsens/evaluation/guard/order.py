"""Which words of two texts correspond, and what their order says: which moves keep the meaning, and
which exchange roles."""

from bisect import bisect_left
from collections.abc import Container, Sequence

from wordsens.evaluation.guard.clauses import Edit, Sides
from wordsens.evaluation.guard.lexicon import Lexicon
from wordsens.evaluation.guard.tokens import Token

Pairs = list[tuple[Token, Token]]

# Of a word that stands many times, only so many neighbouring occurrences are compared.
_REACH = 2

# Of longer texts that are in another order nothing is said.
_MOST_WORDS = 400

# How most English participles end.
_PAST = ("ed", "en", "id", "ld", "nt", "ght", "wn")


def aligned(first: Sequence[Token], second: Sequence[Token]) -> list[tuple[int, int]]:
    """The places of tokens with equal keys: a longest part in the same order, then those that
    moved. Takes n log n steps."""
    places: list[dict[object, list[int]]] = [{}, {}]
    for side, tokens in zip(places, (first, second), strict=True):
        for at, token in enumerate(tokens):
            side.setdefault(token.key, []).append(at)
    candidates = sorted(
        (at, -place)
        for key, ones in places[0].items()
        for rank, at in enumerate(ones)
        for place in places[1].get(key, [])[max(0, rank - _REACH) : rank + _REACH + 1]
    )
    chain = rising([-place for _, place in candidates])
    pairs = [(candidates[k][0], -candidates[k][1]) for k in chain]
    used = {at for at, _ in pairs}, {place for _, place in pairs}
    for key, ones in places[0].items():
        left = [at for at in ones if at not in used[0]]
        right = [place for place in places[1].get(key, ()) if place not in used[1]]
        pairs += zip(left, right, strict=False)
    return pairs


def rising(values: Sequence[int]) -> list[int]:
    """The places of a longest part that rises."""
    tails: list[int] = []
    at_tail: list[int] = []
    before: list[int] = []
    for at, value in enumerate(values):
        k = bisect_left(tails, value)
        before.append(at_tail[k - 1] if k else -1)
        tails[k : k + 1], at_tail[k : k + 1] = [value], [at]
    chain, at = [], at_tail[-1] if at_tail else -1
    while at >= 0:
        chain.append(at)
        at = before[at]
    return chain[::-1]


def order_edits(sides: Sides, lexicon: Lexicon) -> list[Edit]:
    """Harmless where a phrase moves as a whole, by its own preposition or as the entry of a list;
    elsewhere a change of roles. The same verb in the other voice may be one: I paid, I was
    paid."""
    first, second = (reading.content for reading in sides.readings)
    rank = {place: at for at, place in enumerate(_active(second, lexicon))}
    partner = dict(sides.pairs)
    places = [at for at in _active(first, lexicon) if at in partner]
    position = {value: at for at, value in enumerate(sorted(rank[partner[at]] for at in places))}
    sequence = [position[rank[partner[at]]] for at in places]
    pairs = [(first[at], second[partner[at]]) for at in places]
    if sides.voices and sum(_counts(token, lexicon) for token, _ in pairs) > 1:
        return [Edit("", "scope in the other voice", [], [])]  # two nurses checked every room
    if sequence == sorted(sequence):
        return _voices(pairs)
    if len(pairs) > _MOST_WORDS:
        return [Edit("", "order", *zip(*pairs[:2], strict=True))]
    if lists := _list_moved(sequence, pairs, sides, lexicon):
        uncertain = _in_sequence(sides, lists, lexicon)
        return [Edit("", "order of a list", *lists)] * uncertain
    words = {token.word for reading in sides.readings for token in reading.tokens}
    negated = all(reading.negations for reading in sides.readings)
    if negated and not words.isdisjoint(lexicon.grammar["reasons"]):
        return [Edit("", "reason beside a negation", [], [])]
    kept = rising(sequence)
    moved = [at for at in range(len(sequence)) if at not in kept]
    exchanged = [
        (*pairs[i], *pairs[k]) for i, k in enumerate(sequence) if i < k and sequence[k] == i
    ]
    roles = any(
        a.marker == d.marker and b.marker == c.marker and {a.marker, c.marker} != {""}
        for a, b, c, d in exchanged
    )
    words = {token.key for token, _ in pairs}
    # "The fire in the hall"; "date of delivery"; "he said on Monday"; "kindly treat".
    timed = any(_is_time(pairs[at][0], lexicon) for at in moved)
    loose = not words.isdisjoint(lexicon.grammar["reporting"]) or any(
        (pairs[at][0].marker in ("with", "in", "from") and not timed)
        or pairs[at][0].word in lexicon.grammar["manner"]
        for at in moved
    )
    loose = loose or any("of" in (a.marker, b.marker) and a.marker != b.marker for a, b in pairs)
    if not (roles or loose) and (
        _phrase_moved(sequence, pairs, lexicon)
        or (
            all(_movable(*pairs[at], lexicon) for at in moved)
            and not all(_conjunction(pairs[at][0], lexicon) for at in moved)
        )
    ):
        return []
    ones, others = zip(*(pairs[at] for at in moved), strict=True)
    agent = any(_active(side, lexicon) != [*range(len(side))] for side in (first, second))
    strong = (agent or not sides.voices) and (roles or not loose)
    return [Edit("role" * strong, "order", ones[:2], others[:2])]


def _counts(token: Token, lexicon: Lexicon) -> bool:
    return token.amount is not None or lexicon.kind(token.key) == "quantity"


def _is_time(token: Token, lexicon: Lexicon) -> bool:
    span = token.amount is not None and token.amount.dimension in ("second", "month")
    return bool(token.moments) or span or lexicon.kind(token.key) == "time"


def _voices(pairs: Pairs) -> list[Edit]:
    """The same verb in the other voice, where nothing says by whom: I paid, I was paid."""
    if any(token.marker == "by" for pair in pairs for token in pair):
        return []
    return [
        Edit("", "voice", [one], [other])
        for one, other in pairs
        if one.passive != other.passive and one.key == other.key
        if (one if one.passive else other).word.endswith(_PAST)
    ]


def _list_moved(
    sequence: list[int], pairs: Pairs, sides: Sides, lexicon: Lexicon
) -> list[list[Token]] | None:
    """What changed places in each text, where it is the whole entries of a list, parted by commas,
    "and" or "or"."""
    low, high = _moved(sequence)
    by_rank = sorted(range(len(sequence)), key=sequence.__getitem__)
    spans = [
        [pairs[at][side] for at in order[low:high]]
        for side, order in enumerate((range(len(pairs)), by_rank))
    ]
    joining = lexicon.grammar["joining"]
    for side, tokens in enumerate(spans):
        behind = [pair[side] for pair in pairs[high : high + 1]]
        joined = any(token.marker in joining for token in (*tokens[1:], *behind))
        places = range(tokens[0].place + 1, tokens[-1].place + 1)
        negated = any(negation.place in places for negation in sides.readings[side].negations)
        # "Before lunch, dinner is served" has a comma, and is no list.
        if negated or (not joined and sum(token.comma != "" for token in tokens[1:]) < 2):
            return None
    markers = {tokens[0].marker for tokens in spans}
    alike = len(markers) == 1 or joining.keys() >= markers
    entries, others = (_entries(tokens, joining) for tokens in spans)
    return spans if alike and entries == others else None


def _entries(tokens: list[Token], joining: Container[str]) -> list[str]:
    """The entries of a list, sorted."""
    entries: list[str] = []
    for token in tokens:
        joins = not entries or token.marker in joining
        if joins or token.comma:
            entries.append("")
        entries[-1] += f" {'' if joins else token.marker} {token.key}"
    return sorted(entries)


def _moved(sequence: list[int]) -> tuple[int, int]:
    """Where what is in another order begins and stops."""
    moved = [at for at, value in enumerate(sequence) if at != value]
    return moved[0], moved[-1] + 1


def _in_sequence(sides: Sides, lists: list[list[Token]], lexicon: Lexicon) -> bool:
    """Whether the order of a list may count: of what to do, as in "wash, dry and iron it", of
    numbers, or with "then"."""
    words = {token.word for reading in sides.readings for token in reading.tokens}
    heads = [entries[0] for entries in lists]
    tokens = [token for entries in lists for token in entries]
    verbs = any(head.initial or head.marker in lexicon.grammar["recipient"] for head in heads)
    names = all(token.text[:1].isupper() for token in tokens)
    numbers = all(token.amount for token in tokens)
    # In "from Rome, Milan and Turin are near" the list begins behind the first entry.
    clause = any(head.marker and head.place == 0 for head in heads)
    sequence = not words.isdisjoint(lexicon.grammar["sequence"])
    listed = {id(token) for token in tokens}
    # "Anna and Bob got gold and silver" has another list.
    joined = [
        t for r in sides.readings for t in r.content if id(t) not in listed and t.marker == "and"
    ]
    return (verbs and not names) or numbers or clause or sequence or bool(joined)


def _active(tokens: Sequence[Token], lexicon: Lexicon) -> list[int]:
    """The places of the tokens in the order of the active voice: who acts by "by" comes before the
    verb; by Friday and by the door nobody does."""
    places = list(range(len(tokens)))
    verb = None
    for at, token in enumerate(tokens):
        if token.marker == "by" and verb is not None:
            behind = range(at + 1, len(tokens))
            ends = [
                k
                for k in behind
                if tokens[k].marker or tokens[k].comma or _is_time(tokens[k], lexicon)
            ]
            stop = min(ends, default=len(tokens))
            last = tokens[stop - 1]
            manner = token.before == "by" and token.kind == "word"  # by hand, by moonlight
            manner = manner and stop == at + 1 and lexicon.form(token.word) == "base"
            if manner or _is_time(last, lexicon) or last.word in lexicon.grammar["beside"]:
                continue
            return places[at:stop] + places[verb:at] + places[:verb] + places[stop:]
        if token.passive:
            verb = at
    return places


def _phrase_moved(sequence: list[int], pairs: Pairs, lexicon: Lexicon) -> bool:
    """Whether two neighbouring parts changed places of which one is movable: it has its own
    preposition or conjunction, or is a time or an adverb."""
    low, high = _moved(sequence)
    middle = sequence[low:high]
    cut = middle.index(low)
    if middle[cut:] + middle[:cut] != list(range(low, high)):
        return False
    parts = pairs[low : low + cut], pairs[low + cut : high]
    whole = [part for part in parts if part[1:] or not _conjunction(part[0][0], lexicon)]
    timed = [any(lexicon.kind(token.key) == "time" for token, _ in part) for part in whole]
    return any(
        _movable(*part[0], lexicon) or (len(part) < 4 and time)
        for part, time in zip(whole, timed, strict=True)
    )


def _movable(one: Token, other: Token, lexicon: Lexicon) -> bool:
    """Whether what begins with this word plays the same part in both places."""
    grammar = lexicon.grammar
    marks = [grammar["links"].get(token.marker, token.marker) for token in (one, other)]
    phrase = marks[0] == marks[1] and one.marker not in ("", *grammar["joining"])
    dative = "" in marks and not grammar["recipient"].keys().isdisjoint(marks)
    timed = one.moments or lexicon.kind(one.key) in ("time", "modality")
    fillers = (*lexicon.fillers["start"], *lexicon.fillers["end"])
    edge = one.word in fillers and all(t.initial or not t.after for t in (one, other))
    adverb = one.word.endswith("ly") or one.word == "also" or one.kind == "filler" or edge
    return bool(phrase or dative or timed or adverb or _conjunction(one, lexicon))


def _conjunction(token: Token, lexicon: Lexicon) -> bool:
    """Whether a word takes a phrase along, as "before" and "because" do."""
    grammar = lexicon.grammar
    return token.word in grammar["markers"] and token.word not in grammar["limits"]
