"""The effect of deleting one row of a text on what is left of the features."""

import torch

from wordsens.maps.arguments import as_text
from wordsens.maps.contract import FeatureMap
from wordsens.maps.mapping import feature_norm
from wordsens.text.matrix import TextMatrix


def row_removal(phi: FeatureMap, X: TextMatrix | torch.Tensor, word: int) -> float | None:
    """‖phi(X without row i) - phi(X)‖ / ‖phi(X)‖ for features of the whole text; of features with a row for each word
    the rows other than i are compared (ours; one changed text, not a sup).

    A trained model moves the later words one place forward. None where phi takes no shorter text.

    Args:
        phi: the map.
        X: the text, at least three words.
        word: i.

    >>> from wordsens import RandomAttentionFeatures, gaussian_text
    >>> 0 < row_removal(RandomAttentionFeatures(8, seed=0), gaussian_text(4, 8, seed=0), 1) < 1
    True
    """
    rows = phi.accept(as_text(X).rows)
    n = len(rows)
    if phi.text_shape[0] is not None or n < 3:
        return None
    kept = [at for at in range(n) if at != word]
    with torch.no_grad():
        base, less = phi(rows), phi(rows[kept])
        norm = feature_norm(base, phi.name)
        if base.shape != less.shape:
            base = base[..., kept, :]
        return float(torch.linalg.vector_norm((less - base).flatten(), dtype=torch.float64)) / norm
