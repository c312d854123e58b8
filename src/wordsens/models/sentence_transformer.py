"""SentenceTransformers and SparseEncoders: vectors of the library's own `encode`, rows of the
transformer inside."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from wordsens.display.numbers import plural
from wordsens.errors import InputError, argument, running
from wordsens.models.function import Answers, require_texts
from wordsens.models.hooks import frozen_views
from wordsens.models.identity import UNKNOWN, content_digest, joined_digest
from wordsens.models.text_model import OWN, TextModel, in_groups

TASKS = {"query": "query", "document": "document", "passage": "document", "corpus": "document"}
"""The task of a prompt's name: `encode_query` or `encode_document`."""

# Coordinates are at most about 1: float32 leaves 1e-6 of difference, and halves a few hundredths.
_TOLERANCE, _HALF_TOLERANCE = 1e-4, 0.05
_NO_TRANSFORMER = "it does not run a transformer with a tokenizer, so it has no rows to move"


class SentenceTransformerModel(TextModel):
    """A loaded SentenceTransformer or SparseEncoder, with the prompts, pooling and truncation of
    its own `encode`; texts of one length run together, so that no padding and no longer text
    changes a vector.

    It runs from rows if its modules give the vectors of `encode`, which the constructor checks.

    Args:
        library: the object, on its own device; it keeps its mode and its gradients.
        name: for tables and records.
        batch_size: texts at a time.
        prompt_name: name of the prompt before every text; None: the model's default.
    """

    def __init__(
        self, library: Any, *, name: str, batch_size: int = 32, prompt_name: str | None = None
    ):
        self.name, self.pool, self._batch_size = name, OWN, batch_size
        self.sentence_transformer, self.has_own_pooling = library, True
        self._answers = Answers(name)
        self._task = TASKS.get(str(prompt_name))
        self._prompt_name, self.prompt = prompt_name, _prompt_of(library, prompt_name)
        self.similarity = library.similarity_fn_name
        self._dimensions = getattr(library, "truncate_dim", None)
        reader = reading_module(library, self._task)
        tokenizer = getattr(reader, "tokenizer", None)
        if not isinstance(getattr(reader, "auto_model", None), nn.Module):
            self.no_rows = _NO_TRANSFORMER
            return
        shared = tokenizer, getattr(reader, "processor", None)
        self._modules = frozen_views([reader, *list(library)[1:]], *shared)
        options = {"prompt": self.prompt, "limit": most_tokens(reader, self._task)}
        options |= {"pool": OWN, "cuts": True, "batch_size": batch_size}
        super().__init__(self._modules[0].auto_model, tokenizer, name, **options)
        for module in self._modules[1:]:
            module.to(self.device, self.row_dtype)
        if self.no_rows is None:
            self.no_rows = self._difference()

    def __reduce__(self) -> tuple[Any, ...]:
        options = {"batch_size": self._batch_size, "prompt_name": self._prompt_name}
        return partial(type(self), name=self.name, **options), (self.sentence_transformer,)

    def require_pool(self, pool: str | None) -> None:
        if pool != OWN:
            super().require_pool(pool)

    def _difference(self) -> str | None:
        """Why its vectors cannot be computed from rows; None if they are the vectors of
        `encode`."""
        if any(hasattr(module, "sub_modules") for module in self.sentence_transformer):
            return "its modules differ for queries and documents (Router)"
        if type(self.sentence_transformer).__name__ == "SparseEncoder":
            return "it is a SparseEncoder: its vectors are not computed from rows"
        if self._task == "query" and getattr(self._modules[0], "query_expansion", None) is not None:
            return "its queries are filled up with further tokens (query_expansion), not words"
        try:
            with running(f"{self.name} failed when its modules were run from rows"):
                texts = self.probes()
                rows = [self.entering(torch.tensor([self.read(text).ids])) for text in texts]
                with torch.no_grad():
                    ours = torch.cat([self.forward(each, pool=OWN) for each in rows])
                apart = float((ours.double().cpu() - self.encode(texts)).abs().max())
        except InputError as error:
            return str(error)
        tolerance = _TOLERANCE if self.row_dtype == self.dtype else _HALF_TOLERANCE
        if apart <= tolerance:
            return None
        return (
            f"its own encode differs from its modules' results by {apart:.2g} (tolerance "
            f"{tolerance:g})"
        )

    def encode(self, texts: Sequence[str]) -> Float[Tensor, "m d"]:
        listed = require_texts(texts)
        callable_tokenizer = callable(self.tokenizer)
        lengths = [len(self.read(text).ids) if callable_tokenizer else 0 for text in listed]

        def vectors(places: list[int]) -> Float[Tensor, "b d"]:
            return self._encoded([listed[place] for place in places])

        return torch.stack(in_groups(lengths, vectors, at_once=len(listed)))

    def _encoded(self, texts: list[str]) -> Float[Tensor, "m d"]:
        task = "encode" if self._task is None else f"encode_{self._task}"
        # A task finds its own prompt.
        finds = self._prompt_name in (None, self._task)
        named = {} if finds else {"prompt_name": self._prompt_name}
        library, options = self.sentence_transformer, {"show_progress_bar": False}
        with evaluating(library), running(f"{self.name} failed on {plural(len(texts), 'text')}"):
            encode = getattr(library, task)
            answer = encode(texts, batch_size=self._batch_size, **options, **named)
        return self._answers.rows(texts, answer)

    def unreadable(self, text: str) -> str | None:
        return super().unreadable(text) if callable(self.tokenizer) else None

    def prompted(self, name: str) -> "SentenceTransformerModel":
        prompts = self.sentence_transformer.prompts
        if name not in prompts and TASKS.get(name) != name:
            known = ", ".join(map(repr, prompts)) or "none"
            raise InputError(
                f"{argument('prompt_name')} (={name!r}) is no prompt of {self.name}; it has {known}"
            )
        return SentenceTransformerModel(
            self.sentence_transformer, name=self.name, batch_size=self._batch_size, prompt_name=name
        )

    def identity(self) -> str:
        content = content_digest(self.sentence_transformer)
        if content is None:
            return UNKNOWN
        length = getattr(self.sentence_transformer, "max_seq_length", None)
        return joined_digest(
            content, self.prompt, self._task, length, self._dimensions, self.similarity
        )

    def forward(
        self, rows: Float[Tensor, "b n d"], layer: int = -1, pool: str | None = None
    ) -> Tensor:
        if pool != OWN or self.layer_index(layer) != self.layers:
            return super().forward(rows, layer, pool)
        features = self.run(rows, lambda ids: self._modules[0](self._features(ids)))
        states = features["token_embeddings"].to(self.row_dtype)
        return self._behind({**features, "token_embeddings": states}, self._modules[1:])

    def pooled(self, states: Float[Tensor, "b n d"], pool: str | None) -> Tensor:
        if pool != OWN:
            return super().pooled(states, pool)
        behind = self._modules[1:]
        # Weights after the pooling are made for the last layer's states only.
        if any(next(module.parameters(), None) is not None for module in behind[1:]):
            behind = behind[:1]
        ids = torch.zeros(states.shape[:2], dtype=torch.long, device=states.device)
        return self._behind({**self._features(ids), "token_embeddings": states}, behind)

    def _features(self, ids: Tensor) -> dict[str, Any]:
        prompt = {"prompt_length": self.leading_tokens} if self.prompt else {}
        return {"input_ids": ids, "attention_mask": torch.ones_like(ids), **prompt}

    def _behind(self, features: dict[str, Any], modules: Sequence[nn.Module]) -> Tensor:
        for module in modules:
            features = module(features)
        whole = len(modules) == len(self._modules) - 1
        return features["sentence_embedding"][..., : self._dimensions if whole else None]


def _prompt_of(library: Any, name: str | None) -> str:
    """The text of the prompt with that name, or of the default prompt."""
    prompts = library.prompts
    if name == "document":
        name = next((each for each in ("document", "passage", "corpus") if each in prompts), None)
    return prompts.get(name if name in prompts else library.default_prompt_name) or ""


def reading_module(library: Any, task: str | None) -> Any:
    """The module of a sentence-transformers model that reads texts of the task; for a Router, that
    of its route."""
    first, routes = library[0], getattr(library[0], "sub_modules", None)
    if routes is None:
        return first
    return routes[task if task in routes else first.default_route or next(iter(routes))][0]


def most_tokens(module: Any, task: str | None) -> int | None:
    """The largest number of tokens that the module reads of a text of the task; None if it has no
    limit."""
    expansion = getattr(module, "query_expansion", None) if task == "query" else None
    if expansion is not None and expansion.get("strategy") == "fixed":
        return expansion["length"]
    own = None if task is None else getattr(module, f"{task}_length", None)
    return own or getattr(module, "max_seq_length", None)


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Inside, the model has no dropout; afterwards it is in its own mode."""
    training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(training)
