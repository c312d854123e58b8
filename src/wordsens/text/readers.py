"""Documents from files, folders, the Hugging Face hub or the package itself."""

import random
import re
from collections.abc import Collection, Generator, Iterable, Sequence
from contextlib import closing
from itertools import chain, islice, zip_longest
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from wordsens.errors import InputError, argument, require_count
from wordsens.files import named_path, packaged_files
from wordsens.seeds import Seed, derive_seed
from wordsens.text.document import Document, LabelReader
from wordsens.text.hub import chosen_split, load_from_hub, load_saved
from wordsens.text.tables import (
    TABLES,
    Rows,
    column_named,
    file_text,
    parquet_columns,
    require_column,
    table_rows,
)

_SHIPPED = "shipped"
_IMDB, _IMDB_ON_HUB, _HUB_PREFIX = "imdb", "stanfordnlp/imdb", "hub:"

_EXTENSIONS = (".txt", *TABLES)
# Beside the texts of a folder, a .json file describes them.
_IN_FOLDERS = tuple(extension for extension in _EXTENSIONS if extension != ".json")

# The folders with the two classes of aclImdb.
_FOLDERS = "pos", "neg"

# The columns that are read if none is named.
_TEXT, _LABEL = "text", "label"

_HTML_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)

# A number, or four words: not the name of a column.
_DATA = re.compile(r"\s*[-+]?\d+([.,]\d+)?\s*|\s*(\S+\s+){3,}\S+\s*")

# The number of rows that are examined, and the least mean number of words in a column of texts,
# not of names or numbers.
_LOOKED_AT, _TEXT_WORDS = 50, 2

# The rows, and the names of the label's numbers, if there are any.
_Source = tuple[Rows, Sequence[str] | None]


class _Columns(NamedTuple):
    """The columns to read; a label of None stands for the column `label`, if there is one."""

    text: str
    label: str | None
    labels: bool

    def among(self, names: Collection[str], where: str) -> list[str]:
        """The column of the texts and, if labels are read, that of the labels; InputError if a
        column that must exist is missing."""
        if column_named(self.text, names) is None:
            _require_names(names, where)
        text = require_column(self.text, names, where, f"name one with {argument('text_column')}")
        if self.labels and self.label is not None:
            require_column(self.label, names, where, f"name one with {argument('label_column')}")
        label = column_named(self.label or _LABEL, names) if self.labels else None
        return [text] if label in (None, text) else [text, label]


def shipped_reviews() -> list[Document]:
    """The movie reviews written for this package: 20 to 400 words, as many positive as negative.

    >>> review = shipped_reviews()[0]
    >>> review.source, review.label
    ('shipped/review-001', 1)
    """
    return read_documents(_SHIPPED)


def read_documents(
    source: str | PathLike[str],
    *,
    limit: int | None = None,
    sample_seed: Seed | None = None,
    text_column: str = _TEXT,
    label_column: str | None = None,
    labels: bool = True,
    encoding: str = "utf-8",
    split: str | None = None,
    skip_empty: bool = False,
) -> list[Document]:
    """The documents of a source, in its order; each HTML line break, `<br />`, becomes a space.

    Args:
        source: one of

            - "shipped": the reviews that come with the package;
            - a .txt file, one text;
            - a .csv or .tsv file whose first line names the columns, a .jsonl file, a .json file
              with an array of objects, or a .parquet file;
            - a folder of such files, all of one kind; a .json file there is skipped;
            - an aclImdb folder, with pos and neg in train and test, or one that holds pos and neg
              itself; the two classes alternate;
            - a folder that `datasets` saved;
            - "imdb", "hub:NAME" or "hub:NAME:CONFIGURATION", from the Hugging Face hub through
              `datasets`.

        text_column: the column with the texts; the case of its letters and blanks around it do not
            matter where no column has exactly this name.
        label_column: the column with the labels, which must exist; None: `label`, if there is one.
        labels: False reads none. They may be 1 and 0, +1 and -1, "pos" and "neg", "positive" and
            "negative".
        encoding: encoding of plain files. UTF-8 may start with a byte order mark.
        split: the split, if the source has splits; None: "train".
        limit: the largest number of documents.
        sample_seed: seed of a random choice of `limit` documents; None: the first. Without a limit
            all are shuffled. The whole source is read once.
        skip_empty: skip empty texts, which are otherwise an error.

    Raises:
        InputError: there is no such source, or it is empty, not text, damaged, or lacks a column; a
            label is not understood.
        MissingExtraError: reading Parquet needs pyarrow, reading the hub needs `datasets`.

    >>> [review.source for review in read_documents("shipped", limit=2)]
    ['shipped/review-001', 'shipped/review-002']
    """
    if limit is not None:
        require_count("limit", limit)
    stream = stream_documents(
        source,
        text_column=text_column,
        label_column=label_column,
        labels=labels,
        encoding=encoding,
        split=split,
    )
    wanted = (document for document in stream if document.text.strip() or not skip_empty)
    documents = list(islice(wanted, limit if sample_seed is None else None))
    for document in documents:
        if not document.text.strip():
            raise InputError(
                f"{document.source}: the text is empty; pass skip_empty=True to pass over empty "
                "texts"
            )
    if not documents:
        raise InputError(f"{str(source)!r} holds no text; give a source with at least one")
    if sample_seed is not None:
        random.Random(derive_seed(sample_seed, "documents")).shuffle(documents)
    return documents[:limit]


def stream_documents(
    source: str | PathLike[str],
    *,
    text_column: str = _TEXT,
    label_column: str | None = None,
    labels: bool = True,
    encoding: str = "utf-8",
    split: str | None = None,
) -> Generator[Document, None, None]:
    """Yields the documents of `read_documents` one at a time, empty ones too; the source may be
    larger than memory.

    Raises what `read_documents` raises, when it reaches the faulty row.
    """
    columns = _Columns(text_column, label_column, labels)
    rows, classes = _rows_of(source, columns, encoding, split)
    reader = LabelReader(classes)
    with closing(rows):
        for where, fields in rows:
            text, *label = (fields[name] for name in columns.among(fields, where))
            text = "" if text is None else text
            if not isinstance(text, str):
                raise InputError(
                    f"{where}: the text is {type(text).__name__}, not a string; name the column "
                    f"of the texts with {argument('text_column')}"
                )
            sign = reader.read(label[0], where) if label else None
            yield Document(_HTML_BREAK.sub(" ", text), sign, where)


def text_column_of(source: str | PathLike[str], encoding: str = "utf-8") -> str:
    """The column of a table with the texts: `text`, if there is one; else the only column whose
    fields have several words; `text` if there is no such column."""
    path = Path(source).expanduser()
    if path.suffix.lower() not in TABLES or not path.is_file() or path.stat().st_size == 0:
        return _TEXT
    some = [fields for _, fields in islice(table_rows(path, encoding), _LOOKED_AT)]
    names = list(dict.fromkeys(name for fields in some for name in fields))
    if column_named(_TEXT, names) is not None:
        return _TEXT
    _require_names(names, f"the file {str(path)!r}")
    with_texts = [name for name in names if _are_texts([fields.get(name) for fields in some])]
    return with_texts[0] if len(with_texts) == 1 else _TEXT


def _are_texts(fields: Iterable[Any]) -> bool:
    present = [field for field in fields if field is not None]
    words = sum(len(field.split()) for field in present if isinstance(field, str))
    return words >= _TEXT_WORDS * max(1, len(present))


def _require_names(names: Iterable[str], where: str) -> None:
    """InputError for names of columns that look like data: a number, or a whole sentence."""
    for name in names:
        if _DATA.fullmatch(name):
            raise InputError(
                f"{where} has a column {name[:60]!r}, which reads as data, not as the name of a "
                "column; put a line such as text,label before it, or name the column of the texts "
                f"with {argument('text_column')}"
            )


def _rows_of(
    source: str | PathLike[str], columns: _Columns, encoding: str, split: str | None
) -> _Source:
    if source == _SHIPPED:
        chosen_split(split, (), "the package's own review collection")
        reviews = table_rows(packaged_files("text/shipped")["reviews.jsonl"])
        return ((f"{_SHIPPED}/{review['id']}", review) for _, review in reviews), None
    if isinstance(source, str) and (source == _IMDB or source.startswith(_HUB_PREFIX)):
        name = _IMDB_ON_HUB if source == _IMDB else source.removeprefix(_HUB_PREFIX)
        return _of_dataset(*load_from_hub(name, split), columns)
    path = named_path("source", source)
    if not path.exists():
        raise InputError(
            f"there is no file or folder {str(source)!r}; give a path, {_SHIPPED!r}, {_IMDB!r} or "
            f"'{_HUB_PREFIX}NAME'"
        )
    if any((path / name).is_file() for name in ("dataset_dict.json", "state.json")):
        return _of_dataset(*load_saved(path, split), columns)
    folders = path.iterdir() if path.is_dir() and not _has_classes(path) else ()
    splits = sorted(folder.name for folder in folders if _has_classes(folder))
    split = chosen_split(split, splits, repr(str(path)))
    if _has_classes(path / split):
        return _of_classes(path, split, encoding), None
    return _of_files(path, columns, encoding)


def _of_dataset(dataset: Any, prefix: str, columns: _Columns) -> _Source:
    """The texts of a data set of the library `datasets`."""
    names = {name: getattr(feature, "names", None) for name, feature in dataset.features.items()}
    chosen = columns.among(names, f"the data set {prefix!r}")
    rows = enumerate(dataset.select_columns(chosen), start=1)
    return ((f"{prefix}:{number}", row) for number, row in rows), names[chosen[-1]]


def _has_classes(folder: Path) -> bool:
    """True for a folder with pos/ or neg/."""
    return any((folder / name).is_dir() for name in _FOLDERS)


def _of_classes(path: Path, split: str, encoding: str) -> Rows:
    """The .txt files of pos/ and neg/ alternately, so that the first few are from both classes."""
    folder = path / split
    named = [[(file, name) for file in sorted((folder / name).glob("*.txt"))] for name in _FOLDERS]
    if not all(named):
        raise InputError(
            f"pos or neg in the folder {str(folder)!r} holds no .txt file; give a folder with both "
            "pos and neg"
        )
    prefix = "/".join(filter(None, (path.name, split)))
    for file, name in filter(None, chain.from_iterable(zip_longest(*named))):
        yield f"{prefix}/{name}/{file.stem}", {_TEXT: file_text(file, encoding), _LABEL: name}


def _of_files(path: Path, columns: _Columns, encoding: str) -> _Source:
    """The texts of a file, or of a folder's files with a known extension, all of one kind."""
    files = [path]
    if path.is_dir():
        files = sorted(file for file in path.iterdir() if file.suffix.lower() in _IN_FOLDERS)
    kinds = sorted({file.suffix.lower() for file in files})
    if not files:
        raise InputError(
            f"the folder {str(path)!r} holds no texts; put {', '.join(_IN_FOLDERS)} files in it, "
            "or pos and neg folders of .txt files"
        )
    if len(kinds) > 1:
        raise InputError(
            f"the folder {str(path)!r} holds files of different kinds ({', '.join(kinds)}); give "
            "one file"
        )
    if kinds[0] not in _EXTENSIONS:
        raise InputError(
            f"the file {str(path)!r} has an unknown extension; use one of {', '.join(_EXTENSIONS)}"
        )
    if files == [path] and path.stat().st_size == 0:
        raise InputError(f"the file {str(path)!r} is empty; give one with text")
    chosen, classes = None, None
    if kinds[0] == ".parquet":
        names = parquet_columns(files[0])
        chosen = columns.among(names, f"the file {str(files[0])!r}")
        classes = names[chosen[-1]]
    return (row for file in files for row in table_rows(file, encoding, chosen)), classes
