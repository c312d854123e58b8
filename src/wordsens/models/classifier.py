"""Classifiers: texts in, a probability for each class out."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.errors import InputError, argument, require_choice
from wordsens.models.function import FunctionModel
from wordsens.models.pretrained import is_transformer, load_text_model, name_of
from wordsens.models.text_model import TextModel
from wordsens.text.whole_words import Span

SOFTMAX, SIGMOID, REGRESSION = "softmax", "sigmoid", "regression"
"""How numbers follow from logits: one class of several; each class independently; no classes."""

NONE = "none"
"""The label of a text to which none of several independent labels applies."""

_EDGE = 0.5


class Classifier:
    """Anything that gives each text one number per class.

    Args:
        function: from a list of texts to an array (texts, classes).
        name: for tables.
        labels: the classes' names; None: 0, 1, ...
        kind: SOFTMAX: the label is the class with the largest number; SIGMOID: all classes of 1/2
            and more; REGRESSION: there are no labels.
        model: the transformer inside, if there is one.
        no_rows: why it is not run from rows and so has no gradients; None if it is.
    """

    def __init__(
        self,
        function: Callable[[list[str]], Any],
        *,
        name: str,
        labels: Sequence[str] | None = None,
        kind: str = SOFTMAX,
        model: TextModel | None = None,
        no_rows: str | None = "it gives only probabilities",
    ):
        self.name, self.labels, self.model, self.no_rows = name, labels, model, no_rows
        self.kind = require_choice("kind", kind, (SOFTMAX, SIGMOID, REGRESSION))
        self._function = FunctionModel(function, name=name, zero=True)

    @property
    def output(self) -> str:
        """The output of the transformer that the numbers are."""
        return "logits" if self.kind == REGRESSION else "probabilities"

    def text_model(self) -> TextModel:
        """The transformer, which is run from rows; InputError if there is none."""
        if self.model is None or self.no_rows is not None:
            raise InputError(
                f"where gradients are needed {self.name} cannot be used: {self.no_rows}"
            )
        return self.model

    def read_span(self, text: str) -> Span:
        """Start and end of the part of the text that the model reads."""
        return (0, len(text)) if self.model is None else self.model.read_span(text)

    def probabilities(self, texts: Sequence[str]) -> Float[Tensor, "m classes"]:
        """A row for each text, in float64.

        Raises:
            InputError: the answer is not such an array, or has only one class.
        """
        rows = self._function.encode(texts)
        if rows.shape[1] < 2 and self.kind == SOFTMAX:
            raise InputError(
                f"{self.name} gives one number per text; a classifier gives one for each class"
            )
        return rows

    def label(self, at: int) -> str:
        """The name of a class."""
        return str(at) if self.labels is None else str(self.labels[at])

    def labels_of(self, rows: Float[Tensor, "m classes"]) -> list[str]:
        """The label of every text; if labels are independent, all that apply, joined.

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
        """The probability that each row gives the label of `observed`; for independent labels the
        smallest one."""
        if self.kind == SOFTMAX:
            return rows[:, int(observed.argmax())]
        return torch.where(observed >= _EDGE, rows, 1 - rows).amin(dim=1)

    def margin(
        self, rows: Float[Tensor, "*batch classes"], observed: Float[Tensor, " classes"]
    ) -> Float[Tensor, "*batch"]:
        """A differentiable number that is negative where the label differs from that of
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
    """The Classifier of a name, a folder, a loaded transformer or a function.

    A transformer's numbers are those of its own forward pass, read as its pipeline reads them: a
    softmax, sigmoids for several labels at once or a single output, the output itself for a
    regression. Where a pass from its rows gives the same numbers, it also has gradients.

    Args:
        model: a name or folder, a pair (model, tokenizer) or a pipeline of a transformer for
            sequence classification; a function from a list of texts to an array (texts, classes)
            of probabilities, or an object with such a `predict_proba`.
        labels: the classes' names; None: the model's own, or 0, 1, ...
        device: where a name or folder is loaded.
        revision: branch, tag or commit of a name on the hub.

    Raises:
        InputError: anything else.

    >>> moods = as_classifier(lambda texts: [[0.9, 0.1]] * len(texts), labels=("glad", "sad"))
    >>> moods.labels_of(moods.probabilities(["a fine day"]))
    ['glad']
    """
    if isinstance(model, Classifier):
        return model
    if hasattr(model, "predict_proba"):
        names = labels or [str(name) for name in getattr(model, "classes_", ())]
        return Classifier(model.predict_proba, name=name_of(model), labels=names or None)
    if isinstance(model, str) or hasattr(model, "__fspath__") or is_transformer(model):
        loaded = load_text_model(model, head=True, device=device, revision=revision)
        return _of_transformer(loaded, labels)
    if isinstance(getattr(model, "model", None), TextModel):  # a map of a transformer
        if model.output == "states":
            raise InputError(
                f"{argument('model')} ({model.name}) gives states; load it with "
                f"{argument('output', 'probabilities')}"
            )
        return _of_transformer(model.model, labels)
    if callable(model) and not isinstance(model, type) and not hasattr(model, "parameters"):
        return Classifier(model, name=name_of(model), labels=labels)
    raise InputError(
        f"{argument('model')} (a {type(model).__name__}) is no classifier; pass a name, a folder, "
        "a pair (model, tokenizer), a pipeline, or a function from a list of texts to an array "
        "(texts, classes)"
    )


def _of_transformer(model: TextModel, labels: Sequence[str] | None) -> Classifier:
    config, model.cuts = model.config, True
    kind = _kind(config)
    named: dict[Any, Any] = getattr(config, "id2label", None) or {}
    names = [str(named[at]) for at in sorted(named)] or None
    numbers = {SOFTMAX: lambda rows: rows.softmax(dim=1), SIGMOID: torch.sigmoid}
    reading = numbers.get(kind, lambda rows: rows)

    def run(texts: list[str]) -> Tensor:
        return reading(model.logits_of(texts))

    return Classifier(
        run,
        name=f"{model.name} probabilities",
        labels=labels or names,
        kind=kind,
        model=model,
        no_rows=model.no_logits,
    )


def _kind(config: Any) -> str:
    """The kind of classifier, as the pipeline of transformers reads its logits."""
    problem = getattr(config, "problem_type", None)
    if problem == "regression":
        return REGRESSION
    several = problem == "multi_label_classification" or getattr(config, "num_labels", 2) == 1
    return SIGMOID if several else SOFTMAX
