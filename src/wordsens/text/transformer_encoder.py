"""Pretrained transformers as encoders, with the checks and the hook that everything that runs one shares."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from wordsens.errors import InputError, require_characters
from wordsens.text.encoder import Encoder, EncoderInput, Tokenization
from wordsens.text.loaded_models import model_parts
from wordsens.text.pretrained import MINILM, load_pretrained
from wordsens.text.whole_words import whole_words

MOST_UNKNOWN = 0.8
"""A larger share of unknown tokens is refused: such a text's rows say nothing of its words. A text in a script that the
vocabulary lacks is unknown but for digits and signs, about a tenth of ordinary prose; rare names stay far below."""

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
        revision: branch, tag or commit of a name on the hub.

    Raises what `load_pretrained` and `model_parts` raise.
    """

    def __init__(
        self, model: Any = MINILM, *, device: str = "cpu", local_files_only: bool = False, revision: str | None = None
    ):
        if isinstance(model, str):
            self._tokenizer, loaded = load_pretrained(model, local_files_only=local_files_only, revision=revision)
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
        require_characters("the text", text)
        offsets = {"return_offsets_mapping": True} if self._tokenizer.is_fast else {}
        encoded = self._tokenizer(
            text, truncation=False, padding=False, return_special_tokens_mask=True, verbose=False, **offsets
        )
        ids, special = encoded["input_ids"], encoded["special_tokens_mask"]
        leading = _leading_ones(special)
        trailing = 0 if leading == len(ids) else _leading_ones(special[::-1])
        where = f"the text {text[:40]!r}"
        require_known_tokens(ids[leading : len(ids) - trailing], self._tokenizer, where, self.name)
        require_rows(ids, self._model, self._tokenizer, f"{where} in {self.name}")
        tokens = tuple(self._tokenizer.convert_ids_to_tokens(ids))
        own = encoded["offset_mapping"][leading : len(ids) - trailing] if offsets else None
        words = None if own is None else whole_words(text, own, leading)
        return Tokenization(tuple(ids), tokens, leading, trailing, words)

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
        """The rows that enter `block`, without running it or anything after it."""
        return tensor_at(block, lambda: self._model(input_ids=ids, attention_mask=mask))

    @torch.no_grad()
    def _probe(self) -> tuple[int, int, nn.Module | None]:
        """The number of layers, the dimension, and the block whose input is layer 0, all found by trial.

        The block is None where no list of blocks has a first one whose input is layer 0, to the last bit.
        """
        rows = embedding_rows(self._model)
        probe = _PROBE_TOKENS if rows is None else min(_PROBE_TOKENS, rows)
        ids = torch.arange(probe, device=self.device).unsqueeze(0)
        mask = torch.ones_like(ids)
        states = self._model(input_ids=ids, attention_mask=mask, output_hidden_states=True).hidden_states
        size = len(states) - 1, states[-1].shape[-1]
        for blocks in self._model.modules():
            if isinstance(blocks, nn.ModuleList) and len(blocks):
                try:
                    entering = self._input_of(blocks[0], ids, mask)
                except (LookupError, TypeError):  # not called, or called with something else than hidden states
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
        # RoBERTa and its kin count positions from the number after their padding's.
        if name.endswith("position_embeddings") and isinstance(module, nn.Embedding) and module.padding_idx is not None:
            limits.append(module.num_embeddings - module.padding_idx - 1)
    # Tokenizers without a limit say 1e30.
    return min((int(limit) for limit in limits if limit is not None and 0 < limit < 1e9), default=None)


def require_known_tokens(ids: Sequence[int], tokenizer: Any, where: str, name: str) -> None:
    """Refuse a text nearly all of whose tokens are the tokenizer's unknown token.

    Args:
        ids: the text's own tokens, special ones left out.
    """
    unknown = 0 if tokenizer.unk_token_id is None else sum(token == tokenizer.unk_token_id for token in ids)
    if unknown > MOST_UNKNOWN * len(ids):
        raise InputError(
            f"{where}: {unknown} of its {len(ids)} tokens are unknown to {name} ({tokenizer.unk_token}), so a number "
            "would not speak of its words; use a model for this language, or one whose tokenizer files are complete"
        )


def embedding_rows(model: Any) -> int | None:
    """The rows of the model's table of tokens; None where it has no such table."""
    try:
        return getattr(model.get_input_embeddings(), "num_embeddings", None)
    except (NotImplementedError, AttributeError):
        return None


def require_rows(ids: Sequence[int], model: Any, tokenizer: Any, where: str) -> None:
    """Refuse a text with a token past the model's table: one added to the tokenizer alone."""
    rows = embedding_rows(model)
    if rows is not None and ids and max(ids) >= rows:
        token = tokenizer.convert_ids_to_tokens(max(ids))
        raise InputError(
            f"{where}: the token {token!r} has the number {max(ids)}, but the model's table has {rows} rows; use the "
            "tokenizer that belongs to the model, or resize the table"
        )


class _StoppedError(Exception):
    """Raised by a hook to carry a tensor out of a forward pass whose rest is not needed."""

    def __init__(self, tensor: Tensor):
        super().__init__()
        self.tensor = tensor


def tensor_at(module: nn.Module, run: Callable[[], object], *, output: bool = False) -> Tensor:
    """The tensor that enters a part of a model, or leaves it, when `run` calls the model; nothing after it is run.

    Raises LookupError where the part is not called.
    """

    def stop(_: nn.Module, positional: tuple[Any, ...], named: dict[str, Any], *result: Any) -> None:
        if output:
            raise _StoppedError(result[0] if isinstance(result[0], Tensor) else result[0][0])
        raise _StoppedError(positional[0] if positional else named["hidden_states"])

    hook = module.register_forward_hook if output else module.register_forward_pre_hook
    handle = hook(stop, with_kwargs=True)
    try:
        run()
    except _StoppedError as stopped:
        return stopped.tensor
    finally:
        handle.remove()
    raise LookupError("that part of the model is not called in its forward pass")
