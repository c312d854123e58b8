"""Asking the Hugging Face hub, once and with a time limit, whether it has something.

The libraries on top of it retry an unreachable hub for up to a minute, with a notice each time.
"""

from enum import Enum
from typing import Literal

from wordsens.errors import InputError
from wordsens.text.messages import first_line

_SECONDS = 10


class HubAnswer(Enum):
    """The hub's answer."""

    FOUND = "found"
    MISSING = "the Hugging Face hub has nothing public of that name"
    UNREACHABLE = "the Hugging Face hub cannot be reached"


def ask_hub(name: str, kind: Literal["model", "dataset"]) -> HubAnswer:
    """Ask whether the hub has the model or data set; InputError when the name cannot be one."""
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HFValidationError, RepositoryNotFoundError

    hub = HfApi()
    try:
        (hub.model_info if kind == "model" else hub.dataset_info)(name, timeout=_SECONDS)
    except HFValidationError as error:
        raise InputError(f"{name!r} cannot be the name of a {kind} on the hub: {first_line(error)}") from error
    except RepositoryNotFoundError:
        return HubAnswer.MISSING
    except Exception:  # errors of the network come from several libraries, which have changed before
        return HubAnswer.UNREACHABLE
    return HubAnswer.FOUND
