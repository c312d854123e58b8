"""Classifiers: texts in, a probability for each class out."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.errors import InputError, require_choice, running
from wordsens.maps.transformer.features import TransformerFeatures, by_length
from wordsens.maps.transformer.loaded import LoadedModel, load_parts
from wordsens.models.black_box import PROBES
from wordsens.models.function import FunctionModel
from wordsens.text.hooks import call
from wordsens.text.loaded_models import is_loaded_model
from wordsens.text.pretrained import Access
from wordsens.text.transformer_encoder import context_of, embedding_rows, require_rows, span_within
from wordsens.text.whole_words import Span

PROBABILITIES = "probabilities"
SOFTMAX, SIGMOID, REGRESSION = "softmax", "sigmoid", "regression"
"""What makes a classifier's numbers of its logits: one class of several; every class by itself; no
classes at all."""

NONE = "none"
"""The label of a text that has none of several labels."""

_EDGE = 0.5
_TOLERANCE, _HALF_TOLERANCE = 1e-4, 0.05


class Classifier:
    """Anything that gives a text a number for each class.

    Args:
        function: from a list of texts to an array (texts, classes).
        name: for tables.
        labels: the classes' names; None: 0, 1, ...
        kind: SOFTMAX: the label is the class with the largest number; SIGMOID: all classes from 1/2
            on; REGRESSION: there are no labels.
        phi: the map behind it, where there are gradients.
        no_map: why there is none.
        read_span: from a text to where the part that the model reads starts and stops; None: all of
            it.
    """

    def __init__(
        self,
        function: Callable[[list[str]], Any],
        *,
        name: str,
        labels: Sequence[str] | None = None,
        kind: str = SOFTMAX,
        phi: TransformerFeatures | None = None,
        no_map: str = "it gives probabilities alone",
        read_span: Callable[[str], Span] | None = None,
    ):
        self.name, self.labels, self.phi, self.no_map = name, labels, phi, no_map
        self.kind = require_choice("kind", kind, (SOFTMAX, SIGMOID, REGRESSION))
        self.read_span = read_span or (lambda text: (0, len(text)))
        self._model = FunctionModel(function, name=name, zero=True)

    def probabilities(self, texts: Sequence[str]) -> Float[Tensor, "m classes"]:
        """A row for each text, in float64.

        Raises:
            InputError: the answer is no such array, or has a single class of several to choose
                from.
        """
        rows = self._model.encode(texts)
        if rows.shape[1] < 2 and self.kind == SOFTMAX:
            raise InputError(
                f"{self.name} gives one number a text; a classifier gives one for each class"
            )
        return rows

    def label(self, at: int) -> str:
        """The name of a class."""
        return str(at) if self.labels is None else str(self.labels[at])

    def labels_of(self, rows: Float[Tensor, "m classes"]) -> list[str]:
        """The label of every text: of several independent labels all that it has, joined.

        Raises:
            InputError: a regression, which has none.
        """
        if self.kind == REGRESSION:
            raise InputError(
                f"{self.name} is a regression: it gives a number and no label; use explain"
            )
        if self.kind == SOFTMAX:
            return [self.label(at) for at in rows.argmax(dim=1).tolist()]
        sets = (
            [self.label(at) for at, on in enumerate(row) if on] for row in (rows >= _EDGE).tolist()
        )
        return [" + ".join(names) or NONE for names in sets]

    def support(
        self, rows: Float[Tensor, "m classes"], observed: Float[Tensor, " classes"]
    ) -> Float[Tensor, " m"]:
        """The probability that each row leaves the label of `observed`: of several labels the least
        sure one."""
        if self.kind == SOFTMAX:
            return rows[:, int(observed.argmax())]
        return torch.where(observed >= _EDGE, rows, 1 - rows).amin(dim=1)

    def margin(
        self, rows: Float[Tensor, "*batch classes"], observed: Float[Tensor, " classes"]
    ) -> Float[Tensor, "*batch"]:
        """A differentiable number that is negative where the label is another than that of
        `observed`."""
        tiny = torch.finfo(torch.float64).tiny
        logs = rows.double().clamp_min(tiny).log()
        if self.kind == SOFTMAX:
            at = int(observed.argmax())
            others = torch.cat([logs[..., :at], logs[..., at + 1 :]], dim=-1)
            return logs[..., at] - others.amax(dim=-1)
        odds = logs - (1 - rows.double()).clamp_min(tiny).log()
        return torch.where(observed.to(odds) >= _EDGE, odds, -odds).amin(dim=-1)


def as_classifier(
    model: Any,
    *,
    labels: Sequence[str] | None = None,
    device: str = "cpu",
    revision: str | None = None,
) -> Classifier:
    """Whatever stands for a classifier, as a Classifier.

    A transformer's numbers are those of its own forward pass, read as its pipeline reads them: a
    softmax, sigmoids for several labels at once or a single output, the output itself for a
    regression. Its map, which gives gradients, is used where it has the same numbers.

    Args:
        model: a name or folder, a pair (model, tokenizer) or a pipeline of a transformer for
            sequence classification; a TransformerFeatures with output="probabilities"; or a
            function from a list of texts to an array (texts, classes) of probabilities.
        labels: the classes' names; None: the model's own, or 0, 1, ...
        device: of a model that is loaded here.
        revision: branch, tag or commit of a name on the hub.

    Raises:
        InputError: anything else.

    >>> moods = as_classifier(lambda texts: [[0.9, 0.1]] * len(texts), labels=("glad", "sad"))
    >>> moods.labels_of(moods.probabilities(["a fine day"]))
    ['glad']
    """
    if isinstance(model, Classifier):
        return model
    if isinstance(model, str | Path):
        return _of_transformer(
            load_parts(str(model), task="head", device=device, access=Access(revision=revision)),
            labels,
        )
    if is_loaded_model(model):
        return _of_transformer(load_parts(model), labels)
    if isinstance(model, TransformerFeatures):
        if model.output != PROBABILITIES:
            raise InputError(
                f"`model` ({model.name}) gives {model.output}; load it with output='probabilities'"
            )
        config = model.stack.model.config
        read = None if model.reader is None else model.reader.read_span
        return Classifier(
            model.encode,
            name=model.name,
            labels=labels or _names(config),
            kind=_kind(config),
            phi=model,
            read_span=read,
        )
    if callable(model) and not isinstance(model, type) and not hasattr(model, "parameters"):
        return Classifier(
            model, name=getattr(model, "__name__", type(model).__name__), labels=labels
        )
    raise InputError(
        f"`model` (a {type(model).__name__}) is no classifier; pass a name, a folder, a pair "
        "(model, tokenizer), a "
        "pipeline, or a function from a list of texts to an array (texts, classes)"
    )


def _of_transformer(loaded: LoadedModel, labels: Sequence[str] | None) -> Classifier:
    config = loaded.model.config
    name = f"{loaded.name} {PROBABILITIES}"
    kind, context = _kind(config), context_of(loaded.tokenizer, loaded.model)
    run = _own_forward(loaded, kind, context)
    phi: TransformerFeatures | None = None
    no_map = ""
    try:
        phi = TransformerFeatures(loaded, output=PROBABILITIES)
        phi.reading().cuts = True
        apart = (
            float((phi.encode(PROBES) - run(list(PROBES))).abs().max())
            if kind != REGRESSION
            else 0.0
        )
        tolerance = (
            _TOLERANCE if phi.stack.dtype in (torch.float32, torch.float64) else _HALF_TOLERANCE
        )
        if apart > tolerance:
            phi, no_map = None, f"its own forward pass differs from its layers' by {apart:.2g}"
    except InputError as refused:
        no_map = str(refused)
    if kind == REGRESSION and phi is not None:
        phi = phi.at(output="logits")
    return Classifier(
        run,
        name=name,
        labels=labels or _names(config),
        kind=kind,
        phi=phi,
        no_map=no_map,
        read_span=lambda text: span_within(text, loaded.tokenizer, context),
    )


def _own_forward(
    loaded: LoadedModel, kind: str, context: int | None
) -> Callable[[list[str]], Tensor]:
    """The numbers of the model's own forward pass, texts of one length in tokens together, so that
    none is padded."""
    model, tokenizer = loaded.model.eval(), loaded.tokenizer
    device = next((tensor.device for tensor in model.parameters()), torch.device("cpu"))
    # Without a padding token a decoder takes one text at a time.
    together = 1 if getattr(model.config, "pad_token_id", None) is None else 32

    def logits(ids: Tensor) -> Tensor:
        output = call(model, ids.to(device), attention_mask=torch.ones_like(ids).to(device))
        result = getattr(output, "logits", None)
        result = (output if isinstance(output, Tensor) else output[0]) if result is None else result
        if result.ndim != 2:
            raise InputError(
                f"{loaded.name} gives an array of shape {tuple(result.shape)}: it classifies no "
                "texts"
            )
        return result.float() if result.dtype != torch.float64 else result

    def run(texts: list[str]) -> Tensor:
        cut = {"truncation": context is not None, "max_length": context, "verbose": False}
        ids = [tokenizer(text, **cut)["input_ids"] for text in texts]
        if not all(map(len, ids)):
            raise InputError(f"{loaded.name} has no token for an empty text; leave it out")
        for text, each in zip(texts, ids, strict=True):
            require_rows(
                each, embedding_rows(model), tokenizer, f"the text {text[:40]!r} in {loaded.name}"
            )
        with running(f"{loaded.name} failed on {len(texts)} texts"):
            rows = by_length(ids, together, lambda batch: logits(batch)[None])[0]
        return {SOFTMAX: rows.softmax(dim=1), SIGMOID: rows.sigmoid(), REGRESSION: rows}[kind]

    return run


def _kind(config: Any) -> str:
    """The reading of the logits that the pipeline of transformers has."""
    problem = getattr(config, "problem_type", None)
    if problem == "regression":
        return REGRESSION
    return (
        SIGMOID
        if problem == "multi_label_classification" or getattr(config, "num_labels", 2) == 1
        else SOFTMAX
    )


def _names(config: Any) -> list[str] | None:
    named: Any = getattr(config, "id2label", None) or {}
    return [str(named[at]) for at in sorted(named)] or None
