"""The contract of a model of texts, and the plainest model: a function from texts to vectors."""

import hashlib
import importlib
import json
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from wordsens.errors import InputError, WordsensError, first_line, require_characters, running
from wordsens.maps.transformer.features import TransformerFeatures
from wordsens.text.loaded_models import is_instance
from wordsens.text.whole_words import Span

UNKNOWN = "unknown"
"""The identity of a model of which nothing can be hashed."""

PROBES = (
    "The service is not available on Sundays.",
    "a",
    "Please turn the alarm on before you leave, and do not open the second door until the light "
    "has gone out.",
)
"""Sentences of one word to twenty, on which two ways to compute an embedding are compared."""

COSINE = "cosine"
SIMILARITIES = {
    COSINE: "cosine",
    "dot": "dot product",
    "euclidean": "negative Euclidean distance",
    "manhattan": "negative Manhattan distance",
}
"""What two vectors are compared by: the names that sentence-transformers has, in words."""

STEADY = 0.02
"""The largest change of a vector between two calls that counts as rounding, as a share of its
length: it moves a cosine by up to 2e-4. bfloat16 keeps two to three digits, and hosted models
answer with about that much noise."""

_SHOWN = 40
# Written or left out according to where a model comes from.
_SILENT = ("transformers_version", "architectures", "dtype", "torch_dtype")


class Model(ABC):
    """Anything that gives every text a vector.

    Attributes:
        name: for tables and records.
        can_differentiate: whether `features` gives a map with gradients; not so for a black box.
        similarity: what the model's vectors are compared by, a name of SIMILARITIES.
    """

    name: str
    can_differentiate: bool = False
    similarity: str = COSINE

    @abstractmethod
    def encode(self, texts: Sequence[str]) -> Float[Tensor, "m d"]:
        """One vector a text: float64 on the CPU, finite, none of them zero, and d the same in every
        call.

        Raises:
            InputError: the texts are no texts, or the model's answer is not that.
        """

    def identity(self) -> str:
        """A digest of what decides the numbers: weights, configuration, tokenizer, pooling,
        prompts; UNKNOWN where none of this can be read."""
        return UNKNOWN

    def fingerprint(self) -> str:
        """A digest that changes when the model does: its identity, or, where that is unknown, that
        of a few answers, which two models may share."""
        identity = self.identity()
        return identity if identity != UNKNOWN else _answers_digest(self.encode(PROBES))

    def read_span(self, text: str) -> Span:
        """Where the part of the text that the model reads starts and stops; all of it where no
        limit is known."""
        return 0, len(text)

    def unreadable(self, text: str) -> str | None:
        """Why the model refuses the text; None where it does not, or nothing is known."""
        return None

    def prompted(self, name: str) -> "Model":
        """The model that puts its prompt of that name before every text.

        Raises:
            InputError: a model without prompts, or without this one.
        """
        raise InputError(
            f"`prompt_name` (={name!r}) is of a SentenceTransformer; {self.name} has no prompts"
        )

    @property
    def layers(self) -> int | None:
        """The number of layers that `encode_layers` gives, the embedding layer first; None where it
        cannot."""
        return None

    def encode_layers(self, texts: Sequence[str]) -> Float[Tensor, "layers m d"]:
        """The vectors that the model's own pooling makes of every layer, the embedding layer first.

        Raises:
            InputError: a model whose layers cannot be seen.
        """
        raise InputError(
            f"the layers of {self.name} cannot be seen: it gives one vector a text, for pairs, "
            "removals, swaps and "
            "lengths; for layers pass the transformer (a name, a folder, or a pair (model, "
            "tokenizer))"
        )

    def features(self) -> TransformerFeatures:
        """The model as a map from the rows that enter its first layer.

        Raises:
            InputError: a model without gradients.
        """
        raise InputError(
            f"where gradients are needed {self.name} cannot be used: it gives one vector a text, "
            "for pairs, removals, "
            "swaps and lengths; pass the transformer (a name, a folder, or a pair (model, "
            "tokenizer))"
        )


class FunctionModel(Model):
    """A function from a list of m texts to an array (m, d), which nothing else is known of.

    Args:
        function: called with at most `batch_size` texts at a time.
        name: for tables and records.
        batch_size: texts at a time.
        error: raised for a bad answer: InputError, where the caller can mend the function.
        zero: whether a vector of zeros is an answer.
    """

    def __init__(
        self,
        function: Callable[[list[str]], Any],
        *,
        name: str,
        batch_size: int = 32,
        error: type[WordsensError] = InputError,
        zero: bool = False,
    ):
        self.name = name
        self._function, self._batch_size, self._error, self._zero = (
            function,
            batch_size,
            error,
            zero,
        )
        self._answers = Answers(name, error=error)

    def encode(self, texts: Sequence[str]) -> Float[Tensor, "m d"]:
        return self._encoded(texts, zero=self._zero)

    def fingerprint(self) -> str:
        return _answers_digest(self._encoded(PROBES, zero=True))

    def require_steady(self) -> None:
        """Encode a sentence twice alone and once among others, and refuse a model that changes its
        mind.

        Raises:
            InputError: (or the error of this model) vectors farther apart than STEADY times their
                length.
        """
        sentence = PROBES[0]
        # Zero for an English sentence is no fault of a model of another language.
        alone, again, among = (
            self._encoded(texts, zero=True)[texts.index(sentence)]
            for texts in ([sentence], [sentence], [PROBES[1], sentence, *PROBES[2:]])
        )
        for other, when in ((again, "in a second call"), (among, "among other texts")):
            apart = float(
                (other - alone).norm() / alone.norm().clamp_min(torch.finfo(torch.float64).tiny)
            )
            if apart > STEADY:
                raise self._error(
                    f"{self.name} changes its mind: {when} the vector of {sentence!r} is another "
                    f"(by {apart:.2g} of "
                    f"its length; at most {STEADY:g}); switch off dropout and whatever depends on "
                    "the batch"
                )

    def _encoded(self, texts: Sequence[str], *, zero: bool) -> Float[Tensor, "m d"]:
        listed = require_texts(texts)
        batches = (
            listed[start : start + self._batch_size]
            for start in range(0, len(listed), self._batch_size)
        )
        return torch.cat(
            [self._answers.rows(batch, self._called(batch), zero=zero) for batch in batches]
        )

    def _called(self, batch: list[str]) -> Any:
        whose = (
            "sentences on which wordsens tries every function, not your texts"
            if batch[0] in PROBES
            else "texts"
        )
        called = f"it was called with one list of {whose}, the first {_shown(batch[0])}"
        with running(
            f"{self.name} failed on {len(batch)} texts", raises=self._error, remedy=called
        ):
            return self._function(batch)


class Answers:
    """Checks the answers of one model: one row a text, finite, not zero, and of the same length in
    every call.

    Args:
        name: of the model, for messages.
        error: raised for a bad answer.
    """

    def __init__(self, name: str, *, error: type[WordsensError] = InputError):
        self._name, self._error = name, error
        self._dimension: int | None = None

    def rows(
        self, texts: Sequence[str], answer: Any, *, zero: bool = False
    ) -> Float[Tensor, "m d"]:
        """The answer to the texts as a float64 tensor on the CPU; a row of zeros will do only where
        `zero` says so.

        Raises:
            InputError: (or the error of this model) an answer that is no such array.
        """
        rows = self._array(answer)
        if rows.ndim != 2 or not rows.shape[-1]:
            raise self._wrong(
                f"gave an array of shape {tuple(rows.shape)} for {len(texts)} texts", "(texts, d)"
            )
        if len(rows) != len(texts):
            raise self._wrong(f"gave {len(rows)} vectors for {len(texts)} texts", "one row a text")
        dimension = rows.shape[1]
        if self._dimension not in (None, dimension):
            raise self._wrong(
                f"gave vectors of {dimension} numbers, and of {self._dimension} before",
                "one dimension in every call",
            )
        self._dimension = dimension
        self._require_numbers(texts, rows, zero)
        return rows

    def scores(self, texts: Sequence[str], answer: Any) -> Float[Tensor, " m"]:
        """The answer as one number a text: an array of shape (m,) or (m, 1)."""
        rows = self._array(answer)
        if rows.ndim == 2 and rows.shape[1] > 1:
            raise self._wrong(f"gave {rows.shape[1]} scores a pair", "one score a pair")
        return self.rows(texts, rows.unsqueeze(1) if rows.ndim == 1 else rows, zero=True)[:, 0]

    def _require_numbers(self, texts: Sequence[str], rows: Tensor, zero: bool) -> None:
        finite = rows.isfinite().all(dim=1)
        if not finite.all():
            text = texts[int((~finite).nonzero()[0])]
            raise self._wrong(
                f"gave a number that is not finite for the text {_shown(text)}", "finite numbers"
            )
        lost = (rows == 0).all(dim=1)
        if lost.any() and not zero:
            text = texts[int(lost.nonzero()[0])]
            raise self._error(
                f"{self._name} gave the zero vector for the text {_shown(text)}, which has no "
                "cosine with any other; "
                "leave the text out"
            )

    def _array(self, answer: Any) -> Tensor:
        rows = answer if isinstance(answer, list | tuple) else ()
        sizes = {len(row) for row in rows if isinstance(row, list | tuple)}
        if len(sizes) > 1:
            raise self._wrong(
                f"gave vectors of {' and '.join(map(str, sorted(sizes)))} numbers", "(texts, d)"
            )
        try:
            array = _dense(answer)
            kind = str(array.dtype).removeprefix("torch.")
            if "complex" in kind:
                raise TypeError("complex numbers")
            numbers = torch.as_tensor(
                array if isinstance(array, Tensor) else array.astype(np.float64)
            )
        except (TypeError, ValueError, RuntimeError) as error:
            raise self._wrong(
                f"gave a {type(answer).__name__} that is no array of numbers ({first_line(error)})",
                "(texts, d)",
            ) from error
        numbers = numbers.to("cpu", torch.float64)
        if _may_be_packed(kind, numbers):
            raise self._wrong(
                f"gave {kind}, which may be bits packed eight in a byte (precision 'binary' or "
                "'ubinary')",
                "floats: 2.0 * np.unpackbits(np.array(answer).astype('uint8'), axis=1) - 1 of "
                "bits, and "
                "np.array(answer, dtype='float32') of integers that are numbers",
            )
        return numbers

    def _wrong(self, answer: str, rule: str) -> WordsensError:
        return self._error(f"{self._name} {answer}; its answer must be {rule}")


def _may_be_packed(kind: str, numbers: Tensor) -> bool:
    """True for bytes, and for integers that look like bytes: answers in JSON tell no type. Half of
    all packed bytes are 128 and more, or a quarter -64 and less. Bits that are unpacked are 0 and
    1, or -1 and 1; counts are smaller."""
    if kind in ("int8", "uint8"):
        return bool((numbers.abs() > 1).any())
    columns = numbers.shape[1] if numbers.ndim == 2 else 0
    within = bool(((numbers >= -128) & (numbers <= 255)).all())
    large, negative = (float(part.double().mean()) for part in (numbers >= 128, numbers <= -64))
    return "int" in kind and columns >= 4 and within and (large > 0.25 or negative > 0.125)


def _dense(answer: Any) -> Any:
    """The answer as one tensor or array; sparse ones of torch and scipy, and lists of such rows,
    are filled in."""
    rows = list(answer) if isinstance(answer, list | tuple) else []
    if rows and all(hasattr(row, "toarray") for row in rows):
        return np.concatenate([np.atleast_2d(row.toarray()) for row in rows])
    if rows and all(isinstance(row, Tensor) for row in rows):
        answer = torch.stack(rows)
    if isinstance(answer, Tensor):
        answer = answer.detach()
        return answer if answer.layout == torch.strided else answer.to_dense()
    fill = getattr(answer, "toarray", None)
    return np.array(answer if fill is None else fill())


def require_cosines(model: Any, what: str) -> None:
    """InputError for a model whose vectors are not compared by cosines, where nothing else is
    measured.

    Args:
        model: a Model, or a map of a transformer.
        what: what is measured, in the plural.
    """
    if model.similarity != COSINE:
        raise InputError(
            f"{what} are measured by cosines, and {model.name} compares by the "
            f"{SIMILARITIES[model.similarity]} "
            "(similarity_fn_name); for cosines pass the model with similarity_fn_name='cosine'"
        )


def require_texts(texts: Sequence[str]) -> list[str]:
    """The texts as a list; InputError for a single string, none at all, or what is not a string."""
    if isinstance(texts, str):
        raise InputError(f"`texts` (={_shown(texts)}) must be a list of texts; put it into a list")
    listed = list(texts)
    odd = [text for text in listed if not isinstance(text, str)]
    if odd or not listed:
        raise InputError(
            "`texts` must be a list of strings, at least one; got "
            f"{repr(odd[0]) if odd else 'none'}"
        )
    for at, text in enumerate(listed):
        require_characters(f"text {at}", text)
    return listed


def _shown(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}...")


def load_named(place: str, option: str = "encode") -> Any:
    """The object that "module:name" stands for; the module may lie in the working directory. Runs
    the module's code.

    Args:
        place: such as "my_encoder:encode" or "package.module:model.encode".
        option: for messages.

    Raises:
        InputError: no such module or name, or the module fails.

    >>> load_named("math:sqrt")(4.0)
    2.0
    """
    module_name, _, path = place.partition(":")
    if not module_name or not path or path.startswith("//"):
        raise InputError(
            f"`{option}` (={place!r}) must be module:function, such as my_encoder:encode"
        )
    here = str(Path.cwd())
    if here not in sys.path and "" not in sys.path:
        sys.path.append(
            here
        )  # behind what is installed: a file of the folder must not stand in for a library
    importing = f"`{option}` (={place!r}): the import of the module {module_name!r} ended"
    with running(importing, remedy="run in its folder, or install it"):
        named: Any = importlib.import_module(module_name)
    for part in path.split("."):
        if not hasattr(named, part):
            raise InputError(
                f"`{option}` (={place!r}): {module_name!r} has no {path!r}; name what it defines"
            )
        named = getattr(named, part)
    return named


def content_digest(*parts: nn.Module) -> str | None:
    """SHA-256 over the weights, configurations and tokenizers of modules, and those inside them.

    None where a module may hold what is none of these: a class or a hook that is not of torch,
    transformers or sentence-transformers, weights that another runtime holds (ONNX), a method that
    was replaced.
    """
    inner = [module for part in parts for module in part.modules()]
    if not all(map(_shows_all, inner)):
        return None
    try:
        configured: list[Any] = [module for module in inner if hasattr(module, "get_config_dict")]
        configs = [(type(module).__name__, module.get_config_dict()) for module in configured]
        tokenizers = [
            tokenizer_settings(words)
            for each in configured
            if (words := getattr(each, "tokenizer", None))
        ]
        plain = [(type(module).__name__, module.extra_repr()) for module in inner]
        pretrained = [
            module.config
            for module in inner
            if is_instance(module, "transformers", "PreTrainedModel")
        ]
    except (AttributeError, NotImplementedError, TypeError):
        return None
    weights = list(map(weights_digest, parts))
    return joined_digest(weights, plain, configs, tokenizers, list(map(settings_of, pretrained)))


def _shows_all(module: nn.Module) -> bool:
    """True where state and configuration of a module decide what it computes."""
    hooks = [*module._forward_hooks.values(), *module._forward_pre_hooks.values()]
    origins = [getattr(each, "__module__", "") or "" for each in (type(module), *hooks)]
    known = all(
        origin.partition(".")[0] in ("torch", "transformers", "sentence_transformers")
        for origin in origins
    )
    replaced = {"forward", "encode", "preprocess", "tokenize"} & vars(module).keys()
    return known and not replaced and isinstance(getattr(module, "auto_model", module), nn.Module)


def _answers_digest(answers: Float[Tensor, "m d"]) -> str:
    rounded = (answers / answers.abs().max().clamp_min(1e-300) * 1e4).round()
    # Adding zero makes one zero of two: -0.0 and 0.0.
    return joined_digest(tuple(answers.shape), (rounded + 0.0).tolist())


def weights_digest(module: nn.Module) -> str:
    """SHA-256 over the names, types, shapes and bytes of a module's tensors."""
    digest = hashlib.sha256()
    for name, value in sorted(module.state_dict().items()):
        # Quantised layers keep tuples of a weight and a bias.
        for each in value if isinstance(value, tuple) else (value,):
            if not isinstance(each, Tensor):
                digest.update(f"{name}\0{each!r}\0".encode())
                continue
            tensor = each.dequantize() if each.is_quantized else each
            digest.update(f"{name}\0{tensor.dtype}\0{tuple(tensor.shape)}\0".encode())
            digest.update(
                tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data
            )
    return digest.hexdigest()


def joined_digest(*parts: Any) -> str:
    """SHA-256 over values that JSON can hold."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()


def settings_of(config: Any) -> dict[str, Any]:
    """A transformers configuration without what decides no number, or stands in the weights' digest
    already."""
    return {
        key: value
        for key, value in config.to_dict().items()
        if key not in _SILENT and not key.startswith("_")
    }


def tokenizer_settings(tokenizer: Any) -> str:
    """A tokenizer as text: a fast one without the truncation and padding of its last call, of
    another its words."""
    inner, side = (
        getattr(tokenizer, "backend_tokenizer", tokenizer),
        getattr(tokenizer, "truncation_side", None),
    )
    if not hasattr(inner, "to_str"):
        return json.dumps(
            [getattr(tokenizer, "get_vocab", lambda: type(tokenizer).__name__)(), side], default=str
        )
    whole = json.loads(inner.to_str())
    return json.dumps(
        [{key: value for key, value in whole.items() if key not in ("truncation", "padding")}, side]
    )
