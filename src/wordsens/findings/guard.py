"""What the guard says of many pairs: how many have each verdict, and why."""

from wordsens.display.content import Display, Table
from wordsens.evaluation.guard.bulk import GuardedPairs

ADVICE = {
    "same": "a cache may give the answer of either text to the other",
    "different": "a cache should miss: ask the language model anew, or put the guard behind the "
    "threshold",
    "unsure": "no rule explains the difference: a cache should miss, ask for a second opinion, or "
    "trust a threshold "
    "that was found for such pairs (wordsens calibrate --guard)",
}
"""What a cache should do at each verdict."""

CHANGES = "a negation, an opposite, a number, a time, a name or a role exchanged"
"""What makes a pair mean something else, which is an opposite for short."""

MEASURED = (
    "of 150 opposites and 150 near-duplicates by a writer who saw no rule it calls 113 and "
    "16 different"
)
"""How often the guard is right, on pairs that it was not made with (docs/guard.md)."""


def answer(guarded: GuardedPairs) -> tuple[str, ...]:
    """How many pairs have each verdict, and what to do where the guard is unsure."""
    counts = ", ".join(f"{count:,} {verdict}" for verdict, count in guarded.counts.items())
    total = f"{len(guarded):,} pair{'s' * (len(guarded) != 1)}: {counts}."
    return (total, f"Unsure: {ADVICE['unsure']}.") if guarded.counts["unsure"] else (total,)


def display(guarded: GuardedPairs) -> Display:
    """The counts, and a table of reasons with an example of each."""
    rows = tuple(
        (
            count.verdict,
            count.reason,
            count.pairs,
            guarded.judgements[count.example].reason.partition(": ")[2],
        )
        for count in guarded.reasons
    )
    return Display(
        answer(guarded), (Table("Reasons", ("verdict", "reason", "pairs", "for example"), rows),)
    )
