"""A tuned encoder as a folder that sentence-transformers loads."""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn import functional

from wordsens.errors import InputError, WordsensError
from wordsens.maps.transformer.behind import Dense, Normalize
from wordsens.maps.transformer.settings import MODULES_FILE, PROMPTS_FILE, READING_FILE
from wordsens.maps.transformer.texts import PROBES
from wordsens.models.choice import as_model
from wordsens.text.pretrained import Access, load_model, quiet_transformers
from wordsens.training.adapter.trainee import Trainee

_TYPES = "sentence_transformers.models."
_COPIED = (MODULES_FILE, PROMPTS_FILE, READING_FILE)
_TOLERANCE = 1e-5
"""Of coordinates of vectors of length one, between the trained model and the folder."""

_FLAGS = {"mean": "pooling_mode_mean_tokens", "cls": "pooling_mode_cls_token", "max": "pooling_mode_max_tokens",
          "last": "pooling_mode_lasttoken"}  # fmt: skip


def write_model(folder: Path, name: str, trainee: Trainee, parts: tuple[str, ...], *, revision: str | None) -> None:
    """Write the model of that name with the trained weights: transformer, tokenizer, and the modules behind it.

    Args:
        folder: empty.
        name: of the model that was tuned.
        trainee: with the adapter.
        parts: its poolings, for a model without sentence-transformers files of its own.
        revision: of a name on the hub.

    Raises:
        WordsensError: what was written does not give the trained model's vectors.
    """
    tokenizer, model, source = load_model(name, access=Access(revision=revision))
    known = model.base_model.state_dict()
    with torch.no_grad():
        for key, weight in trainee.weights().items():
            known[key].copy_(weight)
    modules = write_transformer(folder, tokenizer, model, source, parts)
    if trainee.matrix is not None:
        size = len(trainee.matrix)
        dense = Dense({"in_features": size, "out_features": size, "bias": False}, nn.Identity())
        dense.linear.weight = nn.Parameter(trainee.matrix.cpu())
        unit = modules[-1]["type"].endswith("Normalize")
        modules = add_modules(folder, modules, [dense, *[Normalize()] * unit])
    require_same(folder, trainee.exactly(PROBES))


def write_transformer(
    folder: Path, tokenizer: Any, model: Any, source: Path | None, parts: tuple[str, ...]
) -> list[dict[str, Any]]:
    """Write a transformer and the modules behind it: those of its source's files, or a pooling of these parts."""
    with quiet_transformers():
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
    return add_modules(
        folder, _copied_modules(source, folder) or _plain_modules(folder, parts, int(model.config.hidden_size)), []
    )


def add_modules(
    folder: Path, modules: list[dict[str, Any]], behind: Sequence[Dense | Normalize]
) -> list[dict[str, Any]]:
    """Write these modules behind those that a folder has, and list them all; what it lists is returned."""
    for module in behind:
        kind = type(module).__name__
        place = folder / f"{len(modules)}_{kind}"
        place.mkdir()
        if isinstance(module, Dense):
            settings = {"in_features": module.linear.in_features, "out_features": module.linear.out_features}
            settings |= {"bias": module.linear.bias is not None, "activation_function": _path_of(module.activation)}
            _write_json(place / "config.json", settings)
            state = {key: _smallest(weight.detach().cpu().contiguous()) for key, weight in module.state_dict().items()}
            save_file(state, place / "model.safetensors")
        modules = [*modules, {"path": place.name, "type": f"{_TYPES}{kind}"}]
    listed = [{**module, "idx": at, "name": str(at)} for at, module in enumerate(modules)]
    (folder / MODULES_FILE).write_text(json.dumps(listed, indent=2), encoding="utf-8")
    return modules


def _smallest(weight: Tensor) -> Tensor:
    """The weight in a byte or two a number where that is exact; whoever loads it has it in the module's own again."""
    for dtype in (torch.int8, torch.half):
        small = weight.to(dtype)
        if torch.equal(small.to(weight.dtype), weight):
            return small
    return weight


def _path_of(activation: nn.Module) -> str:
    return f"{type(activation).__module__}.{type(activation).__name__}"


def _copied_modules(source: Path | None, folder: Path) -> list[dict[str, Any]]:
    """The modules of the source's own files, which are copied; none where it has none."""
    if source is None or not (source / MODULES_FILE).is_file():
        return []
    modules = json.loads((source / MODULES_FILE).read_text(encoding="utf-8"))
    if modules[0]["path"]:
        raise InputError(
            f"`model` (={str(source)!r}) keeps its transformer in {modules[0]['path']!r}; move that to its root"
        )
    for file in (source / each for each in _COPIED):
        if file.is_file():
            shutil.copyfile(file, folder / file.name)
    for path in (module["path"] for module in modules[1:]):
        (folder / path).mkdir(parents=True, exist_ok=True)
        if (source / path).is_dir():
            shutil.copytree(source / path, folder / path, dirs_exist_ok=True)
    return modules


def _plain_modules(folder: Path, parts: tuple[str, ...], dimension: int) -> list[dict[str, Any]]:
    pooling = {"word_embedding_dimension": dimension, **{flag: part in parts for part, flag in _FLAGS.items()}}
    _write_json(folder / "1_Pooling" / "config.json", pooling)
    return [{"path": "", "type": f"{_TYPES}Transformer"}, {"path": "1_Pooling", "type": f"{_TYPES}Pooling"}]


def _write_json(path: Path, content: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=2), encoding="utf-8")


@torch.no_grad()
def require_same(folder: Path, expected: Float[Tensor, "m d"]) -> None:
    """Raise unless the probes' vectors of the folder are the expected ones, both brought to length one."""
    found = functional.normalize(as_model(str(folder), local_files_only=True).encode(PROBES), dim=1)
    apart = float((found - functional.normalize(expected, dim=1).double().cpu()).abs().max())
    if apart > _TOLERANCE:
        raise WordsensError(
            f"the model written to {str(folder)!r} gives vectors that differ by {apart:.2g} from the tuned ones; "
            "please report it with the model's name"
        )
