"""The package's pairs as a task of MTEB: do near-duplicates of one meaning rank above texts that one word turns around?

>>> import mteb                                                                            # doctest: +SKIP
>>> results = mteb.evaluate(mteb.get_model("all-MiniLM-L6-v2"), [OneWordPairClassification()])  # doctest: +SKIP
"""

from pathlib import Path
from typing import Any

from datasets import Dataset, DatasetDict
from mteb.abstasks.pair_classification import AbsTaskPairClassification  # pyright: ignore[reportMissingImports]
from mteb.abstasks.task_metadata import TaskMetadata  # pyright: ignore[reportMissingImports]

from wordsens.text.pairs import Pair, read_pairs
from wordsens.text.shipped_data import near_duplicates
from wordsens.version import __version__

_STATISTICS = Path(__file__).with_name("mteb_statistics.json")


class _Metadata(TaskMetadata):
    """MTEB keeps the statistics of its tasks among its own files; those of this task are beside this module."""

    @property
    def descriptive_stat_path(self) -> Path:
        return _STATISTICS


class OneWordPairClassification(AbsTaskPairClassification):
    """Opposites that differ by one change (label 0) among near-duplicates of one meaning (label 1), all of the package.

    Needs no download. Paraphrases of few common words take no part.
    """

    metadata = _Metadata(
        name="OneWordPairClassification",
        description="Texts that mean the same in other words, against texts that one change turns around: a negation, "
        "an antonym, an amount, a time, a name, a modal verb, or who does what to whom.",
        reference="https://arxiv.org/abs/2402.02969",
        dataset={"path": "wordsens", "revision": __version__},
        type="PairClassification",
        category="t2t",
        modalities=["text"],
        eval_splits=["test"],
        eval_langs=["eng-Latn"],
        main_score="cosine_ap",
        date=("2026-01-01", "2026-11-27"),
        domains=["Written", "Legal", "Medical", "Financial", "Programming"],
        task_subtypes=["Duplicate Detection", "Textual Entailment"],
        license="apache-2.0",
        annotations_creators="LM-generated",
        dialect=[],
        sample_creation="LM-generated and verified",
        bibtex_citation="",
        prompt="Retrieve texts that mean exactly the same as the given text.",
    )

    def load_data(self, *args: Any, **kwargs: Any) -> None:
        """The pairs that come with the package, as MTEB's columns."""
        if self.data_loaded:
            return
        rows = [{"sentence1": pair.first, "sentence2": pair.second, "labels": int(pair.same)} for pair in _pairs()]
        dataset: Any = DatasetDict({"test": Dataset.from_list(rows)})
        self.dataset = dataset
        self.data_loaded = True


def _pairs() -> list[Pair]:
    """Opposites and near-duplicates, in the order of the files."""
    return [pair for pair in [*read_pairs(), *read_pairs(near_duplicates())] if pair.near or not pair.same]
