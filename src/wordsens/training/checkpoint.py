"""Checkpoints of a training: one safetensors file, written aside and renamed."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from wordsens.errors import InputError, first_line
from wordsens.files import named_path

NAME = "checkpoint.safetensors"
_KEY = "wordsens"


def save_checkpoint(folder: str | Path, tensors: Mapping[str, Mapping[str, Tensor]], facts: Mapping[str, Any]) -> Path:
    """Write groups of tensors and what is known of them; a reader never sees half a file."""
    path = named_path("folder", folder) / NAME
    path.parent.mkdir(parents=True, exist_ok=True)
    flat = {f"{group}/{name}": one.detach().contiguous() for group, own in tensors.items() for name, one in own.items()}
    aside = path.with_name(f"{NAME}.{os.getpid()}.part")
    save_file(flat, aside, metadata={_KEY: json.dumps(facts)})
    aside.replace(path)
    return path


def load_checkpoint(folder: str | Path) -> tuple[dict[str, dict[str, Tensor]], dict[str, Any]] | None:
    """The groups of tensors and the facts; None where there is no checkpoint.

    Raises:
        InputError: a file that wordsens did not write.
    """
    path = named_path("folder", folder) / NAME
    if not path.exists():
        return None
    try:
        with safe_open(path, framework="pt") as file:
            facts = json.loads((file.metadata() or {})[_KEY])
            groups: dict[str, dict[str, torch.Tensor]] = {}
            for key in file.keys():  # noqa: SIM118 - no mapping
                group, _, name = key.partition("/")
                groups.setdefault(group, {})[name] = file.get_tensor(key)
    except (SafetensorError, KeyError, ValueError, OSError) as error:
        raise InputError(
            f"{path} is no checkpoint of wordsens ({first_line(error)}); remove it, or give another `folder`"
        ) from error
    return groups, facts
