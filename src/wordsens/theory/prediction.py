"""The prediction that belongs to a map and a text."""

from dataclasses import dataclass

from torch import Tensor

from wordsens.errors import require_count
from wordsens.maps.attention.features import RandomAttentionFeatures
from wordsens.maps.attention.scores.relu import DividedRelu
from wordsens.maps.attention.scores.softmax import Softmax
from wordsens.maps.base import FeatureMap
from wordsens.maps.dense import DeepRandomFeatures
from wordsens.text.matrix import TextMatrix, as_text_matrix
from wordsens.theory.attention import exchangeable_sensitivity, sensitivity_of_gram
from wordsens.theory.conditions import outside_of_attention, outside_of_dense, rows_are_scaled
from wordsens.theory.random_features import finite_width_sensitivity
from wordsens.theory.rows import gram_moments

TYPICAL = "a typical word"
PREDICTED = "prediction"
IN_THE_LIMIT = "upper in the limit, for idealised rows"


@dataclass(frozen=True)
class Prediction:
    """A predicted S: neither attained nor certified.

    Attributes:
        value: the predicted S.
        of: its subject: "the largest of 16 words", or "a typical word".
        source: where it comes from, a few words.
        outside: the sizes that lie beyond those at which it was compared with measurements, each
            with the range.
        kind: "prediction", or "upper in the limit, for idealised rows" where Proposition 2 of
            docs/proofs.md proves that much.
    """

    value: float
    of: str
    source: str
    outside: tuple[str, ...] = ()
    kind: str = PREDICTED

    @property
    def in_range(self) -> bool:
        """True where it was compared with measurements at sizes like these."""
        return not self.outside


def predict(
    phi: FeatureMap,
    X: TextMatrix | Tensor,
    *,
    words: int | None = None,
) -> Prediction | None:
    """The prediction of S for this map and text, from their sizes and, for attention, the rows'
    Gram matrix.

    Random features, deep ones: `rf_sensitivity`. Softmax attention with one head of full rank and
    temperature 1: `raf_sensitivity_of_text`. Normalized ReLU attention with one head, where rows
    have no mean cosine: `raf_sensitivity`. None for other maps, and for rows that are not of length
    sqrt(d). The radius is sqrt(d). docs/theory/predictions.md compares each with measurements.

    Args:
        words: over how many words S is the largest; None for all of the text's.

    >>> import torch
    >>> from wordsens.maps.dense import RandomFeatures
    >>> predict(RandomFeatures(4, 9), torch.ones(4, 9)).of
    'the largest of 4 words'
    """
    rows = phi.accept(as_text_matrix(X).rows).double()
    count = len(rows) if words is None else require_count("words", words)
    if not rows_are_scaled(rows):
        return None
    (n, d), of = rows.shape, f"the largest of {count} words" if count > 1 else TYPICAL
    if isinstance(phi, DeepRandomFeatures):
        sizes = n, d, phi.width, phi.depth, phi.activation.name
        value = finite_width_sensitivity(*sizes, count)
        return Prediction(value, of, "finite width", outside_of_dense(*sizes))
    if not isinstance(phi, RandomAttentionFeatures) or phi.heads > 1 or phi.head_dimension:
        return None
    gram = rows @ rows.T / d
    cosine, spread = gram_moments(gram, d)
    if type(phi.score) is DividedRelu and not cosine:
        value = exchangeable_sensitivity(n, d, "relu", 0.0, spread, count)
    elif type(phi.score) is Softmax and phi.temperature == 1:
        value = sensitivity_of_gram(gram, d, (cosine, spread), count)
    else:
        return None
    # The proof's rows: orthogonal, or independent, and no word in particular.
    idealised = count == 1 and cosine == 0 and spread in (0, 1)
    proved = phi.score.name == "softmax" and idealised
    outside = outside_of_attention(n, d, phi.score.name, cosine, spread)
    return Prediction(
        value=value,
        of=of,
        source="comparison",
        outside=outside,
        kind=IN_THE_LIMIT if proved else PREDICTED,
    )
