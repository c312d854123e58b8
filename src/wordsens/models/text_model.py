"""A transformer that reads texts: tokens, rows at every layer, and the pass from changed rows.

To run from rows, the model gets placeholder tokens, and a hook puts the rows in place of what
enters its first layer. Masks, positions, rotary angles and position biases are thus the model's
own, for every architecture. If no list of layers is recognised, the rows take the place of the
token embeddings. A second hook ends the pass once the answer is known.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import cached_property, partial
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from wordsens.display.numbers import plural
from wordsens.errors import InputError, argument, first_line, require_choice, running
from wordsens.models.function import Answers, require_texts
from wordsens.models.hooks import (
    call,
    encoder_part,
    first_tensor,
    layers_and_states,
    rows_entering,
    tensor_at,
)
from wordsens.models.identity import UNKNOWN, content_digest, joined_digest, tokenizer_settings
from wordsens.models.model import Model
from wordsens.models.reader import TextReader
from wordsens.models.tokens import (
    spelled,
    whole_word_tokens,
    wide_offsets,
)
from wordsens.models.vocabulary import Vocabulary
from wordsens.text.english import NEGATIONS
from wordsens.text.matrix import Word, rescale_rows
from wordsens.text.whole_words import whole_words

OWN = "own"
POOLS: dict[str, Callable[[Float[Tensor, "b n d"]], Float[Tensor, "b d"]]] = {
    "mean": lambda states: states.mean(dim=-2),
    "cls": lambda states: states[..., 0, :],
    "last": lambda states: states[..., -1, :],
    "max": lambda states: states.amax(dim=-2),
}
POOL_NAMES = (*POOLS, OWN)
SIDES = ("first", "second")

_WORDS, _SAMPLE = 9, 1000
"""Words of a text to test a model with, and the tokens among which they are looked for."""

_FILLERS = 6
"""The first token numbers: placeholders for the tokens of rows that are moved."""

_TOLERANCE = 1e-4
"""The largest difference of hidden states that counts as rounding, over the largest state."""

_STEP, _SLOPE_TOLERANCE = 1e-3, 0.2
"""A step along the gradient, over the length of the rows, and the largest error of the change that
the gradient predicts."""


class TextModel(TextReader, Model):
    """A Hugging Face transformer with its tokenizer, without dropout.

    Layer 0 is what enters the first layer, layer L the last hidden state, after the final norm if
    there is one. Of a model with encoder and decoder, the encoder is used.

    Args:
        model: of the transformers library, with or without a head for a task; it is frozen.
        tokenizer, name, prompt, limit, cuts: as in TextReader.
        pool: the pooling of `encode`: "mean" over all rows, "cls" the first, "last" the last, or
            "max".
        batch_size: the largest number of texts that run together; they have equally many tokens.

    Attributes:
        base: the model without its head.
        dtype, row_dtype: the dtype of the model, and that of rows and vectors: float32 if the
            model's is bfloat16 or float16.
        layers: L; 0 if the model does not give its hidden states.
        dimension: d, the length of a row.
        heads: attention heads per layer; 0 if the configuration does not say.
        causal: whether a row can move only itself and later rows.
        blocks: the layers; None if no list of them is recognised.
        has_own_pooling: whether the model has modules of sentence-transformers that pool.
    """

    pool: str | None = None
    layers: int = 0
    dimension: int = 0
    blocks: list[nn.Module] | None = None
    causal: bool = False
    has_own_pooling: bool = False
    no_rows: str | None = None

    def __init__(
        self,
        model: Any,
        tokenizer: Any = None,
        name: str = "model",
        *,
        pool: str | None = None,
        cuts: bool = False,
        prompt: str = "",
        limit: int | None = None,
        batch_size: int = 32,
    ):
        self.model: nn.Module = model.eval().requires_grad_(False)
        self.base: Any = encoder_part(getattr(model, "base_model", model))
        super().__init__(tokenizer, self.base, name, prompt=prompt, limit=limit, cuts=cuts)
        self.pool, self._batch_size = pool, batch_size
        weight = next(model.parameters(), torch.zeros(0))
        self.dtype, self.device = weight.dtype, weight.device
        self.row_dtype = torch.float32 if self.dtype.itemsize < 4 else self.dtype
        self.config: Any = model.config
        self.heads = int(getattr(self.config, "num_attention_heads", 0))
        self._answers = Answers(name)
        padding = getattr(self.config, "pad_token_id", None)
        # Some models count positions, or find a text's last token, by looking for padding.
        self._fillers = [number for number in range(_FILLERS) if number != padding]
        if padding is None:
            # Classifiers on decoders refuse batches otherwise; no token has this number, so no row
            # counts as padding.
            self.config.pad_token_id = -1
        self.require_pool(pool)
        self._probe()

    def require_pool(self, pool: str | None) -> None:
        """InputError for a pooling that the model does not have."""
        if pool is not None:
            require_choice("pool", pool, POOL_NAMES)
        if pool == OWN:
            reason = "has no pooling of its own (modules.json is missing); use"
            if self.has_own_pooling:
                reason = (
                    "was loaded without its own pooling; load it with "
                    f"{argument('pool', OWN)}, or use"
                )
            first, *others = POOLS
            raise InputError(
                f"the model {self.name!r} {reason} one of {argument('pool', first)}, "
                f"{', '.join(map(repr, others))}"
            )

    def enter_pair(
        self, first: str, second: str, side: int
    ) -> tuple[Float[Tensor, "n d"], tuple[str, ...], tuple[Word, ...]]:
        """The rows that enter the first layer when the model reads two texts together, their
        tokens, and the words of the text of that side; the longer text is cut if both do not
        fit."""
        cut = {"truncation": self.context is not None, "max_length": self.context}
        encoded = self.tokenizer(first, second, return_offsets_mapping=True, verbose=False, **cut)
        moving = [place for place, text in enumerate(encoded.sequence_ids(0)) if text == side]
        if not moving:
            raise InputError(
                f"`{SIDES[side]}` has no token: it is empty or only blanks, so no word of it can "
                "move"
            )
        text, ids = (first, second)[side], encoded["input_ids"]
        offsets = encoded["offset_mapping"][moving[0] : moving[-1] + 1]
        words = whole_words(text, wide_offsets(offsets, len(text)), moving[0])
        types = encoded.get("token_type_ids")
        rows = self.entering(torch.tensor([ids]), None if types is None else torch.tensor([types]))
        return rows[0].to(self.row_dtype), spelled(self.tokenizer, ids), words

    def vocabulary(self, *, special_tokens: bool = True, rescale: bool = False) -> Vocabulary:
        """The whole words of letters in the model's vocabulary, with the row that enters the first
        layer for each word at each place. English negations are its outliers.

        Args:
            special_tokens: whether row 0 of the texts is the leading special token.
            rescale: scale rows to length sqrt(d), as `wordsens.embed` does.
        """
        tokens = whole_word_tokens(self.tokenizer, rows=self.table)
        ids = torch.tensor(list(tokens))
        first = 0 if special_tokens else self.leading_tokens

        def rows(entries: Int[Tensor, " c"], positions: Int[Tensor, " p"]) -> Tensor:
            places = positions + first
            # A token's row depends on its place and on no other token, so n copies of it give its
            # rows at all places.
            texts = ids[entries.cpu()].unsqueeze(1).expand(-1, int(places.max()) + 1)
            entering = self.entering(texts)[:, places].to(self.row_dtype)
            flat = entering.flatten(end_dim=1)
            return rescale_rows(flat).view_as(entering) if rescale else entering

        # On MiniLM nearly all that a shortlist by slopes alone missed, of 40 words, were negations.
        spellings = list(tokens.values())
        unlike = [entry for entry, word in enumerate(spellings) if word.lower() in NEGATIONS]
        return Vocabulary(spellings, rows, name=self.name, outliers=unlike)

    # Tokens to rows and vectors

    def rows(self, texts: Sequence[str], layer: int = 0) -> list[Float[Tensor, "n d"]]:
        """The hidden states of every text's tokens at `layer`: one row per token, special ones
        included."""
        chosen = self.layer_index(layer)
        tokens = [self.read(text).ids for text in require_texts(texts)]
        return self.by_length(tokens, lambda ids: self.hidden_states(ids, chosen))

    def layer_index(self, layer: int) -> int:
        """The layer as a number from 0 to L; negative ones count from the last, -1."""
        if not self.layers:
            raise InputError(f"{self.name} does not give its hidden states: {self.no_rows}")
        whole = isinstance(layer, int) and not isinstance(layer, bool)
        if not whole or not -self.layers - 1 <= layer <= self.layers:
            raise InputError(
                f"{argument('layer')} (={layer!r}) is not a layer of {self.name}, which has layers "
                f"0 (embeddings) to {self.layers}; negative numbers count from the last, -1"
            )
        return layer % (self.layers + 1)

    @torch.no_grad()
    def hidden_states(
        self, ids: Int[Tensor, "b n"], layer: int, padding: int = 0
    ) -> Float[Tensor, "b n d"]:
        """The model's own states of `layer` (0 to L) when it reads these tokens; the last `padding`
        tokens are hidden from attention."""
        if layer == 0 and self.blocks is not None:
            return self.entering(ids)
        ids = ids.to(self.device)
        mask = torch.ones_like(ids)
        mask[:, ids.shape[1] - padding :] = 0
        output = call(self.base, ids, attention_mask=mask, output_hidden_states=True)
        return output.hidden_states[layer]

    @torch.no_grad()
    def entering(
        self, ids: Int[Tensor, "b n"], types: Int[Tensor, "b n"] | None = None
    ) -> Float[Tensor, "b n d"]:
        """The rows that enter the first layer when the model reads these tokens, of these types if
        it knows types."""
        named = {} if types is None else {"token_type_ids": types.to(self.device)}
        run = partial(call, self.base, ids.to(self.device), **named)
        if self.blocks is None:
            return tensor_at([self._embeddings], run, output=True)
        return tensor_at(self.blocks[:1], run)[:, : ids.shape[1]]

    def encode(self, texts: Sequence[str]) -> Float[Tensor, "m d"]:
        listed = require_texts(texts)
        return self._answers.rows(listed, self.each(listed, self._vectors))

    def encode_layers(
        self, texts: Sequence[str], pool: str | None = None
    ) -> Float[Tensor, "layers m d"]:
        """The states of layers 0 to L, each pooled as `encode` pools the last, unless another pool
        is named: float64 on the CPU.

        If the model has weights after its pooling, which are made for the last layer only,
        everything after the pooling is left out.
        """
        self.layer_index(0)
        pool = self.pool if pool is None else pool
        self.require_pool(pool)

        def pooled(ids: Int[Tensor, "b n"]) -> Float[Tensor, "b layers d"]:
            states = call(self.base, ids.to(self.device), output_hidden_states=True).hidden_states
            return torch.stack([self.pooled(each, pool) for each in states], dim=1)

        return self.each(texts, pooled).transpose(0, 1)

    def logits_of(self, texts: Sequence[str]) -> Float[Tensor, "m classes"]:
        """The task head's numbers for every text, from the model's own forward pass."""
        return self.each(texts, self._own_logits)

    def _own_logits(self, ids: Int[Tensor, "b n"]) -> Tensor:
        return self._output(self.model, ids, "logits")

    def _output(self, module: nn.Module, ids: Int[Tensor, "b n"], part: str) -> Tensor:
        """The part of that name of what a module gives for these tokens, or else its first part."""
        ids = ids.to(self.device)
        output = call(module, ids, attention_mask=torch.ones_like(ids))
        named = getattr(output, part, None)
        return first_tensor(output) if named is None else named

    def each(self, texts: Sequence[str], run: Callable[[Tensor], Tensor]) -> Float[Tensor, "m ..."]:
        """`run` on the token numbers (b, n) of every text, in float64 on the CPU."""
        ids = [self.read(text).ids for text in require_texts(texts)]
        with running(f"{self.name} failed on {plural(len(ids), 'text')}"):
            return torch.stack([row.double().cpu() for row in self.by_length(ids, run)])

    @torch.no_grad()
    def by_length(
        self, ids: Sequence[Sequence[int]], run: Callable[[Int[Tensor, "b n"]], Tensor]
    ) -> list[Tensor]:
        """The results of `run`, which gets texts of one length together, in the order of the
        texts."""
        lengths = list(map(len, ids))
        return in_groups(
            lengths,
            lambda places: run(torch.tensor([list(ids[place]) for place in places])),
            at_once=self._batch_size,
        )

    def _vectors(self, ids: Int[Tensor, "b n"]) -> Float[Tensor, "b d"]:
        return self.pooled(self._output(self.base, ids, "last_hidden_state"), self.pool)

    def pooled(self, states: Float[Tensor, "b n d"], pool: str | None) -> Tensor:
        """One vector per text of hidden states, in float32 at least."""
        if pool is None:
            raise InputError(
                f"{self.name} gives one vector per token; choose a pool, such as "
                f"{argument('pool', 'mean')}, for one vector per text"
            )
        return POOLS[pool](states.to(self.row_dtype))

    # Runs from rows

    def forward(
        self, rows: Float[Tensor, "b n d"], layer: int = -1, pool: str | None = None
    ) -> Tensor:
        """The states of `layer` when these rows enter the first layer, or with a pool one vector
        per text; differentiable. Higher layers are not run."""
        self.require_pool(pool)
        states = self._states(rows, self.layer_index(layer))
        return states if pool is None else self.pooled(states, pool)

    def _states(self, rows: Float[Tensor, "b n d"], layer: int) -> Float[Tensor, "b n d"]:
        if layer == self.layers:
            return self.run(rows, self.base).last_hidden_state
        if self.blocks is None:
            return self.run(rows, self.base, output_hidden_states=True).hidden_states[layer]
        if layer == 0:
            return rows
        run = partial(self.run, rows, self.base)
        return tensor_at(self.blocks, run, number=layer, output=True)[:, : rows.shape[1]]

    def logits(self, rows: Float[Tensor, "b n d"], *, last_only: bool = False) -> Tensor:
        """The task head's logits when these rows enter the first layer: one vector per row for a
        language model (with `last_only` for the last row), one per text for a classifier."""
        # Newer models can leave out the other rows' logits, which are large.
        logits = self.run(rows, self.model, **({"logits_to_keep": 1} if last_only else {})).logits
        return logits[:, -1] if last_only and logits.ndim == 3 else logits

    @cached_property
    def no_logits(self) -> str | None:
        """Why the head cannot be run from rows; None where its logits from rows are those of the
        model's own pass."""
        if self.no_rows is not None:
            return self.no_rows
        try:
            with torch.no_grad():
                ours = self.logits(self.entering(self.probe_ids))
                same = self._equal(ours, self._own_logits(self.probe_ids))
        except (AttributeError, TypeError, ValueError, RuntimeError) as error:
            return f"its head cannot be run from rows ({type(error).__name__})"
        return None if same else "its head reads other things than the hidden states"

    def run(self, rows: Float[Tensor, "b n d"], module: Any, **options: Any) -> Any:
        """The output of the model, its base or a function of `input_ids` when the rows enter the
        first layer."""
        ids = torch.full(rows.shape[:2], self._fillers[0], device=self.device)
        # Some models look for their special tokens, such as the last one.
        before, after = self._frame
        if rows.shape[1] > len(before) + len(after):
            ids[:, : len(before)] = torch.tensor(before, dtype=torch.long)
            ids[:, rows.shape[1] - len(after) :] = torch.tensor(after, dtype=torch.long)
        with rows_entering(None if self.blocks is None else self.blocks[0], self._embeddings, rows):
            return call(module, ids, **options) if isinstance(module, nn.Module) else module(ids)

    def text_model(self) -> "TextModel":
        return self if self.no_rows is None else super().text_model()

    @cached_property
    def _embeddings(self) -> Any:
        return self.base.get_input_embeddings()

    def probes(self) -> list[str]:
        """Texts of two and nine words from the model's vocabulary, in whatever language."""
        every = 1 + len(self.tokenizer) // _SAMPLE
        found = whole_word_tokens(self.tokenizer, rows=self.table, every=every)
        words = list(found.values()) or ["a", "b"]
        spread = words[:: max(1, len(words) // _WORDS)][:_WORDS]
        return [" ".join(spread[:2]), " ".join(spread)]

    @cached_property
    def probe_ids(self) -> Int[Tensor, "1 n"]:
        """Token numbers to test the model with: those of a text, if there is a tokenizer."""
        known = [number for number in self._fillers if number < (self.table or len(self._fillers))]
        ids = known if self.tokenizer is None else self.read(self.probes()[1]).ids
        return torch.tensor([ids], device=self.device)

    @torch.inference_mode(False)
    @torch.enable_grad()
    def _probe(self) -> None:
        """Find the layers, compare the pass from rows with the model's own pass, and check a
        gradient."""
        try:
            self.blocks, expected = layers_and_states(self.base, self.probe_ids)
            self.layers, self.dimension = len(expected) - 1, expected[-1].shape[-1]
            if any(".quantized." in type(part).__module__ for part in self.model.modules()):
                raise InputError("it is quantised: its layers have no gradient")
            self._compare(expected)
        except InputError as error:
            self.no_rows = str(error)
        except (AttributeError, TypeError, ValueError, LookupError, RuntimeError) as error:
            reason = f"{type(error).__name__}: {first_line(error)}"
            self.no_rows = f"it cannot be run from rows ({reason})"

    def _compare(self, expected: Sequence[Float[Tensor, "1 n d"]]) -> None:
        """InputError if the numbers from rows, or their gradient, are not the model's own."""
        rows = self.entering(self.probe_ids).requires_grad_()
        states = [self._states(rows, layer) for layer in range(len(expected))]
        last = states[-1]
        if not last.requires_grad or not self._has_slope(rows, last):
            raise InputError(
                f"it has no gradient in {self.dtype}, or a gradient that does not match its "
                "numbers, as in quantised models"
            )
        with torch.no_grad():
            if not all(map(self._equal, states, expected)):
                raise InputError(
                    "its hidden states depend on the tokens in other ways than by the rows that "
                    "enter its first layer"
                )
            moved = rows.clone()
            moved[:, -1] = -moved[:, -1].flip(-1) + 1
            after = self._states(moved, self.layers)
            self.causal = torch.equal(after[:, :-1], last[:, :-1])

    def _equal(self, ours: Tensor, own: Tensor) -> bool:
        """Whether numbers from rows are the model's own, up to rounding."""
        tolerance = max(_TOLERANCE, 8 * torch.finfo(self.dtype).eps)
        return bool((ours - own).abs().max() <= tolerance * (1 + own.abs().max()))

    def _has_slope(self, rows: Tensor, last: Tensor) -> bool:
        """Whether a small step along the gradient changes the last states as the gradient predicts;
        in half precision, whether the gradient is finite."""
        along = torch.randn(last.shape, generator=torch.Generator().manual_seed(0)).to(last)
        (slope,) = torch.autograd.grad((last * along).sum(), rows, retain_graph=True)
        step = _STEP * rows.norm() / slope.norm() * slope
        if self.dtype not in (torch.float32, torch.float64):
            return bool(step.isfinite().all())
        with torch.no_grad():
            ahead, behind = (self._states(rows + sign * step, self.layers) for sign in (1, -1))
            expected = 2 * (slope * step).sum()
            change = ((ahead - behind) * along).sum()
        return bool((change - expected).abs() <= _SLOPE_TOLERANCE * expected)

    def identity(self) -> str:
        content = content_digest(self.model)
        if content is None:
            return UNKNOWN
        words = tokenizer_settings(self.tokenizer)
        return joined_digest(content, words, self.context, self.pool, self.prompt)

    def __reduce__(self) -> tuple[Callable[..., "TextModel"], tuple[Any, ...]]:
        """Pickled as the model's class, settings and weights, since transformers attaches local
        functions to its modules."""
        return _rebuilt, (
            type(self.model),
            self.config,
            self.model.state_dict(),
            (self.tokenizer, self.name),
            {
                "pool": self.pool,
                "cuts": self.cuts,
                "prompt": self.prompt,
                "limit": self.context,
                "batch_size": self._batch_size,
            },
        )


def _rebuilt(
    kind: Callable[[Any], Any],
    config: Any,
    weights: dict[str, Tensor],
    positional: tuple[Any, str],
    named: dict[str, Any],
) -> TextModel:
    first = next(tensor for tensor in weights.values() if tensor.is_floating_point())
    model = kind(config).to(dtype=first.dtype, device=first.device)
    model.load_state_dict(weights)
    return TextModel(model, *positional, **named)


def in_groups(
    keys: Sequence[Hashable], run: Callable[[list[int]], Iterable[Tensor]], *, at_once: int
) -> list[Tensor]:
    """The results of `run` in the order of the keys; it gets places of equal keys together, such as
    texts of one length, so that no padding reaches a number."""
    groups: dict[Hashable, list[int]] = {}
    for place, key in enumerate(keys):
        groups.setdefault(key, []).append(place)
    results: dict[int, Tensor] = {}
    for group in groups.values():
        for start in range(0, len(group), at_once):
            batch = group[start : start + at_once]
            results |= dict(zip(batch, run(batch), strict=True))
    return [results[place] for place in range(len(keys))]
