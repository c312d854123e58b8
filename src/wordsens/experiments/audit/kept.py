"""Results about a model rather than its texts, kept in the audit's folder: a later run reads them again."""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from torch import Tensor

from wordsens.audit.decay import PairDistance
from wordsens.audit.layers import LayerSensitivity
from wordsens.errors import InputError
from wordsens.experiments.store.record import hash_identity
from wordsens.results import Saved

FOLDER = "kept"

KEPT_SCHEMA = 1
"""Raised when one of these is computed in another way: older files are then not read."""

Kept = TypeVar("Kept", bound=Saved)


@dataclass(frozen=True)
class KeptDistances(Saved):
    """The distances of pairs under one model."""

    distances: tuple[PairDistance, ...]


@dataclass(frozen=True)
class KeptLayers(Saved):
    """The layers of one model on a few texts."""

    layers: tuple[LayerSensitivity, ...]


@dataclass(frozen=True)
class KeptDirections(Saved):
    """The starts of the search that all texts of one model share: `common_directions`."""

    directions: Tensor | None


def kept(folder: Path, kind: type[Kept], key: Mapping[str, Any], measure: Callable[[], Kept]) -> Kept:
    """An earlier result with the same key; else what `measure` gives, written down aside and renamed.

    Args:
        folder: of the audit.
        kind: of the result.
        key: everything that decides it: the model's content, the texts, the options.
        measure: measures it.
    """
    name = hash_identity(json.dumps({**key, "kind": kind.__name__, "schema": KEPT_SCHEMA}, sort_keys=True))
    path = folder / FOLDER / f"{name}.safetensors"
    if path.exists():
        try:
            return kind.load(path)
        except InputError:  # damaged, or of an earlier version: measured again
            pass
    found = measure()
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        found.save(aside)
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)
    return found


def content_key(texts: Sequence[str]) -> str:
    """A digest of texts, their order included."""
    return hash_identity(json.dumps(list(texts)))
