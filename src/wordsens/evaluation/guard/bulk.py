"""The guard over many pairs: of a file or given in Python, in this process or in several."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from wordsens.display.numbers import plural
from wordsens.display.view import Table, View
from wordsens.errors import InputError, argument, require_count
from wordsens.evaluation.guard.judge import ADVICE, Judgement, Verdict, guard
from wordsens.results import Result
from wordsens.text.pairs import Pairs, pair_rows
from wordsens.text.tables import write_rows
from wordsens.workers import WorkerPool

Progress = Callable[[int, int], None]

COLUMNS = ("first", "second")
VERDICTS: tuple[Verdict, ...] = ("same", "different", "unsure")

# Pairs between two calls of `progress`, and that a worker takes at a time.
_BATCH = 500


@dataclass(frozen=True, eq=False, repr=False)
class GuardedPairs(Result):
    """The guard's judgement of each pair.

    Attributes:
        pairs: the rows as they were given: `first`, `second`, and any further columns.
        judgements: one for each pair, in the same order.
    """

    pairs: tuple[Mapping[str, Any], ...]
    judgements: tuple[Judgement, ...]

    def __len__(self) -> int:
        return len(self.pairs)

    def __repr__(self) -> str:
        counts = ", ".join(f"{verdict}={count}" for verdict, count in self.counts.items())
        return f"GuardedPairs({counts})"

    @property
    def counts(self) -> dict[Verdict, int]:
        """How many pairs have each verdict."""
        verdicts = [judgement.verdict for judgement in self.judgements]
        return {verdict: verdicts.count(verdict) for verdict in VERDICTS}

    @property
    def reasons(self) -> list[dict[str, Any]]:
        """For each verdict and reason, such as "different" and "quantity": how many `pairs` have
        them, and the first row as an `example`; the most frequent first."""
        examples: dict[tuple[Verdict, str], list[dict[str, Any]]] = {}
        for judgement, row in zip(self.judgements, self.rows(), strict=True):
            key = judgement.verdict, judgement.reason.partition(":")[0]
            examples.setdefault(key, []).append(row)
        ranked = sorted(
            examples.items(), key=lambda item: (VERDICTS.index(item[0][0]), -len(item[1]), item[0])
        )
        return [
            {"verdict": verdict, "reason": reason, "pairs": len(rows), "example": rows[0]}
            for (verdict, reason), rows in ranked
        ]

    def rows(self) -> list[dict[str, Any]]:
        """Each pair with its own columns, its `verdict` and its `reason`."""
        return [
            {**pair, "verdict": judgement.verdict, "reason": judgement.reason}
            for pair, judgement in zip(self.pairs, self.judgements, strict=True)
        ]

    def to_dict(self) -> dict[str, Any]:
        """The counts by verdict, and by verdict and reason with an example; not the pairs
        themselves."""
        reasons = [
            {**count, "example": {name: count["example"][name] for name in (*COLUMNS, "reason")}}
            for count in self.reasons
        ]
        return {"pairs": len(self), **self.counts, "reasons": reasons}

    def columns(self) -> dict[str, Any]:
        """One row per pair, as `rows` has them."""
        rows = self.rows()
        names = dict.fromkeys(name for row in rows for name in row)
        return {name: [row.get(name) for row in rows] for name in names}

    @property
    def headline(self) -> str:
        """How many pairs have each verdict."""
        counts = ", ".join(f"{count:,} {verdict}" for verdict, count in self.counts.items())
        return f"{plural(len(self), 'pair')}: {counts}."

    def view(self) -> View:
        """How many pairs have each verdict, and one row per reason with an example."""
        reasons = self.reasons
        columns = {
            name: [count[name] for count in reasons] for name in ("verdict", "reason", "pairs")
        }
        examples = [count["example"]["reason"].partition(": ")[2] for count in reasons]
        unsure = f"Unsure: no rule explains the difference; {ADVICE['unsure']}."
        return View(
            self.headline,
            (Table("Reasons", columns | {"for example": examples}),),
            notes=(unsure,) if self.counts["unsure"] else (),
        )

    def write(self, path: str | PathLike[str]) -> None:
        """Write `rows` to a CSV, TSV, JSON lines or Parquet file, by its extension, whole or not at
        all.

        Raises:
            InputError: another extension, or a file that cannot be written.
            MissingExtraError: for Parquet, pyarrow is not installed.
        """
        write_rows(self.rows(), Path(path).expanduser(), "path")


def guard_pairs(
    pairs: Pairs,
    *,
    workers: int | None = None,
    encoding: str = "utf-8",
    progress: Progress = lambda done, total: None,
) -> GuardedPairs:
    """The verdict of `guard` on each pair.

    Args:
        pairs: a CSV, TSV, JSON lines or Parquet file with the columns first and second; or the rows
            themselves: tuples (first, second), dicts or Pairs. Further columns are kept.
        workers: the number of processes to start on this machine; None: this process does the work.
            With workers, a script must call this under `if __name__ == "__main__":`, because each
            worker process imports the script.
        encoding: the encoding of a CSV, TSV or JSON lines file.
        progress: called with (pairs done, pairs in total).

    Raises:
        InputError: there are no pairs; a row lacks a column, has an empty or missing text, or
            already has a column named verdict or reason; the file cannot be read. It says which
            row.
        MissingExtraError: reading Parquet needs pyarrow.

    >>> guarded = guard_pairs([("mw-3", "MW 3"), ("mw-3", "mw-2"), ("Add nutmeg.", "Add cinnamon.")])
    >>> guarded.counts
    {'same': 1, 'different': 1, 'unsure': 1}
    >>> guarded.rows()[1]
    {'first': 'mw-3', 'second': 'mw-2', 'verdict': 'different', 'reason': 'quantity: 3 / 2'}
    """  # noqa: E501
    if workers is not None:
        require_count("workers", workers)
    if pairs is None:
        raise InputError(f"{argument('pairs')} (=None) must be pairs of texts, or a file of them")
    rows = []
    for where, row in pair_rows(pairs, COLUMNS, encoding=encoding):
        _require_texts(row, where)
        rows.append(row)
    if not rows:
        raise InputError(f"{argument('pairs')} holds no pair; give rows of {', '.join(COLUMNS)}")
    texts = [(row["first"], row["second"]) for row in rows]
    batches = [texts[start : start + _BATCH] for start in range(0, len(texts), _BATCH)]
    judgements: list[Judgement] = []
    for judged in _judged(batches, min(workers or 1, len(batches))):
        judgements += judged
        progress(len(judgements), len(texts))
    return GuardedPairs(tuple(rows), tuple(judgements))


def _require_texts(row: Mapping[str, Any], where: str) -> None:
    for name in COLUMNS:
        if not isinstance(row[name], str) or not row[name].strip():
            raise InputError(f"{where}: `{name}` (={row[name]!r}) must be a text that is not empty")
    for name in ("verdict", "reason"):
        if name in row:
            raise InputError(
                f"{where} has a column {name!r} already, which the guard adds; rename it"
            )


def _judge_batch(texts: list[tuple[str, str]]) -> list[Judgement]:
    return [guard(first, second) for first, second in texts]


def _judged(batches: list[list[tuple[str, str]]], workers: int) -> Iterator[list[Judgement]]:
    """The judgements of each batch, in this process or in several."""
    if workers == 1:
        yield from map(_judge_batch, batches)
        return
    with WorkerPool(workers) as pool:
        futures = [pool.submit(_judge_batch, batch) for batch in batches]
        yield from (future.result() for future in futures)
