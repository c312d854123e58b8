"""Documents from wherever texts are kept: files, folders, the Hugging Face hub, the package itself."""

import random
import re
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import chain, islice, zip_longest
from os import PathLike
from pathlib import Path
from typing import TypedDict, Unpack

from wordsens.errors import InputError, require_count
from wordsens.files import named_path, require_file
from wordsens.seeds import Seed, derive_seed
from wordsens.signatures import spells_out
from wordsens.text.document import Columns, Document, Row, choose_split, require_no_split
from wordsens.text.hub import dataset_rows, is_saved_dataset, load_from_hub, load_saved
from wordsens.text.labels import LabelReader
from wordsens.text.plain_files import EXTENSIONS, file_rows, parquet_class_names, text_file_rows
from wordsens.text.shipped_data import SHIPPED, shipped_reviews

IMDB = "imdb"
"""The name under which `read_documents` finds the hub's copy of the IMDB reviews."""

_IMDB_ON_HUB = "stanfordnlp/imdb"
_HUB_PREFIX = "hub:"
_HTML_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)

_RowsAndClasses = tuple[Iterator[Row], list[str] | None]


@dataclass(frozen=True, kw_only=True)
class Reading:
    """The way in which a source is read; see `read_documents` for each option."""

    text_column: str = "text"
    label_column: str | None = None
    labels: bool = True
    encoding: str = "utf-8"
    split: str | None = None
    html_breaks_to_spaces: bool = True
    skip_empty: bool = False

    @property
    def columns(self) -> Columns:
        """The columns that are read."""
        return Columns(self.text_column, self.label_column, self.labels)


_USUAL = Reading()


class ReadingOptions(TypedDict, total=False):
    """The types of a Reading's fields, for checkers of keywords."""

    text_column: str
    label_column: str | None
    labels: bool
    encoding: str
    split: str | None
    html_breaks_to_spaces: bool
    skip_empty: bool


@spells_out(Reading)
def read_documents(
    source: str | PathLike[str],
    *,
    limit: int | None = None,
    sample_seed: Seed | None = None,
    **reading: Unpack[ReadingOptions],
) -> list[Document]:
    """The documents of a source, in its order.

    Args:
        source: one of

            - "shipped": the reviews that come with the package;
            - a .txt file, one text;
            - a .csv or .tsv file whose first line names the columns, a .jsonl file, or a .parquet file;
            - a folder of such files, all of one kind;
            - an aclImdb folder, with pos and neg in train and test, or one that holds pos and neg itself; the
              two classes come in turn;
            - a folder that `datasets` saved;
            - "imdb", "hub:NAME" or "hub:NAME:CONFIGURATION", from the Hugging Face hub through `datasets`.

        text_column: the column with the texts.
        label_column: the column with the labels, which must exist; None: `label`, where there is one.
        labels: False reads none. They may be 1 and 0, +1 and -1, "pos" and "neg", "positive" and "negative".
        encoding: of plain files. UTF-8 may start with a byte order mark.
        split: for sources that have splits; None: "train".
        limit: at most this many documents.
        sample_seed: a random choice of `limit` documents instead of the first; without a limit, all shuffled;
            the whole source is read once.
        html_breaks_to_spaces: replace every HTML line break, `<br />`, by a space; IMDB reviews have them.
        skip_empty: pass over empty texts, which are otherwise an error.

    Raises:
        InputError: there is no such source, or it is empty, not text, damaged, or lacks a column; a label is
            not understood.
        MissingExtraError: reading Parquet needs pyarrow, reading the hub needs `datasets`.

    >>> [review.source for review in read_documents("shipped", limit=2)]
    ['shipped/review-001', 'shipped/review-002']
    """
    if limit is not None:
        require_count("limit", limit)
    stream = stream_documents(source, Reading(**reading))
    with closing(stream):
        return list(islice(stream, limit)) if sample_seed is None else _sample(stream, limit, sample_seed)


def stream_documents(
    source: str | PathLike[str],
    reading: Reading = _USUAL,
    *,
    on_empty: Callable[[str], None] = lambda where: None,
) -> Generator[Document, None, None]:
    """The documents of a source one at a time, so that it may be larger than memory.

    `on_empty` is called with the place of each empty text that is passed over. A missing source, split or package is
    reported at once, a damaged row when it is reached.
    """
    rows, class_names = _open(source, reading)
    reader = LabelReader(class_names)

    def documents() -> Generator[Document, None, None]:
        empty = True
        for row in rows:
            text = "" if row.text is None else row.text
            if not isinstance(text, str):
                raise InputError(
                    f"{row.where}: the text is {type(text).__name__}, not a string; name the column of the "
                    "texts with text_column"
                )
            if reading.html_breaks_to_spaces:
                text = _HTML_BREAK.sub(" ", text)
            if text.strip():
                empty = False
                yield Document(text, reader.read(row.label, row.where), row.where)
            elif reading.skip_empty:
                on_empty(row.where)
            else:
                raise InputError(f"{row.where}: the text is empty; pass skip_empty=True to pass over empty texts")
        if empty:
            raise InputError(f"{str(source)!r} holds no text; give a source with at least one")

    return documents()


def _open(source: str | PathLike[str], reading: Reading) -> _RowsAndClasses:
    split = reading.split
    if source == SHIPPED:
        require_no_split(split, "the package's own review collection")
        return (Row(document.text, document.label, document.source) for document in shipped_reviews()), None
    if isinstance(source, str) and (source == IMDB or source.startswith(_HUB_PREFIX)):
        name = _IMDB_ON_HUB if source == IMDB else source.removeprefix(_HUB_PREFIX)
        return dataset_rows(*load_from_hub(name, split), reading.columns)
    path = named_path("source", source)
    if path.is_dir():
        return _open_folder(path, reading)
    if not path.exists():
        raise InputError(
            f"there is no file or folder {str(source)!r}; give a path, {SHIPPED!r}, {IMDB!r} or '{_HUB_PREFIX}NAME'"
        )
    require_file(path)
    require_no_split(split, f"the file {str(path)!r}")
    return _open_files([path], reading)


def _open_folder(path: Path, reading: Reading) -> _RowsAndClasses:
    split, encoding = reading.split, reading.encoding
    if is_saved_dataset(path):
        return dataset_rows(*load_saved(path, split), reading.columns)
    splits = [] if _has_classes(path) else sorted(entry.name for entry in path.iterdir() if _has_classes(entry))
    if splits:
        chosen = choose_split(split, splits, f"the folder {str(path)!r}")
        return _class_folder_rows(path / chosen, encoding, f"{path.name}/{chosen}"), None
    require_no_split(split, f"the folder {str(path)!r}")
    if _has_classes(path):
        return _class_folder_rows(path, encoding, path.name), None
    return _open_files(_files_of_one_kind(path), reading)


def _has_classes(folder: Path) -> bool:
    """True where the folder holds pos/ or neg/."""
    return (folder / "pos").is_dir() or (folder / "neg").is_dir()


def _class_folder_rows(folder: Path, encoding: str, prefix: str) -> Iterator[Row]:
    """The .txt files of pos/ and neg/ in turn, so that the first few are of both classes."""
    files = []
    for name in ("pos", "neg"):
        texts = sorted((folder / name).glob("*.txt"))
        if not texts:
            raise InputError(
                f"the folder {str(folder / name)!r} holds no .txt file; give a folder with both pos and neg"
            )
        files.append([(path, name) for path in texts])
    for path, name in filter(None, chain.from_iterable(zip_longest(*files))):
        yield from text_file_rows(path, encoding, label=name, where=f"{prefix}/{name}/{path.stem}")


def _files_of_one_kind(folder: Path) -> list[Path]:
    """The folder's files with a known extension, by name; refuses none, and more than one kind."""
    files = sorted(entry for entry in folder.iterdir() if entry.suffix.lower() in EXTENSIONS and entry.is_file())
    kinds = sorted({path.suffix.lower() for path in files})
    if not files:
        raise InputError(
            f"the folder {str(folder)!r} holds no texts; put {', '.join(EXTENSIONS)} files in it, "
            "or pos and neg folders of .txt files"
        )
    if len(kinds) > 1:
        raise InputError(
            f"the folder {str(folder)!r} holds files of different kinds ({', '.join(kinds)}); give one file"
        )
    return files


def _open_files(paths: list[Path], reading: Reading) -> _RowsAndClasses:
    for path in paths:
        if path.suffix.lower() not in EXTENSIONS:
            raise InputError(f"the file {str(path)!r} has an unknown extension; use one of {', '.join(EXTENSIONS)}")
        # Of several files an empty one is an empty text, which the caller may pass over.
        if len(paths) == 1 and path.stat().st_size == 0:
            raise InputError(f"the file {str(path)!r} is empty; give one with text")
    class_names = parquet_class_names(paths[0], reading.columns) if paths[0].suffix.lower() == ".parquet" else None
    return chain.from_iterable(file_rows(path, reading.columns, reading.encoding) for path in paths), class_names


def _sample(stream: Iterator[Document], limit: int | None, seed: Seed) -> list[Document]:
    """A uniformly random choice in random order, by reservoir sampling: only the chosen ones are held."""
    chance = random.Random(derive_seed(seed, "documents"))
    chosen: list[Document] = []
    for index, document in enumerate(stream):
        if limit is None or index < limit:
            chosen.append(document)
        elif (place := chance.randrange(index + 1)) < limit:
            chosen[place] = document
    chance.shuffle(chosen)
    return chosen
