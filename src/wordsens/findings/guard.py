"""What the guard says of many pairs: how many have each verdict, and why."""

from wordsens.display.content import Display, Table
from wordsens.evaluation.guard.bulk import GuardedPairs

ADVICE = {
    "same": "a cache may reuse the answer to either text for the other",
    "different": "a cache should miss: call the language model again, or check cache hits with the "
    "guard",
    "unsure": "a cache should miss, ask for a second opinion, or use a threshold that was found "
    "for such pairs (wordsens calibrate --guard)",
}
"""What a cache should do at each verdict."""

CHANGES = "a negation, an opposite, a number, a time, a name or a role exchanged"
"""What makes a pair mean something else, which is an opposite for short."""

MEASURED = (
    "on 300 pairs written by someone who had not seen the rules, it flags 108 of 150 opposites "
    "and, wrongly, 7 of 150 near-duplicates as different"
)
"""How often the guard is right, on pairs that it was not made with (docs/guard.md)."""


def answer(guarded: GuardedPairs) -> tuple[str, ...]:
    """How many pairs have each verdict, and what to do where the guard is unsure."""
    counts = ", ".join(f"{count:,} {verdict}" for verdict, count in guarded.counts.items())
    total = f"{len(guarded):,} pair{'s' * (len(guarded) != 1)}: {counts}."
    unsure = f"Unsure: no rule explains the difference; {ADVICE['unsure']}."
    return (total, unsure) if guarded.counts["unsure"] else (total,)


def display(guarded: GuardedPairs) -> Display:
    """The counts, and a table of reasons with an example of each."""
    rows = tuple(
        (
            count["verdict"],
            count["reason"],
            count["pairs"],
            count["example"]["reason"].partition(": ")[2],
        )
        for count in guarded.reasons
    )
    return Display(
        answer(guarded), (Table("Reasons", ("verdict", "reason", "pairs", "for example"), rows),)
    )
