"""The witnesses of one cell in one safetensors file: what its value can be computed from again, without a search."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from safetensors import SafetensorError, safe_open

from wordsens.errors import InputError

if TYPE_CHECKING:
    from torch import Tensor

CELL_KEY, DIGEST_KEY = "wordsens.cell", "wordsens.sha256"


def packed_witness(cell: str, tensors: "Mapping[str, Tensor]") -> bytes:
    """The content of the file: the tensors, the name of their cell, and a digest of both."""
    from safetensors.torch import save  # loads torch, which a store of dry runs does without

    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    return save(plain, metadata={CELL_KEY: cell, DIGEST_KEY: _digest(cell, plain)})


def read_witness(path: Path, cell: str) -> "dict[str, Tensor]":
    """The tensors of a cell's file, verified: it is whole, and that cell's.

    Raises:
        InputError: what is wrong with the file.
        FileNotFoundError: it is not there.
    """
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - no mapping
    except FileNotFoundError:
        raise
    except (SafetensorError, OSError, ValueError) as error:
        raise InputError(f"is not a whole safetensors file ({' '.join(str(error).split())})") from error
    if metadata.get(CELL_KEY) != cell:
        raise InputError("does not hold the witness of the cell that its name says")
    if metadata.get(DIGEST_KEY) != _digest(cell, tensors):
        raise InputError("does not hold what was written: its digest differs")
    return tensors


def _digest(cell: str, tensors: "Mapping[str, Tensor]") -> str:
    digest = hashlib.sha256(cell.encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"{name}:{tensor.dtype}:{tuple(tensor.shape)}:".encode())
        digest.update(tensor.numpy().tobytes())
    return digest.hexdigest()
