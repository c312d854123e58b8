"""The Hugging Face hub, and data sets of the library `datasets`: from the hub, or a folder it
saved."""

import importlib
from collections.abc import Collection
from enum import Enum
from pathlib import Path
from typing import Any, Literal

from wordsens.errors import InputError, argument, first_line, require_extra, running

_DEFAULT_SPLIT = "train"

# The libraries on top of the hub retry an unreachable one for up to a minute, with a notice each
# time.
_ANSWER_SECONDS = 10


class HubAnswer(Enum):
    """The hub's answer."""

    FOUND = "found"
    MISSING = "the Hugging Face hub has nothing public with that name"
    UNREACHABLE = "the Hugging Face hub cannot be reached"


def ask_hub(name: str, kind: Literal["model", "dataset"]) -> HubAnswer:
    """Ask the hub once, with a time limit, whether it has this model or data set; InputError for an
    impossible name."""
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HFValidationError, RepositoryNotFoundError

    ask = HfApi().model_info if kind == "model" else HfApi().dataset_info
    try:
        ask(name, timeout=_ANSWER_SECONDS)
    except HFValidationError as error:
        raise InputError(
            f"{name!r} cannot be the name of a {kind} on the hub: {first_line(error)}"
        ) from error
    except RepositoryNotFoundError:
        return HubAnswer.MISSING
    except Exception:  # the network's errors come from several libraries, which have changed before
        return HubAnswer.UNREACHABLE
    return HubAnswer.FOUND


def load_from_hub(name: str, split: str | None) -> tuple[Any, str]:
    """The data set "owner/name" or "owner/name:configuration", and its name for messages."""
    datasets = _library()
    repository, _, configuration = name.partition(":")
    split = split or _DEFAULT_SPLIT
    answer = ask_hub(repository, "dataset")
    reason = "" if answer is HubAnswer.FOUND else f"{answer.value}; "
    offline = datasets.config.HF_HUB_OFFLINE
    # It may still be in the cache, where `datasets` looks at once when it works offline.
    datasets.config.HF_HUB_OFFLINE = offline or answer is HubAnswer.UNREACHABLE
    try:
        with running(
            f"loading the data set {name!r} with split {split!r} failed",
            remedy=f"{reason}check name and network, or give a file or folder on this machine",
        ):
            dataset = datasets.load_dataset(repository, configuration or None, split=split)
    finally:
        datasets.config.HF_HUB_OFFLINE = offline
    return dataset, f"hub:{name}/{split}"


def load_saved(folder: Path, split: str | None) -> tuple[Any, str]:
    """The data set that `save_to_disk` wrote, and its name for messages."""
    datasets = _library()
    where = f"the folder {str(folder)!r}"
    with running(f"reading {where} as a saved data set failed", remedy="save it again"):
        dataset = datasets.load_from_disk(str(folder))
    if isinstance(dataset, dict) and not dataset:
        raise InputError(f"{where} is a saved data set without a split; save it again")
    split = chosen_split(split, sorted(dataset) if isinstance(dataset, dict) else (), where)
    return (dataset[split], f"{folder.name}/{split}") if split else (dataset, folder.name)


def _library() -> Any:
    require_extra("hub", "reading data sets of the Hugging Face hub", "datasets")
    return importlib.import_module("datasets")


def chosen_split(split: str | None, splits: Collection[str], where: str) -> str:
    """The requested split, `train` by default; "" for a source without splits.

    Raises InputError for a split that is not there.
    """
    if not splits:
        if split is not None:
            raise InputError(
                f"{argument('split')} (={split!r}) cannot be chosen: {where} has no splits; leave "
                "split out"
            )
        return ""
    split = split or _DEFAULT_SPLIT
    if split not in splits:
        raise InputError(
            f"{where} has no split {split!r}; its splits are {', '.join(splits)}; name one with "
            "split"
        )
    return split
