"""all-MiniLM-L6-v2 without its layers, since importing transformers takes as long as a short
measurement."""

import json
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import torch
from jaxtyping import Float, Int
from safetensors import safe_open
from torch import Tensor
from torch.nn.functional import layer_norm

from wordsens.errors import require_characters, require_extra
from wordsens.models.model_files import MINILM, minilm_folder
from wordsens.models.pretrained import load_text_model
from wordsens.models.text_model import TextModel
from wordsens.models.tokens import Tokenization, require_known, tokenization_of

_TABLES = ("word_embeddings", "position_embeddings", "token_type_embeddings")


class MiniLM(TextModel):
    """all-MiniLM-L6-v2 in float32: its tokens and the states of its layers are those of
    `load_text_model("minilm")`.

    Row j of layer 0 is LayerNorm(word_j + place_j + type_0), from the model's tables. The first
    call for a higher layer loads the whole model.

    Raises:
        MissingExtraError: tokenizers, or the package with the files, is not installed.
        InputError: the weights are missing or not the published ones.
    """

    leading_tokens, own_tokens = 1, 2
    no_rows = "it has only the embedding layer; load the model with TransformerFeatures"

    def __init__(self, device: str = "cpu"):
        require_extra("minilm", f"the model {MINILM!r}", "tokenizers")
        from tokenizers import Tokenizer

        folder = minilm_folder()
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        names = [*(f"{table}.weight" for table in _TABLES), "LayerNorm.weight", "LayerNorm.bias"]
        with safe_open(folder / "model.safetensors", framework="pt") as weights:
            tensors = [weights.get_tensor(f"embeddings.{name}").to(device) for name in names]
        self._words, self._places, self._types, self._scale, self._shift = tensors
        self._epsilon, self.layers = config["layer_norm_eps"], config["num_hidden_layers"]
        self.context, self.dimension = self._places.shape
        self.tokenizer: Any = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.padding = self.tokenizer.token_to_id("[PAD]"), "[PAD]"
        # The file sets both, to 128 tokens.
        self.tokenizer.no_truncation()
        self.tokenizer.no_padding()
        self.name, self.device, self._batch_size = MINILM, torch.device(device), 32

    def __reduce__(self) -> tuple[Any, ...]:
        return MiniLM, (str(self.device),)

    @cached_property
    def _whole(self) -> TextModel:
        return load_text_model(MINILM, device=str(self.device), attention=None)

    def tokenize(self, text: str, where: str | None = None) -> Tokenization:
        where = where or f"the text {text[:40]!r}"
        require_characters(where, text)
        encoding = self.tokenizer.encode(text)
        special, offsets = encoding.special_tokens_mask, encoding.offsets
        found = tokenization_of(text, encoding.ids, encoding.tokens, special, offsets)
        require_known(found, self.tokenizer.token_to_id("[UNK]"), where=where, name=MINILM)
        return found

    def hidden_states(
        self, ids: Int[Tensor, "b n"], layer: int, padding: int = 0
    ) -> Float[Tensor, "b n d"]:
        if layer > 0:
            return self._whole.hidden_states(ids, layer, padding)
        rows = self._words[ids] + self._types[0] + self._places[: ids.shape[1]]
        return layer_norm(rows, rows.shape[-1:], self._scale, self._shift, self._epsilon)

    def encode(self, texts: Sequence[str]) -> Float[Tensor, "m d"]:
        return self._whole.encode(texts)
