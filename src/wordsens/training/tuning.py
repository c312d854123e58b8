"""`tune`: train a sentence-transformers model to see a meaning that one word turns around; judged
before and after.

The training is sentence-transformers' own, full or low-rank (peft); what is saved has the
dimension, the size and the speed of the model that was given.
"""

import hashlib
import json
import math
import shutil
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from torch.nn.functional import normalize

from wordsens.display.markdown import markdown
from wordsens.display.numbers import Estimate
from wordsens.display.view import View
from wordsens.errors import (
    InputError,
    argument,
    require_count,
    require_device,
    require_extra,
    require_positive,
)
from wordsens.evaluation.check import Check, check_scored
from wordsens.evaluation.pairs import choose_pairs, scored_by
from wordsens.evaluation.texts import encoded
from wordsens.files import named_path, writing
from wordsens.intervals import auc_estimate, share_estimate
from wordsens.models.load import as_model
from wordsens.models.model import Model, require_cosines
from wordsens.models.model_files import model_folder
from wordsens.models.pretrained import is_of, load_library_model, quiet_transformers
from wordsens.results import Answered
from wordsens.seeds import Seed, derive_seed
from wordsens.text.document import Document
from wordsens.text.pairs import Pair, Pairs
from wordsens.text.readers import shipped_reviews
from wordsens.training.data import Triple, split_pairs, split_texts, training_data

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

# Called with what is being done, and the share of it that is done.
Progress = Callable[[str, float], None]

RECALL = "recall@1"

# Of the triples, by length: a batch comes from one of them, and little is padded.
_PARTS = 5

# Of a whole training.
_CHECKPOINTS = 6


@dataclass(frozen=True, eq=False, repr=False)
class Tuned(Answered):
    """A tuned model, judged before and after.

    Attributes:
        model: the name of the model that was tuned.
        folder: of the tuned model.
        triples: how many were prepared.
        seen: how many of them the training has gone through.
        domains: those that were held out; empty where the pairs have none and every third text was
            held out.
        before, after: the checks on the held-out pairs.
        scores: one row per kind with its AUC before and after, and a last row for recall@1 of
            paraphrases, searched from both sides; `new` is the AUC after for opposites whose
            changed words occur in no triple that was seen.
        among: how many texts are searched for recall@1.
        notes: what was left out or replaced in the data.
    """

    not_in_dict: ClassVar[tuple[str, ...]] = ("before", "after")

    model: str
    folder: str
    triples: int
    seen: int
    domains: tuple[str, ...]
    before: Check
    after: Check
    scores: dict[str, tuple[str | int | float | Estimate | None, ...]]
    among: int
    notes: tuple[str, ...]

    def columns(self) -> dict[str, Any]:
        """One row per kind of opposite, and one of recall@1."""
        return dict(self.scores)

    def view(self) -> View:
        """Where the model is, the table, and last what was reached."""
        from wordsens.findings.tune import view

        return view(self)


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
            OUT.checkpoints; a run that was stopped continues from there when it is called again in
            the same way.
        pairs: the package's own, or yours; see `read_pairs`.
        texts: yours, in English: half of them for near misses, half for recall@1. None: the
            package's reviews.
        steps: of AdamW.
        batch: triples per step.
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
    folder = named_path("out", out)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(
            f"{argument('out')} (={str(out)!r}) exists and is not an empty folder; name a new one"
        )
    work = folder.absolute().with_name(f"{folder.name}.checkpoints")
    if not isinstance(model, str | PathLike):
        raise InputError(
            f"{argument('model')} (a {type(model).__name__}) must be the name or folder of a model"
        )
    network = _trainable(str(model), lora, device)
    chosen, changes = choose_pairs(pairs)
    train, held_out, domains = split_pairs(chosen, seed=seed)
    ours, searched = split_texts(shipped_reviews() if texts is None else texts, seed=seed)
    triples, steady, notes = training_data(train, ours, seed=seed)
    settings = {
        "model": str(model),
        "seed": int(seed),
        "steps": steps,
        "batch": batch,
        "rate": rate,
        "lora": lora,
        "device": device,
        "triples": hashlib.sha256(json.dumps(triples).encode()).hexdigest(),
    }
    _begin(work, settings)
    judge = partial(_judged, held_out, searched, seed, progress)
    before, first = judge(as_model(network), "before")
    seen = _train(network, triples, steady, work, settings, progress)
    finished = _save(network, str(model), work, lora, device)
    after, second = judge(as_model(str(finished), local_files_only=True), "after")
    new = _new(after, seen)
    tuned = Tuned(
        model=str(model),
        folder=str(folder),
        triples=len(triples),
        seen=len(seen),
        domains=domains,
        before=before,
        after=after,
        scores={
            "kind": tuple(first),
            "before": tuple(first.values()),
            "after": tuple(second[kind] for kind in first),
            "new": tuple(new.get(kind) for kind in first),
        },
        among=len(searched) + (first[RECALL].n or 0) // 2,
        notes=(*changes, *notes, *before.scored.changes),
    )
    _publish(finished, tuned, work, folder)
    return tuned


def _trainable(name: str, lora: bool, device: str) -> "SentenceTransformer":
    """The model as a SentenceTransformer whose weights can be trained, with fresh low-rank matrices
    if requested."""
    require_extra("tune", "tune", "accelerate", "datasets", *["peft"] * lora)
    network = load_library_model(name, model_folder(name), device)
    if not is_of(network, "sentence_transformers", "SentenceTransformer"):
        raise InputError(
            f"{argument('model')} (={name!r}) is a {type(network).__name__}; tune trains a "
            "SentenceTransformer"
        )
    require_cosines(as_model(network), "tuned models")
    if not any(weight.requires_grad for weight in network.parameters()):
        raise InputError(
            f"{argument('model')} (={name!r}) has no weights that can be trained; give the model "
            "before quantisation"
        )
    if lora:
        from peft import LoraConfig

        config = LoraConfig(r=16, lora_alpha=32, lora_dropout=0.0, target_modules="all-linear")
        try:
            network.add_adapter(config)
        except (AttributeError, ValueError) as error:
            raise InputError(
                f"{argument('model')} (={name!r}) takes no low-rank matrices; leave "
                f"{argument('lora')} out"
            ) from error
    return network


def _begin(work: Path, settings: dict[str, Any]) -> None:
    """Open the folder of checkpoints; InputError where those in it are of another training."""
    path = work / "tune.json"
    if path.is_file():
        earlier = json.loads(path.read_text(encoding="utf-8"))
        other = [name for name, value in settings.items() if earlier.get(name) != value]
        if other:
            raise InputError(
                f"{argument('out')}: {str(work)!r} holds the checkpoints of a training with "
                f"another {', '.join(other)}; repeat that one, or remove the folder"
            )
    else:
        with writing("out", work):
            work.mkdir()
            path.write_text(json.dumps(settings), encoding="utf-8")


def _judged(
    held_out: Sequence[Pair],
    sentences: Sequence[str],
    seed: Seed,
    progress: Progress,
    model: Model,
    name: str,
) -> tuple[Check, dict[str, Estimate]]:
    """The check of the held-out pairs, its AUC by kind, and recall@1: the share of paraphrases,
    each side in turn, whose nearest text is their partner."""
    scored = scored_by(
        [model], held_out, progress=lambda done, total: progress(name, 0.5 * done / total)
    )
    check = check_scored(scored, seed=seed)
    same = [pair for pair in held_out if pair.same]
    queries = [pair for pair in same if not pair.near] or same
    first, second, others = (
        normalize(encoded(model.encode, texts), dim=1)
        for texts in (
            [pair.first for pair in queries],
            [pair.second for pair in queries],
            sentences,
        )
    )
    progress(name, 1.0)
    hits = 0
    for side, partners in ((first, second), (second, first)):
        cosines = side @ torch.cat([partners, others]).T
        nearer = cosines >= cosines.diagonal().unsqueeze(1)
        hits += int((nearer.sum(dim=1) == 1).sum())
    areas = {row.kind: replace(row.auc, n=row.pairs) for row in check.rows if row.auc}
    return check, {**areas, RECALL: share_estimate(hits, 2 * len(queries))}


def _train(
    network: "SentenceTransformer",
    triples: Sequence[Triple],
    steady: Sequence[str],
    work: Path,
    settings: dict[str, Any],
    progress: Progress,
) -> list[Triple]:
    """Train in place, from the last checkpoint where there is one, and return the triples of all
    steps.

    The opposite of a triple is a hard negative; the embeddings of the steady texts should stay.
    """
    from datasets import Dataset
    from sentence_transformers import (
        SentenceTransformerTrainer,
        SentenceTransformerTrainingArguments,
    )
    from sentence_transformers.sentence_transformer.losses import (
        EmbedDistillLoss,
        MultipleNegativesRankingLoss,
    )
    from transformers import PrinterCallback

    steps, rate = settings["steps"], settings["rate"]

    class RecordingTrainer(SentenceTransformerTrainer):
        """Puts the triples of every batch into the history, which the checkpoints keep."""

        def compute_loss(
            self, model: Any, inputs: dict[str, Any], *options: Any, **named: Any
        ) -> Any:
            # The label of a triple is its number, that of a steady text its embedding.
            if inputs["label"].ndim == 1:
                self.state.log_history.append({"triples": inputs["label"].tolist()})
            progress("training", self.state.global_step / steps)
            return super().compute_loss(model, inputs, *options, **named)

    by_length = sorted(enumerate(triples), key=lambda numbered: max(map(len, numbered[1])))
    triple_rows: list[dict[str, Any]] = [
        {"anchor": text, "positive": same, "negative": other, "label": row}
        for row, (text, same, other) in by_length
    ]
    steady = sorted(steady, key=len)
    embeddings = network.encode(steady, show_progress_bar=False)
    steady_rows: list[dict[str, Any]] = [
        {"text": text, "label": embedding.tolist()}
        for text, embedding in zip(steady, embeddings, strict=True)
    ]
    data, losses = {}, {}
    for rows, loss in (
        (triple_rows, MultipleNegativesRankingLoss(network)),
        (steady_rows, EmbedDistillLoss(network)),
    ):
        size = math.ceil(len(rows) / _PARTS)
        for start in range(0, len(rows), size):
            name = f"part {len(data)}"
            data[name], losses[name] = Dataset.from_list(rows[start : start + size]), loss
    arguments = SentenceTransformerTrainingArguments(
        output_dir=str(work),
        max_steps=steps,
        per_device_train_batch_size=settings["batch"],
        learning_rate=rate,
        warmup_steps=max(1, steps // 10),
        save_steps=max(1, steps // _CHECKPOINTS),
        save_total_limit=2,
        use_cpu=network.device.type == "cpu",
        seed=derive_seed(settings["seed"], "trainer") % 2**32,
        dataloader_pin_memory=False,
        disable_tqdm=True,
        report_to=[],
    )
    # Without a widget the library draws examples, with a progress bar.
    network.model_card_data.widget = [{"text": ""}]
    latest = max(
        work.glob("checkpoint-*/trainer_state.json"),
        key=lambda path: int(path.parent.name.split("-")[1]),
        default=None,
    )
    with quiet_transformers():
        trainer = RecordingTrainer(model=network, args=arguments, train_dataset=data, loss=losses)
        trainer.remove_callback(PrinterCallback)
        outcome = trainer.train(resume_from_checkpoint=latest and str(latest.parent))
    if not math.isfinite(outcome.training_loss):
        raise InputError(
            f"the loss became {outcome.training_loss}; lower {argument('rate')} (={rate:g})"
        )
    network.eval()
    history: list[dict[str, Any]] = trainer.state.log_history
    seen = {row for entry in history for row in entry.get("triples", ())}
    return [triples[row] for row in sorted(seen)]


def _save(
    network: "SentenceTransformer",
    name: str,
    work: Path,
    lora: bool,
    device: str,
) -> Path:
    """Save the trained model with all its weights in one, and return the folder."""
    folder, adapter = work / "model", work / "adapter"
    with quiet_transformers():
        if lora:
            from peft import PeftModel

            network.save_pretrained(str(adapter), create_model_card=False)
            whole: Any = load_library_model(name, model_folder(name), device)
            low_rank = PeftModel.from_pretrained(whole[0].auto_model, str(adapter))
            whole[0].model = low_rank.merge_and_unload()
            network = whole
        network.save_pretrained(str(folder), create_model_card=False)
    return folder


def _new(check: Check, seen: Sequence[Triple]) -> dict[str, Estimate]:
    """By kind the AUC of the opposites none of whose changed words is one in a triple."""
    trained = {word for first, _, other in seen for word in _changed_words(first, other)}
    scored, values_by_kind = check.scored, defaultdict(list)
    for pair, value in zip(scored.pairs, scored.values, strict=True):
        if not pair.same and trained.isdisjoint(_changed_words(pair.first, pair.second)):
            values_by_kind[pair.kind].append(value)
    near = scored.values[scored.near]
    return {
        kind: replace(auc_estimate(np.array(values), near), n=len(values))
        for kind, values in values_by_kind.items()
    }


def _changed_words(first: str, second: str) -> set[str]:
    """The words that only one of the texts has, or that are at another place of it."""
    changed = Pair("", first, second, False).changed
    return {word for side in changed for word in side.lower().split()} - {"..."}


def _publish(finished: Path, tuned: Tuned, work: Path, folder: Path) -> None:
    """Move the finished model to `folder`, with a README and ordinary permissions."""
    head = (
        "---\nlibrary_name: sentence-transformers\ntags: [sentence-transformers, wordsens]\n---\n"
    )
    text = markdown(tuned.view(), heading=f"{Path(tuned.model).name}, tuned by wordsens tune")
    (finished / "README.md").write_text(head + text, encoding="utf-8")
    # A copy has ordinary permissions; what the library saves is for its owner alone.
    whole = work / "whole"
    shutil.copytree(finished, whole, copy_function=shutil.copyfile, dirs_exist_ok=True)
    whole.replace(folder)
    shutil.rmtree(work)
