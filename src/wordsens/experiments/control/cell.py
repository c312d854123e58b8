"""One training under control: from spec to the columns of a record."""

import time
from collections.abc import Callable, Mapping
from statistics import fmean, median
from typing import Any

import torch
from torch import Tensor

from wordsens.certificates.certify import certify
from wordsens.errors import ZeroFeaturesError
from wordsens.experiments.control.along import AlongTraining
from wordsens.experiments.control.pairs import pairs_of
from wordsens.experiments.control.record import ControlRecord
from wordsens.experiments.control.spec import HOLD, ControlCell
from wordsens.experiments.control.summary import summarise_control
from wordsens.experiments.kinds import CellKind
from wordsens.experiments.texts.documents import available
from wordsens.experiments.texts.source import Embedded
from wordsens.experiments.texts.training import SENTIMENT, Draw, labelled_texts
from wordsens.seeds import generator
from wordsens.sensitivity.one_word import word_sensitivity
from wordsens.sensitivity.result import Sensitivity
from wordsens.training.controls.adversarial import AdversarialWords
from wordsens.training.controls.contract import Control
from wordsens.training.controls.dropout import WordDropout
from wordsens.training.controls.pairs import SupervisedPairs
from wordsens.training.controls.penalty import SensitivityPenalty
from wordsens.training.controls.sensitivity import SensitivityControl
from wordsens.training.controls.short_search import ShortSearch
from wordsens.training.controls.spectral import SpectralPenalty
from wordsens.training.judge import judged, robust_accuracy
from wordsens.training.loop import train
from wordsens.training.networks.architecture import build_network
from wordsens.training.networks.contract import TextNetwork
from wordsens.training.plan import TrainingPlan
from wordsens.training.tasks.contract import Task, TaskSize
from wordsens.training.tasks.majority import majority_task
from wordsens.training.tasks.one_word import one_word_task
from wordsens.training.tasks.pairs import TextPairs
from wordsens.training.tasks.texts import texts_task

SHORT = ShortSearch(steps=4)
"""Twice the usual steps: at n = 32 they still cost little, and what they attain lies nearer to the full search's."""

ATTACKED_TEXTS, ATTACKED_WORDS = 64, 4
"""Held-out texts whose words are moved against the label, and words of each: a second at n = 256."""

_FEW_TEXTS, _FEW_WORDS = 2, 4
"""Texts and words of each on which S is measured behind every layer, and along the training."""

_PROBED = 1024
"""Texts from which a linear function of the features is learned: 16 for each of 64 features."""


def measure_control(cell: ControlCell, keep: Callable[[Mapping[str, Tensor]], None] | None = None) -> dict[str, Any]:
    """Train, judge, search; `keep` is given the trained `weights` by their names.

    A network whose units have died, so that phi(X) = 0 for all texts that a penalty chose, or for all held-out ones, is
    judged as it then is, and has no sensitivity.
    """
    task = _task(cell)
    network = build_network(cell.architecture, cell.n, cell.d, cell.seed_of("network")).to(cell.device)
    learned, asked = pairs_of(cell, task) if cell.along or cell.control == "pairs" else (None, None)
    control = _control(cell, network, learned)
    plan = TrainingPlan(steps=cell.steps, rate=cell.rate, every=max(1, cell.steps), seed=cell.seed_of("training"))
    along = _along(cell, network, task, asked) if cell.along and asked is not None else None
    if along is not None:
        along(0, cell.steps)
    began, seed = time.process_time(), cell.seed_of("search")
    try:
        train(network, task, plan, control, progress=along)
        spent = time.process_time() - began
        network.requires_grad_(False)
        found, left_out = _searched_texts(cell, network, task, seed, cell.texts, cell.words)
    except ZeroFeaturesError:
        found, left_out, spent = {}, None, time.process_time() - began
        network.requires_grad_(False)
    if keep is not None:
        keep(dict(network.state_dict()))
    loss, accuracy = judged(network, task.test)
    judgement = {"value": accuracy, "loss": loss, "cpu_seconds": spent}
    if not found:
        return judgement
    short = control.penalty.last if isinstance(control, SensitivityControl) else torch.empty(0)
    return {
        **judgement,
        "sensitivity": median(one.value for one in found.values()),
        "median_word": median(float(one.per_word.median()) for one in found.values()),
        "left_out": left_out,
        "short": float(short.mean()) if len(short) else None,
        "robust": robust_accuracy(network, task.test, texts=ATTACKED_TEXTS, words=ATTACKED_WORDS, seed=seed),
        **(_by_layer(cell, network, task, seed) if cell.by_layer else {}),
        **({} if along is None else along.columns()),
        "evaluations": sum(one.evaluations for one in found.values()),
    }


def describe_control(cell: ControlCell) -> dict[str, Any]:
    """The columns that the cell alone decides."""
    names = ("task", "n", "d", "layer", "layers", "control", "target", "steps", "seed", "draw")
    return {**{name: getattr(cell, name) for name in names}, "strength": cell.used_strength}


def _task(cell: ControlCell) -> Task:
    seed = cell.seed_of("task")
    if isinstance(cell.text, Embedded):
        # Of the source's texts a fifth is held out, and a tenth is for looks during the training.
        most = min(cell.training, available(cell.text, cell.n))
        test, looks = most // 5, most // 10
        drawn = Draw(cell.n, cell.d, most, 0, draw=cell.draw, seed=cell.seed)
        texts = labelled_texts(cell.text, SENTIMENT, drawn, dtype=torch.float32).texts
        return texts_task(texts, (most - test - looks, looks, test), seed)
    size = TaskSize(cell.n, cell.d, training=cell.training)
    return one_word_task(size, seed) if cell.task == "one-word" else majority_task(size, seed)


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
    """The sensitivity of the first held-out texts with phi(X) != 0, by their places, and how many were passed over."""
    found, left_out = {}, 0
    for at in range(len(task.test)):
        try:
            found[at] = _searched(cell, network, task, at, words, seed, layer)
        except ZeroFeaturesError:
            left_out += 1
        if len(found) == texts:
            break
    if not found:
        raise ZeroFeaturesError(f"phi(X) = 0 for all {left_out} held-out texts: no unit of the network is on")
    return found, left_out


def _searched(
    cell: ControlCell, network: TextNetwork, task: Task, at: int, words: int, seed: int, layer: int | None = None
) -> Sensitivity:
    """The sensitivity of one held-out text over random words, and the word that decides where there is one."""
    drawn = torch.randperm(cell.n, generator=generator(seed, "words", at))[:words].tolist()
    if task.test.deciding is not None:
        drawn = list(dict.fromkeys([int(task.test.deciding[at]), *drawn]))
    rows = task.test.rows(torch.tensor([at]))[0]
    phi = network.feature_map(layer)
    return word_sensitivity(phi, rows, words=sorted(drawn), seed=seed, search=cell.search, certificate=False)


def _by_layer(cell: ControlCell, network: TextNetwork, task: Task, seed: int) -> dict[str, Any]:
    """The mean S behind each layer, and behind the first a certified bound of it, where that layer has certificates."""
    of_layers = [_of_few(cell, network, task, seed, layer) for layer in range(1, cell.layers + 1)]
    phi = network.certified_layer()
    upper = None
    if phi is not None:
        rows = task.test.rows(torch.tensor(list(of_layers[0]))).to(phi.dtype)
        bounds = [certify(phi, X, found.words.tolist()) for X, found in zip(rows, of_layers[0].values(), strict=True)]
        upper = fmean(float(each.max()) for each in bounds)
    return {"by_layer": tuple(_mean(found) for found in of_layers), "first_upper": upper}


def _of_few(
    cell: ControlCell, network: TextNetwork, task: Task, seed: int, layer: int | None = None
) -> dict[int, Sensitivity]:
    """The sensitivity of a few held-out texts, over a few words of each."""
    return _searched_texts(cell, network, task, seed, _FEW_TEXTS, _FEW_WORDS, layer)[0]


def _mean(found: dict[int, Sensitivity]) -> float:
    return fmean(one.value for one in found.values())


def _along(cell: ControlCell, network: TextNetwork, task: Task, pairs: TextPairs) -> AlongTraining:
    probe = one_word_task(TaskSize(cell.n, cell.d, training=_PROBED), cell.seed_of("probe"))
    seed = cell.seed_of("search")
    return AlongTraining(network, task, pairs, probe, lambda still: _mean(_of_few(cell, still, task, seed)), cell.steps)


KIND = CellKind(
    name="control",
    folder="control-records",
    cell_type=ControlCell,
    record_type=ControlRecord,
    measure=measure_control,
    described=describe_control,
    summarise=summarise_control,
)
