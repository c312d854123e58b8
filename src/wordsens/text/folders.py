"""Rows from folders: .txt files, shards of a table, and the layout of the IMDB reviews (aclImdb)."""

from collections.abc import Iterator
from itertools import chain, zip_longest
from pathlib import Path

from wordsens.errors import InputError
from wordsens.text.plain_files import text_file_rows
from wordsens.text.rows import Row

DEFAULT_SPLIT = "train"


def has_classes(folder: Path) -> bool:
    """True where the folder holds pos/ or neg/."""
    return (folder / "pos").is_dir() or (folder / "neg").is_dir()


def splits_of(folder: Path) -> list[str]:
    """The sub-folders that hold pos/ or neg/: the splits of an aclImdb folder."""
    return sorted(entry.name for entry in folder.iterdir() if entry.is_dir() and has_classes(entry))


def choose_split(split: str | None, splits: list[str], where: str) -> str:
    """The split asked for, `train` where none is asked for; InputError when it is not there."""
    wanted = DEFAULT_SPLIT if split is None else split
    if wanted not in splits:
        raise InputError(f"{where} has no split {wanted!r}; its splits are {', '.join(splits)}; name one with split")
    return wanted


def class_folder_rows(folder: Path, encoding: str, prefix: str) -> Iterator[Row]:
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


def files_of_one_kind(folder: Path, extensions: tuple[str, ...]) -> list[Path]:
    """The folder's files with a known extension, by name; refuses none, and more than one kind."""
    found = sorted(entry for entry in folder.iterdir() if entry.suffix.lower() in extensions and entry.is_file())
    kinds = sorted({path.suffix.lower() for path in found})
    if not found:
        raise InputError(
            f"the folder {str(folder)!r} holds no texts; put {', '.join(extensions)} files in it, "
            "or pos and neg folders of .txt files"
        )
    if len(kinds) > 1:
        raise InputError(
            f"the folder {str(folder)!r} holds files of different kinds ({', '.join(kinds)}); give one file"
        )
    return found
