"""An evaluator for anyone's sentence-transformers training: does a meaning that flips with one word
still show?"""

import logging
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import pandas as pd
from sentence_transformers.base.evaluation.evaluator import BaseEvaluator

from wordsens.display.numbers import as_sentences
from wordsens.evaluation.check import KEEP, Check, check, require_options
from wordsens.evaluation.pairs import choose_pairs
from wordsens.models.load import as_model
from wordsens.seeds import Seed
from wordsens.text.pairs import Pairs


class OneWordEvaluator(BaseEvaluator):
    """Runs `wordsens.check` on the model: at every evaluation of a Trainer, or once when called.

    The metrics are `mean_auc` over the kinds (the primary metric), KIND_auc and KIND_false_hits of
    every kind, `recall` and `threshold`, each after the name and an underscore. See
    `wordsens.check` for what they mean.

    Args:
        pairs, kinds, threshold, keep, seed: as of `wordsens.check`.
        name: before every metric and in the CSV file's name.
        write_csv: append a row to one_word_evaluation_NAME_results.csv at every evaluation.
        batch_size: texts at a time.

    Attributes:
        result: the last Check, with its tables and failing pairs; None before the first.

    Raises:
        InputError: the pairs cannot be read, or no such kind.

    >>> from sentence_transformers import SentenceTransformer
    >>> from wordsens.models.model_files import minilm_folder
    >>> model = SentenceTransformer(str(minilm_folder()), device="cpu")
    >>> pairs = [("negation", "It works.", "It does not work.", False), ("case", "It works.", "it works", True)]
    >>> evaluator = OneWordEvaluator(pairs, name="dev")
    >>> list(evaluator(model))
    ['dev_mean_auc', 'dev_negation_auc', 'dev_negation_false_hits', 'dev_recall', 'dev_threshold']
    >>> evaluator.primary_metric
    'dev_mean_auc'
    """  # noqa: E501

    def __init__(
        self,
        pairs: Pairs | None = None,
        kinds: Sequence[str] | None = None,
        *,
        threshold: int | float | None = None,
        keep: int | float = KEEP,
        name: str = "",
        write_csv: bool = True,
        batch_size: int = 32,
        seed: Seed = 0,
    ):
        super().__init__()
        require_options(threshold, keep, seed)  # refuses what is wrong before the training
        self.pairs, changes = choose_pairs(pairs, kinds)
        if changes:
            logging.getLogger(__name__).warning("%s", as_sentences(*changes))
        self.name, self.write_csv, self.batch_size = name, write_csv, batch_size
        self._options: dict[str, Any] = {"threshold": threshold, "keep": keep, "seed": seed}
        self.csv_file = f"one_word_evaluation{'_' * bool(name)}{name}_results.csv"
        self.primary_metric = "mean_auc"
        self.result: Check | None = None

    def __call__(
        self, model: Any, output_path: str | None = None, epoch: int | float = -1, steps: int = -1
    ) -> dict[str, float]:
        self.result = check(
            as_model(model, batch_size=self.batch_size), self.pairs, **self._options
        )
        rows = {row.kind: row.to_dict() for row in self.result.rows}
        plain = {"mean_auc": fmean(row["auc"] for row in rows.values())}
        for kind, row in sorted(rows.items()):  # one order of columns for every step
            plain |= {f"{kind}_{name}": row[name] for name in ("auc", "false_hits")}
        plain |= {"recall": self.result.recall.value, "threshold": self.result.threshold}
        if output_path is not None and self.write_csv:
            path = Path(output_path) / self.csv_file
            path.parent.mkdir(parents=True, exist_ok=True)
            record = pd.DataFrame([{"epoch": epoch, "steps": steps, **plain}])
            record.to_csv(path, mode="a", header=not path.exists(), index=False)
        metrics = self.prefix_name_to_metrics(plain, self.name)
        card: Any = self.store_metrics_in_model_card_data  # its `epoch` is a fraction too
        card(model, metrics, epoch, steps)
        return metrics

    def get_config_dict(self) -> dict[str, Any]:
        """What a model card says of the evaluation."""
        return {name: value for name, value in self._options.items() if value is not None}
