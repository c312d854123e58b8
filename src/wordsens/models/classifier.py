"""Classifiers: texts in, a probability for each class out."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from jaxtyping import Float
from torch import Tensor

from wordsens.errors import InputError
from wordsens.maps.transformer.features import TransformerFeatures
from wordsens.models.function import FunctionModel
from wordsens.text.loaded_models import is_loaded_model

PROBABILITIES = "probabilities"


class Classifier:
    """Anything that gives a text a number for each class; the label is the class with the largest.

    Args:
        function: from a list of texts to an array (texts, classes).
        name: for tables.
        labels: the classes' names; None: 0, 1, ...
        phi: the map behind it, where there are gradients.
    """

    def __init__(
        self,
        function: Callable[[list[str]], Any],
        *,
        name: str,
        labels: Sequence[str] | None = None,
        phi: TransformerFeatures | None = None,
    ):
        self.name, self.labels, self.phi = name, labels, phi
        self._asked = FunctionModel(function, name=name, zero=True)

    def probabilities(self, texts: Sequence[str]) -> Float[Tensor, "m classes"]:
        """A row for each text, in float64.

        Raises:
            InputError: the answer is no such array, or has a single class.
        """
        found = self._asked.encode(texts)
        if found.shape[1] < 2:
            raise InputError(f"{self.name} gives one number a text; a classifier gives one for each class")
        return found

    def label(self, at: int) -> str:
        """The name of a class."""
        return str(at) if self.labels is None else str(self.labels[at])


def as_classifier(model: Any, *, labels: Sequence[str] | None = None, device: str = "cpu") -> Classifier:
    """Whatever stands for a classifier, as a Classifier.

    Args:
        model: a name or folder, a pair (model, tokenizer) or a pipeline of a transformer for sequence classification;
            a TransformerFeatures with output="probabilities"; or a function from a list of texts to an array
            (texts, classes) of probabilities.
        labels: the classes' names; None: the model's own, or 0, 1, ...
        device: of a model that is loaded here.

    Raises:
        InputError: anything else.
    """
    if isinstance(model, Classifier):
        return model
    if isinstance(model, str | Path):
        model = TransformerFeatures.from_pretrained(str(model), output=PROBABILITIES, device=device)
    elif is_loaded_model(model):
        model = TransformerFeatures.from_pretrained(model, output=PROBABILITIES)
    if isinstance(model, TransformerFeatures):
        if model.output != PROBABILITIES:
            raise InputError(f"`model` ({model.name}) gives {model.output}; load it with output='probabilities'")
        named: Any = getattr(model.stack.model.config, "id2label", None) or {}
        own = [str(named[at]) for at in sorted(named)] or None
        return Classifier(model.encode, name=model.name, labels=labels or own, phi=model)
    if callable(model) and not isinstance(model, type) and not hasattr(model, "parameters"):
        return Classifier(model, name=getattr(model, "__name__", type(model).__name__), labels=labels)
    raise InputError(
        f"`model` (a {type(model).__name__}) is no classifier; pass a name, a folder, a pair (model, tokenizer), a "
        "pipeline, or a function from a list of texts to an array (texts, classes)"
    )
