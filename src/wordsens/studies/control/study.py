"""Small networks trained with their word sensitivity held, raised or lowered, and what comes of it."""

import copy
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from statistics import fmean, median
from typing import Annotated, Any, ClassVar

import torch
from jaxtyping import Float
from pydantic import Field, field_validator, model_validator
from torch import Tensor

from wordsens.certificates.certify import certify
from wordsens.errors import InputError, ZeroFeaturesError, require_choice
from wordsens.search.plan import EFFORTS
from wordsens.seeds import derive_seed, generator
from wordsens.sensitivity.one_word import word_sensitivity
from wordsens.sensitivity.result import Sensitivity
from wordsens.statistics.auc import auc
from wordsens.statistics.mean import LEAST, Estimate
from wordsens.statistics.rank_correlation import correlation_interval
from wordsens.studies.control.controls.adversarial import AdversarialWords
from wordsens.studies.control.controls.contract import Control, SensitivityControl
from wordsens.studies.control.controls.dropout import WordDropout
from wordsens.studies.control.controls.pairs import SupervisedPairs
from wordsens.studies.control.controls.spectral import SpectralPenalty
from wordsens.studies.control.judge import judged, robust_accuracy, share_right
from wordsens.studies.control.loop import train
from wordsens.studies.control.networks.architecture import DENSE, Architecture, build_network
from wordsens.studies.control.networks.contract import TextNetwork
from wordsens.studies.control.plan import TrainingPlan
from wordsens.studies.control.tasks.contract import Task, TaskSize
from wordsens.studies.control.tasks.majority import majority_pairs, majority_task
from wordsens.studies.control.tasks.one_word import one_word_pairs, one_word_task
from wordsens.studies.control.tasks.pairs import TextPairs, text_pairs
from wordsens.studies.control.tasks.texts import texts_task
from wordsens.studies.passages import swapped_passages
from wordsens.sweeps.experiment import (
    Claim,
    Column,
    Experiment,
    Grids,
    Summary,
    estimate,
    grouped,
    paired,
    ratio,
    table,
    value_of,
)
from wordsens.sweeps.spec import Cell
from wordsens.sweeps.store import Record
from wordsens.sweeps.texts import (
    SENTIMENT,
    Embedded,
    TextKey,
    available,
    fingerprint,
    labelled_texts,
    text_rows,
    text_spec,
)
from wordsens.text import Document, load_encoder
from wordsens.training.penalty import SensitivityPenalty
from wordsens.training.short_search import ShortSearch

TASK_TITLES = {"one-word": "one word decides", "majority": "majority", "texts": "sentiment"}
HOLD = "hold"
STRENGTHS = {
    HOLD: 1.0, "lower": 0.1, "raise": 0.1, "spectral": 0.01, "word-dropout": 0.3, "adversarial": 0.5, "pairs": 1.0,
}  # fmt: skip
"""The usual weight of a term, share of blank words, share of the radius: round numbers, not tuned."""

CONTROLS = ("none", *STRENGTHS)


class ControlCell(Cell, frozen=True):
    """One network, one task, one control, one seed.

    Attributes:
        task: one-word, majority, or texts for labelled real ones.
        n, d: of a text.
        layer, layers, hidden, temperature, value, residual, norm, mlp, pooling: see `ws.studies.control.Architecture`.
        control: none; hold, lower or raise (the sensitivity penalty); spectral, word-dropout, adversarial; pairs
            (supervised ones).
        target: S to hold.
        strength: the weight of the control's term, the share of blank words, the share of the radius; None: STRENGTHS.
        steps, rate: of the training; 0 steps leave the network random.
        training: texts to learn from.
        text: the source of real texts; None for the other tasks.
        texts, words: so many held-out texts have their S measured, over so many random words of each, and the word that
            decides the label, where one does.
        search: what the full search spends on each word.
        by_layer: whether S is also measured behind every layer.
        along: whether the network is also measured along its training.
        draw: 0, 1, ...: another vocabulary, other texts, other weights.
        seed: of the whole experiment.
    """

    experiment: ClassVar[str] = "control"

    task: str
    n: Annotated[int, Field(ge=2)]
    d: Annotated[int, Field(ge=1)]
    layer: str = "softmax"
    layers: Annotated[int, Field(ge=1)] = 1
    hidden: Annotated[int, Field(ge=1)] = 64
    temperature: float = 1.0
    value: bool = True
    residual: bool = False
    norm: bool = False
    mlp: bool = False
    pooling: str = "mean"
    control: str = "none"
    target: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    strength: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    steps: Annotated[int, Field(ge=0)] = 300
    rate: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 0.01
    training: Annotated[int, Field(ge=1)] = 4096
    text: TextKey | None = None
    texts: Annotated[int, Field(ge=1)] = 5
    words: Annotated[int, Field(ge=1)] = 6
    search: str = EFFORTS[0]
    by_layer: bool = False
    along: bool = False
    draw: Annotated[int, Field(ge=0)] = 0
    seed: int = 0

    @field_validator("search")
    @classmethod
    def _known_effort(cls, name: str) -> str:
        return require_choice("search", name, EFFORTS)

    @model_validator(mode="after")
    def _valid(self) -> "ControlCell":
        require_choice("task", self.task, TASK_TITLES)
        require_choice("control", self.control, CONTROLS)
        if (self.control == HOLD) != (self.target is not None):
            raise InputError(f"`target` (={self.target}) goes with control 'hold', and `control` is {self.control!r}")
        if (self.task == "texts") != isinstance(self.text, Embedded):
            raise InputError(f"`text` is for the task 'texts', which needs real ones; `task` is {self.task!r}")
        if self.strength is not None and self.control == "none":
            raise InputError(f"`strength` (={self.strength}) is of a control, and `control` is 'none'; drop it")
        if self.along and not self.steps:
            raise InputError("`along` (=True) needs a training, and `steps` is 0; drop it")
        _ = self.architecture
        return self

    @property
    def architecture(self) -> Architecture:
        """The network's architecture."""
        names = ("layer", "layers", "hidden", "temperature", "value", "residual", "norm", "mlp", "pooling")
        return Architecture(**{name: getattr(self, name) for name in names})

    @property
    def used_strength(self) -> float | None:
        """The strength, or the usual one; None without a control."""
        return STRENGTHS.get(self.control) if self.strength is None else self.strength

    def seed_of(self, purpose: str) -> int:
        """A seed of its own for a purpose: cells that differ in their network or control alone share it."""
        return derive_seed(self.seed, "control", purpose, self.task, self.n, self.d, self.draw)

    def spec(self) -> dict[str, Any]:
        """Those of attention for attention, and the texts' content. `value` of the layer is `value_matrix`."""
        of_attention = ("temperature", "value", "residual", "norm", "mlp", "pooling") if self.layer == DENSE else ()
        keys = {name: one for name, one in super().spec().items() if name not in (*of_attention, "text")}
        keys["strength"] = self.used_strength
        if "value" in keys:
            keys["value_matrix"] = keys.pop("value")
        if isinstance(self.text, Embedded):
            keys["text"] = text_spec(self.text, fingerprint(self.text, labelled=True), own_rows=False)
        return keys


SHORT = ShortSearch(steps=4)
"""Twice the usual steps: at n = 32 they still cost little, and what they attain lies nearer to the full search's."""

ATTACKED_TEXTS, ATTACKED_WORDS = 64, 4
"""Held-out texts whose words are moved against the label, and words of each: a second at n = 256."""

_FEW_TEXTS, _FEW_WORDS = 2, 4
"""Texts and words of each on which S is measured behind every layer, and along the training."""

_PROBED = 1024
"""Texts from which a linear function of the features is learned: 16 for each of 64 features."""

PASSAGES = 160
"""Passages of real texts of which pairs are made; one half is learned from, the other judged by."""

_JUDGED = 256
"""Held-out texts of the other tasks of which pairs are made."""

_RESULTS = ("sensitivity", "median_word", "left_out", "short", "robust", "by_layer", "first_upper", "evaluations")

ALONG = {
    "accuracy": "along_accuracy",
    "S": "along_sensitivity",
    "synonyms kept": "along_kept",
    "flips told": "along_told",
    "new words": "along_probe",
}
"""What is measured along a training, and its column."""


def measure_control(cell: ControlCell) -> dict[str, Any]:
    """Train, judge, search. `value` is the accuracy on the held-out texts.

    `sensitivity`: S of the features that the head reads: the median over some held-out texts of the largest value of
    the searched words. A network whose units have died, so that phi(X) = 0 for all texts that a penalty chose, or for
    all held-out ones, is judged as it then is, and has no sensitivity. `short`: S by the training's own short search.
    `robust`: the share of held-out texts whose label stays right while a word moves by at most sqrt(d), by a short
    ascent. `by_layer`: S behind each layer, and `first_upper` a certified bound of the first. `along_...`: see
    AlongTraining.
    """
    task = _task(cell)
    network = build_network(cell.architecture, cell.n, cell.d, cell.seed_of("network")).to(cell.device)
    learned, judged_pairs = pairs_of(cell, task) if cell.along or cell.control == "pairs" else (None, None)
    control = _control(cell, network, learned)
    plan = TrainingPlan(steps=cell.steps, rate=cell.rate, every=max(1, cell.steps), seed=cell.seed_of("training"))
    along = AlongTraining(cell, network, task, judged_pairs) if cell.along and judged_pairs is not None else None
    if along is not None:
        along(0, cell.steps)
    began, seed = time.process_time(), cell.seed_of("search")
    try:
        train(network, task, plan, control, progress=along)
        spent = time.process_time() - began
        network.requires_grad_(False)
        results, left_out = _searched_texts(cell, network, task, seed, cell.texts, cell.words)
    except ZeroFeaturesError:
        results, left_out, spent = {}, None, time.process_time() - began
        network.requires_grad_(False)
    loss, accuracy = judged(network, task.test)
    columns = {
        **dict.fromkeys((*_RESULTS, "along_steps", *ALONG.values())),
        "value": accuracy,
        "loss": loss,
        "cpu_seconds": spent,
        "arrays": dict(network.state_dict()),
    }
    if not results:
        return columns
    short = control.penalty.last if isinstance(control, SensitivityControl) else torch.empty(0)
    return {
        **columns,
        "sensitivity": median(one.value for one in results.values()),
        "median_word": median(float(one.per_word.median()) for one in results.values()),
        "left_out": left_out,
        "short": float(short.mean()) if len(short) else None,
        "robust": robust_accuracy(network, task.test, texts=ATTACKED_TEXTS, words=ATTACKED_WORDS, seed=seed),
        **(_by_layer(cell, network, task, seed) if cell.by_layer else {}),
        **({} if along is None else along.columns()),
        "evaluations": sum(one.evaluations for one in results.values()),
    }


def _task(cell: ControlCell) -> Task:
    seed = cell.seed_of("task")
    if isinstance(cell.text, Embedded):
        # Of the source's texts a fifth is held out, and a tenth is for looks during the training.
        most = min(cell.training, available(cell.text, cell.n))
        test, looks = most // 5, most // 10
        texts = labelled_texts(
            *(cell.text, SENTIMENT, (cell.n, cell.d)),
            training=most,
            held_out=0,
            draw=cell.draw,
            seed=cell.seed,
            dtype=torch.float32,
        ).texts
        return texts_task(texts, (most - test - looks, looks, test), seed)
    size = TaskSize(cell.n, cell.d, training=cell.training)
    return one_word_task(size, seed) if cell.task == "one-word" else majority_task(size, seed)


def pairs_of(cell: ControlCell, task: Task) -> tuple[TextPairs, TextPairs]:
    """Pairs to learn from, and pairs to judge by: of the training and of the held-out texts of a synthetic task.

    Of real texts: passages of n rows in which one word is exchanged; no passage is in both parts, but another one of
    the same text may be, and the exchanges come from the same lists.
    """
    seed = cell.seed_of("pairs")
    if not isinstance(cell.text, Embedded):
        make = one_word_pairs if cell.task == "one-word" else majority_pairs
        held_out = make(task.test, seed)
        some = torch.arange(len(task.test)) < _JUDGED
        return make(task.training, seed), held_out.part(some.repeat(len(held_out) // len(some)))
    plain = cell.text.model_copy(update={"keep_special_tokens": False})
    pairs = swapped_passages(plain, cell.text.encoder, cell.n, PASSAGES, seed)
    texts = [Document(text, None, "a passage") for pair in pairs for text in (pair.first, pair.second)]
    rows = text_rows(texts, plain, cell.n, cell.d, dtype=torch.float32)
    whole = text_pairs([(rows[2 * at], rows[2 * at + 1], not pair.same) for at, pair in enumerate(pairs)])
    # A passage's two pairs stand half the list apart: it is in one part with both.
    first = torch.arange(len(pairs)) % (len(pairs) // 2) < len(pairs) // 4
    return whole.part(first), whole.part(~first)


def _control(cell: ControlCell, network: TextNetwork, pairs: TextPairs | None) -> Control | None:
    strength, seed = cell.used_strength, cell.seed_of("training")
    if strength is None:
        return None
    if pairs is not None and cell.control == "pairs":
        return SupervisedPairs(pairs, strength, seed=seed)
    if cell.control == "spectral":
        return SpectralPenalty(strength, seed)
    if cell.control == "word-dropout":
        return WordDropout(strength, seed)
    if cell.control == "adversarial":
        return AdversarialWords(strength, seed=seed)
    way = None if cell.control == HOLD else cell.control
    penalty = SensitivityPenalty(network.features, cell.target, way=way, search=SHORT, seed=seed)
    return SensitivityControl(penalty, strength)


def _searched_texts(
    cell: ControlCell, network: TextNetwork, task: Task, seed: int, texts: int, words: int, layer: int | None = None
) -> tuple[dict[int, Sensitivity], int]:
    """The sensitivity of the first held-out texts with phi(X) != 0, by their places, and how many were passed over.

    Of each text random words are searched, and the word that decides where there is one.
    """
    results, left_out = {}, 0
    phi = network.feature_map(layer)
    for at in range(len(task.test)):
        drawn = torch.randperm(cell.n, generator=generator(seed, "words", at))[:words].tolist()
        if task.test.deciding is not None:
            drawn = list(dict.fromkeys([int(task.test.deciding[at]), *drawn]))
        rows = task.test.rows(torch.tensor([at]))[0]
        options: dict[str, Any] = {"seed": seed, "search": cell.search, "certificate": False}
        try:
            results[at] = word_sensitivity(phi, rows, words=sorted(drawn), **options)
        except ZeroFeaturesError:
            left_out += 1
        if len(results) == texts:
            break
    if not results:
        raise ZeroFeaturesError(f"phi(X) = 0 for all {left_out} held-out texts: no unit of the network is on")
    return results, left_out


def _of_few(
    cell: ControlCell, network: TextNetwork, task: Task, seed: int, layer: int | None = None
) -> dict[int, Sensitivity]:
    """The sensitivity of a few held-out texts, over a few words of each."""
    return _searched_texts(cell, network, task, seed, _FEW_TEXTS, _FEW_WORDS, layer)[0]


def _by_layer(cell: ControlCell, network: TextNetwork, task: Task, seed: int) -> dict[str, Any]:
    """The mean S behind each layer, and behind the first a certified bound of it, where that layer has certificates."""
    of_layers = [_of_few(cell, network, task, seed, layer) for layer in range(1, cell.layers + 1)]
    phi = network.certified_layer()
    upper = None
    if phi is not None:
        rows = task.test.rows(torch.tensor(list(of_layers[0]))).to(phi.dtype)
        bounds = [certify(phi, X, one.words.tolist()) for X, one in zip(rows, of_layers[0].values(), strict=True)]
        upper = fmean(float(each.max()) for each in bounds)
    return {"by_layer": tuple(fmean(one.value for one in group.values()) for group in of_layers), "first_upper": upper}


SHARES = (0.0, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0)
"""Of the training's steps, after which the network is measured: most is learned early."""

_AT_ONCE = 128
"""Texts whose features are taken in one batch."""


class AlongTraining:
    """Looks at a network after given steps of its training; called as the `progress` of `train`.

    Measured are the accuracy on the held-out texts, S, what becomes of the pairs (`pairs_answers`), and the accuracy
    of a linear function of the features on a one-word task with a vocabulary of its own.
    """

    def __init__(self, cell: ControlCell, network: TextNetwork, task: Task, pairs: TextPairs):
        self._cell, self._network, self._task, self._pairs = cell, network, task, pairs
        self._probe = one_word_task(TaskSize(cell.n, cell.d, training=_PROBED), cell.seed_of("probe"))
        self._steps = {round(share * cell.steps) for share in SHARES}
        self._looks: list[dict[str, float | None]] = []

    def __call__(self, step: int, most: int) -> None:
        """Measure the network where that step is one of those."""
        if step not in self._steps:
            return
        still = copy.deepcopy(self._network).requires_grad_(False)
        try:
            results = _of_few(self._cell, still, self._task, self._cell.seed_of("search"))
            sensitivity = fmean(one.value for one in results.values())
        except ZeroFeaturesError:
            sensitivity = None
        self._looks.append(
            {
                "steps": step,
                "accuracy": judged(still, self._task.test)[1],
                "sensitivity": sensitivity,
                **pairs_answers(still, self._pairs),
                "probe": probe_accuracy(still, self._probe),
            }
        )

    def columns(self) -> dict[str, Any]:
        """A column for each thing that was measured, of one number a look; None where a look does not have it."""
        columns = {name: tuple(point[name] for point in self._looks) for name in self._looks[0]}
        return {f"along_{name}": None if None in values else values for name, values in columns.items()}


def pairs_answers(network: TextNetwork, pairs: TextPairs) -> dict[str, float | None]:
    """What a network makes of pairs: the answer to those that mean the same, and how well it tells the others.

    Returns:
        `kept`: the share of pairs that mean the same whose two logits have one sign. `told`: the chance that the
        relative change ‖phi(B) - phi(A)‖ / ‖phi(A)‖ of a flipped pair is larger than that of one that means the same,
        ties half (AUC); None where no pair is flipped, or where some phi(A) = 0.
    """
    first, second = (_features(network, rows) for rows in pairs.rows())
    before, after = (network.head(features).squeeze(1) > 0 for features in (first, second))
    same = ~pairs.flipped
    unchanged = float((before == after)[same].double().mean())
    lengths = torch.linalg.vector_norm(first.double(), dim=1)
    if not bool(pairs.flipped.any()) or not bool((lengths > 0).all()):
        return {"kept": unchanged, "told": None}
    moved = torch.linalg.vector_norm((second - first).double(), dim=1) / lengths
    return {"kept": unchanged, "told": auc(moved[same].numpy(), moved[pairs.flipped].numpy())}


def probe_accuracy(network: TextNetwork, probe: Task) -> float:
    """The accuracy on a task of a linear function of the features: least squares on its training texts, min-norm."""
    parts = (_features(network, part.rows()) for part in (probe.training, probe.test))
    learned, test = (torch.cat([part, torch.ones(len(part), 1)], dim=1).double() for part in parts)
    weights = torch.linalg.lstsq(learned, probe.training.labels.double().unsqueeze(1), driver="gelsd").solution
    return share_right(probe.test.labels * (test @ weights).squeeze(1))


@torch.no_grad()
def _features(network: TextNetwork, rows: Float[Tensor, "m n d"]) -> Float[Tensor, "m h"]:
    weight = network.head.weight
    return torch.cat([network.features(some.to(weight)) for some in rows.split(_AT_ONCE)]).cpu()


LEAST_TEXTS = 50
"""Fewer labelled texts leave less than ten held out, which tells two accuracies apart in no case."""

STACKS: tuple[dict[str, bool], ...] = (
    {},
    {"residual": True},
    {"norm": True},
    {"residual": True, "norm": True},
    {"residual": True, "norm": True, "mlp": True},
)
"""Stacks of softmax attention: alone, with residual connections, with LayerNorm, with both, and a transformer."""

_LARGE: dict[str, Any] = {
    "n": [8, 16, 32, 64, 128, 256], "controlled": 32, "targets": [0.125, 0.25, 0.5, 1.0, 2.0], "depths": ([32, 128], 6),
    "real": (64, 64), "layers": ["dense", "softmax", "relu"], "held": ["dense", "softmax"],
    "others": [name for name in CONTROLS if name != HOLD], "stacks": STACKS, "along": ["dense", "softmax", "relu"],
    "along_real": True,
}  # fmt: skip
PRESETS: dict[str, dict[str, Any]] = {
    "quick": {
        "draws": 5, "steps": 150, "n": [8, 32], "controlled": 16, "targets": [0.25, 1.0], "depths": ([16], 3),
        "real": (32, 32), "layers": ["dense", "softmax"], "held": ["softmax"], "others": ["none", "lower", "raise"],
        "stacks": (STACKS[0], STACKS[-1]), "along": ["softmax"], "along_real": False,
    },
    "laptop": {"draws": 5, "steps": 300, **_LARGE},
    "full": {"draws": 20, "steps": 600, **_LARGE},
}  # fmt: skip
"""Draws, steps; n of the tasks against the length; n of the controls, S to hold; n of the stacks and their layers; n
and d of real texts; networks along n, those that are controlled, the other controls, the stacks; networks that are
measured along their training, and whether those of real texts are."""


def preset(scale: str, source: Embedded, seed: int, labels: str | None) -> Grids:
    """Networks on one-word and majority tasks against n, under controls, on real texts, by layer, along training."""
    size = PRESETS[scale]
    common: dict[str, Any] = {"draw": list(range(size["draws"])), "steps": size["steps"]}
    tasks, d = ["one-word", "majority"], 32
    grids: list[dict[str, Any]] = [{**common, "task": tasks, "layer": size["layers"], "n": size["n"], "d": d}]
    at = {**common, "task": tasks, "layer": size["held"], "n": size["controlled"], "d": d}
    grids += [{**at, "control": HOLD, "target": size["targets"]}, {**at, "control": size["others"]}]
    lengths, layers = size["depths"]
    stack = {**common, "task": "one-word", "n": lengths, "d": d, "layers": layers, "by_layer": True}
    grids += [{**stack, "steps": 0, **options} for options in size["stacks"]]
    grids += [{**stack, **options} for options in (size["stacks"][0], size["stacks"][-1])]
    followed = {"along": True, "control": ["none", "pairs"]}
    grids += [{**at, "layer": size["along"], **followed}]
    n, most = size["real"]
    try:
        enough = available(source, n) >= LEAST_TEXTS
    except InputError:
        enough = False
    if not enough:
        return grids, [f"fewer than {LEAST_TEXTS} labelled texts have {n} words: real texts are left out"]
    d = min(most, load_encoder(source.encoder).dimension)
    real = {**common, "task": "texts", "text": source.model_dump(mode="json"), "n": n, "d": d, "layer": size["held"]}
    grids += [real, {**real, "control": HOLD, "target": size["targets"]}]
    return grids + ([{**real, **followed}] if size["along_real"] else []), []


_CONTROL_TITLES = {
    "none": "no control",
    "lower": "the penalty",
    "raise": "the reward",
    "spectral": "the spectral penalty",
    "adversarial": "adversarial words",
    "pairs": "supervision by pairs",
}


def control_title(record: Record) -> str:
    """The control in words."""
    name = str(record.control)
    return _CONTROL_TITLES.get(name, name.replace("-", " "))


def network_title(record: Record) -> str:
    """The network in words: "softmax attention, 6 layers, residual, LayerNorm"."""
    names = {"dense": "fully connected", "softmax": "softmax attention", "relu": "ReLU attention"}
    parts = [names.get(record.layer, f"{record.layer} attention")]
    parts += [f"{record.layers} layers"] if record.layers > 1 else []
    options = {"residual": record.residual, "LayerNorm": record.norm, "MLP": record.mlp}
    return ", ".join([*parts, *(name for name, has in options.items() if has)])


def living(records: Sequence[Record]) -> list[Record]:
    """Networks with a sensitivity: some unit answers to a held-out text."""
    return [one for one in records if one.sensitivity is not None]


def single(records: Sequence[Record]) -> list[Record]:
    """Those measured at the end of the training alone, and behind the last layer."""
    return [one for one in living(records) if one.by_layer is None and one.along_steps is None]


def uncontrolled(records: Sequence[Record]) -> list[Record]:
    """Trained single layers without control."""
    return [one for one in single(records) if one.control == "none" and one.steps]


def held(records: Sequence[Record]) -> list[Record]:
    """Those whose S was held at a target."""
    return [one for one in living(records) if one.control == HOLD]


def controlled(records: Sequence[Record]) -> list[Record]:
    """Those of the other controls, and of none at the same size."""
    group = [one for one in single(records) if one.control != HOLD]
    sizes = {(one.task, one.n, one.layer) for one in group if one.control != "none"}
    return [one for one in group if (one.task, one.n, one.layer) in sizes]


def along_training(records: Sequence[Record]) -> list[Record]:
    """Those measured along their training."""
    return [one for one in living(records) if one.along_steps is not None]


def stacked(records: Sequence[Record]) -> list[Record]:
    """Those measured behind each of several layers."""
    return [one for one in living(records) if one.by_layer is not None and len(one.by_layer) > 1]


def growth(record: Record) -> float | None:
    """The factor of S from one layer to the next, geometric mean; None where S is 0 behind one of them."""
    values = record.by_layer or ()
    if len(values) < 2 or not values[0] or not values[-1]:
        return None
    return (values[-1] / values[0]) ** (1 / (len(values) - 1))


def task_title(record: Record) -> str:
    """The task in words."""
    return TASK_TITLES[record.task]


def summarize(records: Sequence[Record]) -> Summary:
    """Tables of the tasks against n, of S held at targets, of other controls and of layers; sentences about them."""
    network: dict[str, Column] = {"map": network_title, "task": task_title, "n": "n"}
    accuracy: dict[str, Column] = {"S": "sensitivity", "accuracy": "value", "robust": "robust"}
    held_at = {"median word": "median_word", **accuracy}
    layers = {"first": lambda one: one.by_layer[0], "at most": "first_upper", "last": lambda one: one.by_layer[-1]}
    weights = {"map": network_title, "weights": _weights, "n": "n", "layers": "layers"}
    other = {**network, "control": "control", "strength": "strength"}
    sections = (
        table("Accuracy against length", uncontrolled(records), {**network, "d": "d"}, accuracy),
        table("S held at a target", held(records), {**network, "target": "target"}, held_at),
        table("Other controls", controlled(records), other, accuracy),
        table("S behind the layers", stacked(records), weights, {**layers, "a layer": growth}),
        table("Along the training", _looks(records), {**network, "control": control_title, "step": "step"}, ALONG),
    )
    along = [
        claim
        for (name, task), group in grouped(uncontrolled(records), network_title, task_title).items()
        for claim in _along_length(f"{name}, {task}", grouped(group, "n"))
    ]
    return Summary(
        tuple(one for one in sections if one.rows),
        "Means over draws, ± one standard error. S: attained by the full search. Robust: right while a word of a few "
        "moves by sqrt(d).",
        (*along, *_claims(records)),
        "S: on held-out texts, over random words and the deciding one. Robust: by short ascent, an upper bound. At "
        "most: a certified bound of S behind the first layer, over the same words, where it is attention alone. "
        "A layer: the factor from one layer to the next, geometric mean. Synonyms kept: copies of a text in which a "
        "word is another that means the same, whose label stays. Flips told: the AUC by which copies whose meaning is "
        "flipped move the features farther than those. New words: the accuracy of a linear function of the features on "
        "a one-word task of another vocabulary.",
        leading=max(1, len(along)),
    )


def _weights(record: Record) -> str:
    return "trained" if record.steps else "random"


def _looks(records: Sequence[Record]) -> list[Record]:
    """A record for each look at a network along its training."""
    return [
        one.replace(step=step, **{name: group[at] for name in ALONG.values() if (group := getattr(one, name))})
        for one in along_training(records)
        for at, step in enumerate(one.along_steps)
    ]


NEAR = 0.02
"""Accuracies whose difference has an interval within this of 0 are said to be equal."""

CHANCE = 0.5

FOLLOWS = 0.9
"""The rank correlation beyond which S is said to follow its target."""


def _claims(records: Sequence[Record]) -> Iterator[Claim]:
    """The other sentences that the records support: where the 95 % interval of a change leaves out 0, draw by draw."""
    plain = grouped(uncontrolled(records), network_title, task_title, "n")
    for key, group in grouped(held(records), network_title, task_title, "n").items():
        yield from _held(", ".join(key[:2]), grouped(group, "target"), plain.get(key, []))
    for (name, task, n), group in grouped(controlled(records), network_title, task_title, "n").items():
        yield from _controls(f"{name}, {task}, {n} words", grouped(group, "control"))
    for (name, weights, n), group in grouped(stacked(records), network_title, _weights, "n").items():
        yield from _layers(f"{name}, {weights}, {n} words", group)
    for (name, task, n), group in grouped(along_training(records), network_title, task_title, "n").items():
        yield from _along(f"{name}, {task}, {n} words", grouped(group, "control"))
    if dead := [one for one in records if one.sensitivity is None]:
        names = Counter(f"{network_title(one)}, {task_title(one)}, {control_title(one)}" for one in dead)
        sentence = (
            f"In {len(dead)} of {len(records)} trainings the network's units died: its features are 0 for every text "
            "that was looked at, and S is not defined. They are in no mean: "
            f"{'; '.join(f'{name} ({count})' for name, count in names.items())}."
        )
        yield Claim(str(len(dead)), sentence, "A unit of ReLU that is off for every text has no gradient.")


Groups = dict[tuple[Any, ...], list[Record]]


def _mean(records: Sequence[Record], column: Column) -> Estimate:
    return Estimate.of([value_of(one, column) for one in records])


def _sign(change: Estimate | None, none: float = 0.0) -> int:
    """1 or -1 where the interval lies above or below what no change is; else 0."""
    low, high = (none, none) if change is None else change.interval
    return (low > none) - (high < none)


def _paired(estimate: Estimate) -> str:
    return f"Paired over {estimate.draws} draws, ± one standard error; its 95 % interval decides."


def _along_length(subject: str, sizes: Groups) -> Iterator[Claim]:
    (first,), (last,) = min(sizes), max(sizes)
    few, many = sizes[first,], sizes[last,]
    change = paired(many, few)
    if first == last or change is None:
        return
    before, after = _mean(few, "value"), _mean(many, "value")
    low, high = change.interval
    if high < 0:
        chance = after.interval[0] <= CHANCE <= after.interval[1]
        also = ", which is not told from chance" if chance else ""
        sentence_text = f"falls from {before} at {first} words to {after} at {last}{also}"
    elif low > -NEAR and high < NEAR:
        sentence_text = f"stays from {first} words ({before}) to {last} ({after})"
    elif low > 0:
        sentence_text = f"rises from {before} at {first} words to {after} at {last}"
    else:
        return
    beside = f"S, beside it, is {_mean(few, 'sensitivity')} and {_mean(many, 'sensitivity')}."
    yield Claim(f"{after.mean:.2g}", f"{subject}: accuracy {sentence_text}; {beside}", _paired(change))


def _held(subject: str, targets: Groups, plain: Sequence[Record]) -> Iterator[Claim]:
    """The rank correlation of S with its target, where its interval lies above 0; and what each target costs."""
    (first,), (last,) = min(targets), max(targets)
    if first == last:
        return
    draws = grouped((one for group in targets.values() for one in group), "draw")
    pairs = {draw: [(one.target, one.sensitivity) for one in group] for (draw,), group in draws.items()}
    value, low, high = correlation_interval(pairs) if len(pairs) >= LEAST else (0.0, 0.0, 0.0)
    if low > 0:
        sentence = (
            f"{subject}: {'S follows' if low > FOLLOWS else 'S rises with'} its target over a factor of "
            f"{last / first:g}, from {_mean(targets[first,], 'sensitivity')} at {first:g} to "
            f"{_mean(targets[last,], 'sensitivity')} at {last:g}; rank correlation {value:.2f} over targets and "
            f"draws ({low:.2f} to {high:.2f})."
        )
        yield Claim(f"{value:.2f}", sentence, "Spearman's; 95 % bootstrap interval over draws. S by full search.")
    for (target,), group in targets.items():
        yield from _cost(f"{subject}: S held at {target:g}", group, plain)


def _cost(subject: str, records: Sequence[Record], plain: Sequence[Record]) -> Iterator[Claim]:
    """The accuracy that a control costs or gains, and what it does to the accuracy under attack."""
    for column, word in (("value", "accuracy"), ("robust", "accuracy while a word moves")):
        gain = paired(records, plain, column)
        if gain is not None and (sign := _sign(gain)):
            draws = {one.draw for one in records}
            was = fmean(getattr(one, column) for one in plain if one.draw in draws)
            size = Estimate(abs(gain.mean), gain.error, gain.draws)
            sentence_text = f"{subject} {'gains' if sign > 0 else 'costs'} {size} of {word} ({was:.3g} without)."
            yield Claim(f"{gain.mean:+.2g}", sentence_text, _paired(gain))


def _controls(place: str, controls: Groups) -> Iterator[Claim]:
    plain, untold = controls.pop(("none",), []), []
    for group in controls.values():
        subject, change = f"{place}: {control_title(group[0])}", ratio(group, plain, "sensitivity")
        if change is not None and (sign := _sign(change, 1.0)):
            sentence_text = f"{subject} {'raises' if sign > 0 else 'lowers'} S, by the factor {change}."
            yield Claim(f"×{change.mean:.2g}", sentence_text, _paired(change))
        elif change is not None:
            untold.append(f"{control_title(group[0])} ({change})")
        yield from _cost(subject, group, plain)
    if untold:
        sentence_text = f"{place}: whether S changes, the draws do not tell of {'; '.join(untold)}."
        yield Claim(
            str(len(untold)), sentence_text, "In brackets: the factor of S, paired over draws; its interval holds 1."
        )


def _layers(subject: str, records: Sequence[Record]) -> Iterator[Claim]:
    factor = estimate(records, growth)
    if factor is not None and (sign := _sign(factor, 1.0)):
        first, last = (Estimate.of([one.by_layer[at] for one in records]) for at in (0, -1))
        sentence = (
            f"{subject}: S {'grows' if sign > 0 else 'falls'} from layer to layer by the factor {factor}, from {first} "
            f"to {last}."
        )
        yield Claim(f"×{factor.mean:.3g}", sentence, _paired(factor))


_ALONG_TITLES = {
    "along_sensitivity": "S",
    "along_kept": "the share of synonyms that keep the label",
    "along_told": "the AUC of flips against synonyms",
    "along_probe": "the accuracy of a linear function of the features on a one-word task of new words",
}
"""What of a training is said, besides the accuracy: the column, and its name in a sentence."""


def _along(place: str, controls: Groups) -> Iterator[Claim]:
    """What changes from the first step to the last without control, and what each control changes at the last."""
    plain = controls.get(("none",), [])
    for (control,), group in controls.items():
        for column, title in _ALONG_TITLES.items():
            ends = [one.replace(end=values[-1]) for one in group if (values := getattr(one, column))]
            at = 0 if control == "none" else -1
            others = [one.replace(end=values[at]) for one in plain if (values := getattr(one, column))]
            change = paired(ends, others, "end")
            if change is None or not (sign := _sign(change)):
                continue
            now, before = _mean(ends, "end"), _mean(others, "end")
            if control == "none":
                start, end = (Estimate.of([one.along_accuracy[at] for one in group]) for at in (0, -1))
                sentence_text = (
                    f"along the training {title} {'rises' if sign > 0 else 'falls'} from {before} to {now}, "
                )
                sentence_text += f"while accuracy goes from {start} to {end}."
            else:
                sentence_text = (
                    f"{control_title(group[0])} {'raises' if sign > 0 else 'lowers'} {title} at the end of the "
                )
                sentence_text += f"training: {now} in place of {before}."
            yield Claim(f"{change.mean:+.2g}", f"{place}: {sentence_text}", _paired(change))


CONTROL = Experiment(
    name="control",
    Cell=ControlCell,
    measure=measure_control,
    preset=preset,
    summarize=summarize,
)
