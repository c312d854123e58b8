"""From the text source of a spec to labelled texts: some held out, the others to be learned."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.errors import InputError
from wordsens.experiments.texts.documents import documents, long_documents, synthetic_text, text_rows
from wordsens.experiments.texts.source import Embedded, TextSource
from wordsens.generalization import linear_labels, random_labels
from wordsens.maps.transformer.features import TransformerFeatures
from wordsens.seeds import derive_seed, generator
from wordsens.text.matrix import TextMatrix

SENTIMENT = "sentiment"
LABEL_KINDS = (SENTIMENT, "linear", "random")


@dataclass(frozen=True)
class Draw:
    """One draw of texts of one shape, some of them held out.

    Attributes:
        n, d: words of a text and coordinates of a word.
        training: how many are to be learned.
        held_out: how many are not; they do not depend on `training`.
        draw: 0, 1, ...: other texts.
        seed: of the whole experiment.
    """

    n: int
    d: int
    training: int
    held_out: int
    draw: int = 0
    seed: int = 0

    @property
    def wanted(self) -> int:
        """The number of texts in all."""
        return self.held_out + self.training


@dataclass(frozen=True)
class LabelledTexts:
    """Texts of one shape and their labels; the first `held_out` are not for training.

    Attributes:
        texts: TextMatrix objects of n words and d coordinates.
        labels: one a text, +1 or -1.
        held_out: how many of them the model does not see.
    """

    texts: tuple[TextMatrix, ...]
    labels: Float[Tensor, " m"]
    held_out: int

    @property
    def training(self) -> tuple[tuple[TextMatrix, ...], Float[Tensor, " N"]]:
        """The texts to be learned, and their labels."""
        return self.texts[self.held_out :], self.labels[self.held_out :]

    @property
    def test(self) -> tuple[tuple[TextMatrix, ...], Float[Tensor, " h"]]:
        """The texts held out, and their labels."""
        return self.texts[: self.held_out], self.labels[: self.held_out]


def labelled_texts(
    source: TextSource,
    labels: str,
    drawn: Draw,
    *,
    dtype: torch.dtype,
    model: TransformerFeatures | None = None,
) -> LabelledTexts:
    """The test texts and the training texts of one draw, with labels of that kind.

    Raises:
        InputError: too few texts of n words, or a text without a label where sentiment is to be learned.
    """
    labelled = isinstance(source, Embedded) and reads_labels(source, labels)
    n, d, wanted = drawn.n, drawn.d, drawn.wanted
    own = derive_seed(drawn.seed, "labelled texts", source.kind, n, d, drawn.draw)
    if isinstance(source, Embedded):
        stream = generator(own, "order")
        found = long_documents(source, n, stream, most=wanted, labelled=labelled, model=model)
        if len(found) < wanted:
            raise InputError(
                f"of {len(documents(source, labelled=labelled))} texts, {len(found)} have n = {n} words, but "
                f"{wanted} are wanted, the held-out ones included; give more or longer texts, or lower `texts` or `n`"
            )
        texts = tuple(text_rows(found, source, n, d, dtype=dtype, model=model))
    else:
        texts = tuple(synthetic_text(source, n, d, derive_seed(own, index)).to(dtype) for index in range(wanted))
    if labels == "linear":
        values = linear_labels(list(texts), own)
    elif labels == "random":
        values = random_labels(wanted, own)
    else:
        values = _sentiment(texts)
    return LabelledTexts(texts, values, drawn.held_out)


def reads_labels(source: Embedded, labels: str) -> bool:
    """True where the labels of the source are read: where its sentiment is learned, and where they can be understood.

    Raises:
        InputError: the sentiment is to be learned, and the labels cannot be read.
    """
    try:
        documents(source, labelled=True)
    except InputError as error:
        if labels == SENTIMENT:
            raise InputError(str(error).replace("labels=False", "labels='linear' or 'random'")) from error
        return False
    return True


def _sentiment(texts: tuple[TextMatrix, ...]) -> Float[Tensor, " m"]:
    for text in texts:
        if text.label is None:
            raise InputError(
                f"the text {text.source!r} has no label, so its sentiment cannot be learned; give labelled texts, or "
                "labels='linear' or 'random'"
            )
    return torch.tensor([float(text.label or 0) for text in texts], dtype=torch.float64)
