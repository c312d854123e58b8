"""Documents from wherever texts are kept: files, folders, the Hugging Face hub, the package
itself."""

import random
import re
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import chain, islice, zip_longest
from os import PathLike
from pathlib import Path
from typing import Any

from wordsens.errors import InputError, require_count
from wordsens.files import named_path, require_file
from wordsens.seeds import Seed, derive_seed
from wordsens.text.document import Document, LabelReader
from wordsens.text.hub import (
    choose_split,
    is_saved_dataset,
    load_from_hub,
    load_saved,
    require_no_split,
)
from wordsens.text.shipped_data import SHIPPED, shipped_reviews
from wordsens.text.tables import (
    TABLES,
    TEXT_COLUMN,
    column_named,
    file_text,
    parquet_class_names,
    require_column,
    require_names,
    table_rows,
)

IMDB = "imdb"
"""The name under which `read_documents` finds the hub's copy of the IMDB reviews."""

_IMDB_ON_HUB = "stanfordnlp/imdb"
_HUB_PREFIX = "hub:"
_EXTENSIONS = (".txt", *TABLES)
_IN_FOLDERS = tuple(extension for extension in _EXTENSIONS if extension != ".json")
"""Beside the texts of a folder, a .json file tells of them."""

_LABEL_COLUMN = "label"
_HTML_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)

_StoredText = tuple[object, object, str]
"""A text and a label as they are stored, and what to call the place."""

_TextsAndClasses = tuple[Iterable[_StoredText], Sequence[str] | None]
"""With the names of the label's numbers, where the source has them."""


def read_documents(
    source: str | PathLike[str],
    *,
    limit: int | None = None,
    sample_seed: Seed | None = None,
    text_column: str = TEXT_COLUMN,
    label_column: str | None = None,
    labels: bool = True,
    encoding: str = "utf-8",
    split: str | None = None,
    html_breaks_to_spaces: bool = True,
    skip_empty: bool = False,
) -> list[Document]:
    """The documents of a source, in its order.

    Args:
        source: one of

            - "shipped": the reviews that come with the package;
            - a .txt file, one text;
            - a .csv or .tsv file whose first line names the columns, a .jsonl file, a .json file
              with an array of objects, or a .parquet file;
            - a folder of such files, all of one kind; a .json file there is passed over;
            - an aclImdb folder, with pos and neg in train and test, or one that holds pos and neg
              itself; the two classes come in turn;
            - a folder that `datasets` saved;
            - "imdb", "hub:NAME" or "hub:NAME:CONFIGURATION", from the Hugging Face hub through
              `datasets`.

        text_column: the column with the texts; the case of its letters and blanks around it do not
            matter where no column has exactly this name.
        label_column: the column with the labels, which must exist; None: `label`, where there is
            one.
        labels: False reads none. They may be 1 and 0, +1 and -1, "pos" and "neg", "positive" and
            "negative".
        encoding: of plain files. UTF-8 may start with a byte order mark.
        split: for sources that have splits; None: "train".
        limit: at most this many documents.
        sample_seed: a random choice of `limit` documents instead of the first; without a limit, all
            shuffled; the whole source is read once.
        html_breaks_to_spaces: replace every HTML line break, `<br />`, by a space; IMDB reviews
            have them.
        skip_empty: pass over empty texts, which are otherwise an error.

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
        html_breaks_to_spaces=html_breaks_to_spaces,
        skip_empty=skip_empty,
    )
    with closing(stream):
        return (
            list(islice(stream, limit))
            if sample_seed is None
            else _sample(stream, limit, sample_seed)
        )


def stream_documents(
    source: str | PathLike[str],
    *,
    text_column: str = TEXT_COLUMN,
    label_column: str | None = None,
    labels: bool = True,
    encoding: str = "utf-8",
    split: str | None = None,
    html_breaks_to_spaces: bool = True,
    skip_empty: bool = False,
    on_empty: Callable[[str], None] = lambda where: None,
) -> Generator[Document, None, None]:
    """The documents of `read_documents` one at a time, so that the source may be larger than
    memory.

    `on_empty` is called with the place of each empty text that is passed over. A missing source,
    split or package is reported at once, a damaged row when it is reached.
    """
    texts, class_names = _open(source, _Columns(text_column, label_column, labels), encoding, split)
    reader = LabelReader(class_names)

    def documents() -> Generator[Document, None, None]:
        empty = True
        for stored, label, where in texts:
            text = "" if stored is None else stored
            if not isinstance(text, str):
                raise InputError(
                    f"{where}: the text is {type(text).__name__}, not a string; name the column of "
                    "the "
                    "texts with text_column"
                )
            if html_breaks_to_spaces:
                text = _HTML_BREAK.sub(" ", text)
            if text.strip():
                empty = False
                yield Document(text, reader.read(label, where), where)
            elif skip_empty:
                on_empty(where)
            else:
                raise InputError(
                    f"{where}: the text is empty; pass skip_empty=True to pass over empty texts"
                )
        if empty:
            raise InputError(f"{str(source)!r} holds no text; give a source with at least one")

    return documents()


@dataclass(frozen=True)
class _Columns:
    """The columns with the texts and the labels; of a label that is None, `label`, where there is
    such a column."""

    text: str
    label: str | None
    read_labels: bool

    def found(self, names: Sequence[str], where: str) -> tuple[str, str | None]:
        """The columns of the text and of the label among these; InputError when one that must exist
        is missing."""
        text = require_column(self.text, names, where, "name one with text_column")
        if not self.read_labels:
            return text, None
        if self.label is None:
            return text, column_named(_LABEL_COLUMN, names)
        return text, require_column(self.label, names, where, "name one with label_column")

    def stored(
        self, rows: Iterable[tuple[int, Mapping[str, Any]]], prefix: str
    ) -> Iterator[_StoredText]:
        """Text, label and place of every row."""
        for number, fields in rows:
            place = f"{prefix}:{number}"
            text, label = self.found(list(fields), place)
            yield fields[text], None if label is None else fields[label], place


def _open(
    source: str | PathLike[str], columns: _Columns, encoding: str, split: str | None
) -> _TextsAndClasses:
    if source == SHIPPED:
        require_no_split(split, "the package's own review collection")
        return (
            (document.text, document.label, document.source) for document in shipped_reviews()
        ), None
    if isinstance(source, str) and (source == IMDB or source.startswith(_HUB_PREFIX)):
        name = _IMDB_ON_HUB if source == IMDB else source.removeprefix(_HUB_PREFIX)
        return _of_dataset(*load_from_hub(name, split), columns)
    path = named_path("source", source)
    if path.is_dir():
        return _open_folder(path, columns, encoding, split)
    if not path.exists():
        raise InputError(
            f"there is no file or folder {str(source)!r}; give a path, {SHIPPED!r}, {IMDB!r} or "
            f"'{_HUB_PREFIX}NAME'"
        )
    require_file(path)
    require_no_split(split, f"the file {str(path)!r}")
    return _open_files([path], columns, encoding)


def _of_dataset(dataset: Any, prefix: str, columns: _Columns) -> _TextsAndClasses:
    """The texts of a data set of the library `datasets`."""
    text, label = columns.found(dataset.column_names, f"the data set {prefix!r}")
    names = getattr(dataset.features[label], "names", None) if label is not None else None
    rows = dataset.select_columns([text] if label in (None, text) else [text, label])
    return columns.stored(enumerate(rows, start=1), prefix), names


def _open_folder(
    path: Path, columns: _Columns, encoding: str, split: str | None
) -> _TextsAndClasses:
    if is_saved_dataset(path):
        return _of_dataset(*load_saved(path, split), columns)
    splits = (
        []
        if _has_classes(path)
        else sorted(entry.name for entry in path.iterdir() if _has_classes(entry))
    )
    if splits:
        chosen = choose_split(split, splits, f"the folder {str(path)!r}")
        return _of_class_folders(path / chosen, encoding, f"{path.name}/{chosen}"), None
    require_no_split(split, f"the folder {str(path)!r}")
    if _has_classes(path):
        return _of_class_folders(path, encoding, path.name), None
    return _open_files(_files_of_one_kind(path), columns, encoding)


def _has_classes(folder: Path) -> bool:
    """True where the folder holds pos/ or neg/."""
    return (folder / "pos").is_dir() or (folder / "neg").is_dir()


def _of_class_folders(folder: Path, encoding: str, prefix: str) -> Iterator[_StoredText]:
    """The .txt files of pos/ and neg/ in turn, so that the first few are of both classes."""
    files = []
    for name in ("pos", "neg"):
        texts = sorted((folder / name).glob("*.txt"))
        if not texts:
            raise InputError(
                f"the folder {str(folder / name)!r} holds no .txt file; give a folder with both "
                "pos and neg"
            )
        files.append([(path, name) for path in texts])
    for path, name in filter(None, chain.from_iterable(zip_longest(*files))):
        yield file_text(path, encoding), name, f"{prefix}/{name}/{path.stem}"


def _files_of_one_kind(folder: Path) -> list[Path]:
    """The folder's files with a known extension, by name; refuses none, and more than one kind."""
    files = sorted(
        entry
        for entry in folder.iterdir()
        if entry.suffix.lower() in _IN_FOLDERS and entry.is_file()
    )
    kinds = sorted({path.suffix.lower() for path in files})
    if not files:
        raise InputError(
            f"the folder {str(folder)!r} holds no texts; put {', '.join(_IN_FOLDERS)} files in it, "
            "or pos and neg folders of .txt files"
        )
    if len(kinds) > 1:
        raise InputError(
            f"the folder {str(folder)!r} holds files of different kinds ({', '.join(kinds)}); give "
            "one file"
        )
    return files


def _open_files(paths: list[Path], columns: _Columns, encoding: str) -> _TextsAndClasses:
    for path in paths:
        if path.suffix.lower() not in _EXTENSIONS:
            raise InputError(
                f"the file {str(path)!r} has an unknown extension; use one of "
                f"{', '.join(_EXTENSIONS)}"
            )
        # Of several files an empty one is an empty text, which the caller may pass over.
        if len(paths) == 1 and path.stat().st_size == 0:
            raise InputError(f"the file {str(path)!r} is empty; give one with text")
    label = columns.label or _LABEL_COLUMN
    parquet = paths[0].suffix.lower() == ".parquet" and columns.read_labels
    names = parquet_class_names(paths[0], label) if parquet else None
    return chain.from_iterable(_of_file(path, columns, encoding) for path in paths), names


def _of_file(path: Path, columns: _Columns, encoding: str) -> Iterator[_StoredText]:
    if path.suffix.lower() == ".txt":
        yield file_text(path, encoding), None, path.name
        return

    def needed(names: Sequence[str], where: str) -> list[str]:
        if path.suffix.lower() in (".csv", ".tsv") and column_named(columns.text, names) is None:
            require_names(names, path)
        return list(dict.fromkeys(filter(None, columns.found(names, where))))

    yield from columns.stored(table_rows(path, encoding, needed), path.name)


def _sample(stream: Iterator[Document], limit: int | None, seed: Seed) -> list[Document]:
    """A uniformly random choice in random order, by reservoir sampling: only the chosen ones are
    held."""
    chance = random.Random(derive_seed(seed, "documents"))
    chosen: list[Document] = []
    for index, document in enumerate(stream):
        if limit is None or index < limit:
            chosen.append(document)
        elif (place := chance.randrange(index + 1)) < limit:
            chosen[place] = document
    chance.shuffle(chosen)
    return chosen
