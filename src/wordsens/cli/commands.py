"""The commands, each by its help text. Its options and its work are in the module of its name; the work loads torch."""

from collections.abc import Iterator
from contextlib import contextmanager

from wordsens.cli.audit import AuditOptions, run_audit
from wordsens.cli.check import CheckOptions, run_check
from wordsens.cli.compare import CompareOptions, run_compare
from wordsens.cli.explain import ExplainOptions, run_explain
from wordsens.cli.flips import FlipsOptions, run_flips
from wordsens.cli.guard import GuardOptions, run_guard
from wordsens.cli.measure.options import MeasureOptions
from wordsens.cli.options import takes
from wordsens.cli.paper import PaperOptions
from wordsens.cli.report import ReportOptions
from wordsens.cli.tune import TuneOptions, run_tune
from wordsens.errors import require_extra


@contextmanager
def _cpu_threads(count: int) -> Iterator[None]:
    """Let torch use `count` threads inside the block, and as many as before after it.

    One is the default of the command line: most products here are small, and a second thread that has to share its
    core with another program makes each of them wait.
    """
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@takes(MeasureOptions)
def measure(options: MeasureOptions) -> None:
    """Measure how far one word can move what a map sees: S per word, with the most sensitive one marked.

    S = sup over the word i and ‖Delta‖ <= radius of ‖phi(X^i(Delta)) - phi(X)‖ / ‖phi(X)‖.

    Each number is a lower bound of the sup, attained by a perturbation.

    Example: wordsens measure "I love her much" --map rf,raf,relu-raf
    """
    from wordsens.cli.measure.run import run_measure

    with _cpu_threads(options.threads):
        run_measure(options)


@takes(AuditOptions)
def audit(options: AuditOptions) -> None:
    """Find the words that move a model of embeddings or classes, those it ignores, and how that decays with length.

    Each finished text is a row of OUT/results.sqlite; the same command goes on where an earlier run stopped.
    Texts that are empty or have one word are left out and counted; exit code 1 if any other text failed.

    Example: wordsens audit minilm --texts reviews.parquet --limit 200 --out audit
    """
    require_extra("report,models", "an audit", "pydantic", "pyarrow", "pandas", "yaml")
    with _cpu_threads(options.threads):
        run_audit(options)


@takes(CheckOptions)
def check(options: CheckOptions) -> None:
    """Does a meaning that flips with one word show in a model's embeddings? A gate for CI: exit code 3 when it fails.

    Opposites (not, enable/disable, who did what to whom, amounts, order, names, may/must) are compared with
    near-duplicates of the same meaning. At a threshold that keeps 9 of 10 of these, the share of opposites that pass
    as the same is the number of false hits.

    Example: wordsens check minilm --threshold .92 --require 'entity.false_hits <= .6' --require 'recall >= .6'
    """
    with _cpu_threads(options.threads):
        run_check(options)


@takes(CompareOptions)
def compare(options: CompareOptions) -> None:
    """Find what differs between two models, or one before and after a change, on your own texts. A gate for CI.

    Each model is a name or folder, module:function, or the URL of an embeddings endpoint. Compared are how well flipped
    meanings show (as in check), how far a text moves without each word, and which texts have other neighbours; each
    difference has a 95 % interval, and counts only where a test of all together says so. Exit code 3 when a
    requirement fails.

    Example: wordsens compare minilm ./quantised --texts texts.csv --require 'neighbours.nearest.second <= .05'
    """
    with _cpu_threads(options.threads):
        run_compare(options)


@takes(ExplainOptions)
def explain(options: ExplainOptions) -> None:
    """Find the words that carry the score of two texts, a class, or an embedding.

    For each word: the text without it, with another word in its place, and with its vector moved; and for two texts
    the words that keep them apart, and pairs of words that count for more, or less, together than alone.

    Example: wordsens explain minilm "How do I enable it?" "How do I disable it?" --html explained.html
    """
    with _cpu_threads(options.threads):
        run_explain(options)


@takes(FlipsOptions)
def flips(options: FlipsOptions) -> None:
    """Find the words that flip a classifier's label, by class: for moderation, and any other classifier.

    For each word: the class without it, with another word in its place, and, for transformers, the smallest radius
    at which its vectors were seen to flip the label, an upper bound of the smallest.

    Example: wordsens flips ./toxicity-model --texts comments.csv --require 'toxic.removal <= .2'
    """
    with _cpu_threads(options.threads):
        run_flips(options)


@takes(PaperOptions)
def paper(options: PaperOptions) -> None:
    """The paper's experiments on real and Gaussian texts: records, figures and tables.

    Each finished cell is a row of OUT/results.sqlite. The same command resumes an interrupted run.

    Example: wordsens paper sensitivity --scale quick --out results
    """
    require_extra("report,minilm", "an experiment", "matplotlib", "jinja2", "pydantic", "pyarrow", "pandas", "yaml")
    from wordsens.cli.paper import run_paper

    with _cpu_threads(options.threads):
        run_paper(options)


@takes(ReportOptions)
def report(options: ReportOptions) -> None:
    """One page of findings, figures, texts and tables, and how the numbers were made.

    It reads the records of earlier runs and measures nothing. The page needs no network, and no server.

    Example: wordsens report results --open
    """
    require_extra("report", "a report", "jinja2", "matplotlib", "pydantic", "pyarrow", "pandas", "yaml")
    from wordsens.cli.report import run_report

    run_report(options)


@takes(GuardOptions)
def guard(options: GuardOptions) -> None:
    """May two near-duplicates be treated as the same? For semantic caches and memories, by rules, without a model.

    The verdict is same, different or unsure, with a reason such as "negation: 'not'" or "quantity: 2 GB / 3 GB".

    Example: wordsens guard "How do I enable it?" "How do I disable it?"
    """
    run_guard(options)


@takes(TuneOptions)
def tune(options: TuneOptions) -> None:
    """Train a model so that a meaning which one word turns around shows in its embeddings; judged on held-out pairs.

    It uses sentence-transformers' trainer on triples from pairs and from near misses of your texts. The dimension, the
    size and the speed stay. A run that was stopped goes on from its checkpoints, in OUT.checkpoints.

    Example: wordsens tune minilm tuned --texts texts.csv
    """
    with _cpu_threads(options.threads):
        run_tune(options)
