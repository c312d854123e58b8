"""The workers' tasks: the numbers are those of the library."""

import json
import subprocess
import sys

import pytest
import torch

import wordsens as ws
from tests.models.zoo import zoo_model
from wordsens.app.request import EXAMPLES, MeasureRequest
from wordsens.app.tasks import models, paper
from wordsens.app.tasks.measure import attention_lines, build, measure, word_detail, word_edits
from wordsens.app.tasks.models import attention, check, two_texts
from wordsens.errors import InputError
from wordsens.files import packaged_text
from wordsens.models.load import load
from wordsens.text.pairs import LENGTHS

EXAMPLE = next(iter(EXAMPLES.values()))
TEXT = "Two keys open the wooden door."
CHECKED = LENGTHS[0]


def searched(answer):
    """The words that have a colour."""
    return [piece for piece in answer["pieces"] if not isinstance(piece, str)]


def test_a_measurement_ends_at_the_librarys_numbers():
    answer = measure({"text": TEXT, "map": "relu-raf"})
    known = answer["maps"]["relu-raf"]
    (X,) = ws.embed([TEXT])
    phi = ws.RandomAttentionFeatures(X.rows.shape[1], "relu", seed=0)
    direct = ws.word_sensitivity(phi, X, search="quick")
    assert f"by {direct.value:.2f} times its size" in answer["headline"]
    assert [word["value"] for word in searched(known)] == direct.per_word.tolist()
    assert "".join(piece if isinstance(piece, str) else piece["text"] for piece in known["pieces"])
    # A word's shade is its number on one scale for all texts and maps, from white at 0 to the last
    # at 4.
    for word in searched(known):
        assert word["level"] == round(min(word["value"] / 4, 1) * 8)
    # The witness of a word makes the change that is reported.
    row = known["row"]
    value, upper, push = known["words"][row]
    assert value == direct.value < upper
    moved = X.rows.clone()
    moved[row] += torch.tensor(push, dtype=torch.float64)
    assert float((phi(moved) - phi(X)).norm() / phi(X).norm()) == pytest.approx(value, rel=1e-9)


def test_a_word_that_occurs_twice_is_coloured_where_it_is():
    text = "The key,  the door: the key."
    known = measure({"text": text, "map": "rf"})["maps"]["rf"]
    parts = [piece if isinstance(piece, str) else piece["text"] for piece in known["pieces"]]
    assert "".join(parts) == text
    rows = [word["row"] for word in searched(known)]
    assert rows == sorted(set(rows))


def test_edits_of_a_word_are_real_words_and_its_deletion():
    config = MeasureRequest(text=EXAMPLE, map="rf")
    phi, X = build(config, "rf")

    def change(rows):
        moved = X.rows.clone()
        moved[7] = rows
        return float((phi(moved) - phi(X)).norm() / phi(X).norm())

    edits = word_edits(config, phi, X, 7)
    assert edits["replaced by zeros"] == pytest.approx(change(0))
    (label, value), _ = edits.items()
    (entry,) = ws.embed([label.removeprefix("replaced by “").removesuffix("”")])
    assert value == pytest.approx(change(entry.rows[0]), rel=0.1)
    attention_layer = build(config, "raf")
    assert list(word_edits(config, *attention_layer, 7))[1] == "deleted"


def test_the_lines_are_the_attention_before_and_after_the_push():
    phi, X = build(MeasureRequest(text=TEXT, map="raf"), "raf")
    delta = torch.ones(X.rows.shape[1], dtype=torch.float64)
    lines = attention_lines(phi, X, 1, delta)
    moved = X.rows.clone()
    moved[1] += delta
    for frame, rows in ((0, X.rows), (-1, moved)):
        assert lines["frames"][frame] == pytest.approx(phi.attention(rows).numpy(), abs=6e-4)
    assert lines["at"] == [1]
    assert "“keys”" in lines["sentence"]
    assert attention_lines(build(MeasureRequest(text=TEXT), "rf")[0], X, 1, delta) is None


def test_the_share_of_attention_is_that_of_all_words_where_few_are_drawn(monkeypatch):
    phi, X = build(MeasureRequest(text=TEXT, map="raf"), "raf")
    delta = torch.ones(X.rows.shape[1], dtype=torch.float64)
    whole = attention_lines(phi, X, 1, delta)
    monkeypatch.setitem(attention_lines.__globals__, "MOST_LINES", 3)
    part = attention_lines(phi, X, 1, delta)
    assert len(part["words"]) == 3
    assert part["words"][part["at"][0]] == "keys"
    assert part["sentence"].startswith(whole["sentence"])


def test_the_shipped_comparison_is_what_the_tasks_measure():
    shipped = json.loads(packaged_text("app/static/examples.json"))
    answer, stored = measure({"text": EXAMPLE}), shipped["comparison"]
    assert answer["headline"] == stored["headline"]
    for name, known in answer["maps"].items():
        values = [word["value"] for word in searched(stored["maps"][name])]
        assert values == pytest.approx([word["value"] for word in searched(known)], rel=1e-3)
    row = answer["maps"]["raf"]["row"]
    words = {name: known["words"][row] for name, known in answer["maps"].items()}
    detail = word_detail({"text": EXAMPLE}, row, words)
    assert detail["lines"]["sentence"] == shipped["details"][str(row)]["lines"]["sentence"]


def test_the_first_step_predicts_what_it_measures(monkeypatch):
    """The largest of the words that are searched; nothing where no text was so short."""
    monkeypatch.setattr(paper, "SIZES", (8, 24))
    curves = {curve["name"]: curve["points"] for curve in paper.lengths()["curves"]}
    assert [n for n, _ in curves["fully connected layer"]] == [8, 24]
    X = ws.gaussian_text(24, paper.DIMENSION, seed=24)
    predicted = ws.theory.rf_sensitivity(*X.rows.shape, words=paper.SEARCHED)
    assert curves["fully connected layer, predicted"] == [(24, predicted)]


def test_attention_of_two_texts_is_marked_where_they_differ():
    lines = attention("minilm", TEXT, TEXT.replace("wooden", "iron"), 1, None)["lines"]
    assert lines["at"] == [5]
    moved = torch.tensor(lines["frames"][0]) - torch.tensor(lines["before"]["weights"])
    share = 50 * float(moved.abs().sum(dim=1).mean())
    assert float(lines["sentence"].split()[0]) == pytest.approx(share, abs=0.1)
    with pytest.raises(InputError, match="reads the same"):
        attention("minilm", TEXT, TEXT, 1, None)


def test_two_texts_and_pairs_of_ones_own_have_the_librarys_numbers(monkeypatch):
    first, second = "The lift works.", "The lift does not work."
    parts = []
    monkeypatch.setattr(models, "report", lambda part: parts.append(dict(part)))
    answer = two_texts("minilm", first, second)
    vectors = load("minilm").encode([first, second]).double()
    cosine = float(torch.nn.functional.cosine_similarity(*vectors, dim=0))
    assert answer["value"] == pytest.approx(cosine, abs=1e-6)
    assert (answer["verdict"], answer["reason"]) == ("different", ws.guard(first, second).reason)
    # The verdict comes first, alone.
    assert parts == [answer | {"apart": "", "words": "", "numbers": ""}]
    assert "'not'" in answer["apart"]
    assert "works" in answer["words"]
    table = f"same;first;second\nno;{first};{second}\nyes;Where is it?;Where's it?\n"
    lines = "\n".join(
        json.dumps({"first": one, "second": other, "same": same})
        for one, other, same in ((first, second, False), ("Where is it?", "Where's it?", True))
    )
    for own in (table, lines):
        checked = check("minilm", CHECKED, own)
        row = {"kind": "yours", "same": False, "refused": True, "first": first, "second": second}
        assert checked["rows"][0] == row | {"value": pytest.approx(cosine, abs=1e-5)}
        assert [row["same"] for row in checked["rows"]] == [False, True]
        assert checked["threshold"] == pytest.approx(checked["rows"][1]["value"], abs=1e-5)
        assert [sum(shares) for shares in checked["shares"]] == [1, 1]
    with pytest.raises(InputError, match="line 1 is not valid JSON"):
        check("minilm", CHECKED, "{")


def test_long_texts_have_numbers_around_their_first_difference(monkeypatch):
    monkeypatch.setattr(models, "EXPLAINED", 6)
    start = "It is a long way to the lift on the left. "
    answer = two_texts("minilm", f"{start} It works well today.", f"{start} It stops well today.")
    assert "6 of 15 words of the first text have numbers, from 'the' to 'today'" in answer["apart"]
    assert "'works' and 'stops'" in answer["apart"]


def test_what_the_model_does_not_read_is_in_the_answer(monkeypatch):
    monkeypatch.setattr(models, "EXPLAINED", 2)
    read = "It is a long way to the lift. " * 60
    texts = f"{read} It works.", f"{read} It does not work."
    answer = two_texts("minilm", *texts)
    assert answer["value"] == pytest.approx(1)
    assert "where they differ" in answer["cut"]
    longer = models.unread(load("minilm"), texts[0], f"At noon. {texts[0]}")
    assert longer and "where they differ" not in longer
    # Equal texts differ nowhere.
    assert models.unread(load("minilm"), texts[0], texts[0]) == longer
    assert models.unread(load("minilm"), "It works.", "It works well.") == ""
    checked = check("minilm", CHECKED, f"first,second,same\n{texts[0]},{texts[1]},no")
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
        answer = check(str(tmp_path / similarity), CHECKED, "")
        assert (answer["score"], answer["cosines"]) == (name, similarity == "cosine")
        assert (answer["edges"][-1] > 2) == (similarity == "dot")


def test_the_page_itself_never_loads_torch():
    code = "import sys, wordsens.app.serve; print('torch' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "False"
