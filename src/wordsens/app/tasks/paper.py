"""The experiments of the paper's three steps: numbers, which the page draws."""

from typing import Any

from wordsens.app.tasks.measure import attention_lines
from wordsens.app.worker import TaskContext
from wordsens.errors import InputError
from wordsens.generalization import NewText, fit_min_norm
from wordsens.maps.attention.features import RandomAttentionFeatures
from wordsens.maps.registry import build_map
from wordsens.models.embedding import embed
from wordsens.sensitivity.one_word import word_sensitivity
from wordsens.sensitivity.theorem_witness import theorem_witness
from wordsens.text.synthetic import gaussian_text
from wordsens.theory.prediction import predict

COMPARED = ("raf", "rf")
"""The maps of steps 1 and 3."""

MOST_WORDS = 20
"""Of the sentence: a dense layer of that size has a matrix of half a gigabyte."""


SIZES = (5, 10, 20, 40, 80, 160)
DIMENSION = 192
SEARCHED = 4
"""Words of each text that are searched: enough for the trend, and a point a second."""


def lengths(context: TaskContext) -> dict[str, Any]:
    """Step 1: [n, S, predicted S] of random texts; the last is None where no measurement was
    compared with it."""
    points: dict[str, list[list[float | None]]] = {name: [] for name in COMPARED}
    for done, n in enumerate(SIZES, start=1):
        X = gaussian_text(n, DIMENSION, seed=n)
        for name, measured in points.items():
            phi = build_map(name, n, DIMENSION, seed=0)
            words = range(min(n, SEARCHED))
            result = word_sensitivity(
                phi, X, words, search="quick", certificate=False, progress=context.tick
            )
            predicted = predict(phi, X, words=len(words))
            known = predicted is not None and predicted.in_range
            measured.append(
                [n, result.value, predicted.value if predicted is not None and known else None]
            )
        context.send({"share": done / len(SIZES), "points": points})
    return {"points": points}


def theorem(context: TaskContext, text: str, word: str) -> dict[str, Any]:
    """Step 2: the perturbation that the proof of Theorem 3 builds, at that word.

    Raises:
        InputError: the text does not have it.
    """
    X = embed([text], max_words=MOST_WORDS)[0]
    tokens = [X.word(at) for at in range(len(X))]
    if word not in tokens:
        raise InputError(
            f"“{word}” is not a word of your sentence, of which these are read: {' '.join(tokens)}"
        )
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
    """Step 3: the least error that one changed word can reach under each limit on gamma, of a dense
    layer and of attention."""
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
