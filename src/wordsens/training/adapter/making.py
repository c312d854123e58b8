"""The two ways to make a tuned model: weights that are trained, and a parity that is computed."""

import random
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from wordsens.evaluation.kinds import SYNONYM
from wordsens.models.contract import Model
from wordsens.models.digest import joined_digest
from wordsens.seeds import Seed, derive_seed
from wordsens.text.pairs import LENGTHS
from wordsens.training.adapter.examples import from_frames, from_pairs, from_sentences, in_paragraphs
from wordsens.training.adapter.parity.build import ParityModel
from wordsens.training.adapter.plan import TunePlan
from wordsens.training.adapter.save import write_model
from wordsens.training.adapter.split import Split, sentences_of
from wordsens.training.adapter.train import Checkpoint, Material, train
from wordsens.training.adapter.trainee import trainee_of

Told = Callable[[float], None]
"""Called with the share that is done."""


@dataclass(frozen=True)
class Making:
    """A model that is being made.

    Attributes:
        name: of the model that is tuned.
        encoder: that model.
        folder: of the new one; it lies in the folder of everything unfinished.
        split: the pairs.
        plain: sentences that may be trained on.
        plan: the settings.
        seed: of everything random.
        revision: of the name.
    """

    name: str
    encoder: Model
    folder: Path
    split: Split
    plain: Sequence[str]
    plan: TunePlan
    seed: Seed
    revision: str | None


class TrainedWeights:
    """Layers, low-rank parts or a matrix, trained; InputError for a model whose layers cannot be cut like that."""

    def __init__(self, making: Making):
        self._making = making
        self._trainee = trainee_of(making.encoder.features(), making.plan, derive_seed(making.seed, "adapter"))

    def write(self, told: Told) -> int:
        """Train from the last checkpoint on, and write the model; how many numbers were trained."""
        making, plan = self._making, self._making.plan
        trained_on = [pair.row() for pair in making.split.train]
        run = joined_digest(making.encoder.identity(), asdict(plan), trained_on, making.plain, int(making.seed))
        checkpoint = Checkpoint(making.folder.parent / "checkpoint.pt", run)
        train(
            self._trainee, _material(making), plan, checkpoint, seed=making.seed,
            progress=lambda done, total: told(done / total),
        )  # fmt: skip
        pooling = making.encoder.features().pooling
        parts = pooling.parts if pooling else ("mean",)
        write_model(making.folder, making.name, self._trainee, parts, revision=making.revision)
        return sum(weight.numel() for weight in self._trainee.parameters())


class CountedParity:
    """The parity of turning words; InputError for a model that cannot carry it."""

    def __init__(self, making: Making):
        self._making = making
        pooling = making.encoder.features().pooling
        self._model = ParityModel(making.name, making.plain, pooling=pooling, revision=making.revision)

    def write(self, told: Told) -> int:
        """Write the model; how many numbers were set."""
        making, plan = self._making, self._making.plan.parity
        chance = random.Random(derive_seed(making.seed, "examples"))
        half = plan.changes // 2
        changed = [*from_frames(half, chance), *from_sentences(making.plain, plan.changes - half, chance)]
        plain = chance.sample(list(making.plain), min(plan.sentences, len(making.plain)))
        return self._model.write(making.folder, plan, plain, changed, seed=int(making.seed), told=told)


def _material(making: Making) -> Material:
    """Examples from everything that may be trained on but pages; paraphrases serve as often as opposites."""
    plan, chance = making.plan, random.Random(derive_seed(making.seed, "examples"))
    short = [pair for pair in making.split.train if pair.length != LENGTHS[-1]]
    opposites = [pair for pair in short if not pair.same]
    alike = [pair for pair in short if pair.same and pair.kind != SYNONYM] or [pair for pair in short if pair.same]
    sentences = [*making.plain, *sentences_of(text for pair in short for text in (pair.first, pair.second))]
    made = [*from_frames(plan.made, chance), *from_sentences(sentences, plan.made // 2, chance)]
    return Material(
        made=in_paragraphs(made, sentences, plan.paragraphs, plan.longest, chance),
        real=[
            *from_pairs(opposites, chance),
            *from_pairs(alike * max(1, len(opposites) // max(1, len(alike))), chance),
        ],
        plain=chance.sample(sentences, min(plan.kept, len(sentences))),
    )
