"""The JSON documents of the commands, as classes: `json_page.py` makes docs/json.schema.json of
them.

A class that derives from one of the package takes its keys, their types and meanings from there,
but for the fields named in `not_in_dict`. Written here are the keys that no class of the package
has.
"""

from typing import Any, ClassVar, Literal, NotRequired

from wordsens.display.view import Finding
from wordsens.evaluation.audit import Audit, CutText, Group
from wordsens.evaluation.calibrate import OperatingPoint
from wordsens.evaluation.carry import CarriedThreshold, Setting
from wordsens.evaluation.check import Check, KindRow
from wordsens.evaluation.classes import ClassFlips
from wordsens.evaluation.collisions import Collisions
from wordsens.evaluation.compare import ChangedNeighbour, Comparison, Difference
from wordsens.evaluation.explain import Explanation
from wordsens.evaluation.guard.judge import Judgement, Verdict
from wordsens.evaluation.guard.lost_meaning import LostPart
from wordsens.evaluation.word_effects import WordEffect
from wordsens.results import Estimate
from wordsens.sensitivity.profile import SensitivityProfile
from wordsens.sensitivity.result import Sensitivity
from wordsens.sweeps.study import Summary
from wordsens.training.tuning import Tuned


class Document:
    """What a command prints with `--json`.

    Attributes:
        command: its name.
        version: of wordsens.
    """

    command: str
    version: str


class Split:
    """Something whose estimates are three keys each: `recall`, `recall_low` and `recall_high`."""


class MapResult(Sensitivity):
    """A text under one map.

    Attributes:
        map: the map's name; `drf4` is drf with depth 4.
        word: the index of the word with the largest value.
        token: what that word is called.
        tokens: (w,), what each of `words` is called.
        words: (w,), the words that were searched.
        predicted: what theory predicts of S at the radius √d, or null; no bound.
        predicted_of: whose S that is: "the largest of 16 words" or "a typical word".
        predicted_in_range: whether the prediction was compared with measurements at sizes like
            these.
        conditions: of the paper's theorem about the map: sentences that begin with [yes], [no] or
            [open].
        small_radius: with `--small-radius`, the limit of S / radius at radius 0 for each of
            `words`.
        swap: with `--swaps`, for each of `words` the relative change by the best real word in its
            place.
        swapped_for: with `--swaps`, those words.
        profile: with `--profile`, all measures of the text.
        seconds: what the measurement took, the certificate included.
    """

    not_in_dict: ClassVar[tuple[str, ...]] = (
        *("perturbations", "groups", "map_name", "searched", "sets"),
    )

    map: str
    word: int
    token: str
    words: list[int]
    predicted: float | None
    predicted_of: str | None
    predicted_in_range: bool | None
    conditions: list[str]
    small_radius: list[float] | None
    swap: list[float] | None
    swapped_for: list[str] | None
    profile: SensitivityProfile | None
    seconds: float


class TextResults:
    """A text that was measured.

    Attributes:
        source: where the text came from.
        label: +1 or -1, or null.
        n: how many words it has.
        d: how many coordinates a word has.
        tokens: n strings, what the words are called.
        results: one entry per map.
    """

    source: str
    label: int | None
    n: int
    d: int
    tokens: list[str]
    results: list[MapResult]


class MeasureDocument(Document):
    """What `measure` prints.

    Attributes:
        encoder: what embedded the texts; with `--map model`, the model.
        layer: of the encoder or the model.
        seed: of the maps and of the search.
        device: where it was computed.
        texts: one entry per text.
        skipped: the sources of the texts that have only one word.
        records: with `--out`, the path of the table of records.
    """

    command: Literal["measure"]
    encoder: str
    layer: int
    seed: int
    device: str
    texts: list[TextResults]
    skipped: list[str]
    records: str | None


class Record:
    """A row of the table of records of `paper sensitivity` and `measure --out`: the columns that
    both have. An empty cell is null; `tokens`, `whole_words` and `swapped_for` are lists as JSON.

    Attributes:
        value: S, a lower bound of the sup, with a witness.
        upper: an upper bound over the searched words, where the map has one.
        rigor: of the upper bound: certified, or with what probability over the weights.
        average: the mean change over random Deltas on the spheres of a few searched words; empty
            for `measure`.
        median_word: the median over the searched words of `per_word`.
        predicted: what theory predicts, where it does.
        predicted_of: of what: "the largest of 16 words" or "a typical word".
        predicted_in_range: whether the prediction was compared with measurements at such sizes.
        map: rf, drf4 (the number is the depth), raf, relu-raf, ...
        n: how many words the text has.
        d: how many coordinates a word has.
        text: the kind of the text.
        source: the text itself, such as "shipped/review-001".
        label: of the text, +1 or -1, where it has one.
        words: how many words were searched.
        searched: their indices.
        per_word: the largest change found for each.
        upper_per_word: an upper bound for each.
        word: the index of the word with the largest value.
        token: what it is called.
        radius: of its ball.
        cosine: the mean cosine of two rows of the text.
        evaluations: how many perturbed texts were evaluated.
        converged: the share of words whose search ended at a stationary point.
        tokens: what the rows are called.
        whole_words: the words as a reader sees them, with their rows.
        swap: of `measure --swaps`, the relative change by the best real word in each word's place.
        swapped_for: those words.
        content: the characters of a given text.
        map_seed: the seed that the map was built with.
    """

    value: float | None
    upper: float | None
    rigor: str | None
    average: float | None
    median_word: float | None
    predicted: float | None
    predicted_of: str | None
    predicted_in_range: bool | None
    map: str
    n: int
    d: int
    text: str
    source: str | None
    label: int | None
    words: int | None
    searched: list[int] | None
    per_word: list[float] | None
    upper_per_word: list[float] | None
    word: int | None
    token: str | None
    radius: float | None
    cosine: float | None
    evaluations: int | None
    converged: float | None
    tokens: str | None
    whole_words: str | None
    swap: list[float] | None
    swapped_for: str | None
    content: str | None
    map_seed: int | None


class AuditCutText(CutText):
    """A text that was not read to its end.

    Attributes:
        source: where it came from.
        words_lost: how many of its words were not read.
        negations_lost: how many of these are negations.
    """


class AuditDocument(Audit, Document):
    """What `audit` prints.

    Attributes:
        seed: of the draw of words.
        model: its name.
        effects: one row per measured word; `text` is the number of the text.
        no_advice: why there is no advice; "" where there is.
        groups: one entry per kind of word and per place.
    """

    command: Literal["audit"]
    seed: int
    model: str
    passed: bool
    failures: list[str]
    answer: list[str]
    effects: list[WordEffect]
    groups: list[Group]
    cut: list[AuditCutText]


class PaperTable:
    """A table of a study.

    Attributes:
        title: what it shows.
        rows: each maps the headings to values; an estimate is an object, as in `Estimate`.
    """

    title: str
    rows: list[dict[str, Any]]


class PaperDocument(Summary, Document):
    """What `paper` prints for one figure.

    Attributes:
        command: `paper` and the name of the figure.
        scale: quick, laptop or full.
        seed: of the experiment.
        cells: how many cells the experiment has.
        tables: the first is what a terminal prints.
        records: the path of the table of records.
        figures: the paths of the figures.
    """

    scale: str
    seed: int
    cells: int
    tables: list[PaperTable]
    records: str
    figures: list[str]


class PaperDocuments(Document):
    """What `paper` prints for several figures.

    Attributes:
        parts: their documents.
        report: the path of the report, with `all`.
    """

    command: Literal["paper"]
    parts: list[PaperDocument]
    report: str | None


class ExplainDocument(Explanation, Document):
    """What `explain` prints for one text or two.

    Attributes:
        seed: of the draw of words of `--texts`.
    """

    command: Literal["explain"]
    seed: int


class ExplainTextsDocument(ClassFlips, Document):
    """What `explain --texts` prints.

    Attributes:
        seed: of the draw of words.
    """

    command: Literal["explain"]
    seed: int
    passed: bool
    failures: list[str]


class TuneScores:
    """The table of `tune`, column by column.

    Attributes:
        kind: the kinds of opposites, whose AUC follows; last "recall@1".
        before: of the model that was tuned.
        after: of the tuned one.
        new: likewise after, for the opposites none of whose changed words is in a triple that was
            seen; null where there are none.
    """

    kind: list[str]
    before: list[Estimate]
    after: list[Estimate]
    new: list[Estimate | None]


class TuneDocument(Tuned, Document):
    """What `tune` prints.

    Attributes:
        seed: of the split, the near misses and the training.
        scores: the table, column by column.
    """

    command: Literal["tune"]
    seed: int
    scores: TuneScores


class ComparedRow(Difference):
    """One number of both models, on the same pairs or texts.

    Attributes:
        difference: second minus first.
        low, high: its 95 % interval; null with too few texts or pairs.
        p: joint over all rows of the part; null where no test is made.
    """

    not_in_dict: ClassVar[tuple[str, ...]] = ("change", "margin")

    difference: float
    low: float | None
    high: float | None
    p: float | None
    differs: bool


class CompareDocument(Split, Comparison, Document):
    """What `compare` prints for two models on texts.

    Attributes:
        seed: of the words, the texts drawn and the tests.
    """

    not_in_dict: ClassVar[tuple[str, ...]] = ("requirements", "unmet", "changes")

    command: Literal["compare"]
    seed: int
    differs: bool
    passed: bool
    failures: list[str]
    answer: list[str]
    rows: list[ComparedRow]
    changed: list[ChangedNeighbour]


class SettingNumbers(Split, Setting):
    """A model with a threshold."""


class CompareThresholdDocument(CarriedThreshold, Document):
    """What `compare --threshold` prints without texts.

    Attributes:
        seed: of the intervals.
        settings: the old model; the new one with the old number; and the new one with the threshold
            that keeps the recall, or the false hits.
    """

    not_in_dict: ClassVar[tuple[str, ...]] = ("changes",)

    command: Literal["compare"]
    seed: int
    answer: list[str]
    settings: list[SettingNumbers]


class GuardExample:
    """The first pair with a reason.

    Attributes:
        first, second: the two texts.
        reason: the whole reason.
    """

    first: str
    second: str
    reason: str


class GuardReason:
    """A verdict with its reason.

    Attributes:
        verdict: of these pairs.
        reason: such as `negation` or `quantity`.
        pairs: how many.
        example: the first of them.
    """

    verdict: Verdict
    reason: str
    pairs: int
    example: GuardExample


class GuardDocument(Document):
    """What `guard --pairs` prints.

    Attributes:
        pairs: how many.
        same, different, unsure: how many have this verdict.
        reasons: one entry per verdict and reason.
    """

    command: Literal["guard"]
    pairs: int
    same: int
    different: int
    unsure: int
    reasons: list[GuardReason]


class GuardLine(Judgement):
    """What `guard` prints for each pair, without `--pairs`."""


class GuardError:
    """What `guard` prints for a line of stdin without a pair.

    Attributes:
        verdict: null.
        error: what is wrong with the line.
    """

    verdict: None
    error: str


class GuardRewrite:
    """What `guard --rewrite` prints.

    Attributes:
        lost: what the rewritten text has lost.
    """

    lost: list[LostPart]


class Distances:
    """A threshold as the largest distance of vectors of length one.

    Attributes:
        l2: the squared distance, 2 - 2c.
        cosine: 1 - c.
    """

    l2: float
    cosine: float


class KindHits:
    """One kind of opposite at the threshold.

    Attributes:
        kind: of opposite.
        pairs: how many opposites.
        hits: how many pass.
        limit: the upper limit of their share.
    """

    kind: str
    pairs: int
    hits: int
    limit: float


class BudgetPoint(Split, OperatingPoint):
    """The smallest threshold under a budget."""


class BudgetPoints:
    """The thresholds under one budget.

    Attributes:
        alone: without the guard.
        guarded: with the guard behind the threshold.
    """

    alone: BudgetPoint
    guarded: BudgetPoint


class CalibrateDocument(Split, OperatingPoint, Document):
    """What `calibrate` prints.

    Attributes:
        model: its name.
        identity: of its weights; "unknown" where nothing can be hashed.
        answer: the findings, a list of sentences.
        confidence: of the upper limits.
        guard: whether a pair that the guard calls different is no hit.
        budget: the share of opposites that may pass.
        threshold: the smallest similarity that keeps it; null where none does, and then `hits`,
            `limit`, `recall` and `distances` are null too.
        hits: the opposites that pass.
        distances: the threshold as a distance; null without a threshold or cosines.
        opposites: how many.
        needed: how many the budget takes, if none of them passes.
        near_duplicates: how many.
        kinds: one entry per kind of opposite; empty without a threshold.
        budgets: one entry per budget.
        notes: what a reader should know of the pairs.
    """

    command: Literal["calibrate"]
    model: str
    identity: str
    answer: list[str]
    confidence: float
    guard: bool
    distances: Distances | None
    opposites: int
    needed: int
    near_duplicates: int
    kinds: list[KindHits]
    budgets: list[BudgetPoints]
    notes: list[str]


class WorstHit:
    """A new question and its nearest one in the cache.

    Attributes:
        first: the new question.
        second: the question in the cache.
        guard: the guard's verdict, or "labelled".
        similarity: of the two.
    """

    first: str
    second: str
    guard: str
    similarity: float


class LabelledPairs:
    """The pairs with your labels.

    Attributes:
        same: the pairs that mean the same, which are no hits.
        reached: how many of those reach the threshold.
        different: the pairs that differ.
    """

    same: int
    reached: int
    different: int


class CalibrateTextsDocument(Collisions, Document):
    """What `calibrate --texts` prints.

    Attributes:
        asked: how many new questions.
        threshold: the smallest similarity that keeps the budget; null where none does, and then
            `hits`, `limit` and `distances` are null too.
        hits: the new questions that hit.
        limit: the upper limit of their share.
        distances: the threshold as a distance; null without a threshold or cosines.
        labelled: how many pairs have your labels.
        thresholds: one entry per threshold: `threshold`, and for `cache`, `cache guarded`,
            `quarter` and `quarter guarded` the share of new questions that hit and, with " at most"
            behind the name, its upper limit.
        worst: the twenty worst hits; those that the guard calls the same come last.
        notes: which texts were left out.
    """

    not_in_dict: ClassVar[tuple[str, ...]] = (
        *("score", "nearest", "verdicts", "similarities", "repeated", "differing", "changes"),
    )

    command: Literal["calibrate"]
    asked: int
    answer: list[str]
    threshold: float | None
    hits: int | None
    limit: float | None
    distances: Distances | None
    needed: int
    labelled: LabelledPairs
    thresholds: list[dict[str, float]]
    worst: list[WorstHit]
    notes: list[str]


class KindNumbers(Split, KindRow):
    """One kind of opposite, of all lengths or of one.

    Attributes:
        length: question (up to 50 words), paragraph (up to 150) or page; "" for all lengths.
    """


class NearKind:
    """One kind of near-duplicate.

    Attributes:
        kind: its name.
        pairs: how many.
        recall, recall_low, recall_high: the share at or above the threshold, with its 95 %
            interval.
    """

    kind: str
    pairs: int
    recall: float
    recall_low: float | None
    recall_high: float | None


class Drop:
    """A kind's AUC since the baseline.

    Attributes:
        before, after: the AUC.
        p: the joint p-value of the change.
    """

    before: float
    after: float
    p: float


class CheckedPair:
    """A pair of `check`.

    Attributes:
        kind: of opposite or near-duplicate.
        same: whether the two mean the same.
        similarity: of the two.
        hit: whether it is at or above the threshold.
        guard: the guard's verdict, with `--guard` or a requirement on it.
        first, second: the two texts.
        near: whether it is a near-duplicate.
        where: its file and line; `package` for the package's own.
        changed_first, changed_second: the words that differ.
    """

    kind: str
    same: bool
    similarity: float
    hit: bool
    guard: NotRequired[Verdict]
    first: str
    second: str
    near: bool
    where: str
    changed_first: str
    changed_second: str


class GuardedShares:
    """The shares with the guard behind the threshold: what it calls different is no hit.

    Attributes:
        recall: of near-duplicates.
        all_false_hits: of opposites.
        false_hits: of opposites, by kind.
    """

    recall: float
    all_false_hits: float
    false_hits: dict[str, float]


class CheckDocument(Split, Check, Document):
    """What `check` prints.

    Attributes:
        model: its name.
        identity: of its weights; "unknown" where they cannot be read.
        kinds: one entry per kind of opposite, the one with most false hits first.
        near_duplicates: one entry per kind of near-duplicate.
        drops: by kind, its AUC since the baseline; empty without one.
        failing_pairs: the worst pairs behind the failures.
        pairs: with `--all-pairs`, every pair, the worst first.
        guarded: with `--guard`, false hits and recall with the guard; null without.
    """

    not_in_dict: ClassVar[tuple[str, ...]] = ("scored", "rows", "requirements", "unmet")

    command: Literal["check"]
    model: str
    identity: str
    seed: int
    passed: bool
    failures: list[str]
    answer: list[str]
    kinds: list[KindNumbers]
    near_duplicates: list[NearKind]
    lengths: list[KindNumbers]
    drops: dict[str, Drop]
    failing_pairs: list[CheckedPair]
    pairs: NotRequired[list[CheckedPair]]
    guarded: GuardedShares | None


class FailedCell:
    """A cell that failed.

    Attributes:
        cell: its key.
        error: why.
    """

    cell: str
    error: str


class SweepRunDocument(Document):
    """What `sweep run` prints.

    Attributes:
        name: of the sweep.
        experiment: of its cells.
        cells: how many there are.
        done: how many have a value.
        failed: the cells that failed.
        seconds: the sum of the cells' times.
        records: the path of the table of records.
    """

    command: Literal["sweep run"]
    name: str
    experiment: str
    cells: int
    done: int
    failed: list[FailedCell]
    seconds: float
    records: str


class SweepStatusDocument(SweepRunDocument):
    """What `sweep status` prints.

    Attributes:
        to_come: how many cells have no record.
    """

    not_in_dict: ClassVar[tuple[str, ...]] = ("records",)

    command: Literal["sweep status"]
    to_come: int


class SweepExportDocument(Document):
    """What `sweep export` prints.

    Attributes:
        records: how many the folder holds.
        files: the Parquet file of each experiment; a CSV file lies beside it.
    """

    command: Literal["sweep export"]
    records: int
    files: list[str]


class SweepPlotDocument(Document):
    """What `sweep plot` prints.

    Attributes:
        name: of the sweep.
        experiment: of its cells.
        x: the column along which.
        y: the column that is averaged.
        file: the figure.
        series: each has the columns that tell the series apart, `from` and `to` (the ends of x),
            `texts` (how many different ones), and `exponent` with its 95 % interval (`exponent
            low`, `exponent high`), null without a fit.
        points: each has the columns that tell its series apart, x, the mean of y with its 95 %
            interval, and `fit`, the power law there, or null.
    """

    command: Literal["sweep plot"]
    name: str
    experiment: str
    x: str
    y: str
    file: str
    series: list[dict[str, Any]]
    points: list[dict[str, Any]]


class ReportedRun:
    """A run that the report shows.

    Attributes:
        name: of the run.
        folder: where it lies.
        records: how many it holds.
        failed: how many of these failed.
        passed_over: the files that are no records of this version, each with the reason.
    """

    name: str
    folder: str
    records: int
    failed: int
    passed_over: list[str]


class ReportedFinding(Finding):
    """A finding of a run.

    Attributes:
        of: the run.
    """

    of: str


class ReportDocument(Document):
    """What `report` prints.

    Attributes:
        file: what was written.
        bytes: its size.
        runs: those that the report shows.
        findings: of all runs.
    """

    command: Literal["report"]
    file: str
    bytes: int
    runs: list[ReportedRun]
    findings: list[ReportedFinding]


class AppDocument(Document):
    """What `app` prints once the page can be opened.

    Attributes:
        address: of the page.
    """

    command: Literal["app"]
    address: str


DOCUMENTS = (
    MeasureDocument,
    PaperDocument,
    PaperDocuments,
    SweepRunDocument,
    SweepStatusDocument,
    SweepExportDocument,
    SweepPlotDocument,
    CheckDocument,
    CalibrateDocument,
    CalibrateTextsDocument,
    CompareDocument,
    CompareThresholdDocument,
    ExplainDocument,
    ExplainTextsDocument,
    AuditDocument,
    TuneDocument,
    GuardDocument,
    GuardLine,
    GuardError,
    GuardRewrite,
    ReportDocument,
    AppDocument,
)
