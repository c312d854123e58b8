"""One network, one task, one control, one seed: trained, judged, and its sensitivity searched."""

import copy
import time
from statistics import fmean, median
from typing import Annotated, Any, ClassVar

import torch
from jaxtyping import Float
from pydantic import Field, field_validator, model_validator
from torch import Tensor

from wordsens.certificates.certify import certify
from wordsens.errors import InputError, ZeroFeaturesError, require_choice
from wordsens.intervals import auc
from wordsens.search.plan import EFFORTS
from wordsens.seeds import derive_seed, generator
from wordsens.sensitivity.one_word import word_sensitivity
from wordsens.sensitivity.result import Sensitivity
from wordsens.studies.control.controls import (
    AdversarialWords,
    Control,
    SensitivityControl,
    SpectralPenalty,
    SupervisedPairs,
    WordDropout,
)
from wordsens.studies.control.networks import DENSE, Architecture, TextNetwork, build_network
from wordsens.studies.control.tasks import (
    Task,
    TaskSize,
    TextPairs,
    majority_pairs,
    majority_task,
    one_word_pairs,
    one_word_task,
    text_pairs,
    texts_task,
)
from wordsens.studies.control.training import (
    TrainingPlan,
    judged,
    robust_accuracy,
    share_right,
    train,
)
from wordsens.studies.passages import swapped_passages
from wordsens.sweeps.spec import Cell
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
from wordsens.text import Document
from wordsens.training.penalty import SensitivityPenalty, ShortSearch

TASK_TITLES = {"one-word": "one word decides", "majority": "majority", "texts": "sentiment"}

HOLD = "hold"

STRENGTHS = {
    HOLD: 1.0,
    "lower": 0.1,
    "raise": 0.1,
    "spectral": 0.01,
    "word-dropout": 0.3,
    "adversarial": 0.5,
    "pairs": 1.0,
}
"""The usual weight of a term, share of blank words, share of the radius: round numbers, not
tuned."""

CONTROLS = ("none", *STRENGTHS)


class ControlCell(Cell, frozen=True):
    """One network, one task, one control, one seed.

    Attributes:
        task: one-word, majority, or texts for labelled real ones.
        n, d: of a text.
        layer, layers, hidden, temperature, value, residual, norm, mlp, pooling: see
            `ws.studies.control.Architecture`.
        control: none; hold, lower or raise (the sensitivity penalty); spectral, word-dropout,
            adversarial; pairs (supervised ones).
        target: S to hold.
        strength: the weight of the control's term, the share of blank words, the share of the
            radius; None: STRENGTHS.
        steps, rate: of the training; 0 steps leave the network random.
        training: texts to learn from.
        text: the source of real texts; None for the other tasks.
        texts, words: so many held-out texts have their S measured, over so many random words of
            each, and the word that decides the label, where one does.
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
            raise InputError(
                f"`target` (={self.target}) goes with control 'hold', and `control` is "
                f"{self.control!r}"
            )
        if (self.task == "texts") != isinstance(self.text, Embedded):
            raise InputError(
                f"`text` is for the task 'texts', which needs real ones; `task` is {self.task!r}"
            )
        if self.strength is not None and self.control == "none":
            raise InputError(
                f"`strength` (={self.strength}) is of a control, and `control` is 'none'; drop it"
            )
        if self.along and not self.steps:
            raise InputError("`along` (=True) needs a training, and `steps` is 0; drop it")
        _ = self.architecture
        return self

    @property
    def architecture(self) -> Architecture:
        """The network's architecture."""
        names = (
            "layer",
            "layers",
            "hidden",
            "temperature",
            "value",
            "residual",
            "norm",
            "mlp",
            "pooling",
        )
        return Architecture(**{name: getattr(self, name) for name in names})

    @property
    def used_strength(self) -> float | None:
        """The strength, or the usual one; None without a control."""
        return STRENGTHS.get(self.control) if self.strength is None else self.strength

    def seed_of(self, purpose: str) -> int:
        """A seed of its own for a purpose: cells that differ in their network or control alone
        share it."""
        return derive_seed(self.seed, "control", purpose, self.task, self.n, self.d, self.draw)

    def spec(self) -> dict[str, Any]:
        """Those of attention for attention, and the texts' content. `value` of the layer is
        `value_matrix`."""
        of_attention = (
            ("temperature", "value", "residual", "norm", "mlp", "pooling")
            if self.layer == DENSE
            else ()
        )
        keys = {
            name: one for name, one in super().spec().items() if name not in (*of_attention, "text")
        }
        keys["strength"] = self.used_strength
        if "value" in keys:
            keys["value_matrix"] = keys.pop("value")
        if isinstance(self.text, Embedded):
            keys["text"] = text_spec(
                self.text, fingerprint(self.text, labelled=True), own_rows=False
            )
        return keys


SHORT = ShortSearch(steps=4)
"""Twice the usual steps: at n = 32 they still cost little, and what they attain lies nearer to the
full search's."""

ATTACKED_TEXTS, ATTACKED_WORDS = 64, 4
"""Held-out texts whose words are moved against the label, and words of each: a second at n =
256."""

_FEW_TEXTS, _FEW_WORDS = 2, 4
"""Texts and words of each on which S is measured behind every layer, and along the training."""

_PROBED = 1024
"""Texts from which a linear function of the features is learned: 16 for each of 64 features."""

PASSAGES = 160
"""Passages of real texts of which pairs are made; one half is learned from, the other judged by."""

_JUDGED = 256
"""Held-out texts of the other tasks of which pairs are made."""

_RESULTS = (
    "sensitivity",
    "median_word",
    "left_out",
    "short",
    "robust",
    "by_layer",
    "first_upper",
    "evaluations",
)

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

    `sensitivity`: S of the features that the head reads: the median over some held-out texts of the
    largest value of the searched words. A network whose units have died, so that phi(X) = 0 for all
    texts that a penalty chose, or for all held-out ones, is judged as it then is, and has no
    sensitivity. `short`: S by the training's own short search. `robust`: the share of held-out
    texts whose label stays right while a word moves by at most sqrt(d), by a short ascent.
    `by_layer`: S behind each layer, and `first_upper` a certified bound of the first. `along_...`:
    see AlongTraining.
    """
    task = _task(cell)
    network = build_network(cell.architecture, cell.n, cell.d, cell.seed_of("network")).to(
        cell.device
    )
    learned, judged_pairs = (
        pairs_of(cell, task) if cell.along or cell.control == "pairs" else (None, None)
    )
    control = _control(cell, network, learned)
    plan = TrainingPlan(steps=cell.steps, rate=cell.rate, seed=cell.seed_of("training"))
    along = (
        AlongTraining(cell, network, task, judged_pairs)
        if cell.along and judged_pairs is not None
        else None
    )
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
        "robust": robust_accuracy(
            network, task.test, texts=ATTACKED_TEXTS, words=ATTACKED_WORDS, seed=seed
        ),
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
    """Pairs to learn from, and pairs to judge by: of the training and of the held-out texts of a
    synthetic task.

    Of real texts: passages of n rows in which one word is exchanged; no passage is in both parts,
    but another one of the same text may be, and the exchanges come from the same lists.
    """
    seed = cell.seed_of("pairs")
    if not isinstance(cell.text, Embedded):
        make = one_word_pairs if cell.task == "one-word" else majority_pairs
        held_out = make(task.test, seed)
        some = torch.arange(len(task.test)) < _JUDGED
        return make(task.training, seed), held_out.part(some.repeat(len(held_out) // len(some)))
    plain = cell.text.model_copy(update={"keep_special_tokens": False})
    pairs = swapped_passages(plain, cell.text.encoder, cell.n, PASSAGES, seed)
    texts = [
        Document(text, None, "a passage") for pair in pairs for text in (pair.first, pair.second)
    ]
    rows = text_rows(texts, plain, cell.n, cell.d, dtype=torch.float32)
    whole = text_pairs(
        [(rows[2 * at], rows[2 * at + 1], not pair.same) for at, pair in enumerate(pairs)]
    )
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
    cell: ControlCell,
    network: TextNetwork,
    task: Task,
    seed: int,
    texts: int,
    words: int,
    layer: int | None = None,
) -> tuple[dict[int, Sensitivity], int]:
    """The sensitivity of the first held-out texts with phi(X) != 0, by their places, and how many
    were passed over.

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
        raise ZeroFeaturesError(
            f"phi(X) = 0 for all {left_out} held-out texts: no unit of the network is on"
        )
    return results, left_out


def _of_few(
    cell: ControlCell, network: TextNetwork, task: Task, seed: int, layer: int | None = None
) -> dict[int, Sensitivity]:
    """The sensitivity of a few held-out texts, over a few words of each."""
    return _searched_texts(cell, network, task, seed, _FEW_TEXTS, _FEW_WORDS, layer)[0]


def _by_layer(cell: ControlCell, network: TextNetwork, task: Task, seed: int) -> dict[str, Any]:
    """The mean S behind each layer, and behind the first a certified bound of it, where that layer
    has certificates."""
    of_layers = [_of_few(cell, network, task, seed, layer) for layer in range(1, cell.layers + 1)]
    phi = network.certified_layer()
    upper = None
    if phi is not None:
        rows = task.test.rows(torch.tensor(list(of_layers[0]))).to(phi.dtype)
        bounds = [
            certify(phi, X, one.words.tolist())
            for X, one in zip(rows, of_layers[0].values(), strict=True)
        ]
        upper = fmean(float(each.max()) for each in bounds)
    return {
        "by_layer": tuple(fmean(one.value for one in group.values()) for group in of_layers),
        "first_upper": upper,
    }


SHARES = (0.0, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0)
"""Of the training's steps, after which the network is measured: most is learned early."""

_AT_ONCE = 128
"""Texts whose features are taken in one batch."""


class AlongTraining:
    """Looks at a network after given steps of its training; called as the `progress` of `train`.

    Measured are the accuracy on the held-out texts, S, what becomes of the pairs (`pairs_answers`),
    and the accuracy of a linear function of the features on a one-word task with a vocabulary of
    its own.
    """

    def __init__(self, cell: ControlCell, network: TextNetwork, task: Task, pairs: TextPairs):
        self._cell, self._network, self._task, self._pairs = cell, network, task, pairs
        self._probe = one_word_task(
            TaskSize(cell.n, cell.d, training=_PROBED), cell.seed_of("probe")
        )
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
        """A column for each thing that was measured, of one number a look; None where a look does
        not have it."""
        columns = {name: tuple(point[name] for point in self._looks) for name in self._looks[0]}
        return {
            f"along_{name}": None if None in values else values for name, values in columns.items()
        }


def pairs_answers(network: TextNetwork, pairs: TextPairs) -> dict[str, float | None]:
    """What a network makes of pairs: the answer to those that mean the same, and how well it tells
    the others.

    Returns:
        `kept`: the share of pairs that mean the same whose two logits have one sign. `told`: the
            chance that the
        relative change ‖phi(B) - phi(A)‖ / ‖phi(A)‖ of a flipped pair is larger than that of one
            that means the same,
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
    """The accuracy on a task of a linear function of the features: least squares on its training
    texts, min-norm."""
    parts = (_features(network, part.rows()) for part in (probe.training, probe.test))
    learned, test = (torch.cat([part, torch.ones(len(part), 1)], dim=1).double() for part in parts)
    weights = torch.linalg.lstsq(
        learned, probe.training.labels.double().unsqueeze(1), driver="gelsd"
    ).solution
    return share_right(probe.test.labels * (test @ weights).squeeze(1))


@torch.no_grad()
def _features(network: TextNetwork, rows: Float[Tensor, "m n d"]) -> Float[Tensor, "m h"]:
    weight = network.head.weight
    return torch.cat([network.features(some.to(weight)) for some in rows.split(_AT_ONCE)]).cpu()
