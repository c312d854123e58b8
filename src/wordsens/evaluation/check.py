"""Does a meaning that flips with one word show in a model's embeddings? The numbers of a check, and
its gate."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from os import PathLike
from typing import Any

import numpy as np
from jaxtyping import Float

from wordsens.errors import InputError, require_choice
from wordsens.evaluation.check_result import (
    FIELDS,
    GUARDED,
    GUARDED_FIELDS,
    KIND_FIELDS,
    Check,
    KindRow,
    LengthRow,
    not_dropped,
    verdicts_of,
)
from wordsens.evaluation.requirement import (
    EVERY,
    LEVEL,
    Baseline,
    Requirement,
    Unmet,
)
from wordsens.evaluation.similarities import (
    PairSimilarities,
    Progress,
    choose_pairs,
    gives_cosines,
    prompted,
    readable,
    require_near,
    require_threshold,
    similarities,
    similarity_name,
)
from wordsens.intervals import (
    TOGETHER,
    auc,
    auc_estimate,
    ends,
    kept_threshold,
    share_over,
)
from wordsens.models.load import load
from wordsens.models.model import Model
from wordsens.models.pairs import PairModel
from wordsens.seeds import Seed, derive_seed
from wordsens.text.pairs import LENGTHS, Pair, Pairs

KEEP = 0.9
"""The share of near-duplicates that the threshold keeps, unless one is given."""


def check(
    model: Any,
    pairs: Pairs | None = None,
    kinds: Sequence[str] | None = None,
    *,
    threshold: int | float | None = None,
    keep: int | float = KEEP,
    requirements: Sequence[str] = (),
    baseline: str | PathLike[str] | None = None,
    prompt_names: Sequence[str] = (),
    guard: bool = False,
    allow_package_pairs: bool = False,
    seed: Seed = 0,
    progress: Progress = lambda done, total: None,
) -> Check:
    """Check if a meaning that flips with one word shows in the model's embeddings, kind by kind.

    Opposites (a not, enable for disable, who does what to whom, ...) are compared with
    near-duplicates of the same meaning (a contraction, a date in other digits, another order of the
    words, ...). A threshold that keeps 90 % of these lets some of the opposites through:
    `false_hits`. All numbers are measured on these pairs, with 95 % intervals over them
    (docs/check.md).

    Args:
        model: a name, a folder, a loaded model, or any function from a list of texts to an array
            (m, d); or a CrossEncoder, whose scores take the place of cosines.
        pairs: the package's own, or yours: a file, or rows (kind, first, second, same).
        kinds: only these kinds of opposites.
        threshold: the similarity from which on two texts count as the same, such as that of your
            cache.
        keep: without one, the share of near-duplicates that it keeps.
        requirements: such as "negation.false_hits <= .2" of a kind, "all.auc >= .5" of every kind,
            "recall >= .9" and "false_hits <= .1" of all pairs; with `wordsens.guard` behind the
            threshold "guarded_false_hits" and "guarded_recall". Those that are not met are
            `failures`.
        baseline: a file of `save_baseline`; a significant drop of a kind's AUC since then is a
            failure too.
        prompt_names: of a SentenceTransformer: the prompt of all texts, or those of the first and
            the second ones.
        guard: whether every pair gets the verdict of `wordsens.guard`, in `all_pairs` and
            `failing_pairs`; a requirement on "guarded_..." asks for it too.
        allow_package_pairs: whether a requirement that rests on near-duplicates (recall, AUC, a
            threshold that they give) may be met by the package's, which stand in where your pairs
            hold none.
        seed: of the intervals.
        progress: called with (done, total), in texts or pairs.

    Raises:
        InputError: no such model or kind, a wrong row, a requirement that cannot be read, or a
            vacuous baseline.

    >>> def letters(texts):
    ...     return [[text.lower().count(letter) + 0.1 for letter in "abcdefghijklmnopqrstuvwxyz"] for text in texts]
    >>> result = check(letters, kinds=["role"], requirements=["role.false_hits <= .5"])
    >>> result.kinds["role"].false_hits, result.passed
    (1.0, False)
    """  # noqa: E501
    require_options(threshold, keep, seed)
    chosen, changes = choose_pairs(pairs, kinds)
    read_requirements(requirements, chosen)
    earlier = None if baseline is None else Baseline.read(baseline)
    loaded = load(model)
    if threshold is not None:
        require_threshold(threshold, gives_cosines(loaded))
    sides = prompted(loaded, prompt_names)
    read, unread = readable(sides, chosen)
    values = similarities(sides, read, progress=progress)
    return evaluate(
        sides,
        read,
        values,
        threshold=threshold,
        keep=keep,
        requirements=requirements,
        baseline=earlier,
        guard=guard,
        allow_package_pairs=allow_package_pairs,
        seed=seed,
        changes=[*changes, *unread],
    )


def require_options(threshold: int | float | None, keep: int | float, seed: Seed) -> None:
    """InputError for a threshold that is no number, a share that is none, or a wrong seed."""
    if isinstance(keep, bool) or not isinstance(keep, int | float) or not 0 < keep <= 1:
        raise InputError(f"`keep` (={keep!r}) must be a share from 0 to 1, such as 0.9")
    if threshold is not None:
        require_threshold(threshold, cosines=False)
    derive_seed(seed)


def read_requirements(texts: Sequence[str], pairs: Sequence[Pair]) -> tuple[Requirement, ...]:
    """The requirements that the texts state; InputError for a wrong one, or one on a kind that no
    pair has."""
    fields, whole = (*KIND_FIELDS, GUARDED), (*FIELDS, *GUARDED_FIELDS)
    requirements = Requirement.read_all(texts, fields, "negation.false_hits <= .2", whole)
    kinds = tuple(dict.fromkeys(pair.kind for pair in pairs if not pair.same))
    for requirement in requirements:
        if requirement.field not in ("pairs", "threshold") and not 0 <= requirement.bound <= 1:
            raise InputError(
                f"`requirements` (={requirement.text!r}) bounds a share, which is from 0 to 1, "
                "such as .2"
            )
        if requirement.kind not in ("", EVERY):
            require_choice(f"the kind of {requirement.text!r}", requirement.kind, (*kinds, EVERY))
    return requirements


def evaluate(
    model: Model | PairModel | tuple[Model, Model],
    pairs: Sequence[Pair],
    values: Float[np.ndarray, " pairs"],
    *,
    threshold: float | None = None,
    keep: float = KEEP,
    requirements: Sequence[str] = (),
    baseline: Baseline | None = None,
    guard: bool = False,
    allow_package_pairs: bool = False,
    seed: Seed = 0,
    changes: Sequence[str] = (),
) -> Check:
    """The check of a model from the similarities that it gave the pairs. See `check`."""
    named = model[0] if isinstance(model, tuple) else model
    require_near(pairs, changes)
    measured = PairSimilarities(tuple(pairs), values, cosines=gives_cosines(model))
    near = values[measured.near]
    used = float(kept_threshold(near, keep) if threshold is None else threshold)
    kept = (near, keep) if threshold is None else None
    recall = share_over(near, used)
    kind_rows = [_kind_row(measured, kind, used, kept, seed) for kind in measured.opposites]
    kinds = {row.kind: row for row in sorted(kind_rows, key=lambda row: -row.false_hits)}
    members = measured.near_kinds
    near_rows = {kind: share_over(values[members[kind]], used) for kind in members}
    drops, further = ({}, []) if baseline is None else baseline.drops(measured, seed=seed)
    gate = read_requirements(requirements, pairs)
    hits = share_over(values[measured.opposite], used, kept, seed=seed)
    whole = {
        "threshold": used,
        "recall": recall.value,
        "recall_low": recall.low,
        "recall_high": recall.high,
    }
    whole |= {"false_hits": hits.value, "false_hits_low": hits.low, "false_hits_high": hits.high}
    needs_guard = guard or any(each.field in GUARDED_FIELDS for each in gate)
    verdicts = verdicts_of(pairs) if needs_guard else None
    usual = measured.cosines or isinstance(model, PairModel)
    of_similarity = (
        f"the model's own (similarity_fn_name): the {similarity_name(model)}, not the cosine"
    )
    compared_by = [] if usual else [f"similarities, and the threshold, are {of_similarity}"]
    same = [
        f"{count} of {kinds[kind].pairs} {kind} pairs have the very same vector for both texts: no "
        "use of these "
        "vectors can tell them apart"
        for kind, count in measured.indistinct.items()
        if count
    ]
    result = Check(
        model=named.name,
        identity=named.identity(),
        measured=measured,
        keep=keep if threshold is None else None,
        **whole,
        kinds=kinds,
        near_duplicates=near_rows,
        lengths=tuple(_length_rows(measured, used)),
        drops=drops,
        requirements=gate,
        unmet=(),
        changes=tuple(changes),
        notes=(*compared_by, *further, *same),
        verdicts=verdicts,
        seed=seed,
    )
    return replace(result, unmet=(*_unmet(result, allow_package_pairs), *_fallen(drops)))


def _unmet(check: Check, allow_package_pairs: bool) -> Iterator[Unmet]:
    """The requirements that fail."""
    rows: dict[str, Any] = {kind: asdict(row) for kind, row in check.kinds.items()}
    rows[""] = {name: getattr(check, name) for name in FIELDS}
    if check.verdicts is not None:
        behind = check.guarded()
        rows[""] |= {GUARDED: behind["all_false_hits"], "guarded_recall": behind["recall"]}
        for kind, share in behind["false_hits"].items():
            rows[kind][GUARDED] = share
    for requirement in check.requirements:
        stands_in = check.measured.has_stand_ins and not allow_package_pairs
        if stands_in and _rests_on_near(requirement.field, check):
            yield Unmet(
                "",
                requirement.text,
                f"{requirement.text}: it rests on near-duplicates (same = true), your pairs hold "
                "none, and the package's cannot meet it; add such rows"
                f"{'' if check.keep is None else ', give a threshold'} or pass "
                "--allow-package-pairs",
            )
        else:
            yield from requirement.unmet(rows, number=dict.__getitem__, detail=_interval)


def _rests_on_near(field: str, check: Check) -> bool:
    """Whether near-duplicates decide the number: false hits only by the threshold they give."""
    if field == "pairs" or field.startswith("auc_far"):
        return False
    return "recall" in field or field.startswith("auc") or check.keep is not None


def _interval(row: dict[str, Any], field: str) -> str:
    low, high = (row.get(f"{field}_{end}") for end in ("low", "high"))
    return "" if low is None or high is None else f" (95 % interval {low:.3f} to {high:.3f})"


def _kind_row(
    measured: PairSimilarities,
    kind: str,
    threshold: float,
    kept: tuple[np.ndarray, float] | None,
    seed: Seed,
) -> KindRow:
    values = measured.values
    opposite = values[measured.opposites[kind]]
    near = auc_estimate(opposite, values[measured.near])
    far = auc_estimate(opposite, values[measured.far]) if measured.far.any() else None
    hits = share_over(opposite, threshold, kept, seed=derive_seed(seed, kind))
    return KindRow(
        kind=kind,
        pairs=len(opposite),
        auc=near.value,
        auc_low=ends(near)[0],
        auc_high=ends(near)[1],
        auc_far=far and far.value,
        auc_far_low=far and far.low,
        auc_far_high=far and far.high,
        false_hits=hits.value,
        false_hits_low=ends(hits)[0],
        false_hits_high=ends(hits)[1],
    )


def _length_rows(measured: PairSimilarities, threshold: float) -> Iterator[LengthRow]:
    for kind, members in measured.opposites.items():
        for length in LENGTHS:
            of_length = measured.lengths == length
            opposite, near = (
                measured.values[members & of_length],
                measured.values[measured.near & of_length],
            )
            if len(opposite):
                area = auc(opposite, near) if len(near) else None
                hits = float((opposite >= threshold).mean())
                yield LengthRow(
                    kind=kind, length=length, pairs=len(opposite), auc=area, false_hits=hits
                )


def _fallen(drops: dict[str, dict[str, float]]) -> Iterator[Unmet]:
    fallen = {kind: drop for kind, drop in drops.items() if drop["p"] <= LEVEL}
    for kind, drop in fallen.items():
        # Where a kind is named, that all of them together fell too says no more.
        if kind != TOGETHER or len(fallen) == 1:
            change = (
                f"from {drop['before']:.4f} to {drop['after']:.4f} since the baseline "
                f"(p = {drop['p']:.2g})"
            )
            yield Unmet(kind, not_dropped(kind), f"{kind}.auc has dropped {change}")
