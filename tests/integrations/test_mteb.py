"""The package's pairs as an MTEB task, by the criteria of MTEB's own tests of metadata and task quality."""

import json

import pytest

mteb = pytest.importorskip("mteb", reason="mteb is not installed")
pytestmark = [
    pytest.mark.models,  # installed by `make test-models`
    pytest.mark.filterwarnings("default"),  # mteb's own imports warn
]

SHORTEST = 3  # characters, which a text has more than


@pytest.fixture(scope="module")
def task():
    from wordsens.integrations.mteb import OneWordPairClassification

    task = OneWordPairClassification()
    task.load_data()
    return task


def test_the_metadata_is_filled_and_valid(task):
    task.metadata._validate_metadata()
    assert task.metadata.is_filled()
    assert task.metadata.n_samples == {"test": len(task.dataset["test"])}


def test_the_frozen_statistics_are_those_of_the_pairs(task):
    frozen = task.metadata.descriptive_stats
    assert frozen == json.loads(json.dumps({"test": task._calculate_descriptive_statistics_from_split("test")}))


def test_the_pairs_have_none_of_the_usual_flaws(task):
    stats = task.metadata.descriptive_stats["test"]
    assert stats["unique_pairs"] == stats["num_samples"] > 0
    assert min(stats[f"text{side}_statistics"]["min_text_length"] for side in (1, 2)) > SHORTEST
    assert stats["labels_statistics"]["unique_labels"] == 2
    assert "samples_in_train" not in stats


def test_a_model_that_knows_nothing_scores_the_share_of_near_duplicates(task):
    """Average precision of random embeddings is the share of positives, give or take what 899 pairs allow."""
    model = mteb.get_model("mteb/baseline-random-encoder")
    (result,) = mteb.evaluate(model, [task], cache=None, overwrite_strategy="always").task_results
    labels = task.dataset["test"]["labels"]
    assert result.get_score() == pytest.approx(sum(labels) / len(labels), abs=0.1)
