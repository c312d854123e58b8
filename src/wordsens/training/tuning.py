"""`tune`: train a sentence-transformers model to see a meaning that one word turns around; judged
before and after.

Triples (a text, the same in other words, a text of another meaning) come from the pairs and from
near misses of the user's own texts. The training is sentence-transformers' own, full or low-rank
(peft); what is saved has the dimension, the size and the speed of the model that was given.
"""

import hashlib
import json
import math
import os
import random
import shutil
from collections.abc import Iterable, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wordsens.display.markdown import markdown
from wordsens.errors import (
    InputError,
    require_count,
    require_device,
    require_extra,
    require_positive,
)
from wordsens.evaluation.near_misses import near_misses
from wordsens.evaluation.similarities import choose_pairs
from wordsens.files import named_path, writing
from wordsens.models.load import as_model, is_pair_model
from wordsens.models.model import require_cosines
from wordsens.models.model_files import model_folder
from wordsens.models.pretrained import is_of, load_library_model, quiet_transformers
from wordsens.seeds import Seed, derive_seed
from wordsens.text.document import Document
from wordsens.text.pairs import Pairs
from wordsens.text.readers import shipped_reviews
from wordsens.training.held_out import HeldOutJudge, Progress, Tuned, split_pairs
from wordsens.training.triples import Triple, make_triples, sentences_of

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

Data = tuple[dict[str, Any], dict[str, Any]]
"""Data sets for the trainer, and the loss of each."""

_MOST_NEAR_MISSES = 300
"""Of a kind."""

_MOST_SENTENCES = 1000
"""Of the user's texts among which paraphrases are looked for."""

_SHORT = 30
"""Words of a pair's longer text up to which it is trained on: longer ones take most of the time.
Where all are longer, all are."""

_PARTS = 5
"""Of the triples, by length: a batch comes from one of them, and little is padded."""

_STEADY = 600
"""Of the user's sentences, those whose embeddings are held where they were."""

_CHECKPOINTS = 6
"""Of a whole training."""


def tune(
    model: str | PathLike[str],
    out: str | PathLike[str],
    pairs: Pairs | None = None,
    texts: Iterable[str | Document] | None = None,
    *,
    steps: int = 100,
    batch: int = 32,
    rate: float = 8e-5,
    lora: bool = False,
    device: str = "cpu",
    seed: Seed = 0,
    progress: Progress = lambda now, share: None,
) -> Tuned:
    """Train the model so that a "not", an antonym, an amount, a time or a role moves its embedding,
    and save it.

    A third of the domains of the pairs is held out, and judged by `check` before and after; so is
    recall@1 of paraphrases among the texts. Where tuning reaches little, `guard` is the remedy
    (docs/tune.md).

    Args:
        model: a name, a folder, or "minilm": any SentenceTransformer whose weights can be trained.
        out: the folder of the tuned model, new or empty. Until it is complete, checkpoints are in
            OUT.checkpoints; a run that was stopped goes on from there when it is called again in
            the same way.
        pairs: the package's own, or yours; see `read_pairs`.
        texts: yours, in English: half of them for near misses, half for recall@1. None: the
            package's reviews.
        steps: of AdamW.
        batch: triples a step.
        rate: the highest learning rate, reached after a tenth of the steps; it falls to zero from
            there.
        lora: train low-rank matrices instead of the weights, and add them to the weights at the end
            (peft).
        device: cpu, cuda, ...
        seed: of everything random.
        progress: called with what is being done and its share.

    Raises:
        InputError: no such model, or none that can be trained; `out` is not empty; too few pairs or
            texts; other options than those of the run that is continued.
        MissingExtraError: sentence-transformers, accelerate, datasets or, for LoRA, peft is not
            installed.
    """
    require_count("steps", steps)
    require_count("batch", batch, least=2)
    require_positive("rate", rate)
    require_device(device)
    folder, work = _folders(out)
    network = _trainable(model, lora, device)
    chosen, notes = choose_pairs(pairs)
    train, held_out, domains = split_pairs(chosen, seed=seed)
    ours, apart = _split_texts(shipped_reviews() if texts is None else texts, seed)
    chance = random.Random(derive_seed(seed, "triples"))
    try:
        opposites = near_misses(ours, most=_MOST_NEAR_MISSES, seed=seed)
    except InputError as error:
        opposites, notes = [], [*notes, f"the opposites come from the pairs alone: {error}"]
    short = [
        pair for pair in train if max(len(pair.first.split()), len(pair.second.split())) <= _SHORT
    ]
    short = short or train
    triples = make_triples(short, opposites, chance)
    same = [text for pair in short if pair.same for text in (pair.first, pair.second)]
    steady = [*chance.sample(ours, min(_STEADY, len(ours))), *same]
    judge = HeldOutJudge(held_out, triples, apart, seed)
    options = {"steps": steps, "batch": batch, "rate": rate, "lora": lora, "device": device}
    digest = hashlib.sha256(json.dumps(triples).encode()).hexdigest()
    _begin(work, {"model": str(model), "seed": int(seed), **options, "triples": digest})
    before = judge(as_model(network), "before", progress)
    _train(network, _data(network, triples, steady), work, seed, progress, steps, batch, rate)
    finished = _save(network, str(model), work, lora, device)
    after = judge(as_model(str(finished), local_files_only=True), "after", progress)
    counts, seen = (judge.queries, judge.among), min(len(triples), steps * batch)
    tuned = Tuned(str(model), str(folder), seen, domains, before, after, *counts, tuple(notes))
    _publish(finished, tuned, work, folder)
    return tuned


def _split_texts(texts: Iterable[str | Document], seed: Seed) -> tuple[list[str], list[str]]:
    """Sentences of one half of the texts to train on, and at most 1000 of the other half to search
    among."""
    listed = list(texts)
    random.Random(derive_seed(seed, "texts")).shuffle(listed)
    ours = sentences_of(listed[0::2])
    apart = sorted(set(sentences_of(listed[1::2])) - set(ours))
    if not ours or not apart:
        raise InputError(
            f"`texts` (={len(listed)} texts) has too few sentences of 4 to 20 words to train on "
            "one half and search "
            "the other; give more texts, or none for the package's reviews"
        )
    chance = random.Random(derive_seed(seed, "searched"))
    return ours, chance.sample(apart, min(_MOST_SENTENCES, len(apart)))


def _trainable(model: str | PathLike[str], lora: bool, device: str) -> "SentenceTransformer":
    """The model as a SentenceTransformer whose weights can be trained, with fresh low-rank matrices
    where asked."""
    if not isinstance(model, str | PathLike):
        raise InputError(
            f"`model` (a {type(model).__name__}) cannot be trained; give the name or folder of a "
            "model"
        )
    name = os.fspath(model)
    require_extra("tune", "tune", "accelerate", "datasets", *["peft"] * lora)
    if is_pair_model(name):
        raise InputError(f"`model` (={name!r}) scores pairs; tune trains a model of embeddings")
    network = load_library_model(name, model_folder(name), device)
    if not is_of(network, "sentence_transformers", "SentenceTransformer"):
        raise InputError(
            f"`model` (={name!r}) is a {type(network).__name__}; tune trains a SentenceTransformer"
        )
    require_cosines(as_model(network), "tuned models")
    if not any(weight.requires_grad for weight in network.parameters()):
        raise InputError(
            f"`model` (={name!r}) has no weights that can be trained; give the model before "
            "quantisation"
        )
    if lora:
        from peft import LoraConfig

        config = LoraConfig(r=16, lora_alpha=32, lora_dropout=0.0, target_modules="all-linear")
        try:
            network.add_adapter(config)
        except (AttributeError, ValueError) as error:
            raise InputError(
                f"`model` (={name!r}) takes no low-rank matrices; leave `lora` out"
            ) from error
    return network


def _folders(out: str | PathLike[str]) -> tuple[Path, Path]:
    """The folder, and the one beside it for checkpoints."""
    folder = named_path("out", out)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"`out` (={str(out)!r}) exists and is not an empty folder; name a new one")
    if not folder.absolute().parent.is_dir():
        raise InputError(f"`out` (={str(out)!r}) must be in a folder that exists")
    return folder, folder.absolute().with_name(f"{folder.name}.checkpoints")


def _begin(work: Path, settings: dict[str, Any]) -> None:
    """Open the folder of checkpoints; InputError where those in it are of another training."""
    path = work / "tune.json"
    if path.is_file():
        before = json.loads(path.read_text(encoding="utf-8"))
        other = [name for name, value in settings.items() if before.get(name) != value]
        if other:
            raise InputError(
                f"`out`: {str(work)!r} holds the checkpoints of a training with another "
                f"{', '.join(other)}; repeat "
                "that one, or remove the folder"
            )
        return
    if work.exists():
        raise InputError(
            f"`out`: {str(work)!r} exists and holds no checkpoints of tune; move it away"
        )
    with writing("out", work):
        work.mkdir()
        path.write_text(json.dumps(settings), encoding="utf-8")


def _train(
    network: "SentenceTransformer",
    data: Data,
    work: Path,
    seed: Seed,
    progress: Progress,
    steps: int,
    batch: int,
    rate: float,
) -> None:
    """Train in place, from the last checkpoint where there is one."""
    from sentence_transformers import (
        SentenceTransformerTrainer,
        SentenceTransformerTrainingArguments,
    )
    from transformers import PrinterCallback, TrainerCallback

    class Reporting(TrainerCallback):
        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            progress("training", state.global_step / steps)

    arguments = SentenceTransformerTrainingArguments(
        output_dir=str(work),
        max_steps=steps,
        per_device_train_batch_size=batch,
        learning_rate=rate,
        warmup_steps=max(1, steps // 10),
        save_steps=max(1, steps // _CHECKPOINTS),
        save_total_limit=2,
        use_cpu=network.device.type == "cpu",
        seed=derive_seed(seed, "trainer") % 2**32,
        dataloader_pin_memory=False,
        disable_tqdm=True,
        report_to=[],
    )
    network.model_card_data.widget = [
        {"text": ""}
    ]  # else the library draws examples, with a progress bar
    checkpoints = sorted(
        work.glob("checkpoint-*/trainer_state.json"),
        key=lambda path: int(path.parent.name.split("-")[1]),
    )
    with quiet_transformers():
        trainer = SentenceTransformerTrainer(
            model=network,
            args=arguments,
            train_dataset=data[0],
            loss=data[1],
            callbacks=[Reporting()],
        )
        trainer.remove_callback(PrinterCallback)
        outcome = trainer.train(
            resume_from_checkpoint=str(checkpoints[-1].parent) if checkpoints else None
        )
    if not math.isfinite(outcome.training_loss):
        raise InputError(f"the loss became {outcome.training_loss}; lower `rate` (={rate:g})")
    network.eval()


def _data(network: "SentenceTransformer", triples: Sequence[Triple], steady: Sequence[str]) -> Data:
    """Data sets and their losses: triples, whose opposites are hard negatives, and texts whose
    embeddings should stay.

    Each is in parts by length.
    """
    from datasets import Dataset
    from sentence_transformers.sentence_transformer.losses import (
        EmbedDistillLoss,
        MultipleNegativesRankingLoss,
    )

    embeddings = network.encode(list(steady), show_progress_bar=False)
    rows = {
        "triple": [
            dict(zip(("anchor", "positive", "negative"), triple, strict=True)) for triple in triples
        ],
        "steady": [
            {"text": text, "label": row.tolist()}
            for text, row in zip(steady, embeddings, strict=True)
        ],
    }
    losses = {"triple": MultipleNegativesRankingLoss(network), "steady": EmbedDistillLoss(network)}
    data = {}
    for name, listed in rows.items():
        listed.sort(
            key=lambda row: max(len(text) for column, text in row.items() if column != "label")
        )
        size = math.ceil(len(listed) / _PARTS)
        for start in range(0, len(listed), size):
            data[f"{name}-{start}"] = Dataset.from_list(listed[start : start + size])
    return data, {name: losses[name.partition("-")[0]] for name in data}


def _save(network: "SentenceTransformer", name: str, work: Path, lora: bool, device: str) -> Path:
    """Save the trained model with all its weights in one, and return the folder."""
    folder, adapter = work / "model", work / "adapter"
    shutil.rmtree(folder, ignore_errors=True)
    with quiet_transformers():
        if lora:
            from peft import PeftModel

            network.save_pretrained(str(adapter), create_model_card=False)
            whole: Any = load_library_model(name, model_folder(name), device)
            whole[0].model = PeftModel.from_pretrained(
                whole[0].auto_model, str(adapter)
            ).merge_and_unload()
            network = whole
        network.save_pretrained(str(folder), create_model_card=False)
    return folder


def _publish(finished: Path, tuned: Tuned, work: Path, folder: Path) -> None:
    """Move the finished model to where it was asked for, with a README and ordinary permissions."""
    head = (
        "---\nlibrary_name: sentence-transformers\ntags: [sentence-transformers, wordsens]\n---\n"
    )
    text = markdown(tuned.view(), heading=f"{Path(tuned.model).name}, tuned by wordsens tune")
    (finished / "README.md").write_text(head + text, encoding="utf-8")
    mask = os.umask(0)
    os.umask(mask)
    for path in (finished, *finished.rglob("*")):
        path.chmod((0o777 if path.is_dir() else 0o666) & ~mask)
    if folder.is_dir():
        folder.rmdir()
    finished.rename(folder)
    shutil.rmtree(work)
