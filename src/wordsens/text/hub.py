"""Rows from data sets of the library `datasets`: from the Hugging Face hub, or a folder it saved."""

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from wordsens.errors import InputError, MissingExtraError
from wordsens.text.folders import DEFAULT_SPLIT, choose_split
from wordsens.text.hub_access import HubAnswer, ask_hub
from wordsens.text.messages import first_line
from wordsens.text.rows import Columns, Row, require_no_split

_BATCH_ROWS = 1024
_SAVED_BY_DATASETS = ("dataset_dict.json", "state.json")


def load_from_hub(name: str, split: str | None) -> tuple[Any, str]:
    """The data set and what to call it.

    Args:
        name: "owner/name", or "owner/name:configuration".
        split: None: train.
    """
    datasets = _require_datasets()
    repository, _, configuration = name.partition(":")
    split = DEFAULT_SPLIT if split is None else split
    answer = ask_hub(repository, "dataset")
    if answer is HubAnswer.MISSING:
        raise _missing_dataset(name, split, answer.value)
    offline = datasets.config.HF_HUB_OFFLINE
    # It may still be in the cache, where `datasets` looks at once when it is told to work offline.
    datasets.config.HF_HUB_OFFLINE = offline or answer is HubAnswer.UNREACHABLE
    try:
        dataset = datasets.load_dataset(repository, configuration or None, split=split)
    except MemoryError:
        raise
    except Exception as error:  # datasets raises OSError, ValueError, errors of its own and of the network
        reason = first_line(error) if answer is HubAnswer.FOUND else f"it is not on this machine, and {answer.value}"
        raise _missing_dataset(name, split, reason) from error
    finally:
        datasets.config.HF_HUB_OFFLINE = offline
    return dataset, f"hub:{name}/{split}"


def is_saved_dataset(folder: Path) -> bool:
    """True where the folder was written by `save_to_disk` of the library `datasets`."""
    return any((folder / name).is_file() for name in _SAVED_BY_DATASETS)


def load_saved(folder: Path, split: str | None) -> tuple[Any, str]:
    """The data set that `save_to_disk` wrote, and what to call it."""
    datasets = _require_datasets()
    where = f"the folder {str(folder)!r}"
    try:
        dataset = datasets.load_from_disk(str(folder))
    except (OSError, ValueError, KeyError) as error:
        raise InputError(
            f"{where} cannot be read as a saved data set ({type(error).__name__}); save it again"
        ) from error
    if isinstance(dataset, dict):
        split = choose_split(split, sorted(map(str, dataset)), where)
        return dataset[split], f"{folder.name}/{split}"
    require_no_split(split, where)
    return dataset, folder.name


def dataset_rows(dataset: Any, columns: Columns, prefix: str) -> Iterator[Row]:
    """The rows of a data set, which `datasets` keeps on disk, batch by batch."""
    label = columns.label_in(dataset.column_names, f"the data set {prefix!r}")
    number = 0
    wanted = dataset.select_columns([columns.text, *([label] if label else [])])
    for batch in wanted.iter(batch_size=_BATCH_ROWS):
        labels = batch[label] if label else [None] * len(batch[columns.text])
        for text, value in zip(batch[columns.text], labels, strict=True):
            number += 1
            yield Row(text, value, f"{prefix}:{number}")


def dataset_class_names(dataset: Any, columns: Columns, prefix: str) -> list[str] | None:
    """The names of the label's numbers, where the data set has them."""
    label = columns.label_in(dataset.column_names, f"the data set {prefix!r}")
    return getattr(dataset.features[label], "names", None) if label else None


def _require_datasets() -> Any:
    if importlib.util.find_spec("datasets") is None:
        raise MissingExtraError("datasets", "hub", "reading data sets of the Hugging Face hub")
    import datasets

    return datasets


def _missing_dataset(name: str, split: str, reason: str) -> InputError:
    return InputError(
        f"no data set {name!r} with split {split!r}: {reason}; check name and network, or give a file "
        "or folder on this machine"
    )
