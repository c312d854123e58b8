"""A tuned encoder as a folder that sentence-transformers loads."""

import json
import shutil
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from safetensors.torch import save_file
from torch import Tensor

from wordsens.errors import InputError, WordsensError
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
    base = model.base_model
    known = base.state_dict()
    with torch.no_grad():
        for key, weight in trainee.weights().items():
            known[key].copy_(weight)
    with quiet_transformers():
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
    modules = _copied_modules(source, folder) or _plain_modules(folder, parts, int(model.config.hidden_size))
    if trainee.matrix is not None:
        modules = _with_dense(folder, modules, trainee.matrix)
    listed = [{**module, "idx": at, "name": str(at)} for at, module in enumerate(modules)]
    (folder / MODULES_FILE).write_text(json.dumps(listed, indent=2), encoding="utf-8")
    _require_same(folder, trainee)


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


def _with_dense(folder: Path, modules: list[dict[str, Any]], matrix: Float[Tensor, "d d"]) -> list[dict[str, Any]]:
    """The modules with the matrix behind them, and vectors of length one where they had it."""
    dense = folder / f"{len(modules)}_Dense"
    size = len(matrix)
    settings = {"in_features": size, "out_features": size, "bias": False}
    _write_json(dense / "config.json", {**settings, "activation_function": "torch.nn.modules.linear.Identity"})
    save_file({"linear.weight": matrix.cpu().contiguous()}, dense / "model.safetensors")
    behind = [{"path": dense.name, "type": f"{_TYPES}Dense"}]
    if modules[-1]["type"].endswith("Normalize"):
        last = folder / f"{len(modules) + 1}_Normalize"
        last.mkdir()
        behind.append({"path": last.name, "type": f"{_TYPES}Normalize"})
    return [*modules, *behind]


def _write_json(path: Path, content: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=2), encoding="utf-8")


@torch.no_grad()
def _require_same(folder: Path, trainee: Trainee) -> None:
    """The probes' vectors of the folder are the trained ones; in float32 on both sides."""
    expected = trainee.exactly(PROBES)
    found = torch.nn.functional.normalize(as_model(str(folder), local_files_only=True).encode(PROBES), dim=1)
    apart = float((found - expected.double().cpu()).abs().max())
    if apart > _TOLERANCE:
        raise WordsensError(
            f"the model written to {str(folder)!r} gives vectors that differ by {apart:.2g} from the trained ones; "
            "please report it with the model's name"
        )
