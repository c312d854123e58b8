"""The Hugging Face hub, and rows from data sets of the library `datasets`: from the hub, or a folder it saved."""

from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any, Literal

from wordsens.errors import InputError, MissingExtraError, first_line
from wordsens.text.document import DEFAULT_SPLIT, Columns, Row, choose_split, require_no_split

_ANSWER_SECONDS = 10
"""The libraries on top of the hub retry an unreachable one for up to a minute, with a notice each time."""

_BATCH_ROWS = 1024
_SAVED_BY_DATASETS = ("dataset_dict.json", "state.json")


class HubAnswer(Enum):
    """The hub's answer."""

    FOUND = "found"
    MISSING = "the Hugging Face hub has nothing public of that name"
    UNREACHABLE = "the Hugging Face hub cannot be reached"


def ask_hub(name: str, kind: Literal["model", "dataset"]) -> HubAnswer:
    """Ask once, and with a time limit, whether the hub has it; InputError when the name cannot be one."""
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HFValidationError, RepositoryNotFoundError

    hub = HfApi()
    try:
        (hub.model_info if kind == "model" else hub.dataset_info)(name, timeout=_ANSWER_SECONDS)
    except HFValidationError as error:
        raise InputError(f"{name!r} cannot be the name of a {kind} on the hub: {first_line(error)}") from error
    except RepositoryNotFoundError:
        return HubAnswer.MISSING
    except Exception:  # errors of the network come from several libraries, which have changed before
        return HubAnswer.UNREACHABLE
    return HubAnswer.FOUND


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
    except MemoryError:
        raise
    except Exception as error:  # of its JSON files, taken as they are, and of Arrow
        raise InputError(
            f"{where} cannot be read as a saved data set ({type(error).__name__}); save it again"
        ) from error
    if isinstance(dataset, dict):
        split = choose_split(split, sorted(map(str, dataset)), where)
        return dataset[split], f"{folder.name}/{split}"
    require_no_split(split, where)
    return dataset, folder.name


def dataset_rows(dataset: Any, prefix: str, columns: Columns) -> tuple[Iterator[Row], list[str] | None]:
    """The rows of a data set, batch by batch, and the names of the label's numbers, where it has them."""
    label = columns.label_in(dataset.column_names, f"the data set {prefix!r}")
    batches = dataset.select_columns(columns.to_read(label)).iter(batch_size=_BATCH_ROWS)
    return columns.rows(batches, label, prefix), getattr(dataset.features[label], "names", None) if label else None


def _require_datasets() -> Any:
    try:
        import datasets
    except ImportError as error:
        raise MissingExtraError("datasets", "hub", "reading data sets of the Hugging Face hub") from error
    return datasets


def _missing_dataset(name: str, split: str, reason: str) -> InputError:
    return InputError(
        f"no data set {name!r} with split {split!r}: {reason}; check name and network, or give a file "
        "or folder on this machine"
    )
