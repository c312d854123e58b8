"""Word sensitivity: how much can one word change what a model sees?

Names are loaded on first use, so that importing the package, and the command line's help, stay light.
"""

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOMES = {
    "Ball": "wordsens.ball",
    "Certificate": "wordsens.certificates.contract",
    "DeepRandomFeatures": "wordsens.maps.dense",
    "Document": "wordsens.text",
    "FeatureMap": "wordsens.feature_map",
    "FunctionFeatures": "wordsens.feature_map",
    "InputError": "wordsens.errors",
    "RandomAttentionFeatures": "wordsens.maps.attention",
    "RandomFeatures": "wordsens.maps.dense",
    "Score": "wordsens.maps.scores",
    "Sensitivity": "wordsens.sensitivity",
    "TextMatrix": "wordsens.text_matrix",
    "WordsensError": "wordsens.errors",
    "certificate": "wordsens.certificates.certify",
    "certify": "wordsens.certificates.certify",
    "attention_pair": "wordsens.attention_views",
    "best_swaps": "wordsens.swaps",
    "correlated_text": "wordsens.text",
    "embed": "wordsens.text",
    "fit_min_norm": "wordsens.regression",
    "gaussian_text": "wordsens.text",
    "jacobian_sensitivity": "wordsens.jacobian",
    "meaning_pairs": "wordsens.text",
    "MeaningPair": "wordsens.text",
    "minimal_pairs": "wordsens.text",
    "MinNormFit": "wordsens.regression",
    "NewText": "wordsens.generalization",
    "one_word_frontier": "wordsens.generalization",
    "one_word_generalization": "wordsens.generalization",
    "one_word_swap": "wordsens.generalization",
    "OneWordFrontier": "wordsens.generalization",
    "OneWordGeneralization": "wordsens.generalization",
    "orthogonal_text": "wordsens.text",
    "pair_distances": "wordsens.decay",
    "prompt_pair": "wordsens.attention_views",
    "read_documents": "wordsens.text",
    "removal_effects": "wordsens.removals",
    "Removals": "wordsens.removals",
    "shipped_reviews": "wordsens.text",
    "swap_ratio": "wordsens.swaps",
    "Swaps": "wordsens.swaps",
    "texts_of_length": "wordsens.text",
    "theorem_witness": "wordsens.search.theorem",
    "TheoremWitness": "wordsens.search.theorem",
    "TransformerFeatures": "wordsens.maps.transformer",
    "group_sensitivity": "wordsens.groups",
    "GroupSensitivity": "wordsens.groups",
    "several_words_sensitivity": "wordsens.groups",
    "word_sensitivities": "wordsens.several_texts",
    "Vocabulary": "wordsens.swap_vocabulary",
    "whole_word_sensitivity": "wordsens.whole_words",
    "WholeWordSensitivity": "wordsens.whole_words",
    "word_sensitivity": "wordsens.sensitivity",
}

__all__ = [*_HOMES, "theory", "__version__"]  # pyright: ignore[reportUnsupportedDunderAll]

if TYPE_CHECKING:
    from wordsens import theory
    from wordsens.attention_views import attention_pair, prompt_pair
    from wordsens.ball import Ball
    from wordsens.certificates.certify import certificate, certify
    from wordsens.certificates.contract import Certificate
    from wordsens.decay import pair_distances
    from wordsens.errors import InputError, WordsensError
    from wordsens.feature_map import FeatureMap, FunctionFeatures
    from wordsens.generalization import (
        NewText,
        OneWordFrontier,
        OneWordGeneralization,
        one_word_frontier,
        one_word_generalization,
        one_word_swap,
    )
    from wordsens.groups import GroupSensitivity, group_sensitivity, several_words_sensitivity
    from wordsens.jacobian import jacobian_sensitivity
    from wordsens.maps.attention import RandomAttentionFeatures
    from wordsens.maps.dense import DeepRandomFeatures, RandomFeatures
    from wordsens.maps.scores import Score
    from wordsens.maps.transformer import TransformerFeatures
    from wordsens.regression import MinNormFit, fit_min_norm
    from wordsens.removals import Removals, removal_effects
    from wordsens.search.theorem import TheoremWitness, theorem_witness
    from wordsens.sensitivity import Sensitivity, word_sensitivity
    from wordsens.several_texts import word_sensitivities
    from wordsens.swap_vocabulary import Vocabulary
    from wordsens.swaps import Swaps, best_swaps, swap_ratio
    from wordsens.text import (
        Document,
        MeaningPair,
        correlated_text,
        embed,
        gaussian_text,
        meaning_pairs,
        minimal_pairs,
        orthogonal_text,
        read_documents,
        shipped_reviews,
        texts_of_length,
    )
    from wordsens.text_matrix import TextMatrix
    from wordsens.whole_words import WholeWordSensitivity, whole_word_sensitivity


def __getattr__(name: str) -> Any:
    if name == "theory":
        return importlib.import_module("wordsens.theory")
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'wordsens' has no attribute {name!r}; it offers {', '.join(__all__)}")
    value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
