"""A comparison in sentences: the overall answer, then each difference with its number, its interval and what to do."""

from collections.abc import Iterator, Sequence

from wordsens.evaluation.compare.compared import Compared
from wordsens.evaluation.compare.difference import ALL_KINDS, CHECK, NEIGHBOURS, RANK, REMOVAL, WORD, Difference
from wordsens.evaluation.compare.neighbours import NEAREST, RECALL, ChangedNeighbour
from wordsens.evaluation.compare.words import EVERY

_NAMED = 3
"""Rows that a sentence names."""

_TEXT = 60
"""Letters of a text that a sentence shows."""

_PARTS = {CHECK: "flipped meanings", REMOVAL: "kinds of words", WORD: "single words", RANK: "words' ranks",
          NEIGHBOURS: "neighbours"}  # fmt: skip


def findings(found: Compared) -> Iterator[str]:
    """The overall answer first; nothing is said of a row whose interval includes the opposite, or no difference."""
    rows = [row for row in found.rows if row.differs]
    if not rows:
        yield from _nothing(found)
        return
    parts = [f"{told} ({count})" for part, told in _PARTS.items() if (count := sum(row.part == part for row in rows))]
    yield (
        f"{found.second} differs from {found.first} in {len(rows)} of {len(found.rows)} comparisons over "
        f"{found.texts} texts: {', '.join(parts)}."
    )
    yield from _meanings(found, [row for row in rows if row.part == CHECK])
    yield from _words(found, rows)
    yield from _ranks(found, rows)
    yield from _neighbours(found, [row for row in rows if row.part == NEIGHBOURS])
    if kept := [_PARTS[part] for part in _PARTS if _quiet(found.rows, part)]:
        yield f"No difference found in {', '.join(kept)}."


def _quiet(rows: Sequence[Difference], part: str) -> bool:
    own = [row for row in rows if row.part == part]
    return bool(own) and not any(row.differs for row in own)


def _nothing(found: Compared) -> Iterator[str]:
    same = ": their vectors are the same" if found.apart == 0 else f", none beyond {found.tolerance:.0%}"
    yield (
        f"No difference between {found.first} and {found.second} was found in {len(found.rows)} comparisons over "
        f"{found.texts} texts{same}."
    )
    main = [row for row in found.rows if row.name in (ALL_KINDS, EVERY, NEAREST)]
    if told := [f"{_what(row)} {row.interval}" for row in main if row.low is not None]:
        yield f"Second less first: {'; '.join(told)}."
    if unsure := [_what(row) for row in main if not row.excluded]:
        yield (
            f"Too few {'pairs or ' * (main[0].name == ALL_KINDS)}texts to exclude one beyond {found.tolerance:.0%} in "
            f"{', '.join(unsure)}: give more."
        )


def _what(row: Difference) -> str:
    names = {ALL_KINDS: "AUC of all kinds", EVERY: "change without a word", NEAREST: "texts with another neighbour"}
    return names[row.name]


def _meanings(found: Compared, rows: Sequence[Difference]) -> Iterator[str]:
    kinds = [row for row in rows if row.name != ALL_KINDS] or rows
    for direction, verdict, advice in (
        (-1, "tells fewer opposites from paraphrases", f"keep {found.first} where these matter, or add a reranker"),
        (1, "tells more opposites from paraphrases", "thresholds set before may now be too strict; set them anew"),
    ):
        some = sorted((row for row in kinds if row.difference * direction > 0), key=lambda row: -abs(row.difference))
        if some:
            told = "; ".join(
                f"{row.name} AUC {row.first:.3f} -> {row.second:.3f}, {row.interval}, {row.count} pairs"
                for row in some[:_NAMED]
            )
            yield f"{found.second} {verdict}: {told}{_more(some)}. To do: {advice}."


def _words(found: Compared, rows: Sequence[Difference]) -> Iterator[str]:
    every = next((row for row in rows if row.part == REMOVAL and row.name == EVERY), None)
    if every is not None:
        yield (
            f"Without one word a text moves {_share(every)} in {found.second}: {every.second:.3f} of its length "
            f"against {every.first:.3f}, {every.interval}. To do: set thresholds on cosines anew, on your own texts."
        )
    kinds = [row for row in rows if row.part == REMOVAL and row.name != EVERY]
    # Where every word moves a text more, single words do too, and their ranks say the rest.
    single = [row for row in rows if row.part == WORD and (every is None or every.difference * row.difference < 0)]
    for title, some in (("By kind, place and length", kinds), ("Single words", single)):
        if some:
            first = sorted(some, key=lambda row: -abs(row.relative))
            told = "; ".join(
                f"{_quoted(row)} {_share(row)}, {row.interval}, {row.count} texts" for row in first[:_NAMED]
            )
            yield f"{title} (a text without them moves): {told}{_more(some)}."


def _ranks(found: Compared, rows: Sequence[Difference]) -> Iterator[str]:
    ranks = sorted((row for row in rows if row.part == RANK), key=lambda row: -abs(row.difference))
    crossing = [row for row in ranks if row.crosses]
    for row in crossing[:_NAMED]:
        ignores, reacts = (found.first, found.second) if row.difference > 0 else (found.second, found.first)
        yield (
            f"{ignores} ignores '{row.name}' and {reacts} reacts to it: its rank among the words of its text goes from "
            f"{row.first:.2f} to {row.second:.2f}, {row.interval}, {row.count} texts. To do: try texts with and "
            "without it (wordsens explain)."
        )
    if others := [row for row in ranks if not row.crosses]:
        told = "; ".join(
            f"'{row.name}' {row.first:.2f} -> {row.second:.2f}, {row.interval}, {row.count} texts"
            for row in others[:_NAMED]
        )
        yield f"Words that changed rank (0 the least of their text, 1 the most): {told}{_more(others)}."


def _neighbours(found: Compared, rows: Sequence[Difference]) -> Iterator[str]:
    told = {row.name: row for row in rows}
    if (row := told.get(NEAREST)) is not None:
        yield (
            f"{row.second:.1%} of {row.count} texts have another first neighbour ({row.first:.1%} between two calls of "
            f"one model; {row.interval}). To do: encode the whole corpus anew, and read the changed ones."
        )
    elif (row := told.get(RECALL)) is not None:
        yield f"The recall of neighbours is {row.second:.3f} ({row.first:.3f} between two calls; {row.interval})."
    for one in found.changed:
        if rows and (sentence := _example(found, one)):
            yield sentence
            return


def _example(found: Compared, one: ChangedNeighbour) -> str | None:
    """A changed text, with the word that turns the change back in one of the models; None where no single word does."""
    word = next((word for word in one.words if word.back or word.away), None)
    if word is None:
        return None
    turned = f"{found.second} has the old one nearer" if word.back else f"{found.first} has the new one nearer too"
    return (
        f"Such as {_short(one.text)}: its first neighbour was {_short(one.old_text)} and is {_short(one.new_text)}; "
        f"without '{word.word}' {turned} (one change)."
    )


def _share(row: Difference) -> str:
    """The difference as a share of the first number, in words."""
    return f"{abs(row.relative):.1%} {'more' if row.difference > 0 else 'less'}"


def _quoted(row: Difference) -> str:
    return f"'{row.name}'" if row.part == WORD else row.name


def _more(rows: Sequence[Difference]) -> str:
    return f"; and {len(rows) - _NAMED} more" if len(rows) > _NAMED else ""


def _short(text: str) -> str:
    plain = " ".join(text.split())
    return repr(plain if len(plain) <= _TEXT else plain[:_TEXT].rsplit(" ", 1)[0] + " ...")
