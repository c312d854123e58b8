"""The experiments of the paper's three steps: curves and attention as the page draws them, and the
result in a sentence."""

from typing import Any

from wordsens.app.tasks.measure import attention_lines
from wordsens.errors import InputError
from wordsens.generalization import NewText, fit_min_norm
from wordsens.maps.attention.features import RandomAttentionFeatures
from wordsens.maps.registry import build_map
from wordsens.models.embedding import embed
from wordsens.sensitivity.one_word import word_sensitivity
from wordsens.sensitivity.theorem_witness import theorem_witness
from wordsens.text.synthetic import gaussian_text
from wordsens.theory.prediction import predict
from wordsens.workers import report

# The maps of steps 1 and 3.
NAMES = {"raf": "attention", "rf": "fully connected layer"}

# Words of the sentence that are read: for more, a dense layer has a matrix of half a gigabyte.
MOST_WORDS = 20

SIZES = (5, 10, 20, 40, 80, 160)
DIMENSION = 192

# Words of each text that are searched: enough for the trend, and one point per second.
SEARCHED = 4


def lengths() -> dict[str, Any]:
    """Step 1: S of random texts by their length; dashed, the prediction, at the lengths at which it
    was compared with measurements."""
    measured = {name: _curve(name, title, []) for name, title in NAMES.items()}
    predicted = {
        name: _curve(name, f"{title}, predicted", [], dashed=True) for name, title in NAMES.items()
    }
    curves = []
    for done, n in enumerate(SIZES, start=1):
        X = gaussian_text(n, DIMENSION, seed=n)
        words = range(min(n, SEARCHED))
        for name in NAMES:
            phi = build_map(name, n, DIMENSION, seed=0)
            sensitivity = word_sensitivity(
                phi, X, words, search="quick", certificate=False, progress=lambda *_: report()
            )
            measured[name]["points"].append((n, sensitivity.value))
            theory = predict(phi, X, words=len(words))
            if theory is not None and theory.in_range:
                predicted[name]["points"].append((n, theory.value))
        both = *measured.values(), *predicted.values()
        curves = [curve for curve in both if curve["points"]]
        report({"share": sum(SIZES[:done]) / sum(SIZES), "curves": curves})
    (n, first), *_, (m, last) = measured["rf"]["points"]
    sentence = (
        f"From {n} to {m} words the fully connected layer’s sensitivity "
        f"falls from {first:.2f} to {last:.2f}. "
        f"Measured: the largest change found for {SEARCHED} words of a random text, "
        f"in {DIMENSION} dimensions. "
        "Dashed: the theory’s prediction, at lengths where it was checked against measurements."
    )
    return {"curves": curves, "sentence": sentence}


def theorem(text: str, word: str) -> dict[str, Any]:
    """Step 2: the perturbation that the proof of Theorem 3 builds, at that word.

    Raises:
        InputError: the text does not have it.
    """
    X = embed([text], max_words=MOST_WORDS)[0]
    tokens = [X.word(row) for row in range(len(X))]
    chosen = word.strip().lower()
    if chosen not in tokens:
        raise InputError(
            f"“{chosen}” is not among the words of your sentence that are read: {' '.join(tokens)}"
        )
    phi = RandomAttentionFeatures(X.rows.shape[1], seed=0)
    witness = theorem_witness(phi, X, tokens.index(chosen))
    sentence = (
        f"Built, not searched: the output moves by {witness.value:.2f} times its size "
        f"(pushed the opposite way: {witness.opposite_value:.2f}). "
        "The proof guarantees that at least one of these two pushes "
        f"moves the output by {witness.guarantee:.2f} times its size."
    )
    lines = attention_lines(phi, X, witness.word, witness.perturbation)
    return {"lines": lines, "sentence": sentence}


WORDS, TEXTS = 15, 30
LEARNING_DIMENSION = 128
GAMMAS = (0.1, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75)

# The one of the sentence.
GAMMA = 0.5


def learning() -> dict[str, Any]:
    """Step 3: the least error that one changed word can reach under each limit on gamma, for a
    dense layer and for attention."""
    size = WORDS, LEARNING_DIMENSION
    texts = [gaussian_text(*size, seed=seed) for seed in range(1, TEXTS + 1)]
    labels = [1, -1] * (TEXTS // 2)
    new = gaussian_text(*size, seed=0)
    bound = [(place / 20, (2 - place / 20) ** 2) for place in range(2, 36)]
    curves = [
        _curve(
            "rf",
            "(2 − γ)², the theorems’ lower bound for a fully connected layer",
            bound,
            dashed=True,
        )
    ]
    errors: dict[str, float] = {}
    for done, (name, title) in enumerate(NAMES.items(), start=1):
        phi = build_map(name, *size, seed=0)
        learned = NewText(fit_min_norm(phi, texts, labels), new, 1)
        least = learned.frontier(gammas=GAMMAS, search="quick").errors.tolist()
        errors[name] = least[GAMMAS.index(GAMMA)]
        curves.append(_curve(name, title, list(zip(GAMMAS, least, strict=True))))
        report({"share": done / len(NAMES), "curves": curves})
    sentence = (
        f"For γ up to {GAMMA:g} the theorems’ bound (2 − γ)² is at least {(2 - GAMMA) ** 2:.2f}. "
        f"The smallest error found is {errors['rf']:.2f} for the fully connected layer "
        f"and {errors['raf']:.2f} for attention. "
        "Below 1 the label is right. "
        "An error can lie below (2 − γ)², because the theorems are about long texts. "
        f"With {WORDS} words the fully connected layer still notices one of them, "
        "and the bound that holds for such a text is lower."
    )
    return {"curves": curves, "sentence": sentence}


def _curve(map: str, name: str, points: list[Any], *, dashed: bool = False) -> dict[str, Any]:
    return {"colour": map, "name": name, "points": points, "dashed": dashed}
