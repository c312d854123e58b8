"""The workers' tasks, called as a worker calls them: the numbers are those of the library."""

import json
import subprocess
import sys
from dataclasses import asdict

import pytest
import torch

import wordsens as ws
from tests.models.zoo import zoo_model
from wordsens.app.request import EXAMPLES, MeasureRequest
from wordsens.app.tasks import TASKS, paper
from wordsens.app.worker import Parts
from wordsens.errors import InputError
from wordsens.files import packaged_text
from wordsens.models.load import load
from wordsens.text.pairs import LENGTHS

EXAMPLE = next(iter(EXAMPLES.values()))
TEXT = "Two keys open the wooden door."


def run(name, *arguments, context=None):
    """The answer of a task."""
    return TASKS[name](context or Parts(), *arguments)


def searched(answer):
    """The words that have a colour."""
    return [piece for piece in answer["pieces"] if not isinstance(piece, str)]


def test_a_measurement_ends_at_the_librarys_numbers():
    answer = run("measure", asdict(MeasureRequest(text=TEXT, map="relu-raf", seed=2)))["relu-raf"]
    assert len(searched(answer)) == answer["words"]
    (X,) = ws.embed([TEXT])
    phi = ws.RandomAttentionFeatures(X.rows.shape[1], "relu", seed=2)
    direct = ws.word_sensitivity(phi, X, search="quick", seed=2)
    assert answer["value"] == direct.value
    assert [word["value"] for word in searched(answer)] == direct.per_word.tolist()
    # A word's shade is its number on one scale for all texts and maps, from white at 0 to the last
    # at 4.
    for word in searched(answer):
        assert word["level"] == round(min(word["value"] / 4, 1) * 8)


def test_a_words_detail_is_what_its_witness_does():
    request = asdict(MeasureRequest(text=TEXT, map="raf"))
    answer, context = run("measure", request)["raf"], Parts()
    row = answer["row"]
    last = run("word_detail", request, row, answer["witnesses"][row], context=context)
    first, second = context.parts
    assert 0 < second["removal"] < 1
    assert not second["emptied"]
    (X,) = ws.embed([TEXT])
    moved = X.rows.clone()
    moved[row] += torch.tensor(answer["witnesses"][row], dtype=torch.float64)
    phi = ws.RandomAttentionFeatures(X.rows.shape[1], seed=0)
    change = float((phi(moved) - phi(X)).norm() / phi(X).norm())
    assert change == pytest.approx(answer["value"], rel=1e-9)
    assert 0 < last["swap"] < answer["value"]
    # The picture's first and last frames are the attention before and after.
    lines = first["lines"]
    for frame, rows in ((0, X.rows), (-1, moved)):
        assert lines["frames"][frame] == pytest.approx(phi.attention(rows).numpy(), abs=6e-4)
    assert lines["given"] == sorted(lines["given"])


def test_a_dense_layers_detail_is_a_real_word_and_a_row_of_zeros():
    request = asdict(MeasureRequest(text=EXAMPLE, map="rf"))
    answer, context = run("measure", request)["rf"], Parts()
    last = run("word_detail", request, 7, answer["witnesses"][7], context=context)
    (X,) = ws.embed([EXAMPLE])
    phi = ws.RandomFeatures(
        *X.rows.shape, seed=0, gaussian="lazy"
    )  # the law of the page's, with other draws

    def change(rows):
        moved = X.rows.clone()
        moved[7] = rows
        return float((phi(moved) - phi(X)).norm() / phi(X).norm())

    assert context.parts[1] == {"removal": pytest.approx(change(0), rel=0.1), "emptied": True}
    (entry,) = ws.embed([last["swapped_for"]])
    assert last["swap"] == pytest.approx(change(entry.rows[0]), rel=0.1)


def test_the_shipped_comparison_is_what_the_tasks_measure():
    shipped = json.loads(packaged_text("app/static/examples.json"))
    request = MeasureRequest(text=EXAMPLE)
    for name, answer in run("measure", asdict(request)).items():
        stored = shipped["comparison"][name]
        assert stored["value"] == pytest.approx(answer["value"], rel=1e-4)
        assert (
            stored["value"] < stored["upper"] < answer["upper"] * (1 + 1e-4)
        )  # tests have looser bounds
        assert [word["value"] for word in searched(stored)] == pytest.approx(
            [word["value"] for word in searched(answer)], rel=1e-3
        )
        for details in shipped["known"].values():
            assert details[name]["removal"] > 0
            assert details[name]["swap"] is None or details[name]["swap"] > 0


def test_the_first_step_predicts_what_it_measures(monkeypatch):
    """The largest of the words that are searched; nothing where no text was so short."""
    monkeypatch.setattr(paper, "SIZES", (8, 24))
    points = run("lengths")["points"]["rf"]
    assert [n for n, *_ in points] == [8, 24]
    assert points[0][2] is None
    X = ws.gaussian_text(24, paper.DIMENSION, seed=24)
    assert points[1][2] == ws.theory.rf_sensitivity(*X.rows.shape, words=paper.SEARCHED)


def test_identical_sentences_have_the_same_attention():
    answer = run("attention", "minilm", TEXT, TEXT, 1, None)
    assert answer["share"] == 0
    assert run("attention", "minilm", TEXT, TEXT.replace("wooden", "iron"), 1, None)["share"] > 0


def test_two_texts_and_pairs_of_ones_own_have_the_librarys_numbers():
    first, second = "The lift works.", "The lift does not work."
    answer = run("two_texts", "minilm", first, second)
    vectors = load("minilm").encode([first, second]).double()
    cosine = float(torch.nn.functional.cosine_similarity(*vectors, dim=0))
    assert answer["value"] == pytest.approx(cosine, abs=1e-6)
    assert (answer["verdict"], answer["reason"]) == ("different", ws.guard(first, second).reason)
    assert "'not'" in answer["apart"]
    assert "works" in answer["words"]
    table = f"same;first;second\nno;{first};{second}\nyes;Where is it?;Where's it?\n"
    lines = "\n".join(
        json.dumps({"first": one, "second": other, "same": same})
        for one, other, same in ((first, second, False), ("Where is it?", "Where's it?", True))
    )
    for own in (table, lines):
        checked = run("check", "minilm", LENGTHS[0], own)
        assert checked["rows"][0] == [
            pytest.approx(cosine, abs=1e-5),
            "yours",
            False,
            True,
            first,
            second,
        ]
        assert [row[2] for row in checked["rows"]] == [False, True]
        assert checked["threshold"] == pytest.approx(checked["rows"][1][0], abs=1e-5)
    with pytest.raises(InputError, match="line 1 is not valid JSON"):
        run("check", "minilm", LENGTHS[0], "{")


def test_what_the_model_does_not_read_is_in_the_answer():
    read = "It is a long way to the lift. " * 60
    texts = f"{read} It works.", f"{read} It does not work."
    answer = run("two_texts", "minilm", *texts)
    assert answer["value"] == pytest.approx(1)
    assert answer["cut"].startswith("The model reads only ") and "never sees" in answer["cut"]
    assert run("two_texts", "minilm", "It works.", "It works well.")["cut"] == ""
    opposites_alone = [f"first,second,same\n{texts[0]},{texts[1]},no"]
    checked = run("check", "minilm", LENGTHS[0], *opposites_alone)
    assert checked["stand_ins"] is True
    assert any("differ only past what the model reads" in change for change in checked["changes"])


def test_a_check_draws_the_models_own_similarity(tmp_path):
    """A dot product may be larger than 1, and is not called a cosine."""
    library = pytest.importorskip("sentence_transformers")
    modules = library.sentence_transformer.modules
    words, model = zoo_model("bert")
    for part in (words, model):
        part.save_pretrained(tmp_path / "bert")
    for similarity, name in (("dot", "dot product"), ("cosine", "cosine")):
        sentence = library.SentenceTransformer(
            modules=[modules.Transformer(str(tmp_path / "bert")), modules.Pooling(32)],
            device="cpu",
            similarity_fn_name=similarity,
        )
        sentence.save_pretrained(str(tmp_path / similarity))
        answer = run("check", str(tmp_path / similarity), LENGTHS[0], "")
        assert (answer["score"], answer["cosines"]) == (name, similarity == "cosine")
        assert (max(row[0] for row in answer["rows"]) > 2) == (similarity == "dot")


def test_the_page_itself_never_loads_torch():
    code = "import sys, wordsens.app.serve; print('torch' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "False"
