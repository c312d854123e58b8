"""Pairs of texts that mean the same or the opposite: the package's own, a file's, or given in
Python."""

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

from wordsens.errors import InputError, require_characters
from wordsens.files import named_path
from wordsens.text.shipped_data import MeaningPair, meaning_pairs
from wordsens.text.tables import require_table, table_rows, write_rows

COLUMNS = ("kind", "first", "second", "same")
LENGTHS = ("question", "paragraph", "page")

PARAPHRASE, SYNONYM = "paraphrase", "synonym"
"""Kinds of texts that mean the same: of few common words; with one word replaced by another of its
meaning."""

_MOST_WORDS = {"question": 50, "paragraph": 150}
"""Of a length's longer text. The shipped pairs have up to 45 words, 60 to 120, and 200 and more."""

_TRUTH = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


@dataclass(frozen=True)
class Pair:
    """Two texts, and whether they mean the same.

    Attributes:
        kind: of the change, such as "negation"; of texts that mean the same, "paraphrase" where
            they share few words, and any other name where they are near-duplicates.
        first, second: the texts.
        same: true where they mean the same, false of an opposite.
        columns: whatever else its row held: id, domain, note, ...
    """

    kind: str
    first: str
    second: str
    same: bool
    columns: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @property
    def near(self) -> bool:
        """True of texts that mean the same and are near-duplicates: of any kind but PARAPHRASE."""
        return self.same and self.kind != PARAPHRASE

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
    """The pairs of a source, in its order.

    Args:
        pairs: None for the package's own (`meaning_pairs`); a CSV, TSV, JSON lines or Parquet file
            with the columns kind, first, second and same; or such rows: tuples (kind, first,
            second, same), dicts, MeaningPairs, Pairs. `same` is true or false, yes or no, 1 or 0.
            Further columns are kept.
        encoding: of a plain file.

    Raises:
        InputError: no pair, a missing column, an empty text, two equal texts, or an unreadable
            file; says which row.
        MissingExtraError: reading Parquet needs pyarrow.

    >>> read_pairs([("switch", "turn it on", "turn it off", False)])[0].changed
    ('on', 'off')
    """
    read = [_pair(row, where) for where, row in pair_rows(pairs, COLUMNS, encoding=encoding)]
    if not read:
        raise InputError(f"`pairs` holds no pair; give rows of {', '.join(COLUMNS)}")
    return read


def pair_rows(
    pairs: Pairs | None, columns: Sequence[str], *, encoding: str = "utf-8"
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The rows of a source of pairs, each with where it stands.

    Args:
        pairs: as `read_pairs` takes them; a row that is a sequence holds the `columns` in their
            order.
        columns: what each row needs.
        encoding: of a plain file.

    Raises:
        InputError: a row without one of the columns, or an unreadable file; says which row.
        MissingExtraError: reading Parquet needs pyarrow.
    """
    if pairs is None:
        pairs = meaning_pairs()
    if isinstance(pairs, (str, PathLike)):
        path = named_path("pairs", pairs)
        require_table(path, "pairs")
        if not path.is_file():
            raise InputError(f"`pairs`: there is no file {str(path)!r}")
        rows = ((f"{path.name}:{number}", row) for number, row in table_rows(path, encoding))
    else:
        rows = ((f"pair {number}", row) for number, row in enumerate(pairs))
    for where, row in rows:
        yield where, _mapping(row, columns, where)


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


def _mapping(row: object, columns: Sequence[str], where: str) -> Mapping[str, Any]:
    if isinstance(row, Pair):
        row = row.row()
    if isinstance(row, MeaningPair):
        row = vars(row)
    if not isinstance(row, Mapping):
        if isinstance(row, str) or not isinstance(row, Sequence) or len(row) != len(columns):
            raise InputError(f"{where} must be a row of {', '.join(columns)}, not {row!r}")
        row = dict(zip(columns, row, strict=True))
    missing = [name for name in columns if name not in row]
    if missing:
        raise InputError(
            f"{where} has no column {missing[0]!r}; a row of pairs has {', '.join(columns)}"
        )
    return row


def _pair(row: Mapping[str, Any], where: str) -> Pair:
    kind, first, second = (_text(row[name], name, where) for name in COLUMNS[:3])
    if first == second:
        raise InputError(f"{where}: its two texts are equal ({first[:60]!r}); leave it out")
    same = _TRUTH.get(str(row["same"]).strip().lower())
    if same is None:
        raise InputError(
            f"{where}: `same` (={row['same']!r}) must be true (a paraphrase) or false (an opposite)"
        )
    return Pair(
        kind,
        first,
        second,
        same,
        {name: value for name, value in row.items() if name not in COLUMNS},
    )


def _text(value: object, name: str, where: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise InputError(f"{where}: `{name}` (={value!r}) must be a text that is not empty")
    return require_characters(f"{where}: `{name}`", value.strip())
