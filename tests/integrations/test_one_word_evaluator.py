"""OneWordEvaluator inside sentence-transformers' own training run."""

import csv
import sys

import pytest

import wordsens as ws
from tests.models.zoo import tiny_sentence_transformer

sentence_transformers = pytest.importorskip("sentence_transformers")
datasets = pytest.importorskip("datasets")
pytest.importorskip("accelerate")

from wordsens.integrations.sentence_transformers import OneWordEvaluator  # noqa: E402

METRICS = [
    "mean_auc",
    "negation_auc",
    "negation_false_hits",
    "role_auc",
    "role_false_hits",
    "recall",
    "threshold",
]


KINDS = (["negation", "role"], ["role", "negation"])


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return tiny_sentence_transformer(tmp_path_factory.mktemp("tiny") / "plain")


def test_the_metrics_are_those_of_check(model):
    evaluator = OneWordEvaluator(kinds=["negation", "role"], name="dev")
    metrics = evaluator(model)
    result = ws.check(model, kinds=["negation", "role"])
    assert list(metrics) == [f"dev_{name}" for name in METRICS]
    assert evaluator.primary_metric == "dev_mean_auc"
    assert metrics["dev_negation_auc"] == result.kinds["negation"].auc
    assert metrics["dev_mean_auc"] == sum(row.auc.value for row in result.rows) / 2
    assert metrics["dev_recall"] == result.recall.value
    assert evaluator.result.kinds["role"].false_hits == metrics["dev_role_false_hits"]
    assert evaluator(model) == metrics


def test_columns_keep_their_order_when_another_kind_is_the_worst(model):
    """`check` puts the worst kind first; rows of one CSV file must not change places."""
    evaluator = OneWordEvaluator(kinds=["role", "negation"], name="dev")
    orders = {tuple(OneWordEvaluator(kinds=kinds, name="dev")(model)) for kinds in KINDS}
    assert orders == {tuple(evaluator(model))} == {tuple(f"dev_{name}" for name in METRICS)}


def test_a_model_that_ends_the_process_is_an_error(tmp_path):
    broken = tiny_sentence_transformer(tmp_path / "broken")
    broken[0].register_forward_hook(lambda *_: sys.exit(0))
    with pytest.raises(ws.InputError, match="SystemExit"):
        OneWordEvaluator(kinds=["negation"])(broken)


def test_a_training_run_watches_it_and_writes_rows_and_a_card(model, tmp_path):
    rows = [("The cat is in.", "The cat is inside.", "The cat is not in.")] * 16
    data = datasets.Dataset.from_dict(
        dict(zip("abc", map(list, zip(*rows, strict=True)), strict=True))
    )
    arguments = sentence_transformers.SentenceTransformerTrainingArguments(
        output_dir=str(tmp_path),
        max_steps=4,
        per_device_train_batch_size=4,
        eval_strategy="steps",
        eval_steps=2,
        save_steps=2,
        load_best_model_at_end=True,
        metric_for_best_model="eval_dev_mean_auc",
        report_to=[],
        disable_tqdm=True,
        use_cpu=True,
        dataloader_pin_memory=False,
    )
    losses = sentence_transformers.sentence_transformer.losses
    trainer = sentence_transformers.SentenceTransformerTrainer(
        model=model,
        args=arguments,
        train_dataset=data,
        loss=losses.MultipleNegativesRankingLoss(model),
        evaluator=OneWordEvaluator(kinds=["negation", "role"], name="dev"),
    )
    trainer.train()
    logged = [entry for entry in trainer.state.log_history if "eval_dev_mean_auc" in entry]
    assert [entry["step"] for entry in logged] == [2, 4]
    with (tmp_path / "eval" / "one_word_evaluation_dev_results.csv").open(
        encoding="utf-8", newline=""
    ) as file:
        written = list(csv.DictReader(file))
    assert list(written[0]) == ["epoch", "steps", *METRICS]
    assert [float(row["mean_auc"]) for row in written] == [
        entry["eval_dev_mean_auc"] for entry in logged
    ]
    model.save(str(tmp_path / "model"))
    card = (tmp_path / "model" / "README.md").read_text(encoding="utf-8")
    assert "One Word" in card
    assert "negation_false_hits" in card


def test_wrong_kinds_and_shares_are_refused_at_once():
    with pytest.raises(ws.InputError, match="negatoin"):
        OneWordEvaluator(kinds=["negatoin"])
    with pytest.raises(ws.InputError, match="`keep`"):
        OneWordEvaluator(keep=2)


def test_pairs_of_the_package_that_stand_in_are_said_before_the_training(caplog):
    OneWordEvaluator([("switch", "turn it on", "turn it off", False)])
    assert "of the package stand in" in caplog.text
