"""The Hugging Face hub, and data sets of the library `datasets`: from the hub, or a folder it
saved."""

import importlib
from collections.abc import Collection
from enum import Enum
from pathlib import Path
from typing import Any, Literal

from wordsens.errors import InputError, first_line, require_extra

DEFAULT_SPLIT = "train"

_ANSWER_SECONDS = 10
"""The libraries on top of the hub retry an unreachable one for up to a minute, with a notice each
time."""


class HubAnswer(Enum):
    """The hub's answer."""

    FOUND = "found"
    MISSING = "the Hugging Face hub has nothing public of that name"
    UNREACHABLE = "the Hugging Face hub cannot be reached"


def ask_hub(name: str, kind: Literal["model", "dataset"]) -> HubAnswer:
    """Ask once, and with a time limit, whether the hub has it; InputError when the name cannot be
    one."""
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HFValidationError, RepositoryNotFoundError

    hub = HfApi()
    try:
        (hub.model_info if kind == "model" else hub.dataset_info)(name, timeout=_ANSWER_SECONDS)
    except HFValidationError as error:
        raise InputError(
            f"{name!r} cannot be the name of a {kind} on the hub: {first_line(error)}"
        ) from error
    except RepositoryNotFoundError:
        return HubAnswer.MISSING
    except (
        Exception
    ):  # errors of the network come from several libraries, which have changed before
        return HubAnswer.UNREACHABLE
    return HubAnswer.FOUND


def load_from_hub(name: str, split: str | None) -> tuple[Any, str]:
    """The data set "owner/name" or "owner/name:configuration", and what to call it."""
    require_extra("hub", "reading data sets of the Hugging Face hub", "datasets")
    datasets: Any = importlib.import_module("datasets")
    repository, _, configuration = name.partition(":")
    split = DEFAULT_SPLIT if split is None else split
    answer = ask_hub(repository, "dataset")
    offline = datasets.config.HF_HUB_OFFLINE
    # It may still be in the cache, where `datasets` looks at once when it is told to work offline.
    datasets.config.HF_HUB_OFFLINE = offline or answer is HubAnswer.UNREACHABLE
    try:
        if answer is HubAnswer.MISSING:
            raise LookupError(answer.value)
        return datasets.load_dataset(
            repository, configuration or None, split=split
        ), f"hub:{name}/{split}"
    except MemoryError:
        raise
    except (
        Exception
    ) as error:  # datasets raises OSError, ValueError, errors of its own and of the network
        unreachable = answer is HubAnswer.UNREACHABLE
        reason = (
            f"it is not on this machine, and {answer.value}" if unreachable else first_line(error)
        )
        raise InputError(
            f"no data set {name!r} with split {split!r}: {reason}; check name and network, or give "
            "a file "
            "or folder on this machine"
        ) from error
    finally:
        datasets.config.HF_HUB_OFFLINE = offline


def is_saved_dataset(folder: Path) -> bool:
    """True where the folder was written by `save_to_disk` of the library `datasets`."""
    return (folder / "dataset_dict.json").is_file() or (folder / "state.json").is_file()


def load_saved(folder: Path, split: str | None) -> tuple[Any, str]:
    """The data set that `save_to_disk` wrote, and what to call it."""
    require_extra("hub", "reading data sets of the Hugging Face hub", "datasets")
    datasets: Any = importlib.import_module("datasets")
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


def choose_split(split: str | None, splits: Collection[str], where: str) -> str:
    """The split asked for, `train` where none is asked for; InputError when it is not there."""
    wanted = DEFAULT_SPLIT if split is None else split
    if wanted not in splits:
        raise InputError(
            f"{where} has no split {wanted!r}; its splits are {', '.join(splits)}; name one with "
            "split"
        )
    return wanted


def require_no_split(split: str | None, where: str) -> None:
    """Refuse a split where there are none to choose from."""
    if split is not None:
        raise InputError(
            f"`split` (={split!r}) cannot be chosen: {where} has no splits; leave split out"
        )
