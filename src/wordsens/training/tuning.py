"""`tune`: train a sentence-transformers model to see a meaning that one word turns around; judged before and after.

Triples (a text, the same in other words, a text of another meaning) come from the pairs and from near misses of the
user's own texts. The training is sentence-transformers' own, full or low-rank (peft); what is saved has the dimension,
the size and the speed of the model that was given.
"""

import hashlib
import importlib.util
import json
import math
import os
import random
import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from wordsens.errors import InputError, MissingExtraError, require_count, require_device, require_positive
from wordsens.evaluation.check import Check, CheckOptions, choose_pairs, evaluate
from wordsens.evaluation.near_misses import near_misses
from wordsens.evaluation.similarities import readable, share_over, similarities, unit_vectors
from wordsens.files import named_path, writing
from wordsens.models.black_box import Model
from wordsens.models.load import as_model, is_pair_model
from wordsens.seeds import Seed, derive_seed
from wordsens.statistics.auc import Estimate
from wordsens.text.document import Document
from wordsens.text.pairs import LENGTHS, PARAPHRASE, Pair, Pairs
from wordsens.text.pretrained import USUAL_ACCESS, find_model, quiet_transformers, sentence_transformer
from wordsens.text.shipped_data import shipped_reviews
from wordsens.training.triples import Triple, make_triples, sentences_of

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer

Progress = Callable[[str, float], None]
"""Called with what is being done, and the share of it that is done."""

Data = tuple[dict[str, Any], dict[str, Any]]
"""Data sets for the trainer, and the loss of each."""

_HELD_OUT = 3
"""Every third domain is held out; where pairs have no domains, every third text."""

_MOST_NEAR_MISSES = 300
"""Of a kind."""

_MOST_SENTENCES = 1000
"""Of the user's texts among which paraphrases are looked for."""

_STEADY = 600
"""Of the user's sentences, those whose embeddings are held where they were."""

_CHECKPOINTS = 6
"""Of a whole training."""


@dataclass(frozen=True, kw_only=True)
class TunePlan:
    """How to train.

    Attributes:
        steps: of AdamW.
        batch: triples a step.
        rate: the highest learning rate, reached after a tenth of the steps; it falls to zero from there.
        lora: train low-rank matrices instead of the weights, and add them to the weights at the end (peft).
        device: cpu, cuda, ...
    """

    steps: int = 120
    batch: int = 32
    rate: float = 8e-5
    lora: bool = False
    device: str = "cpu"

    def __post_init__(self) -> None:
        require_count("steps", self.steps)
        require_count("batch", self.batch, least=2)
        require_positive("rate", self.rate)


@dataclass(frozen=True)
class Judgement:
    """A model on what was held out.

    Attributes:
        check: of the pairs of the domains that were held out.
        new: the same, of opposites whose changed words are in no training pair either; None where there are none.
        recall: recall@1 of paraphrases among each other and the sentences of the texts.
    """

    check: Check
    new: Check | None
    recall: Estimate


@dataclass(frozen=True)
class Tuned:
    """A tuned model, judged before and after.

    Attributes:
        model: the name of the model that was tuned.
        folder: of the tuned one.
        triples: that it was trained on.
        domains: that were held out; empty where the pairs have none, and every third text was.
        before, after: the judgements.
        queries, among: of recall@1: how many texts were looked for, and among how many.
        notes: what a reader should know of the data.
    """

    model: str
    folder: str
    triples: int
    domains: tuple[str, ...]
    before: Judgement
    after: Judgement
    queries: int
    among: int
    notes: tuple[str, ...]

    def rows(self) -> list[dict[str, Any]]:
        """The table: the AUC of every kind, their mean, and recall@1, before and after, with 95 % intervals; `new`
        counts the opposites whose changed words took no part in the training."""
        rows = []
        for one, other in zip(self.before.check.kinds, self.after.check.kinds, strict=True):
            sides = [_new_row(judged, one.kind) for judged in (self.before, self.after)]
            rows.append(
                {
                    "what": one.kind, "count": one.pairs, "before": one.auc, "before_low": one.auc_low,
                    "before_high": one.auc_high, "after": other.auc, "after_low": other.auc_low,
                    "after_high": other.auc_high, "new": sides[0].pairs if sides[0] else 0,
                    "new_before": sides[0] and sides[0].auc, "new_after": sides[1] and sides[1].auc,
                }
            )  # fmt: skip
        old, now = self.before.recall, self.after.recall
        rows.append(
            {
                "what": "recall@1", "count": self.queries, "before": old.value, "before_low": old.low,
                "before_high": old.high, "after": now.value, "after_low": now.low, "after_high": now.high,
                "new": 0, "new_before": None, "new_after": None,
            }
        )  # fmt: skip
        return rows

    @property
    def mean_auc(self) -> tuple[float, float]:
        """The mean AUC of the kinds, before and after."""
        return _mean_auc(self.before.check), _mean_auc(self.after.check)

    @property
    def reached(self) -> str:
        """What was reached, and what was not, in one or two sentences."""
        kinds = {row.kind: row for row in self.after.check.kinds}
        low = [kind for kind, row in kinds.items() if row.auc_low <= 0.5]
        seen = [kind for kind in kinds if kind not in low]
        old, now = self.mean_auc
        text = (
            f"Mean AUC on held-out pairs: {old:.2f} before, {now:.2f} after; recall@1: "
            f"{self.before.recall.value:.2f} before, {self.after.recall.value:.2f} after."
        )
        if seen:
            text += f" It tells {', '.join(seen)} from near-duplicates better than chance."
        remedy = "there use the guard (wordsens guard; check --guard counts what it gains)"
        return text + (f" Tuning reaches little for {', '.join(low)}: {remedy}." if low else "")

    def to_dict(self) -> dict[str, Any]:
        """The table and all around it, for JSON."""
        return {
            "model": self.model, "folder": self.folder, "triples": self.triples, "domains": list(self.domains),
            "queries": self.queries, "among": self.among, "rows": self.rows(), "reached": self.reached,
            "notes": list(self.notes),
        }  # fmt: skip

    def __str__(self) -> str:
        lines = [
            f"{row['what']:<12} {row['count']:>4}  {interval(row, 'before')}  {interval(row, 'after')}"
            for row in self.rows()
        ]
        return "\n".join([*lines, self.reached])


def interval(row: dict[str, Any], side: str) -> str:
    """A number of a row with its interval, "before" or "after"."""
    return f"{row[side]:.3f} [{row[f'{side}_low']:.2f}, {row[f'{side}_high']:.2f}]"


@dataclass(frozen=True)
class Split:
    """The pairs that are trained on, those that are held out, and the domains of the latter."""

    train: tuple[Pair, ...]
    held_out: tuple[Pair, ...]
    domains: tuple[str, ...]


def tune(
    model: str | PathLike[str],
    out: str | PathLike[str],
    pairs: Pairs | None = None,
    texts: Iterable[str | Document] | None = None,
    *,
    plan: TunePlan | None = None,
    seed: Seed = 0,
    progress: Progress = lambda now, share: None,
) -> Tuned:
    """Train the model so that a "not", an antonym, an amount, a time or a role moves its embedding, and save it.

    A third of the domains of the pairs is held out, and judged by `check` before and after; so is recall@1 of
    paraphrases among the texts. Where tuning reaches little, `guard` is the remedy (docs/tune.md).

    Args:
        model: a name, a folder, or "minilm": any SentenceTransformer whose weights can be trained.
        out: the folder of the tuned model, new or empty. Until it is complete, checkpoints are in OUT.checkpoints; a
            run that was stopped goes on from there when it is called again in the same way.
        pairs: the package's own, or yours; see `read_pairs`.
        texts: yours, in English: half of them for near misses, half for recall@1. None: the package's reviews.
        plan: steps, batch, learning rate, LoRA, device.
        seed: of everything random.
        progress: called with what is being done and its share.

    Raises:
        InputError: no such model, or none that can be trained; `out` is not empty; too few pairs or texts; other
            options than those of the run that is continued.
        MissingExtraError: sentence-transformers, accelerate, datasets or, for LoRA, peft is not installed.
    """
    plan = plan or TunePlan()
    require_device(plan.device)
    folder, work = _folders(out)
    network = _trainable(model, plan)
    chosen, notes = choose_pairs(pairs, None)
    split = split_pairs(chosen, seed=seed)
    ours, apart = _split_texts(shipped_reviews() if texts is None else texts, seed)
    chance = random.Random(derive_seed(seed, "triples"))
    made, more = _near_misses(ours, seed)
    short = [pair for pair in split.train if pair.length == LENGTHS[0]] or split.train
    triples = make_triples(short, made, chance)
    same = [text for pair in short if pair.same for text in (pair.first, pair.second)]
    steady = [*chance.sample(ours, min(_STEADY, len(ours))), *same]
    judge = _Judge(split, [*split.train, *made], apart, seed)
    before = judge(as_model(network), "before", progress)
    _begin(work, {"model": str(model), "seed": int(seed), **asdict(plan), "triples": _digest(triples)})
    _train(network, _data(network, triples, steady), plan, work, seed, progress)
    finished = _finish(network, str(model), plan, work)
    after = judge(as_model(str(finished), local_files_only=True), "after", progress)
    tuned = Tuned(
        str(model), str(folder), len(triples), split.domains, before, after, judge.queries, judge.among,
        (*notes, *more),
    )  # fmt: skip
    _publish(finished, tuned, work, folder)
    return tuned


def split_pairs(pairs: Sequence[Pair], *, seed: Seed) -> Split:
    """The pairs in two parts: every third domain, or where a pair has no domain every third text, is held out.

    Raises:
        InputError: a part lacks opposites or near-duplicates.
    """
    whole = all("domain" in pair.columns for pair in pairs)
    key = (lambda pair: str(pair.columns["domain"])) if whole else (lambda pair: pair.first)
    if whole and len({key(pair) for pair in pairs}) == 1:
        whole, key = False, lambda pair: pair.first
    groups = sorted({key(pair) for pair in pairs})
    chance = random.Random(derive_seed(seed, "held out"))
    apart = set(chance.sample(groups, max(1, len(groups) // _HELD_OUT)))
    held_out = tuple(pair for pair in pairs if key(pair) in apart)
    texts = {text for pair in held_out for text in (pair.first, pair.second)}
    train = tuple(pair for pair in pairs if key(pair) not in apart and texts.isdisjoint((pair.first, pair.second)))
    for part, name in ((train, "to train on"), (held_out, "to judge by")):
        if not any(pair.near for pair in part) or all(pair.same for pair in part):
            raise InputError(
                f"`pairs` leaves {len(part)} of {len(pairs)} pairs {name}, and each part needs opposites and "
                "near-duplicates: give more pairs, or none for the package's own"
            )
    return Split(train, held_out, tuple(sorted(apart)) if whole else ())


def _split_texts(texts: Iterable[str | Document], seed: Seed) -> tuple[list[str], list[str]]:
    """Sentences of one half of the texts to train on, and at most 1000 of the other half to search among."""
    listed = list(texts)
    random.Random(derive_seed(seed, "texts")).shuffle(listed)
    ours = sentences_of(listed[0::2])
    apart = sorted(set(sentences_of(listed[1::2])) - set(ours))
    if not ours or not apart:
        raise InputError(
            f"`texts` (={len(listed)} texts) has too few sentences of 4 to 30 words to train on one half and search "
            "the other; give more texts, or none for the package's reviews"
        )
    chance = random.Random(derive_seed(seed, "searched"))
    return ours, chance.sample(apart, min(_MOST_SENTENCES, len(apart)))


def _near_misses(sentences: Sequence[str], seed: Seed) -> tuple[list[Pair], list[str]]:
    try:
        return near_misses(sentences, most=_MOST_NEAR_MISSES, seed=seed), []
    except InputError as error:
        return [], [f"the opposites come from the pairs alone: {error}"]


class _Judge:
    """Judges models on what was held out.

    Args:
        split: the pairs.
        trained: every pair that is trained on.
        sentences: among which paraphrases are looked for.
        seed: of the intervals.
    """

    def __init__(self, split: Split, trained: Sequence[Pair], sentences: Sequence[str], seed: Seed):
        self._split, self._sentences = split, sentences
        self._options = CheckOptions.of(None, 0.9, (), None, seed)
        changes = {_change(pair) for pair in trained if not pair.same}
        self._new = {pair for pair in split.held_out if not pair.same and _change(pair) not in changes}
        same = [pair for pair in split.held_out if pair.same]
        self._queries = [pair for pair in same if pair.kind == PARAPHRASE] or same
        self.queries, self.among = 2 * len(self._queries), len(self._queries) + len(sentences)

    def __call__(self, model: Model, name: str, progress: Progress) -> Judgement:
        pairs, notes = readable(model, self._split.held_out)
        values = similarities(model, pairs, progress=lambda done, total: progress(name, 0.5 * done / total))
        places = [at for at, pair in enumerate(pairs) if pair.same or pair in self._new]
        new = None
        if any(not pairs[at].same for at in places):
            new = evaluate(model, [pairs[at] for at in places], values[places], self._options, ())
        recall = self._recall(model, lambda done, total: progress(name, 0.5 + 0.5 * done / total))
        return Judgement(evaluate(model, pairs, values, self._options, notes), new, recall)

    def _recall(self, model: Model, progress: Callable[[int, int], None]) -> Estimate:
        """The share of paraphrases, each side in turn, whose nearest text is their own."""
        first, second = [pair.first for pair in self._queries], [pair.second for pair in self._queries]
        vectors = unit_vectors(model.encode, [*first, *second, *self._sentences], progress)
        plain = torch.stack([vectors[text] for text in self._sentences])
        sides = [torch.stack([vectors[text] for text in side]) for side in (first, second)]
        hits: list[bool] = []
        for queries, targets in (sides, sides[::-1]):
            cosines = queries @ torch.cat([targets, plain]).T
            partner = cosines.diagonal().clone()
            cosines.fill_diagonal_(-2)
            hits += (partner > cosines.amax(dim=1)).tolist()
        return share_over(np.array(hits, float), 0.5, np.full(2000, 0.5), seed=self._options.seed)


def _change(pair: Pair) -> frozenset[str]:
    """The words of either text that the other has not, whichever comes first."""
    return frozenset(words.lower() for words in pair.changed)


def _mean_auc(result: Check) -> float:
    return sum(row.auc for row in result.kinds) / len(result.kinds)


def _new_row(judged: Judgement, kind: str) -> Any:
    """The row of the kind among the opposites with new words, where it has some."""
    return judged.new.kinds[kind] if judged.new is not None and kind in judged.new.kinds.names else None


def _trainable(model: str | PathLike[str], plan: TunePlan) -> "SentenceTransformer":
    """The model as a SentenceTransformer whose weights can be trained, with fresh low-rank matrices where asked."""
    if not isinstance(model, str | PathLike):
        raise InputError(f"`model` (a {type(model).__name__}) cannot be trained; give the name or folder of a model")
    name = os.fspath(model)
    needed = [("accelerate", "accelerate"), ("datasets", "datasets"), *([("peft", "peft")] if plan.lora else [])]
    for package, module in needed:
        if not _installed(module):
            raise MissingExtraError(package, "tune", "tune")
    if is_pair_model(name):
        raise InputError(f"`model` (={name!r}) scores pairs; tune trains a model of embeddings")
    place, local = find_model(name, None, local_files_only=False)
    network = sentence_transformer(name, place, local, USUAL_ACCESS, plan.device)
    if not any(weight.requires_grad for weight in network.parameters()):
        raise InputError(f"`model` (={name!r}) has no weights that can be trained; give the model before quantisation")
    if plan.lora:
        _add_lora(network, name)
    return network


def _installed(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


def _add_lora(network: "SentenceTransformer", name: str) -> None:
    from peft import LoraConfig

    config = LoraConfig(r=16, lora_alpha=32, lora_dropout=0.0, target_modules="all-linear")
    try:
        network.add_adapter(config)
    except (AttributeError, ValueError) as error:
        raise InputError(f"`model` (={name!r}) takes no low-rank matrices; leave `lora` out") from error


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
                f"`out`: {str(work)!r} holds the checkpoints of a training with another {', '.join(other)}; repeat "
                "that one, or remove the folder"
            )
        return
    if work.exists():
        raise InputError(f"`out`: {str(work)!r} exists and holds no checkpoints of tune; move it away")
    with writing("out", work):
        work.mkdir()
        path.write_text(json.dumps(settings), encoding="utf-8")


def _digest(triples: Sequence[Triple]) -> str:
    return hashlib.sha256(json.dumps(triples).encode()).hexdigest()


def _train(
    network: "SentenceTransformer", data: Data, plan: TunePlan, work: Path, seed: Seed, progress: Progress
) -> None:
    """Train in place, from the last checkpoint where there is one."""
    saved = sorted(work.glob("checkpoint-*/trainer_state.json"), key=lambda path: int(path.parent.name.split("-")[1]))
    with quiet_transformers():
        trainer = _trainer(network, data, plan, work, seed, progress)
        result = trainer.train(resume_from_checkpoint=str(saved[-1].parent) if saved else None)
    if not math.isfinite(result.training_loss):
        raise InputError(f"the loss became {result.training_loss}; lower `rate` (={plan.rate:g})")
    network.eval()


def _trainer(
    network: "SentenceTransformer", data: Data, plan: TunePlan, work: Path, seed: Seed, progress: Progress
) -> "SentenceTransformerTrainer":
    from sentence_transformers import SentenceTransformerTrainer, SentenceTransformerTrainingArguments
    from transformers import PrinterCallback, TrainerCallback

    class Reporting(TrainerCallback):
        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            progress("training", state.global_step / plan.steps)

    arguments = SentenceTransformerTrainingArguments(
        output_dir=str(work),
        max_steps=plan.steps,
        per_device_train_batch_size=plan.batch,
        learning_rate=plan.rate,
        warmup_steps=max(1, plan.steps // 10),
        save_steps=max(1, plan.steps // _CHECKPOINTS),
        save_total_limit=2,
        use_cpu=plan.device == "cpu",
        seed=derive_seed(seed, "trainer") % 2**32,
        dataloader_pin_memory=False,
        disable_tqdm=True,
        report_to=[],
    )
    network.model_card_data.widget = [{"text": ""}]  # else the library draws examples, with a progress bar
    trainer = SentenceTransformerTrainer(
        model=network, args=arguments, train_dataset=data[0], loss=data[1], callbacks=[Reporting()]
    )
    trainer.remove_callback(PrinterCallback)
    return trainer


def _data(network: "SentenceTransformer", triples: Sequence[Triple], steady: Sequence[str]) -> Data:
    """Data sets and their losses: triples, whose opposites are hard negatives, and texts whose embeddings should stay.

    Each is in three parts by length, and a batch comes from one of them: little is padded.
    """
    from datasets import Dataset
    from sentence_transformers.sentence_transformer.losses import EmbedDistillLoss, MultipleNegativesRankingLoss

    embeddings = network.encode(list(steady), show_progress_bar=False)
    rows = {
        "triple": [dict(zip(("anchor", "positive", "negative"), triple, strict=True)) for triple in triples],
        "steady": [{"text": text, "label": row.tolist()} for text, row in zip(steady, embeddings, strict=True)],
    }
    losses = {"triple": MultipleNegativesRankingLoss(network), "steady": EmbedDistillLoss(network)}
    data = {}
    for name, listed in rows.items():
        listed.sort(key=lambda row: max(len(text) for column, text in row.items() if column != "label"))
        third = math.ceil(len(listed) / 3)
        for start in range(0, len(listed), third):
            data[f"{name}-{start}"] = Dataset.from_list(listed[start : start + third])
    return data, {name: losses[name.partition("-")[0]] for name in data}


def _finish(network: "SentenceTransformer", name: str, plan: TunePlan, work: Path) -> Path:
    """Save the trained model with all its weights in one, and return the folder."""
    folder = work / "model"
    shutil.rmtree(folder, ignore_errors=True)
    with quiet_transformers():
        if plan.lora:
            network = _merged(network, name, plan, work / "adapter")
        network.save_pretrained(str(folder), create_model_card=False)
    return folder


def _merged(network: "SentenceTransformer", name: str, plan: TunePlan, adapter: Path) -> "SentenceTransformer":
    """The model as it was, with the trained low-rank matrices added to its weights."""
    from peft import PeftModel

    network.save_pretrained(str(adapter), create_model_card=False)
    place, local = find_model(name, None, local_files_only=False)
    whole: Any = sentence_transformer(name, place, local, USUAL_ACCESS, plan.device)
    whole[0].model = PeftModel.from_pretrained(whole[0].auto_model, str(adapter)).merge_and_unload()
    return whole


def _publish(finished: Path, tuned: Tuned, work: Path, folder: Path) -> None:
    """Move the finished model to where it was asked for, with a README and ordinary permissions."""
    (finished / "README.md").write_text(_read_me(tuned), encoding="utf-8")
    mask = os.umask(0)
    os.umask(mask)
    for path in (finished, *finished.rglob("*")):
        path.chmod((0o777 if path.is_dir() else 0o666) & ~mask)
    if folder.is_dir():
        folder.rmdir()
    finished.rename(folder)
    shutil.rmtree(work)


def _read_me(tuned: Tuned) -> str:
    """The findings, for whoever meets the folder."""
    head = "---\nlibrary_name: sentence-transformers\ntags: [sentence-transformers, wordsens]\n---\n"
    lines = "".join(
        f"| {row['what']} | {row['count']} | {interval(row, 'before')} | {interval(row, 'after')} |\n"
        for row in tuned.rows()
    )
    return (
        f"{head}# {Path(tuned.model).name}, tuned by `wordsens tune`\n\n{tuned.reached}\n\n"
        f"| AUC on held-out pairs | count | before (95 %) | after (95 %) |\n| --- | ---: | ---: | ---: |\n{lines}"
    )
