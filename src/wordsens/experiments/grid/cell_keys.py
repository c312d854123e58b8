"""Keys of cells of many kinds: the device, of which the kind belongs to their identity, and the model."""

import re
from typing import Annotated, Any

from pydantic import AfterValidator

from wordsens.errors import InputError
from wordsens.files import named_path

CPU = "cpu"


def _named(device: str) -> str:
    if not re.fullmatch(r"[a-z]+(:\d+)?", device):
        raise InputError(f"`device` (={device!r}) must be a name of torch's: cpu, cuda, cuda:1, mps, ...")
    return device


Device = Annotated[str, AfterValidator(_named)]
"""cpu, cuda, cuda:1, mps, ..., as torch names them."""


def with_kind_of_device(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields of a cell as its identity has them: the kind of its device, and nothing for the CPU.

    A GPU sums in another order than a CPU, and a search that starts to differ in the last digit may end at another
    maximum: its value is another cell's. Two GPUs of one machine are of one kind.

    >>> with_kind_of_device({"n": 3, "device": "cuda:1"}), with_kind_of_device({"n": 3, "device": "cpu"})
    ({'n': 3, 'device': 'cuda'}, {'n': 3})
    """
    rest = {name: value for name, value in fields.items() if name != "device"}
    kind = fields["device"].partition(":")[0]
    return rest if kind == CPU else {**rest, "device": kind}


def _absolute(model: str) -> str:
    folder = named_path("model", model)
    return str(folder.absolute()) if folder.is_dir() else model


ModelName = Annotated[str, AfterValidator(_absolute)]
"""minilm, a name on the hub, or a folder, which is kept as an absolute path: a worker may run in another folder."""
