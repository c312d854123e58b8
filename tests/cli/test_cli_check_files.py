"""`wordsens check` on a canary and on query pairs."""

import csv
import json

import pytest
from tests.evaluation.test_query_pairs import GROUPS

BAG = ["check", "--encode", "tests.evaluation.stand_ins:bag_of_words", "--quiet"]


def test_the_command_writes_compares_and_fails_for_another_model(wordsens, tmp_path):
    path = str(tmp_path / "canary.json")
    first = [*BAG, "--canary", path]
    assert wordsens(*first, "--write").code == 0
    run = wordsens(*first, "--json")
    assert (run.code, json.loads(run.out)["same"]) == (0, True)
    other = wordsens("check", "--encode", "tests.evaluation.stand_ins:deaf_to_negations", "--canary", path)
    assert (other.code, other.out.startswith("Another model:")) == (3, True)


@pytest.mark.parametrize(
    ("options", "message"),
    [(["--write"], "--write goes with --canary"), (["--canary", "c.json", "--kind", "role"], "--kind does not go")],
)
def test_options_that_do_not_go_together(wordsens, options, message):
    run = wordsens(*BAG, *options)
    assert (run.code, message in run.err) == (2, True)


def test_the_command_reads_them_by_their_columns(wordsens, tmp_path):
    path = str(tmp_path / "groups.csv")
    with (tmp_path / "groups.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, ["id", *GROUPS[0]])
        writer.writeheader()
        writer.writerows({"id": at, **group} for at, group in enumerate(GROUPS))
    model = [*BAG, "--pairs", path]
    run = wordsens(*model, "--json", "--require", "paired_accuracy >= .9")
    document = json.loads(run.out)
    assert (run.code, document["paired_accuracy"], document["passed"]) == (3, 0.5, False)
    assert "ranks both documents rightly in 2 of 4 groups" in wordsens(*model).out
