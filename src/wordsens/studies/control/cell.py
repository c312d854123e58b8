"""One network, one task, one control, one seed: trained, judged, and its sensitivity searched."""

import copy
import time
from statistics import fmean, median
from typing import Annotated, Any, ClassVar

import torch
from jaxtyping import Float
from pydantic import Field, create_model, model_validator
from torch import Tensor

from wordsens.certificates.certify import certify
from wordsens.errors import InputError, ZeroFeaturesError, require_choice
from wordsens.intervals import auc
from wordsens.search.plan import EFFORTS
from wordsens.seeds import derive_seed, generator
from wordsens.sensitivity.one_word import word_sensitivity
from wordsens.sensitivity.result import Sensitivity
from wordsens.studies.control.networks import (
    DENSE,
    OF_ATTENTION,
    OPTIONS,
    Architecture,
    TextNetwork,
    build_network,
)
from wordsens.studies.control.reviews import EDITS, label_flips, review_task
from wordsens.studies.control.tasks import (
    PARTS,
    Pairs,
    Task,
    majority_pairs,
    majority_task,
    one_word_pairs,
    one_word_task,
)
from wordsens.studies.control.training import (
    TEXTS_AT_ONCE,
    AdversarialWords,
    Control,
    SensitivityControl,
    SpectralPenalty,
    SupervisedPairs,
    TrainingPlan,
    WordDropout,
    judged,
    robust_accuracy,
    share_right,
    train,
)
from wordsens.sweeps.spec import Cell
from wordsens.sweeps.texts import Embedded, TextKey, fingerprint, text_spec
from wordsens.training.penalty import SensitivityPenalty, ShortSearch

TASK_TITLES = {"one-word": "one word decides", "majority": "majority", "texts": "sentiment"}

HOLD = "hold"

# By control, the usual weight of its term, share of blank words, or share of the radius: round
# numbers, not tuned.
STRENGTHS = {
    "none": None,
    HOLD: 1.0,
    "lower": 0.1,
    "raise": 0.1,
    "spectral": 0.01,
    "word-dropout": 0.3,
    "adversarial": 0.5,
    "pairs": 1.0,
}

# The options of an architecture are keys of a cell, which `Architecture` checks.
_KEYS: dict[str, Any] = {name: (one.type, one.default) for name, one in OPTIONS.items()}
_NetworkCell: Any = create_model("_NetworkCell", __base__=Cell, **_KEYS)


class ControlCell(_NetworkCell):
    """One network, one task, one control, one seed; the options of `Architecture` are keys too.

    Attributes:
        task: one-word, majority, or texts for labelled real ones.
        n, d: of a text.
        control: none; hold, lower or raise (the sensitivity penalty); spectral, word-dropout,
            adversarial; pairs (supervised ones).
        target: S to hold.
        strength: the weight of the control's term, the share of blank words, the share of the
            radius; None: STRENGTHS.
        steps, batch, rate, shuffle: of the training (`TrainingPlan`); 0 steps leave the network
            random.
        training: texts to learn from; of real texts, those that are held out included.
        text: the source of real texts; None for the other tasks.
        texts, words: this many held-out texts have their S measured, over this many random words of
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
    control: str = "none"
    target: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    strength: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    steps: Annotated[int, Field(ge=0)] = 300
    batch: Annotated[int, Field(ge=1)] = 32
    rate: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 0.01
    shuffle: bool = False
    training: Annotated[int, Field(ge=1)] = 4096
    text: TextKey | None = None
    texts: Annotated[int, Field(ge=1)] = 5
    words: Annotated[int, Field(ge=1)] = 6
    search: str = EFFORTS[0]
    by_layer: bool = False
    along: bool = False
    draw: Annotated[int, Field(ge=0)] = 0
    seed: int = 0

    @model_validator(mode="after")
    def _valid(self) -> "ControlCell":
        require_choice("search", self.search, EFFORTS)
        require_choice("task", self.task, TASK_TITLES)
        require_choice("control", self.control, STRENGTHS)
        if (self.control == HOLD) != (self.target is not None):
            raise InputError(
                f"`target` (={self.target}) goes with control 'hold', and `control` is "
                f"{self.control!r}"
            )
        if (self.task == "texts") != isinstance(self.text, Embedded):
            raise InputError(
                f"`text` is for the task 'texts', which needs real ones; `task` is {self.task!r}"
            )
        if self.task == "texts" and (self.along or self.control == "pairs"):
            raise InputError(
                "`along` and the control 'pairs' need pairs of texts, which the task 'texts' has "
                "none of; choose the task 'one-word' or 'majority'"
            )
        if self.strength is not None and self.control == "none":
            raise InputError(
                f"`strength` (={self.strength}) is of a control, and `control` is 'none'; drop it"
            )
        _ = self.architecture
        return self

    @property
    def architecture(self) -> Architecture:
        """The network's architecture."""
        return Architecture(**{name: getattr(self, name) for name in OPTIONS})

    @property
    def used_strength(self) -> float | None:
        """The strength, or the usual one; None without a control."""
        return self.strength or STRENGTHS[self.control]

    def seed_of(self, purpose: str) -> int:
        """A seed of its own for a purpose: cells that differ in their network or control alone
        share it."""
        return derive_seed(self.seed, "control", purpose, self.task, self.n, self.d, self.draw)

    def spec(self) -> dict[str, Any]:
        """Those of attention for attention, and the texts' content. `value` of the layer is
        `value_matrix`."""
        unused = {"text", *(OF_ATTENTION if self.architecture.layer == DENSE else ())}
        keys = {name: value for name, value in super().spec().items() if name not in unused}
        keys["strength"] = self.used_strength
        if "value" in keys:
            keys["value_matrix"] = keys.pop("value")
        if isinstance(self.text, Embedded):
            content = fingerprint(self.text, labelled=True)
            keys["text"] = text_spec(self.text, content, own_rows=False)
        return keys


# Of the training's steps, after which the network is measured: most is learned early.
SHARES = (0.0, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0)

# What is measured along a training, and its column.
ALONG = {
    "accuracy": "along_accuracy",
    "S": "along_sensitivity",
    "synonyms kept": "along_kept",
    "flips detected": "along_told",
    "new words": "along_probe",
}

# By kind of edit, the column with the share of edits that change the label of a held-out text.
FLIPPED = {kind: f"flipped_by_{kind}" for kind in EDITS}

# The columns of a network whose units have not died.
_OF_LIVING = (
    "sensitivity",
    "median_word",
    "left_out",
    "short",
    "robust",
    "by_layer",
    "first_upper",
    "evaluations",
    "along_steps",
    *ALONG.values(),
)


def measure(cell: ControlCell) -> dict[str, Any]:
    """Train, judge, search. `value` is the accuracy on the held-out texts.

    `sensitivity`: S of the features that the head reads: the median over some held-out texts of the
    largest value of the searched words. A network whose units have died, so that phi(X) = 0 for all
    texts that a penalty chose, or for all held-out ones, is judged as it then is, and has no
    sensitivity. `short`: S by the training's own short search. `robust`: the share of held-out
    texts whose label stays right while a word moves by at most sqrt(d), by a short ascent.
    `by_layer`: S behind each layer, and `first_upper` a certified bound of the first. `along_...`:
    see `look`.
    """
    task, seed = make_task(cell), cell.seed_of("network")
    network = build_network(cell.architecture, cell.n, cell.d, seed).to(cell.device)
    pairs = make_pairs(cell, task) if cell.along or cell.control == "pairs" else None
    control = _control(cell, network, pairs)
    options = {name: getattr(cell, name) for name in ("steps", "batch", "rate", "shuffle")}
    plan = TrainingPlan(**options, seed=cell.seed_of("training"))
    looks: list[dict[str, float | None]] = []
    steps = {round(share * cell.steps) for share in SHARES}

    def follow(step: int, most: int) -> None:
        if cell.along and pairs is not None and step in steps:
            looks.append({"steps": step, **look(cell, network, task, pairs[1])})

    follow(0, cell.steps)
    began, results, left_out = time.process_time(), {}, None
    try:
        train(network, task, plan, control, progress=follow)
        spent = time.process_time() - began
        still = network.requires_grad_(False)
        results, left_out = _search(cell, still, task, cell.texts, cell.words)
    except ZeroFeaturesError:
        spent = time.process_time() - began
    loss, accuracy = judged(network, task.test)
    columns = {
        **dict.fromkeys((*_OF_LIVING, *FLIPPED.values())),
        "value": accuracy,
        "loss": loss,
        "cpu_seconds": spent,
        "arrays": dict(network.state_dict()),
    }
    if not results:
        return columns
    flips = {}
    if isinstance(cell.text, Embedded):
        shape = cell.n, cell.d
        flips = label_flips(network, cell.text, shape, cell.training, seed=cell.seed)
    short = control.penalty.last if isinstance(control, SensitivityControl) else torch.empty(0)
    for name in looks[0] if looks else ():
        values = tuple(point[name] for point in looks)
        columns[f"along_{name}"] = None if None in values else values
    return {
        **columns,
        "sensitivity": median(one.value for one in results.values()),
        "median_word": median(float(one.per_word.median()) for one in results.values()),
        "left_out": left_out,
        "short": float(short.mean()) if len(short) else None,
        # A second at n = 256.
        "robust": robust_accuracy(
            network, task.test, texts=64, words=4, seed=cell.seed_of("search")
        ),
        **(_by_layer(cell, network, task) if cell.by_layer else {}),
        **{FLIPPED[kind]: share for kind, share in flips.items()},
        "evaluations": sum(one.evaluations for one in results.values()),
    }


def make_task(cell: ControlCell) -> Task:
    """The task of a cell."""
    seed = cell.seed_of("task")
    if isinstance(cell.text, Embedded):
        shape = cell.n, cell.d
        return review_task(cell.text, shape, cell.training, seed=cell.seed, draw_seed=seed)
    make = one_word_task if cell.task == "one-word" else majority_task
    return make(cell.n, cell.d, seed, parts=(cell.training, *PARTS[1:]))


def make_pairs(cell: ControlCell, task: Task) -> tuple[Pairs, Pairs]:
    """Pairs to learn from, and pairs to judge by: of the training and of the held-out texts of a
    synthetic task."""
    make, seed = (
        one_word_pairs if cell.task == "one-word" else majority_pairs,
        cell.seed_of("pairs"),
    )
    judged = make(task.test, seed)
    few = torch.arange(len(judged[0])) % len(task.test) < 256
    return make(task.training, seed), (judged[0].part(few), judged[1].part(few))


_SIMPLE = {
    "spectral": SpectralPenalty,
    "word-dropout": WordDropout,
    "adversarial": AdversarialWords,
}


def _control(
    cell: ControlCell, network: TextNetwork, pairs: tuple[Pairs, Pairs] | None
) -> Control | None:
    strength, seed = cell.used_strength, cell.seed_of("training")
    if strength is None:
        return None
    if pairs is not None and cell.control == "pairs":
        return SupervisedPairs(pairs[0], strength, seed=seed)
    if cell.control in _SIMPLE:
        return _SIMPLE[cell.control](strength, seed=seed)
    way = None if cell.control == HOLD else cell.control
    # Twice the usual steps: at n = 32 they still cost little, and what they reach lies nearer to
    # the full search's.
    search = ShortSearch(steps=4)
    penalty = SensitivityPenalty(network.features, cell.target, way=way, search=search, seed=seed)
    return SensitivityControl(penalty, strength)


def _search(
    cell: ControlCell,
    network: TextNetwork,
    task: Task,
    texts: int = 2,
    words: int = 4,
    layer: int | None = None,
) -> tuple[dict[int, Sensitivity], int]:
    """The sensitivity of the first held-out texts with phi(X) != 0, by their places, and how many
    were passed over.

    Of each text random words are searched, and the word that decides where there is one.
    """
    results, left_out, seed = {}, 0, cell.seed_of("search")
    phi, deciding = network.feature_map(layer), task.test.deciding
    for place, rows in enumerate(task.test.rows()):
        drawn = torch.randperm(cell.n, generator=generator(seed, "words", place))[:words].tolist()
        searched = {*drawn, *([] if deciding is None else [int(deciding[place])])}
        options: dict[str, Any] = {"seed": seed, "search": cell.search, "certificate": False}
        try:
            results[place] = word_sensitivity(phi, rows, words=sorted(searched), **options)
        except ZeroFeaturesError:
            left_out += 1
        if len(results) == texts:
            break
    if not results:
        raise ZeroFeaturesError(
            f"phi(X) = 0 for all {left_out} held-out texts: no unit of the network is on"
        )
    return results, left_out


def _by_layer(cell: ControlCell, network: TextNetwork, task: Task) -> dict[str, Any]:
    """The mean S behind each layer, and behind the first a certified bound of it, where that layer
    has certificates."""
    layers = range(1, cell.architecture.layers + 1)
    of_layers = [_search(cell, network, task, layer=layer)[0] for layer in layers]
    phi, upper = network.certified_layer(), None
    if phi is not None:
        rows = task.test.rows().to(phi.dtype)
        upper = fmean(
            float(certify(phi, rows[place], one.words.tolist()).max())
            for place, one in of_layers[0].items()
        )
    by_layer = tuple(fmean(one.value for one in group.values()) for group in of_layers)
    return {"by_layer": by_layer, "first_upper": upper}


def look(
    cell: ControlCell, network: TextNetwork, task: Task, pairs: Pairs
) -> dict[str, float | None]:
    """A look at a network during its training: the accuracy on the held-out texts, S, what it makes
    of the pairs (`pairs_answers`), and the accuracy of a linear function of its features on a
    one-word task with a vocabulary of its own."""
    still = copy.deepcopy(network).requires_grad_(False)
    # 16 texts for each of 64 features.
    probe = one_word_task(cell.n, cell.d, cell.seed_of("probe"), parts=(1024, *PARTS[1:]))
    try:
        sensitivity = fmean(one.value for one in _search(cell, still, task)[0].values())
    except ZeroFeaturesError:
        sensitivity = None
    return {
        "accuracy": judged(still, task.test)[1],
        "sensitivity": sensitivity,
        **pairs_answers(still, pairs),
        "probe": probe_accuracy(still, probe),
    }


def pairs_answers(network: TextNetwork, pairs: Pairs) -> dict[str, float | None]:
    """How a network treats pairs: those that mean the same, and the flipped ones.

    Returns:
        `kept`: the share of pairs that mean the same whose two logits have one sign.
        `told`: the AUC, the chance that the relative change ‖phi(B) - phi(A)‖ / ‖phi(A)‖ of a
            flipped pair is larger than that of one that means the same, ties half; None where no
            pair is flipped, or where some phi(A) = 0.
    """
    first, second = (_features(network, texts.rows()) for texts in pairs)
    before, after = (network.head(features).squeeze(1) > 0 for features in (first, second))
    same, separated = pairs[0].labels == pairs[1].labels, None
    lengths = torch.linalg.vector_norm(first.double(), dim=1)
    if not bool(same.all()) and bool((lengths > 0).all()):
        moved = torch.linalg.vector_norm((second - first).double(), dim=1) / lengths
        separated = auc(moved[same].numpy(), moved[~same].numpy())
    return {"kept": float((before == after)[same].double().mean()), "told": separated}


def probe_accuracy(network: TextNetwork, probe: Task) -> float:
    """The accuracy on a task of a linear function of the features: least squares on its training
    texts, min-norm."""
    parts = (_features(network, part.rows()) for part in (probe.training, probe.test))
    learned, test = (torch.cat([part, torch.ones(len(part), 1)], dim=1).double() for part in parts)
    labels = probe.training.labels.double().unsqueeze(1)
    weights = torch.linalg.lstsq(learned, labels, driver="gelsd").solution
    return share_right(probe.test.labels * (test @ weights).squeeze(1))


@torch.no_grad()
def _features(network: TextNetwork, rows: Float[Tensor, "m n d"]) -> Float[Tensor, "m h"]:
    weight = network.head.weight
    return torch.cat(
        [network.features(some.to(weight)) for some in rows.split(TEXTS_AT_ONCE)]
    ).cpu()
