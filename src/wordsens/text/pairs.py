"""Pairs of texts that mean the same or the opposite: the package's own, a file's, or given in
Python."""

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any

from wordsens.errors import InputError, argument, require_characters
from wordsens.files import named_path, packaged_files
from wordsens.text.tables import (
    column_named,
    require_column,
    require_table,
    table_rows,
    write_rows,
)

COLUMNS = ("kind", "first", "second", "same")
LENGTHS = ("question", "paragraph", "page")

# The kind of the package's pairs with one word replaced by a word with the same meaning.
SYNONYM = "synonym"

# The column that marks opposites whose `same` was empty, in a table that says only true.
ASSUMED = "same_was_empty"

# The column that marks pairs which are not the user's own, and its values: near-duplicates of the
# package that stand in for missing ones, and opposites that a rule wrote.
ORIGIN, PACKAGE, DRAFT = "origin", "package", "draft"

# Limits for the longer text. The shipped pairs have up to 45 words, 60 to 120, and 200 and more.
_MOST_WORDS = {"question": 50, "paragraph": 150}

_TRUTH = {
    **dict.fromkeys(
        ("true", "t", "yes", "y", "1", "1.0", "same", "wahr", "ja", "vrai", "oui"), True
    ),
    **dict.fromkeys(
        ("false", "f", "no", "n", "0", "0.0", "different", "falsch", "nein", "faux", "non"), False
    ),
}

# The most faults that one message lists.
_LISTED = 10


@dataclass(frozen=True)
class Pair:
    """Two texts, and whether they mean the same.

    Attributes:
        kind: a name for the change, such as "negation"; any name will do.
        first, second: the texts.
        same: true if they mean the same, false for opposites.
        columns: the other columns of its row: id, domain, note, ... `set` = "far" marks a pair with
            the same meaning and few common words, which is no near-duplicate; `origin` = "draft"
            marks an opposite that a rule wrote.
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
        """True for near-duplicates: texts that mean the same and are not marked `set` = "far"."""
        return self.same and self.mark("set") != "far"

    @property
    def drafted(self) -> bool:
        """True for an opposite that a rule wrote."""
        return not self.same and self.mark(ORIGIN) == DRAFT

    def mark(self, name: str) -> str:
        """The value of a further column in lower case; "" without that column."""
        column = column_named(name, self.columns)
        return "" if column is None else str(self.columns[column]).strip().lower()

    @property
    def texts(self) -> frozenset[str]:
        """The two texts as a set, blanks collapsed: rows with equal sets are one pair."""
        return frozenset(" ".join(text.split()) for text in (self.first, self.second))

    @property
    def length(self) -> str:
        """question, paragraph or page, by the number of words of the longer text."""
        words = max(len(self.first.split()), len(self.second.split()))
        return next((name for name, most in _MOST_WORDS.items() if words <= most), LENGTHS[-1])

    @property
    def changed(self) -> tuple[str, str]:
        """The words in which the texts differ, of each text; if words only changed places, those
        words.

        >>> Pair("antonym", "How do I enable it?", "How do I disable it?", False).changed
        ('enable', 'disable')
        >>> Pair("role", "The train from Vienna to Prague", "The train from Prague to Vienna", False).changed
        ('Vienna ... Prague', 'Prague ... Vienna')
        """  # noqa: E501
        first, second = self.first.split(), self.second.split()
        if sorted(map(_plain, first)) == sorted(map(_plain, second)):
            changes = [words for words in zip(first, second, strict=True) if words[0] != words[1]]
        else:
            steps = difflib.SequenceMatcher(None, first, second, autojunk=False).get_opcodes()
            changes = [
                (" ".join(first[start:stop]), " ".join(second[place:end]))
                for step, start, stop, place, end in steps
                if step != "equal"
            ]
        before, after = (
            " ... ".join(filter(None, side)) for side in zip(*changes, ("", ""), strict=True)
        )
        return before.strip(_SIGNS), after.strip(_SIGNS)

    def row(self) -> dict[str, Any]:
        """The pair as a row of a table, its further columns last."""
        row = {name: getattr(self, name) for name in COLUMNS}
        return {**row, **self.columns}


_SIGNS = ".,;:?!"


def _plain(word: str) -> str:
    return word.strip(_SIGNS).lower()


Pairs = str | PathLike[str] | Iterable[Pair | Mapping[str, Any] | Sequence[Any]]


def meaning_pairs() -> list[Pair]:
    """The pairs that were written for this package to test whether a model sees a changed meaning.

    The meanings differ in the kinds negation, antonym, role, quantity, time, entity and modality.
    They agree in the kinds synonym (one word is replaced by a word with the same meaning in this
    text) and paraphrase (the texts share few content words). Further columns: id; domain (support,
    documentation, health, finance, law or everyday); note, a short description of the difference;
    and set, "far" for paraphrases.

    >>> pair = meaning_pairs()[0]
    >>> pair.first, pair.changed, pair.columns["domain"]
    ('Why was my card charged after the trial ended?', ('was', "wasn't"), 'support')
    """
    return _shipped("meaning_pairs")


def near_duplicates() -> list[Pair]:
    """The near-duplicates written for this package: texts that mean the same and differ in a few
    words or punctuation marks.

    Their kind says how they differ: contraction, number, date, voice, order, spelling, typo,
    abbreviation, filler, reminder ("do not forget to", "remember to"), double negation, wording,
    case, or paragraph for longer texts. Further columns as in `meaning_pairs`.

    >>> pair = near_duplicates()[0]
    >>> pair.kind, pair.same, pair.second
    ('contraction', True, 'The replacement I was promised has not arrived yet.')
    """
    return _shipped("near_duplicates")


def minimal_pairs() -> list[Pair]:
    """The pairs of sentences written for this package that differ in one replaced word.

    >>> sorted({pair.kind for pair in minimal_pairs()})
    ['intensity', 'negation', 'quantity', 'role', 'sentiment', 'synonym']
    """
    return _shipped("minimal_pairs")


def _shipped(name: str) -> list[Pair]:
    pairs = read_pairs(packaged_files("text/shipped")[f"{name}.csv"])
    return [replace(pair, where=PACKAGE) for pair in pairs]


def read_pairs(
    pairs: Pairs | None = None, *, encoding: str = "utf-8", unlabelled: bool = True
) -> list[Pair]:
    """Returns the pairs of a source, in its order.

    Args:
        pairs: None for the package's own (`meaning_pairs`); a CSV, TSV, JSON lines or Parquet file
            with the columns first, second, same and, optionally, kind (in any case); or such rows:
            a DataFrame, tuples (kind, first, second, same), dicts, Pairs. `same` is true or false,
            yes or no, 1 or 0; if all other cells are true, an empty cell counts as false. Further
            columns are kept.
        encoding: encoding of a plain file.
        unlabelled: whether rows with an empty `same` count, as above; else they are passed over.

    Raises:
        InputError: no pair, a missing column, an empty text, two equal texts, a pair with both
            labels, or an unreadable file; it names every such row.
        MissingExtraError: reading Parquet needs pyarrow.

    >>> read_pairs([("switch", "turn it on", "turn it off", False)])[0].changed
    ('on', 'off')
    """
    if pairs is None:
        return meaning_pairs()
    rows = [
        (where, row)
        for where, row in pair_rows(pairs, COLUMNS, encoding=encoding)
        if unlabelled or not _is_empty(row["same"])
    ]
    if not rows:
        where = f" (={str(pairs)!r})" if isinstance(pairs, str | PathLike) else ""
        remedy = f"give rows of {', '.join(COLUMNS)}"
        if not unlabelled:
            remedy = "fill in `same` with true or false"
        raise InputError(f"{argument('pairs')}{where} holds no pair; {remedy}")
    labels = [_TRUTH.get(str(row["same"]).strip().lower()) for _, row in rows]
    # Empty cells are false in a column that only marks what is true.
    if True in labels and all(
        label or _is_empty(row["same"]) for label, (_, row) in zip(labels, rows, strict=True)
    ):
        labels = [bool(label) for label in labels]
    read: list[Pair] = []
    faults: list[str] = []
    by_texts: dict[frozenset[str], Pair] = {}
    for (where, row), same in zip(rows, labels, strict=True):
        try:
            read.append(_pair(where, row, same))
            _require_one_label(by_texts.setdefault(read[-1].texts, read[-1]), read[-1])
        except InputError as error:
            faults.append(str(error))
    if faults:
        more = f"; and {len(faults) - _LISTED} more faults" if len(faults) > _LISTED else ""
        raise InputError("; ".join(faults[:_LISTED]) + more)
    return read


def _pair(where: str, row: Mapping[str, Any], same: bool | None) -> Pair:
    """The pair of a row; InputError with what is wrong with it."""
    kind = "yours" if _is_empty(row.get("kind")) else str(row["kind"])
    texts = {"kind": kind, "first": row["first"], "second": row["second"]}
    for name, text in texts.items():
        if not isinstance(text, str) or not text.strip():
            raise InputError(f"{where}: `{name}` (={text!r}) must be a text that is not empty")
        require_characters(f"{where}: `{name}`", text)
    kind, first, second = map(str.strip, texts.values())
    if first == second:
        raise InputError(f"{where}: its two texts are equal ({first[:60]!r}); leave it out")
    if same is None:
        raise InputError(
            f"{where}: `same` (={row['same']!r}) must be true (the same meaning) or false (an "
            "opposite)"
        )
    columns = {name: value for name, value in row.items() if name not in COLUMNS}
    if _is_empty(row["same"]):
        columns[ASSUMED] = True
    return Pair(kind, first, second, same, columns, where)


def _require_one_label(known: Pair, pair: Pair) -> None:
    if known.same != pair.same:
        raise InputError(
            f"{known.where} and {pair.where}: one pair ({pair.first[:60]!r} / "
            f"{pair.second[:60]!r}) with both labels; correct one, or delete it"
        )


def pair_rows(
    pairs: Pairs, columns: Sequence[str], *, encoding: str = "utf-8"
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yields the rows of a source of pairs, each with its place; completely empty rows are skipped.

    Args:
        pairs: as `read_pairs` takes them; a row that is a sequence holds the `columns` in their
            order.
        columns: what each row needs, except `kind`.
        encoding: encoding of a plain file.

    Raises:
        InputError: a row without one of the columns, or an unreadable file; says which row.
        MissingExtraError: reading Parquet needs pyarrow.
    """
    if isinstance(pairs, str | PathLike):
        path = named_path("pairs", pairs)
        require_table(path, "pairs")
        if not path.is_file():
            raise InputError(f"{argument('pairs')}: there is no file {str(path)!r}")
        rows = table_rows(path, encoding)
    elif isinstance(pairs, Iterable):
        given: Any = pairs
        listed = given.to_dict("records") if hasattr(given, "to_dict") else given  # a DataFrame
        rows = ((f"pair {number}", row) for number, row in enumerate(listed))
    else:
        raise InputError(
            f"{argument('pairs')} (={pairs!r}) must be a file or rows of {', '.join(columns)}"
        )
    with closing(rows):
        for where, row in rows:
            if isinstance(row, Pair):
                where, row = row.where or where, row.row()
            fields = _fields(row, columns, where)
            if not all(map(_is_empty, fields.values())):
                yield where, fields


def _fields(row: Any, columns: Sequence[str], where: str) -> Mapping[str, Any]:
    """The row by the names of its columns, written in any case."""
    if not isinstance(row, Mapping):
        if isinstance(row, str) or not isinstance(row, Iterable) or len(list(row)) != len(columns):
            raise InputError(f"{where} must be a row of {', '.join(columns)}, not {row!r}")
        row = dict(zip(columns, row, strict=True))
    row = {str(name): value for name, value in row.items()}
    for name in columns:
        if name != "kind":
            require_column(name, row, where, f"rows need {', '.join(columns)}")
    renamed = {column_named(name, row): name for name in columns}
    return {renamed.get(name) or name: value for name, value in row.items()}


def _is_empty(value: object) -> bool:
    """True for a text of blanks, None, and a missing value of NumPy or pandas."""
    missing = ("",) if isinstance(value, str) else ("None", "nan", "<NA>")
    return str(value).strip() in missing


def write_pairs(pairs: Sequence[Pair], path: str | PathLike[str]) -> None:
    """Write the pairs to a CSV, TSV, JSON lines or Parquet file, by its extension, for `read_pairs`
    to read again.

    Raises:
        InputError: no pairs; another extension; a file that cannot be written.
        MissingExtraError: for Parquet, pyarrow is not installed.
    """
    if not pairs:
        raise InputError(f"{argument('pairs')} (=[]) must hold at least one pair")
    write_rows([pair.row() for pair in pairs], Path(path).expanduser(), "path")
