"""Query pairs with two documents, as NevIR has them: does either query rank the document that answers it first?"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from os import PathLike
from typing import Any

import numpy as np

from wordsens.errors import InputError
from wordsens.evaluation.check import prompted
from wordsens.evaluation.requirement import Requirement
from wordsens.evaluation.similarities import Progress, similarities
from wordsens.files import named_path
from wordsens.models.load import load
from wordsens.text.pairs import Pair, file_rows

COLUMNS = ("q1", "q2", "doc1", "doc2")
FIELDS = ("paired_accuracy", "paired_accuracy_low", "paired_accuracy_high", "query_accuracy")


@dataclass(frozen=True)
class QueryGroup:
    """Two queries and two documents that differ in little: the first query is about the first document, the second
    about the second.

    Attributes:
        q1, q2: the queries.
        doc1, doc2: the documents.
    """

    q1: str
    q2: str
    doc1: str
    doc2: str


@dataclass(frozen=True)
class PairedAccuracy:
    """How often a model ranks both documents of a group rightly.

    Attributes:
        model: its name.
        groups: as given.
        scores: of every group those of (q1, doc1), (q1, doc2), (q2, doc1), (q2, doc2).
        paired_accuracy, paired_accuracy_low, paired_accuracy_high: the share of groups in which either query scores its
            document higher than the other one, with Wilson's 95 % interval. Random scores reach a quarter; a tie is
            wrong.
        query_accuracy: the share of queries that do.
        failures: a sentence for every requirement that is not met.
    """

    model: str
    groups: tuple[QueryGroup, ...]
    scores: np.ndarray
    paired_accuracy: float
    paired_accuracy_low: float
    paired_accuracy_high: float
    query_accuracy: float
    failures: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """True where every requirement is met."""
        return not self.failures

    @cached_property
    def wrong(self) -> list[QueryGroup]:
        """The groups that are not ranked rightly, the worst first."""
        margins = np.minimum(self.scores[:, 0] - self.scores[:, 1], self.scores[:, 3] - self.scores[:, 2])
        return [self.groups[at] for at in np.argsort(margins, kind="stable") if margins[at] <= 0]

    @property
    def answer(self) -> str:
        """The result in a sentence."""
        right = len(self.groups) - len(self.wrong)
        return (
            f"{self.model} ranks both documents rightly in {right} of {len(self.groups)} groups: paired accuracy "
            f"{self.paired_accuracy:.3f} [95 % {self.paired_accuracy_low:.3f}, {self.paired_accuracy_high:.3f}]; "
            f"random scores reach .250. Of the single queries {self.query_accuracy:.0%} are right."
        )

    def to_dict(self) -> dict[str, Any]:
        """The figures and every group, as the JSON document has them."""
        return {
            "passed": self.passed,
            "failures": list(self.failures),
            "answer": self.answer,
            **{name: getattr(self, name) for name in FIELDS},
            "groups": [
                {**asdict(group), "scores": scores}
                for group, scores in zip(self.groups, self.scores.tolist(), strict=True)
            ],
        }


def paired_accuracy(
    model: Any,
    groups: str | PathLike[str] | Sequence[Mapping[str, Any]],
    *,
    prompt_names: Sequence[str] = (),
    requirements: Sequence[str] = (),
    progress: Progress = lambda done, total: None,
) -> PairedAccuracy:
    """The paired accuracy of a model on NevIR-style groups (Weller et al., 2024).

    Args:
        model: as of `check`.
        groups: a CSV, TSV, JSON lines or Parquet file, or rows, with the columns q1, q2, doc1, doc2.
        prompt_names: of a SentenceTransformer: the prompt of all texts, or those of the queries and the documents.
        requirements: such as "paired_accuracy >= .5".
        progress: called with (done, total) as the texts are encoded.

    Raises:
        InputError: no such model, a missing column or an empty text.

    >>> words = ["open", "shut", "is", "not", "it"]
    >>> count = lambda texts: [[text.split().count(word) + .01 for word in words] for text in texts]
    >>> row = {"q1": "is it open", "q2": "is it shut", "doc1": "it is open now", "doc2": "it is shut now"}
    >>> paired_accuracy(count, [row]).paired_accuracy
    1.0
    """
    from scipy.stats import binomtest

    read = read_groups(groups)
    required = [Requirement.read(one, (), "paired_accuracy >= .5", FIELDS) for one in requirements]
    loaded = load(model)
    pairs = [
        Pair("query", query, document, True)
        for group in read
        for query in (group.q1, group.q2)
        for document in (group.doc1, group.doc2)
    ]
    scores = similarities(prompted(loaded, prompt_names), pairs, progress=progress).reshape(-1, 4)
    right = np.column_stack([scores[:, 0] > scores[:, 1], scores[:, 3] > scores[:, 2]])
    both = int(right.all(axis=1).sum())
    interval = binomtest(both, len(read)).proportion_ci(method="wilson")
    numbers = (both / len(read), float(interval.low), float(interval.high), float(right.mean()))
    values: dict[str, float] = dict(zip(FIELDS, numbers, strict=True))
    failures = [one.failure(one.field, values[one.field]) for one in required if not one.met(values[one.field])]
    return PairedAccuracy(loaded.name, tuple(read), scores, *numbers, failures=tuple(failures))


def holds_groups(path: str | PathLike[str], encoding: str) -> bool:
    """True of a file whose first row has the columns of query pairs."""
    first = next(iter(file_rows(named_path("pairs", path), encoding)), None)
    return first is not None and set(COLUMNS) <= set(first[1])


def read_groups(
    groups: str | PathLike[str] | Sequence[Mapping[str, Any]], *, encoding: str = "utf-8"
) -> list[QueryGroup]:
    """The groups of a file or of rows; InputError for a missing column or an empty text, which says the row."""
    if isinstance(groups, str | PathLike):
        path = named_path("pairs", groups)
        rows = [(f"{path.name}:{number}", row) for number, row in file_rows(path, encoding)]
    else:
        rows = [(f"group {number}", row) for number, row in enumerate(groups)]
    if not rows:
        raise InputError(f"`pairs` holds no group; give rows of {', '.join(COLUMNS)}")
    read = []
    for where, row in rows:
        for name in COLUMNS:
            if not isinstance(row.get(name), str) or not row[name].strip():
                raise InputError(f"{where}: `{name}` (={row.get(name)!r}) must be a text that is not empty")
        read.append(QueryGroup(*(row[name].strip() for name in COLUMNS)))
    return read
