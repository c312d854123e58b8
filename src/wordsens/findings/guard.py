"""What the guard says of many pairs: how many have each verdict, and why."""

from wordsens.display.content import Display, Table
from wordsens.evaluation.guard.bulk import GuardedPairs


def answer(guarded: GuardedPairs) -> tuple[str, ...]:
    """How many pairs have each verdict."""
    counts = ", ".join(f"{count:,} {verdict}" for verdict, count in guarded.counts.items())
    return (f"{len(guarded):,} pair{'s' * (len(guarded) != 1)}: {counts}.",)


def display(guarded: GuardedPairs) -> Display:
    """The counts, and a table of reasons with an example of each."""
    rows = tuple(
        (count.verdict, count.reason, count.pairs, guarded.judgements[count.example].reason.partition(": ")[2])
        for count in guarded.reasons
    )
    return Display(answer(guarded), (Table("Reasons", ("verdict", "reason", "pairs", "for example"), rows),))
