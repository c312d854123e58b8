"""From the hidden states of a text to one vector: mean, CLS, last token, maximum, or the model's own way."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.errors import InputError, require_choice

Pool = Callable[[Float[Tensor, "b n d"]], Float[Tensor, "b d"]]

_OWN = "own"
_SIMPLE: dict[str, Pool] = {
    "mean": lambda states: states.mean(dim=-2),
    "cls": lambda states: states[..., 0, :],
    "last": lambda states: states[..., -1, :],
    "max": lambda states: states.amax(dim=-2),
}
POOL_NAMES = (*_SIMPLE, _OWN)

# What sentence-transformers calls them in a Pooling module's config.json.
_THEIR_NAMES = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_lasttoken": "last",
}


@dataclass(frozen=True)
class Pooling:
    """A way to make one vector of a text's rows.

    Every row counts, those of [CLS] and [SEP] included, as in sentence-transformers; there is no padding here.

    Attributes:
        name: mean, cls, last, max or own.
        parts: the simple poolings whose vectors stand side by side; more than one only where the model's own has more.
        unit: whether the vector is divided by its length.
    """

    name: str
    parts: tuple[str, ...]
    unit: bool = False

    def __call__(self, states: Float[Tensor, "b n d"]) -> Float[Tensor, "b p"]:
        pooled = torch.cat([_SIMPLE[part](states) for part in self.parts], dim=-1)
        return pooled / torch.linalg.vector_norm(pooled, dim=-1, keepdim=True) if self.unit else pooled


def pooling_of(pool: str | None, folder: Path | None, name: str) -> Pooling | None:
    """The pooling of that name; "own" is read from the files that sentence-transformers keeps in the model's folder.

    Raises:
        InputError: an unknown name; "own" for a model without such files, or with modules that are not supported.
    """
    if pool is None:
        return None
    require_choice("pool", pool, POOL_NAMES)
    if pool != _OWN:
        return Pooling(pool, (pool,))
    if folder is None or not (folder / "modules.json").is_file():
        raise InputError(
            f"the model {name!r} says nothing of its own pooling (modules.json is missing); use one of "
            f"pool={', '.join(map(repr, _SIMPLE))}"
        )
    return _own(folder, name)


def _own(folder: Path, name: str) -> Pooling:
    parts: tuple[str, ...] = ()
    unit = False
    for module in json.loads((folder / "modules.json").read_text(encoding="utf-8")):
        kind = str(module["type"]).rsplit(".", 1)[-1]
        if kind == "Pooling":
            parts = _parts(json.loads((folder / module["path"] / "config.json").read_text(encoding="utf-8")))
        elif kind == "Normalize":
            unit = True
        elif kind != "Transformer":
            parts = ()
            break
    if not parts:
        raise InputError(
            f"the model {name!r} has a pooling of its own that is not supported; use one of "
            f"pool={', '.join(map(repr, _SIMPLE))}"
        )
    return Pooling(_OWN, parts, unit)


def _parts(config: dict[str, object]) -> tuple[str, ...]:
    # Newer versions of sentence-transformers write one key, older ones a flag for each way.
    mode = config.get("pooling_mode")
    if isinstance(mode, str):
        named = {"lasttoken": "last"}.get(mode, mode)
        return (named,) if named in _SIMPLE else ()
    chosen = [key for key, value in config.items() if key.startswith("pooling_mode_") and value]
    return tuple(_THEIR_NAMES[key] for key in chosen) if all(key in _THEIR_NAMES for key in chosen) else ()
