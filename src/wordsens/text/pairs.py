"""Pairs of texts that mean the same or the opposite: the package's own, a file's, or given in
Python."""

import difflib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

from wordsens.errors import InputError, require_characters
from wordsens.files import named_path
from wordsens.text.shipped_data import MeaningPair, meaning_pairs
from wordsens.text.tables import (
    column_named,
    require_column,
    require_table,
    table_rows,
    write_rows,
)

COLUMNS = ("kind", "first", "second", "same")
_TEXTS = ("first", "second")
LENGTHS = ("question", "paragraph", "page")

SYNONYM = "synonym"
"""The kind of the package's pairs with one word replaced by another of its meaning."""

UNNAMED = "yours"
"""The kind of a row that names none."""

ASSUMED = "same_was_empty"
"""The column that marks opposites whose `same` was empty, in a table that only says true."""

ORIGIN, PACKAGE, DRAFT = "origin", "package", "draft"
"""The column that marks pairs which are not the user's own, and its values: near-duplicates of the
package that stand in for missing ones, and opposites that a rule wrote."""

_MOST_WORDS = {"question": 50, "paragraph": 150}
"""Of a length's longer text. The shipped pairs have up to 45 words, 60 to 120, and 200 and more."""

_TRUTH = {
    **dict.fromkeys(
        ("true", "t", "yes", "y", "1", "1.0", "same", "wahr", "ja", "vrai", "oui"), True
    ),
    **dict.fromkeys(
        ("false", "f", "no", "n", "0", "0.0", "different", "falsch", "nein", "faux", "non"), False
    ),
}

_LISTED = 10
"""Faults that one message names."""


@dataclass(frozen=True)
class Pair:
    """Two texts, and whether they mean the same.

    Attributes:
        kind: a name of the change, such as "negation"; no name has a meaning of its own.
        first, second: the texts.
        same: true where they mean the same, false of an opposite.
        columns: whatever else its row held: id, domain, note, ... `set` = "far" keeps a pair that
            means the same in few common words out of the near-duplicates; `origin` = "draft" marks
            an opposite that a rule wrote.
        where: its place in its source, such as "pairs.csv:7"; PACKAGE for the package's own.
    """

    kind: str
    first: str
    second: str
    same: bool
    columns: Mapping[str, Any] = field(default_factory=dict, hash=False)
    where: str = field(default="", compare=False)

    @property
    def near(self) -> bool:
        """True of near-duplicates: texts that mean the same and are not marked `set` = "far"."""
        return self.same and self.mark("set") != "far"

    @property
    def drafted(self) -> bool:
        """True of an opposite that a rule wrote."""
        return not self.same and self.mark(ORIGIN) == DRAFT

    def mark(self, name: str) -> str:
        """What a further column says, in small letters; "" without it."""
        column = column_named(name, map(str, self.columns))
        return "" if column is None else str(self.columns[column]).strip().lower()

    @property
    def texts(self) -> frozenset[str]:
        """The two texts in any order, blanks collapsed: rows with equal ones are one pair."""
        return frozenset(" ".join(text.split()) for text in (self.first, self.second))

    @property
    def length(self) -> str:
        """question, paragraph or page, by the words of the longer text."""
        words = max(len(self.first.split()), len(self.second.split()))
        return next((name for name, most in _MOST_WORDS.items() if words <= most), LENGTHS[-1])

    @property
    def changed(self) -> tuple[str, str]:
        """The words of either text that the other has not, in its place; of words that changed
        places, those.

        >>> Pair("antonym", "How do I enable it?", "How do I disable it?", False).changed
        ('enable', 'disable')
        >>> Pair("role", "The train from Vienna to Prague", "The train from Prague to Vienna", False).changed
        ('Vienna ... Prague', 'Prague ... Vienna')
        """  # noqa: E501
        first, second = self.first.split(), self.second.split()
        if sorted(word.strip(".,;:?!").lower() for word in first) == sorted(
            word.strip(".,;:?!").lower() for word in second
        ):
            pairs = enumerate(zip(first, second, strict=True))
            steps = [
                ("replace", at, at + 1, at, at + 1) for at, (word, other) in pairs if word != other
            ]
        else:
            steps = difflib.SequenceMatcher(None, first, second, autojunk=False).get_opcodes()
        shown = [(first[a:b], second[c:d]) for step, a, b, c, d in steps if step != "equal"]
        here, there = (
            " ... ".join(" ".join(part[side]) for part in shown if part[side]) for side in (0, 1)
        )
        return here.strip(".,;:?!"), there.strip(".,;:?!")

    def row(self) -> dict[str, Any]:
        """The pair as a row of a table, its further columns last."""
        return {
            "kind": self.kind,
            "first": self.first,
            "second": self.second,
            "same": self.same,
            **self.columns,
        }


Pairs = str | PathLike[str] | Iterable[Pair | MeaningPair | Mapping[str, Any] | Sequence[Any]]


def read_pairs(pairs: Pairs | None = None, *, encoding: str = "utf-8") -> list[Pair]:
    """Returns the pairs of a source, in its order.

    Args:
        pairs: None for the package's own (`meaning_pairs`); a CSV, TSV, JSON lines or Parquet file
            with the columns first, second and same, and kind if you like, in any case; or such
            rows: a DataFrame, tuples (kind, first, second, same), dicts, MeaningPairs, Pairs.
            `same` is true or false, yes or no, 1 or 0; where it only says true, an empty cell is
            false. Further columns are kept.
        encoding: encoding of a plain file.

    Raises:
        InputError: no pair, a missing column, an empty text, two equal texts, a pair with both
            labels, or an unreadable file; it names every such row.
        MissingExtraError: reading Parquet needs pyarrow.

    >>> read_pairs([("switch", "turn it on", "turn it off", False)])[0].changed
    ('on', 'off')
    """
    rows = list(pair_rows(pairs, COLUMNS, encoding=encoding))
    if not rows:
        where = f" (={str(pairs)!r})" if isinstance(pairs, str | PathLike) else ""
        raise InputError(f"`pairs`{where} holds no pair; give rows of {', '.join(COLUMNS)}")
    labels = _labels([row["same"] for _, row in rows])
    read: list[Pair] = []
    faults: list[str] = []
    by_texts: dict[frozenset[str], Pair] = {}
    for (where, row), same in zip(rows, labels, strict=True):
        if wrong := [*_faults(row, same, where)]:
            faults += wrong
            continue
        columns = {name: value for name, value in row.items() if name not in COLUMNS}
        if _is_empty(row["same"]):
            columns[ASSUMED] = True
        texts = row["first"].strip(), row["second"].strip()
        pair = Pair(str(row["kind"]).strip(), *texts, bool(same), columns, where)
        other = by_texts.setdefault(pair.texts, pair)
        if other.same != same:
            shown_texts = f"{pair.first[:60]!r} / {pair.second[:60]!r}"
            faults.append(
                f"{other.where} and {where}: one pair ({shown_texts}) with both labels; correct "
                "one, or delete it"
            )
        read.append(pair)
    if faults:
        count = f"`pairs`: {len(faults)} faults: " if len(faults) > 1 else ""
        more = f"; and {len(faults) - _LISTED} more" if len(faults) > _LISTED else ""
        raise InputError(f"{count}{'; '.join(faults[:_LISTED])}{more}")
    return read


def pair_rows(
    pairs: Pairs | None, columns: Sequence[str], *, encoding: str = "utf-8"
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The rows of a source of pairs, each with its place; rows that are empty altogether are
    skipped, and a row without a kind gets UNNAMED.

    Args:
        pairs: as `read_pairs` takes them; a row that is a sequence holds the `columns` in their
            order.
        columns: what each row needs.
        encoding: encoding of a plain file.

    Raises:
        InputError: a row without one of the columns, or an unreadable file; says which row.
        MissingExtraError: reading Parquet needs pyarrow.
    """
    rows: Iterator[tuple[str, Any]]
    if isinstance(pairs, (str, PathLike)):
        path = named_path("pairs", pairs)
        require_table(path, "pairs")
        if not path.is_file():
            raise InputError(f"`pairs`: there is no file {str(path)!r}")
        rows = ((f"{path.name}:{number}", row) for number, row in table_rows(path, encoding))
    else:
        listed: Any = meaning_pairs() if pairs is None else pairs
        if not isinstance(listed, Iterable):
            raise InputError(f"`pairs` (={pairs!r}) must be a file or rows of {', '.join(columns)}")
        of_frame = getattr(listed, "to_dict", None)
        of_array = getattr(listed, "tolist", None)
        if of_frame is not None:
            listed = of_frame("records")
        elif of_array is not None:
            listed = of_array()
        rows = ((_place(row, number), row) for number, row in enumerate(listed))
    for where, row in rows:
        named = _mapping(row, columns, where)
        if any(not _is_empty(value) for value in named.values()):
            has_kind = "kind" not in columns or not _is_empty(named.get("kind"))
            yield where, named if has_kind else {**named, "kind": UNNAMED}


def write_pairs(pairs: Sequence[Pair], path: str | PathLike[str]) -> None:
    """Write the pairs to a CSV, TSV, JSON lines or Parquet file, by its extension, for `read_pairs`
    to read again.

    Raises:
        InputError: no pairs; another extension; a file that cannot be written.
        MissingExtraError: for Parquet, pyarrow is not installed.
    """
    if not pairs:
        raise InputError("`pairs` (=[]) must hold at least one pair")
    write_rows([pair.row() for pair in pairs], Path(path).expanduser(), "path")


def _place(row: object, number: int) -> str:
    if isinstance(row, MeaningPair):
        return PACKAGE
    return (row.where if isinstance(row, Pair) else "") or f"pair {number}"


def _mapping(row: object, columns: Sequence[str], where: str) -> Mapping[str, Any]:
    """The row by the names of its columns, written in any case; it may lack `kind`."""
    if isinstance(row, Pair):
        row = row.row()
    if isinstance(row, MeaningPair):
        row = vars(row)
    if not isinstance(row, Mapping):
        if isinstance(row, str) or not isinstance(row, Sequence) or len(row) != len(columns):
            raise InputError(f"{where} must be a row of {', '.join(columns)}, not {row!r}")
        row = dict(zip(columns, row, strict=True))
    row = {str(name): value for name, value in row.items()}
    needed = [name for name in columns if name != "kind"]
    remedy = f"pairs need {', '.join(needed)}"
    renamed = {require_column(name, row, where, remedy): name for name in needed}
    if "kind" in columns and (kind := column_named("kind", row)) is not None:
        renamed[kind] = "kind"
    return {renamed.get(name, name): value for name, value in row.items()}


def _is_empty(value: object) -> bool:
    """True for None, a missing value of NumPy or pandas, and a text of blanks."""
    missing = value is None or (isinstance(value, float) and math.isnan(value))
    return missing or str(value).strip() in ("", "<NA>")


def _labels(cells: Sequence[object]) -> list[bool | None]:
    """What each cell of the column `same` says; None for one that cannot be read. Empty cells are
    false in a column that only marks what is true."""
    labels = [None if _is_empty(cell) else _TRUTH.get(str(cell).strip().lower()) for cell in cells]
    empty = [_is_empty(cell) for cell in cells]
    said = {label for label, is_empty in zip(labels, empty, strict=True) if not is_empty}
    if any(empty) and said == {True}:
        return [bool(label) for label in labels]
    return labels


def _faults(row: Mapping[str, Any], same: bool | None, where: str) -> Iterator[str]:
    """What is wrong with a row."""
    texts = []
    for name, value in (("kind", str(row["kind"])), *((name, row[name]) for name in _TEXTS)):
        if not isinstance(value, str) or not value.strip():
            yield f"{where}: `{name}` (={value!r}) must be a text that is not empty"
            continue
        try:
            texts.append(require_characters(f"{where}: `{name}`", value.strip()))
        except InputError as error:
            yield str(error)
    if len(texts) == 3 and texts[1] == texts[2]:
        yield f"{where}: its two texts are equal ({texts[1][:60]!r}); leave it out"
    if same is None:
        rule = "must be true (the same meaning) or false (an opposite)"
        yield f"{where}: `same` (={row['same']!r}) {rule}"
