"""Pretrained transformers as encoders."""

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from wordsens.text.encoder import Encoder, EncoderInput, Tokenization
from wordsens.text.loaded_models import model_parts
from wordsens.text.pretrained import MINILM, load_pretrained
from wordsens.text.reached import Reached
from wordsens.text.unknown_tokens import require_known_tokens

_PROBE_TOKENS = 4


class TransformerEncoder(Encoder):
    """A Hugging Face model, run in float32 and without dropout; its layer k is `hidden_states[k]`.

    Of models with an encoder and a decoder, the encoder is used. Layer 0 is computed without the layers above
    it where a trial shows that this gives the same numbers.

    Args:
        model: a name or folder; or a pair (model, tokenizer), a pipeline or a SentenceTransformer, which stays on its
            own device.
        device: where a model runs that is loaded here.
        local_files_only: never ask the hub.

    Raises what `load_pretrained` and `model_parts` raise.
    """

    def __init__(self, model: Any = MINILM, *, device: str = "cpu", local_files_only: bool = False):
        if isinstance(model, str):
            self._tokenizer, loaded = load_pretrained(model, local_files_only=local_files_only)
            self.name, self.device = model, torch.device(device)
        else:
            parts = model_parts(model)
            self._tokenizer, loaded = parts.tokenizer, parts.model.float()
            self.name, self.device = parts.name, next(loaded.parameters()).device
        self.context = context_of(self._tokenizer, loaded)
        self._model: nn.Module = encoder_part(loaded).to(self.device).eval().requires_grad_(False)
        self.layers, self.dimension, self._first_block = self._probe()
        token, number = self._tokenizer.pad_token, self._tokenizer.pad_token_id
        self.padding = None if token is None else (number, token)

    def tokenize(self, text: str) -> Tokenization:
        encoded = self._tokenizer(text, truncation=False, padding=False, return_special_tokens_mask=True, verbose=False)
        ids, special = encoded["input_ids"], encoded["special_tokens_mask"]
        leading = _leading_ones(special)
        trailing = 0 if leading == len(ids) else _leading_ones(special[::-1])
        require_known_tokens(ids[leading : len(ids) - trailing], self._tokenizer, f"the text {text[:40]!r}", self.name)
        return Tokenization(tuple(ids), tuple(self._tokenizer.convert_ids_to_tokens(ids)), leading, trailing)

    def vocabulary(self) -> dict[int, str]:
        special = set(self._tokenizer.all_special_ids)
        numbers = [number for number in range(len(self._tokenizer)) if number not in special]
        return dict(zip(numbers, self._tokenizer.convert_ids_to_tokens(numbers), strict=True))

    @torch.no_grad()
    def encode(self, batch: Sequence[EncoderInput], *, layer: int) -> list[Float[Tensor, "tokens d"]]:
        longest = max(len(text.ids) for text in batch)
        # Filling up to the longest text is hidden from attention and cut off again below.
        fill = 0 if self.padding is None else self.padding[0]
        ids = torch.full((len(batch), longest), fill)
        mask = torch.zeros(len(batch), longest, dtype=torch.long)
        for row, text in enumerate(batch):
            ids[row, : len(text.ids)] = torch.tensor(text.ids)
            mask[row, : len(text.ids) - text.padding] = 1
        hidden = self._hidden(ids.to(self.device), mask.to(self.device), layer)
        return [hidden[row, : len(text.ids)] for row, text in enumerate(batch)]

    def _hidden(self, ids: Tensor, mask: Tensor, layer: int) -> Float[Tensor, "texts tokens d"]:
        if layer == 0 and self._first_block is not None:
            return self._input_of(self._first_block, ids, mask)
        return self._model(input_ids=ids, attention_mask=mask, output_hidden_states=True).hidden_states[layer]

    def _input_of(self, block: nn.Module, ids: Tensor, mask: Tensor) -> Tensor:
        """What enters `block`, without running it or anything behind it."""

        def stop(_: nn.Module, positional: tuple[Any, ...], named: dict[str, Any]) -> None:
            raise Reached(positional[0] if positional else named["hidden_states"])

        handle = block.register_forward_pre_hook(stop, with_kwargs=True)
        try:
            self._model(input_ids=ids, attention_mask=mask)
        except Reached as reached:
            return reached.tensor
        finally:
            handle.remove()
        raise LookupError("the block is not part of the forward pass")

    @torch.no_grad()
    def _probe(self) -> tuple[int, int, nn.Module | None]:
        """The number of layers, the dimension, and the block whose input is layer 0, all found by trial.

        The block is None where no list of blocks has a first one whose input is layer 0, to the last bit.
        """
        ids = torch.arange(_PROBE_TOKENS, device=self.device).unsqueeze(0)
        mask = torch.ones_like(ids)
        states = self._model(input_ids=ids, attention_mask=mask, output_hidden_states=True).hidden_states
        size = len(states) - 1, states[-1].shape[-1]
        for blocks in self._model.modules():
            if isinstance(blocks, nn.ModuleList) and len(blocks):
                try:
                    entering = self._input_of(blocks[0], ids, mask)
                except (
                    LookupError,
                    TypeError,
                ):  # not called, or called with something else than hidden states
                    continue
                if torch.is_tensor(entering) and torch.equal(entering, states[0]):
                    return *size, blocks[0]
        return *size, None


def _leading_ones(mask: Sequence[int]) -> int:
    return next((index for index, entry in enumerate(mask) if entry != 1), len(mask))


def encoder_part(model: Any) -> Any:
    return model.get_encoder() if model.config.is_encoder_decoder else model


def context_of(tokenizer: Any, model: Any) -> int | None:
    """The most tokens the model takes: what tokenizer, configuration and position table all allow."""
    limits = [tokenizer.model_max_length, getattr(model.config, "max_position_embeddings", None)]
    for name, module in model.named_modules():
        # RoBERTa and its kin count positions from behind their padding number.
        if name.endswith("position_embeddings") and isinstance(module, nn.Embedding) and module.padding_idx is not None:
            limits.append(module.num_embeddings - module.padding_idx - 1)
    # Tokenizers without a limit say 1e30.
    known = [int(limit) for limit in limits if limit is not None and 0 < limit < 1e9]
    return min(known, default=None)
