"""Tuning an encoder so that flipped meanings show."""

import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from wordsens.errors import InputError, require_kind
from wordsens.evaluation.check import Check, CheckOptions, choose_pairs, evaluate
from wordsens.evaluation.similarities import similarities
from wordsens.files import named_path
from wordsens.models.choice import as_model
from wordsens.models.contract import Model
from wordsens.seeds import Seed
from wordsens.text.document import Document
from wordsens.text.pairs import Pairs
from wordsens.text.shipped_data import shipped_reviews
from wordsens.training.adapter.making import CountedParity, Making, TrainedWeights
from wordsens.training.adapter.plan import PARITY, TunePlan
from wordsens.training.adapter.result import BeforeAfter, Tuned
from wordsens.training.adapter.retrieval import Recall, recall_at_one
from wordsens.training.adapter.split import Split, split_pairs, split_sentences

Told = Callable[[str, float], None]
"""Called with what is being done, and the share of all that is done."""

_SHARES = {"before": 0.08, "training": 0.84, "after": 0.08}
"""Of the time, with the usual plan and MiniLM."""


@dataclass(frozen=True, kw_only=True)
class HeldOut:
    """The domains and kinds that are kept apart for the judgement.

    Attributes:
        domains: values of the pairs' column `domain`; None for every third, drawn at random. Pairs without the column:
            every third text.
        kinds: kinds of opposites; None for those that no rule can make (of the package's own, entity and modality).
    """

    domains: Sequence[str] | None = None
    kinds: Sequence[str] | None = None


def tune(
    model: str | PathLike[str],
    out: str | PathLike[str],
    pairs: Pairs | None = None,
    texts: Iterable[str | Document] | None = None,
    *,
    plan: TunePlan | None = None,
    held_out: HeldOut | None = None,
    seed: Seed = 0,
    pool: str | None = None,
    revision: str | None = None,
    told: Told = lambda now, share: None,
) -> Tuned:
    """Tune an encoder so that a "not", an antonym, an amount, a time or a role moves its embedding, and save it.

    The adapter "parity" carries a sign through the model that every "not", every second one of two opposites and some
    of the numbers change, and joins it to the embedding so that it counts between near duplicates alone. The others are
    trained on triples: a text, the same in other words, and a text after one change of meaning. They come from frames
    of this package in English, from plain sentences changed by rule, and from the pairs. Their loss puts each flip's
    cosine below every paraphrase's, finds paraphrases among all other texts of a batch, and holds all other cosines
    where they were (docs/tune.md, both). What is kept apart is judged before and after.

    Args:
        model: a name, or a folder; see `as_model`.
        out: the folder of the tuned model, new or empty. While it is made it has another name; a run that was stopped
            goes on from its last checkpoint when it is called again in the same way.
        pairs: the package's own, or yours; see `read_pairs`.
        texts: plain texts of the kind that you embed: half of them is trained on, of the others at most 1,500
            sentences are what paraphrases are found among. None for the package's reviews.
        plan: the adapter and its training.
        held_out: the domains and kinds that are not trained on.
        seed: of everything random.
        pool: as of `as_model`.
        revision: of a name on the hub.
        told: progress.

    Raises:
        InputError: no such model, or one whose layers cannot be cut; a folder that is not empty; pairs or texts that
            leave nothing to train on or to judge by; an architecture or pooling that
            "parity" does not know.
        MissingExtraError: transformers is not installed.
    """
    plan, apart = plan or TunePlan(), held_out or HeldOut()
    for name, value, kind in (("plan", plan, TunePlan), ("held_out", apart, HeldOut)):
        require_kind(name, value, kind)
    folder, work = _folders(out)
    chosen, notes = choose_pairs(pairs, None)
    split = split_pairs(chosen, apart.domains, apart.kinds, seed=seed)
    plain, distractors = split_sentences(shipped_reviews() if texts is None else texts, seed=seed)
    encoder = as_model(str(model), pool=pool, revision=revision)
    made = work / "model"
    making = Making(str(model), encoder, made, split, plain, plan, seed, revision)
    maker = CountedParity(making) if plan.adapter == PARITY else TrainedWeights(making)
    before = _judged(encoder, split, distractors, seed, lambda share: told("before", _SHARES["before"] * share))
    work.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(made, ignore_errors=True)
    made.mkdir()
    weights = maker.write(lambda share: told("training", _SHARES["before"] + _SHARES["training"] * share))
    after = _judged(
        as_model(str(made), local_files_only=True), split, distractors, seed,
        lambda share: told("after", 1 - _SHARES["after"] * (1 - share)),
    )  # fmt: skip
    tuned = Tuned(
        model=encoder.name,
        folder=str(folder),
        plan=plan,
        weights=weights,
        domains=split.domains,
        kinds=split.kinds,
        unseen=BeforeAfter(before[0], after[0]),
        seen=BeforeAfter(before[1], after[1]),
        recall=(before[2], after[2]),
        notes=tuple(notes),
    )
    (made / "README.md").write_text(_read_me(tuned), encoding="utf-8")
    if folder.is_dir():
        folder.rmdir()
    made.rename(folder)
    shutil.rmtree(work)
    return tuned


def _folders(out: str | PathLike[str]) -> tuple[Path, Path]:
    """The folder, and the one beside it where it is made."""
    folder = named_path("out", out)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"`out` (={str(out)!r}) exists and is not an empty folder; name a new one")
    if not folder.absolute().parent.is_dir():
        raise InputError(f"`out` (={str(out)!r}) must be in a folder that exists")
    return folder, folder.absolute().parent / f".{folder.name}.tuning"


def _judged(
    model: Model, split: Split, distractors: Sequence[str], seed: Seed, told: Callable[[float], None]
) -> tuple[Check, Check, Recall]:
    options = CheckOptions.of(0.01, (), None, seed)
    checks = []
    for at, pairs in enumerate((split.unseen, split.seen)):
        values = similarities(model, pairs, progress=lambda done, total, at=at: told((at + done / total) / 3))
        checks.append(evaluate(model, pairs, values, options, ()))
    recall = recall_at_one(model, split.unseen, distractors, progress=lambda done, total: told((2 + done / total) / 3))
    return checks[0], checks[1], recall


def _read_me(tuned: Tuned) -> str:
    """The findings, for whoever finds the folder."""
    rows = tuned.unseen.rows(tuned.kinds)
    lines = [
        f"| {row['kind']}{'' if row['trained'] else ' (not trained)'} | {row['pairs']} | {row['auc_before']:.3f} | "
        f"{row['auc']:.3f} | {row['auc_low']:.3f} to {row['auc_high']:.3f} |"
        for row in rows
    ]
    table = ["| kind | pairs | AUC before | AUC | 95 % interval |", "| --- | ---: | ---: | ---: | ---: |", *lines]
    return "\n\n".join([f"# {tuned.model}, tuned by `wordsens tune`", *tuned.answer, "\n".join(table)]) + "\n"
