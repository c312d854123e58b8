"""The experiments of the paper's five steps: numbers, which the page draws."""

from typing import Any

import torch

from wordsens.app.tasks.measure import FIRST_LOOK, SHARES, attention_lines
from wordsens.app.worker import TaskContext
from wordsens.errors import InputError
from wordsens.generalization import NewText, fit_min_norm
from wordsens.maps.attention.features import RandomAttentionFeatures
from wordsens.maps.base import FeatureMap
from wordsens.maps.registry import build_map
from wordsens.maps.transformer.features import loaded_model
from wordsens.sensitivity.one_word import attained, word_sensitivity
from wordsens.sensitivity.result import Sensitivity
from wordsens.sensitivity.theorem_witness import theorem_witness
from wordsens.text.embedding import embed
from wordsens.text.synthetic import gaussian_text
from wordsens.theory.prediction import predict

COMPARED = ("raf", "rf")
"""The maps of steps 1, 2 and 4."""

MOST_WORDS = 20
"""Of the sentence: a dense layer of that size has a matrix of half a gigabyte."""


def strength(context: TaskContext, text: str) -> dict[str, Any]:
    """Step 1: the output's change when the word that attention is most sensitive to goes a share of its strongest
    perturbation, under attention and under a fully connected layer."""
    X = embed([text], max_words=MOST_WORDS)[0]
    word, values, lines = None, {}, None
    for name in COMPARED:
        phi: FeatureMap = build_map(name, *X.rows.shape, seed=0)
        searched = None if word is None else [word]
        result = word_sensitivity(phi, X, searched, search="quick", certificate=False, progress=context.tick)
        word = result.word if word is None else word
        delta = result.perturbations[result.words.tolist().index(word)]
        moved = torch.stack([share * delta for share in SHARES]).unsqueeze(1)
        values[name] = attained(phi, phi.accept(X.rows), torch.full((len(SHARES), 1), word), moved).tolist()
        lines = lines or attention_lines(phi, X, word, delta)
    assert word is not None
    return {"values": values, "lines": lines, "word": X.word(word), "words": len(X)}


SIZES = (5, 10, 20, 40, 80, 120, 160, 200)
DIMENSION = 192
SEARCHED = 4
"""Words of each text that are searched: enough for the trend, and a point a second."""


def lengths(context: TaskContext, most: int, known: dict[str, list[list[float | None]]]) -> dict[str, Any]:
    """Step 2: [n, S, predicted S] of random texts up to `most` words; `known` holds the points measured before.

    The prediction is None at sizes at which it was not compared with measurements.
    """
    points = {name: [list(point) for point in known.get(name, [])] for name in COMPARED}
    sizes = [n for n in SIZES if n <= most]
    missing = [(n, name) for n in sizes for name in COMPARED if not any(point[0] == n for point in points[name])]
    for done, (n, name) in enumerate(missing, start=1):
        X = gaussian_text(n, DIMENSION, seed=n)
        phi = build_map(name, n, DIMENSION, seed=0)
        words = range(min(n, SEARCHED))
        result = word_sensitivity(phi, X, words, search="quick", certificate=False, progress=context.tick)
        predicted = predict(phi, X, words=len(words))
        point = [n, result.value, predicted.value if predicted is not None and predicted.in_range else None]
        points[name] = sorted([*points[name], point], key=lambda one: one[0] or 0)
        context.send({"share": done / len(missing), "points": points})
    return {"points": points}


def theorem(context: TaskContext, text: str, word: str) -> dict[str, Any]:
    """Step 3: the perturbation that the proof of Theorem 3 builds, at that word.

    Raises:
        InputError: the text does not have it.
    """
    X = embed([text], max_words=MOST_WORDS)[0]
    tokens = [X.word(at) for at in range(len(X))]
    if word not in tokens:
        raise InputError(f"“{word}” is not a word of your sentence, of which these are read: {' '.join(tokens)}")
    phi = RandomAttentionFeatures(X.rows.shape[1], seed=0)
    witness = theorem_witness(phi, X, tokens.index(word))
    context.tick()
    return {
        "lines": attention_lines(phi, X, witness.word, witness.perturbation),
        "word": word,
        "mass": witness.mass,
        "value": witness.value,
        "opposite": witness.opposite_value,
        "guarantee": witness.guarantee,
    }


WORDS, TEXTS = 15, 30
LEARNING_DIMENSION = 128
GAMMAS = (0.1, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75)


def learning(context: TaskContext, seed: int) -> dict[str, Any]:
    """Step 4: the least error that one changed word can reach under each limit on gamma, of a dense layer and of
    attention."""
    size = WORDS, LEARNING_DIMENSION
    texts = [gaussian_text(*size, seed=seed * 1000 + at) for at in range(1, TEXTS + 1)]
    labels = [1, -1] * (TEXTS // 2)
    new = gaussian_text(*size, seed=seed * 1000)
    errors: dict[str, list[float]] = {}
    for done, name in enumerate(COMPARED, start=1):
        phi = build_map(name, *size, seed=seed)
        learned = NewText(fit_min_norm(phi, texts, labels), new, 1)
        errors[name] = learned.frontier(gammas=GAMMAS, search="quick").errors.tolist()
        context.send({"share": done / len(COMPARED), "gammas": GAMMAS, "errors": errors})
    return {"gammas": GAMMAS, "errors": errors}


MODEL_SIZES = (6, 12, 24, 48, 96)
MODEL_WORDS = 3
"""Words of a text that are searched, spread over it."""


def trained(context: TaskContext, model: str, text: str) -> dict[str, Any]:
    """Step 5: S of a trained model: of every layer on the text, and of the last layer on the text repeated and cut."""
    phi = loaded_model(model, torch.float32, "cpu")
    layers, X = phi.attention_layers, phi.embed([text])[0]
    steps = layers + len(MODEL_SIZES)
    answer: dict[str, Any] = {"layers": [], "lengths": [], "lines": None}
    for layer in range(1, layers + 1):
        at_layer = phi.at(layer=layer)
        result = _short_search(context, at_layer, X)
        answer["layers"].append([layer, result.value])
        if layer == layers:
            delta = result.perturbations[result.words.tolist().index(result.word)]
            answer |= {"lines": attention_lines(at_layer, X, result.word, delta), "word": X.word(result.word)}
        context.send({"share": layer / steps, **answer})
    long = " ".join([text] * (MODEL_SIZES[-1] // max(1, len(text.split())) + 1))
    for done, size in enumerate(MODEL_SIZES, start=layers + 1):
        cut = phi.embed([" ".join(long.split()[:size])])[0]
        answer["lengths"].append([size, _short_search(context, phi.at(layer=-1), cut).value])
        context.send({"share": done / steps, **answer})
    return answer


def _short_search(context: TaskContext, phi: Any, text: Any) -> Sensitivity:
    n = len(text)
    words = sorted({round(1 + at * (n - 3) / (MODEL_WORDS - 1)) for at in range(MODEL_WORDS)})  # not [CLS], nor [SEP]
    return word_sensitivity(phi, text, words, search=FIRST_LOOK, certificate=False, progress=context.tick)
