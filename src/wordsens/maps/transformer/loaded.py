"""A running transformer and what reads texts for it: by name, or from a pair, a pipeline, a
SentenceTransformer."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from wordsens.errors import InputError, require_characters, require_choice, require_device
from wordsens.maps.transformer.stack import Stack
from wordsens.text.encoder import Tokenization
from wordsens.text.loaded_models import TASKS, is_sentence_transformer, model_parts
from wordsens.text.matrix import Word
from wordsens.text.pretrained import (
    ATTENTIONS,
    USUAL_ACCESS,
    Access,
    load_model,
    require_fast_tokenizer,
)
from wordsens.text.transformer_encoder import (
    context_of,
    cuts_on_the_left,
    embedding_rows,
    span_within,
    spelled,
    steady_tokens,
    tokenized,
    wide_offsets,
)
from wordsens.text.whole_words import Span, whole_words

SIDES = ("first", "second")


class Reader:
    """Tokenizes for one model, special tokens included.

    Args:
        tokenizer: a fast tokenizer.
        model: the transformer that reads.
        name: for messages.
        prompt: what is put before every text.
        most_tokens: the most tokens of a text, beside the model's own limit.
        cuts: whether a text that is too long is cut, as sentence-transformers does, or refused; may
            be changed.

    Attributes:
        context: the most tokens the model takes, special ones included; None where there is no
            limit.
        frame: the special tokens before and after every text.
        leading_tokens, own_tokens: how many tokens stand before a text, and how many around it,
            those of a prompt included.
    """

    def __init__(
        self,
        tokenizer: Any,
        model: Any,
        name: str,
        *,
        prompt: str = "",
        most_tokens: int | None = None,
        cuts: bool = False,
    ):
        require_fast_tokenizer(tokenizer, name)
        self.tokenizer, self.prompt, self.cuts = tokenizer, prompt, cuts
        self._table, self._name = embedding_rows(model), name
        self._steady = steady_tokens(model)
        limits = [
            limit for limit in (context_of(tokenizer, model), most_tokens) if limit is not None
        ]
        self.context = min(limits, default=None)
        ids = tokenizer("", add_special_tokens=True)["input_ids"]
        mask = tokenizer("a", return_special_tokens_mask=True)["special_tokens_mask"]
        leading = mask.index(0) if 0 in mask else 0
        self.frame = tuple(ids[:leading]), tuple(ids[leading:])
        prompted = len(tokenizer(prompt, add_special_tokens=False, verbose=False)["input_ids"])
        self.leading_tokens, self.own_tokens = leading + prompted, len(ids) + prompted

    def tokens(
        self, text: str, where: str = "the text", max_words: int | None = None
    ) -> Tokenization:
        """The text's tokens, special ones included.

        Raises:
            InputError: no token, more than the context holds, or hardly one that the vocabulary
                knows.
        """
        whole = tokenized(
            text, self.tokenizer, self._table, where=where, name=self._name, prompt=self.prompt
        )
        begin = self.tokenizer.bos_token_id
        if not self.cuts and begin is not None and whole.ids[:2] == (begin, begin):
            # A chat template writes the begin token, too. Vectors of a text that is cut are those
            # of the model's own `encode`, which reads both.
            whole = whole.without_front(1, 0)
        if whole.words == 0:
            raise InputError(f"{where} gives no token: it is empty or only blanks; leave it out")
        around = whole.leading + whole.trailing
        room = None if self.context is None else self.context - around
        if self.cuts and self._steady is None and room is not None and self.context is not None:
            if room < 1:
                raise InputError(
                    f"the prompt of {self._name} ({self.prompt!r}) leaves no room in its "
                    f"{self.context} tokens"
                )
            if cuts_on_the_left(self.tokenizer) and (max_words is None or max_words >= room):
                whole = whole.without_front(
                    max(0, len(whole.ids) - self.context), len(self.frame[0])
                )
                around, room = (
                    whole.leading + whole.trailing,
                    self.context - whole.leading - whole.trailing,
                )
            max_words = room if max_words is None else min(max_words, room)
        if max_words is not None:
            whole = whole.first_words(max_words)
        if room is not None and whole.words > room:
            raise InputError(
                f"{where} has {whole.words} tokens and {self._name} adds {around}, but its context "
                "is "
                f"{self.context} tokens; pass max_words={room} or less"
            )
        return whole

    def pair(
        self, first: str, second: str, side: int
    ) -> tuple[list[int], list[int] | None, tuple[Word, ...]]:
        """The tokens of two texts that are read together, their types, and the words of the one
        that moves."""
        encoded = self.tokenizer(
            first,
            second,
            truncation=self.context is not None,
            max_length=self.context,
            return_offsets_mapping=True,
            verbose=False,
        )
        moving = [place for place, text in enumerate(encoded.sequence_ids(0)) if text == side]
        if not moving:
            raise InputError(
                f"`{SIDES[side]}` gives no token: it is empty or only blanks, so no word of it can "
                "move"
            )
        start, stop = moving[0], moving[-1] + 1
        text = (first, second)[side]
        words = whole_words(
            text, wide_offsets(encoded["offset_mapping"][start:stop], len(text)), start
        )
        return encoded["input_ids"], encoded.get("token_type_ids"), words

    def numbers(self, texts: Sequence[str]) -> list[list[int]]:
        """The numbers of every text's tokens. See `tokens`."""
        return [list(self.tokens(text, f"text {number}").ids) for number, text in enumerate(texts)]

    def count(self, text: str) -> int:
        """The number of tokens the model reads for the text, prompt and special ones included, if
        it is not cut."""
        return len(
            self.tokenizer(self.prompt + require_characters("the text", text), verbose=False)[
                "input_ids"
            ]
        )

    def read_span(self, text: str) -> Span:
        """Where the part of the text that fits into the context starts and stops."""
        return span_within(text, self.tokenizer, self.context, prompt=self.prompt)

    def spelled(self, ids: Sequence[int]) -> tuple[str, ...]:
        """The tokens as the vocabulary spells them, those of bytes decoded."""
        return spelled(self.tokenizer, ids)


_DTYPES = (torch.float32, torch.bfloat16, torch.float64)


@dataclass(frozen=True, eq=False)
class SentenceModules:
    """The modules of a SentenceTransformer and its settings: prompt, length, pooling and all else
    are its own.

    Attributes:
        transformer: its first module, which runs the model.
        rest: pooling and all behind it.
        tokenizer: a fast one.
        prompt: what `encode` puts before every text by default.
        most_tokens: the length to which texts are cut; None: the model's own alone.
        dimensions: how many leading coordinates of a vector are kept; None for all.
        prompts: all that the model has, by name.
        similarity: what its vectors are compared by, as `similarity_fn_name` has it.
    """

    transformer: nn.Module
    rest: Sequence[nn.Module]
    tokenizer: Any
    prompt: str
    most_tokens: int | None
    dimensions: int | None
    prompts: Mapping[str, str] = field(default_factory=dict)
    similarity: str = "cosine"

    @classmethod
    def of(cls, model: Any, modules: Sequence[nn.Module]) -> "SentenceModules":
        """The settings of a SentenceTransformer, with modules that may be frozen copies of its own;
        InputError for a Router, which has other modules for queries than for documents."""
        if any(hasattr(module, "sub_modules") for module in modules):
            raise InputError("its modules are others for queries than for documents (Router)")
        prompt = model.prompts.get(model.default_prompt_name) or ""
        length, dimensions = model.max_seq_length, model.truncate_dim
        prompts, similarity = dict(model.prompts), model.similarity_fn_name
        return cls(
            modules[0],
            modules[1:],
            model.tokenizer,
            prompt,
            length,
            dimensions,
            prompts,
            similarity,
        )

    def prompted(self, name: str) -> "SentenceModules":
        """The same with the prompt of that name, and the length of its task: what `encode_query` or
        `encode_document` gives. InputError for a query that is filled up with further tokens."""
        task = TASKS.get(name)
        if task == "query" and getattr(self.transformer, "query_expansion", None) is not None:
            raise InputError(
                "its queries are filled up with further tokens (query_expansion), which have no "
                "words"
            )
        length = None if task is None else getattr(self.transformer, f"{task}_length", None)
        return replace(self, prompt=self.prompts[name], most_tokens=length or self.most_tokens)

    def vectors(
        self,
        stack: Stack,
        rows: Float[Tensor, "b n d"],
        layer: int,
        prompted: int,
        dtype: torch.dtype,
    ) -> Float[Tensor, "b p"]:
        """The vectors when the rows enter the first layer; of a layer below the last as `pooled`
        makes them."""
        if layer != stack.layers:
            return self.pooled(stack.states(rows, layer).to(dtype), prompted)
        features = stack.run(rows, lambda ids: self.transformer(self._features(ids, prompted)))
        return self._behind(
            {**features, "token_embeddings": features["token_embeddings"].to(dtype)}, self.rest
        )

    def pooled(self, states: Float[Tensor, "b n d"], prompted: int) -> Float[Tensor, "b p"]:
        """The vectors of hidden states of any layer: weights behind the pooling are made for the
        last layer's alone, so that a model that has such weights is left with its pooling."""
        weights = any(next(module.parameters(), None) is not None for module in self.rest[1:])
        features = self._features(
            torch.zeros(states.shape[:2], dtype=torch.long, device=states.device), prompted
        )
        return self._behind(
            {**features, "token_embeddings": states}, self.rest[:1] if weights else self.rest
        )

    def _features(self, ids: Tensor, prompted: int) -> dict[str, Any]:
        prompt = {"prompt_length": prompted} if self.prompt else {}
        return {"input_ids": ids, "attention_mask": torch.ones_like(ids), **prompt}

    def _behind(self, features: dict[str, Any], modules: Sequence[nn.Module]) -> Tensor:
        for module in modules:
            features = module(features)
        most = None if modules is not self.rest else self.dimensions
        return features["sentence_embedding"][..., :most]


@dataclass(frozen=True)
class LoadedModel:
    """A running model and what reads texts for it.

    Attributes:
        model: of the transformers library.
        tokenizer: a fast one.
        name: for messages and records.
        sentence: gives the modules of the SentenceTransformer that runs the model; None where there
            is none.
    """

    model: Any
    tokenizer: Any
    name: str
    sentence: Callable[[], SentenceModules] | None = None


def load_parts(
    source: Any,
    *,
    task: str = "base",
    device: str = "cpu",
    dtype: torch.dtype = torch.float32,
    attention: str = "eager",
    access: Access = USUAL_ACCESS,
) -> LoadedModel:
    """The parts of a model by its name, or those of a loaded one. See
    `TransformerFeatures.from_pretrained`."""
    require_choice("attention", attention, ATTENTIONS)
    if dtype not in _DTYPES:
        raise InputError(
            f"`dtype` (={dtype}) must be torch.float32, torch.bfloat16 or torch.float64"
        )
    if not isinstance(source, str | Path):
        parts = model_parts(source)
        sentence = (
            partial(SentenceModules.of, source, parts.modules)
            if is_sentence_transformer(source)
            else None
        )
        return LoadedModel(parts.model, parts.tokenizer, parts.name, sentence)
    name = str(source)
    tokenizer, model, library = load_model(
        name, task=task, dtype=dtype, attention=attention, access=access
    )
    model = model.to(require_device(device))
    return LoadedModel(
        model, tokenizer, name, None if library is None else partial(_by_name, name, library, model)
    )


def _by_name(name: str, library: Callable[[str], Any], model: Any) -> SentenceModules:
    """The modules of the SentenceTransformer of that name, made to run this model, whose weights
    were checked."""
    sentence = library(str(next(model.parameters()).device))
    if not is_sentence_transformer(sentence):
        raise InputError(
            f"{name} is a {type(sentence).__name__}: its vectors are not run from rows; use "
            "as_model"
        )
    attribute = next(
        (part for part, child in sentence[0].named_children() if hasattr(child, "config")), None
    )
    if attribute is None:
        raise InputError(
            f"{name} does not run a transformer with a tokenizer, so that it has no rows to move"
        )
    setattr(sentence[0], attribute, model)
    sentence.eval().requires_grad_(False)
    return SentenceModules.of(sentence, list(sentence))
