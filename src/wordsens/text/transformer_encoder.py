"""Pretrained transformers as encoders, with the tokenizing and the checks that everything that runs
one shares."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from wordsens.errors import InputError, require_characters
from wordsens.text.encoder import Encoder, EncoderInput, Tokenization
from wordsens.text.hooks import call, layers_and_states, tensor_at
from wordsens.text.loaded_models import model_parts
from wordsens.text.pretrained import MINILM, Access, load_model
from wordsens.text.whole_words import Span, whole_words

MOST_UNKNOWN = 0.8
"""A larger share of unknown tokens is refused: such a text's rows say nothing of its words. A text
in a script that the vocabulary lacks is unknown but for digits and signs, about a tenth of ordinary
prose; rare names stay far below."""

_PROBE_TOKENS = 4

_AROUND = 16
"""More special tokens than any tokenizer puts around a text."""


class TransformerEncoder(Encoder):
    """A Hugging Face model, run in float32 and without dropout; its layer k is `hidden_states[k]`.

    Of models with an encoder and a decoder, the encoder is used. Layer 0 is computed without the
    layers above it where a trial shows that this gives the same numbers.

    Args:
        model: a name or folder; or a pair (model, tokenizer), a pipeline or a SentenceTransformer,
            which stays on its own device.
        device: where a model runs that is loaded here.
        local_files_only: never ask the hub.
        revision: branch, tag or commit of a name on the hub.

    Raises what `load_model` and `model_parts` raise.
    """

    def __init__(
        self,
        model: Any = MINILM,
        *,
        device: str = "cpu",
        local_files_only: bool = False,
        revision: str | None = None,
    ):
        if isinstance(model, str):
            access = Access(local_files_only=local_files_only, revision=revision)
            self._tokenizer, loaded, _ = load_model(model, access=access)
            self.name, self.device = model, torch.device(device)
        else:
            parts = model_parts(model)
            self._tokenizer, loaded = parts.tokenizer, parts.model.float()
            self.name, self.device = parts.name, next(loaded.parameters()).device
        self.context = context_of(self._tokenizer, loaded)
        self._model: nn.Module = encoder_part(loaded).to(self.device).eval().requires_grad_(False)
        self._rows = embedding_rows(self._model)
        probe = torch.arange(min(_PROBE_TOKENS, self._rows or _PROBE_TOKENS), device=self.device)
        layers, states = layers_and_states(self._model, probe.unsqueeze(0))
        self._first = None if layers is None else layers[0]
        self.layers, self.dimension = len(states) - 1, states[-1].shape[-1]
        token, number = self._tokenizer.pad_token, self._tokenizer.pad_token_id
        self.padding = None if token is None else (number, token)

    def tokenize(self, text: str) -> Tokenization:
        return tokenized(
            text, self._tokenizer, self._rows, where=f"the text {text[:40]!r}", name=self.name
        )

    def vocabulary(self) -> dict[int, str]:
        special = set(self._tokenizer.all_special_ids)
        # A token may have been added to the tokenizer alone.
        stop = min(len(self._tokenizer), self._rows or len(self._tokenizer))
        numbers = [number for number in range(stop) if number not in special]
        return dict(zip(numbers, spelled(self._tokenizer, numbers), strict=True))

    @torch.no_grad()
    def encode(
        self, batch: Sequence[EncoderInput], *, layer: int
    ) -> list[Float[Tensor, "tokens d"]]:
        longest = max(len(text.ids) for text in batch)
        # Filling up to the longest text is hidden from attention and cut off again below.
        fill = 0 if self.padding is None else self.padding[0]
        ids = torch.full((len(batch), longest), fill)
        mask = torch.zeros(len(batch), longest, dtype=torch.long)
        for row, text in enumerate(batch):
            ids[row, : len(text.ids)] = torch.tensor(text.ids)
            mask[row, : len(text.ids) - text.padding] = 1
        ids, mask = ids.to(self.device), mask.to(self.device)
        if layer == 0 and self._first is not None:
            hidden = tensor_at([self._first], lambda: call(self._model, ids, attention_mask=mask))
        else:
            hidden = call(
                self._model, ids, attention_mask=mask, output_hidden_states=True
            ).hidden_states[layer]
        return [hidden[row, : len(text.ids)] for row, text in enumerate(batch)]


def tokenized(
    text: str, tokenizer: Any, table: int | None, *, where: str, name: str, prompt: str = ""
) -> Tokenization:
    """The tokens of a text behind a prompt, which counts among the leading tokens.

    Args:
        table: the rows of the model's table of tokens; None where that is not known.
        where: the text, in messages.
        name: of the model, in messages.

    Raises:
        InputError: hardly a token that the vocabulary knows, or one past the model's table.
    """
    require_characters(where, text)
    offsets = {"return_offsets_mapping": True} if tokenizer.is_fast else {}
    encoded = tokenizer(
        prompt + text,
        truncation=False,
        padding=False,
        return_special_tokens_mask=True,
        verbose=False,
        **offsets,
    )
    ids, special, places = (
        encoded["input_ids"],
        encoded["special_tokens_mask"],
        encoded.get("offset_mapping"),
    )
    tokenization = tokenization_of(
        text, ids, spelled(tokenizer, ids), special, places, prompt=prompt
    )
    require_known(tokenization, tokenizer.unk_token_id, where=where, name=name)
    require_rows(ids, table, tokenizer, f"{where} in {name}")
    return tokenization


def tokenization_of(
    text: str,
    ids: Sequence[int],
    tokens: tuple[str, ...],
    special: Sequence[int],
    offsets: Sequence[Span] | None,
    *,
    prompt: str = "",
) -> Tokenization:
    """The tokens of a text behind a prompt, as a tokenizer gave them.

    Args:
        special: 1 for each token that is not the text's own, else 0.
        offsets: where each token starts and stops in prompt and text; None where the tokenizer does
            not tell.
    """
    leading = _leading_ones(special)
    trailing = 0 if leading == len(ids) else _leading_ones(special[::-1])
    if offsets is None:
        return Tokenization(tuple(ids), tokens, leading, trailing)
    spans = wide_offsets(offsets[leading : len(ids) - trailing], len(prompt + text))
    if prompt:
        of_prompt = _leading_ones([int(stop <= len(prompt)) for _, stop in spans])
        leading, spans = leading + of_prompt, spans[of_prompt:]
    # Offsets count from the prompt's first character; a word belongs to the text alone.
    spans = [(max(0, start - len(prompt)), stop - len(prompt)) for start, stop in spans]
    return Tokenization(tuple(ids), tokens, leading, trailing, whole_words(text, spans, leading))


def require_known(
    tokenization: Tokenization, unknown: int | None, *, where: str, name: str
) -> None:
    """Refuse a text hardly a token of which the vocabulary knows.

    Args:
        unknown: the number of the token for what is not known; None for a tokenizer without one.
    """
    inner = slice(tokenization.leading, len(tokenization.ids) - tokenization.trailing)
    own = zip(tokenization.ids[inner], tokenization.tokens[inner], strict=True)
    unknown_tokens = [token for number, token in own if number == unknown]
    if len(unknown_tokens) > MOST_UNKNOWN * tokenization.words:
        raise InputError(
            f"{where}: {len(unknown_tokens)} of its {tokenization.words} tokens are unknown to "
            f"{name} "
            f"({unknown_tokens[0]}), so a number would not speak of its words; use a model for "
            "this language, or one "
            "whose tokenizer files are complete"
        )


def spelled(tokenizer: Any, ids: Sequence[int]) -> tuple[str, ...]:
    """Tokens as the vocabulary spells them. Those of bytes, as RoBERTa, GPT-2 and Llama 3 have, are
    decoded; a piece of a character is left as it is."""
    tokens: list[str] = tokenizer.convert_ids_to_tokens(list(ids))
    decoder = getattr(getattr(tokenizer, "backend_tokenizer", None), "decoder", None)
    if decoder is None or b'"ByteLevel"' not in decoder.__getstate__():
        return tuple(tokens)
    from tokenizers.decoders import ByteLevel  # of an extra

    def decoded(token: str) -> str:
        word = token.lstrip("Ġ")
        said = ByteLevel().decode([word])
        readable = not word.isascii() and said.isprintable() and "\ufffd" not in said
        return token[: len(token) - len(word)] + said if readable else token

    return tuple(map(decoded, tokens))


def span_within(text: str, tokenizer: Any, context: int | None, *, prompt: str = "") -> Span:
    """Where the part of the text starts and stops all of whose tokens fit into the context: its
    beginning, or its end for a tokenizer that cuts on the left.

    Of a tokenizer that tells no offsets, the longest beginning, or end, that has so few tokens.
    """
    if (
        context is None
        or len(text.encode(errors="replace")) + len(prompt.encode()) + _AROUND <= context
    ):
        return 0, len(text)

    def count(part: str) -> int:
        return len(tokenizer(part, verbose=False)["input_ids"])

    if count(prompt + text) <= context:
        return 0, len(text)
    left = cuts_on_the_left(tokenizer)
    encoded = None
    if getattr(tokenizer, "is_fast", False):
        encoded = tokenizer(
            prompt + text,
            return_offsets_mapping=True,
            return_special_tokens_mask=True,
            truncation=False,
            verbose=False,
        )
    if encoded is None or not any(start for start, _ in encoded["offset_mapping"]):
        if left:
            fits = bisect_left(
                range(len(text)), True, key=lambda start: count(text[start:]) <= context
            )
            return fits, len(text)
        return 0, bisect_right(
            range(len(text)), context, key=lambda stop: count(prompt + text[:stop])
        ) - 1
    special, offsets = (
        encoded["special_tokens_mask"],
        wide_offsets(encoded["offset_mapping"], len(prompt + text)),
    )
    leading, trailing = _leading_ones(special), _leading_ones(special[::-1])
    room = max(0, context - leading - trailing)
    if left:
        last_lost = len(special) - trailing - room - 1
        return max(0, offsets[last_lost][1] - len(prompt)), len(text)
    return 0, max(0, offsets[leading + room][0] - len(prompt))


def cuts_on_the_left(tokenizer: Any) -> bool:
    """True where of a text that is too long the end is read."""
    return getattr(tokenizer, "truncation_side", "right") == "left"


def wide_offsets(offsets: Sequence[Span], length: int) -> list[Span]:
    """The places of tokens in a text of that length; one without width, as some tokenizers give,
    reaches up to where the next one begins. Where all begin at one place, nothing is known.

    >>> wide_offsets([(0, 0), (4, 4), (9, 11)], 11)
    [(0, 4), (4, 9), (9, 11)]
    """
    if len(offsets) != 1 and len({start for start, _ in offsets}) < 2:
        return list(offsets)
    starts = [*(start for start, _ in offsets[1:]), length]
    return [
        (start, stop if stop > start else max(start, following))
        for (start, stop), following in zip(offsets, starts, strict=True)
    ]


def _leading_ones(mask: Sequence[int]) -> int:
    return next((index for index, entry in enumerate(mask) if entry != 1), len(mask))


def encoder_part(model: Any) -> Any:
    return model.get_encoder() if model.config.is_encoder_decoder else model


def context_of(tokenizer: Any, model: Any) -> int | None:
    """The most tokens the model takes: what tokenizer, configuration and position table all
    allow."""
    limits = [tokenizer.model_max_length, getattr(model.config, "max_position_embeddings", None)]
    for name, module in model.named_modules():
        # RoBERTa and its kin count positions from the number after their padding's.
        if (
            name.endswith("position_embeddings")
            and isinstance(module, nn.Embedding)
            and module.padding_idx is not None
        ):
            limits.append(module.num_embeddings - module.padding_idx - 1)
    # Tokenizers without a limit say 1e30.
    return min(
        (int(limit) for limit in limits if limit is not None and 0 < limit < 1e9), default=None
    )


def steady_tokens(model: Any) -> int | None:
    """The most tokens of a text whose vector is its own; None where all are.

    Beyond, a dynamic rotary base follows the longest text that the model has read so far.
    """
    config = getattr(model, "config", None)
    rope = getattr(config, "rope_parameters", None) or getattr(config, "rope_scaling", None) or {}
    kinds = [rope, *(each for each in rope.values() if isinstance(each, dict))]
    dynamic = any("dynamic" in (each.get("rope_type") or "") for each in kinds)
    return getattr(config, "max_position_embeddings", None) if dynamic else None


def embedding_rows(model: Any) -> int | None:
    """The rows of the model's table of tokens; None where it has no such table."""
    try:
        return getattr(model.get_input_embeddings(), "num_embeddings", None)
    except (NotImplementedError, AttributeError):
        return None


def require_rows_of(
    texts: Sequence[str],
    tokenizer: Any,
    model: Any,
    name: str,
    *,
    most_tokens: int | None,
    prompt: str = "",
) -> None:
    """`require_rows` of every text behind its prompt, cut to so many tokens; nothing where there is
    no such table."""
    rows = embedding_rows(model)
    if rows is None or tokenizer is None or len(tokenizer.get_vocab()) <= rows:
        return
    cut = {"truncation": most_tokens is not None, "max_length": most_tokens, "verbose": False}
    for text in texts:
        require_rows(
            tokenizer(prompt + text, **cut)["input_ids"],
            rows,
            tokenizer,
            f"the text {text[:40]!r} in {name}",
        )


def require_rows(ids: Sequence[int], rows: int | None, tokenizer: Any, where: str) -> None:
    """Refuse a text with a token past the model's table: one added to the tokenizer alone."""
    if rows is not None and ids and max(ids) >= rows:
        token = tokenizer.convert_ids_to_tokens(max(ids))
        raise InputError(
            f"{where}: the token {token!r} has the number {max(ids)}, but the model's table has "
            f"{rows} rows; use the "
            "tokenizer that belongs to the model, or resize the table"
        )
