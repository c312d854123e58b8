"""The workers' tasks, called as a worker calls them: the numbers are those of the library."""

import json
import subprocess
import sys
import time
from dataclasses import asdict

import pytest
import torch
from tests.models.zoo import zoo_model

import wordsens as ws
from wordsens.app.request import EXAMPLES, MeasureRequest
from wordsens.app.tasks import TASKS
from wordsens.app.tasks.measure import FIRST_SECONDS
from wordsens.app.worker import Parts, StoppedError
from wordsens.files import packaged_text
from wordsens.text.pairs import LENGTHS

TEXT = "Two keys open the wooden door."


def run(name, *arguments, context=None):
    """The answer of a task."""
    return TASKS[name](context or Parts(), *arguments)


def searched(answer):
    """The words that have a colour."""
    return [piece for piece in answer["pieces"] if not isinstance(piece, str)]


def test_words_are_coloured_before_they_are_measured_and_end_at_the_librarys_numbers():
    context = Parts()
    answer = run("measure", asdict(MeasureRequest(text=TEXT, map="relu-raf", seed=2)), context=context)
    counts = [len(searched(part)) for part in context.parts if "pieces" in part]
    assert counts == sorted(counts)
    assert counts[0] < counts[-1] == len(searched(answer)) == answer["words"]
    (X,) = ws.embed([TEXT])
    phi = ws.RandomAttentionFeatures(X.rows.shape[1], "relu", seed=2)
    direct = ws.word_sensitivity(phi, X, search="quick", seed=2)
    assert answer["value"] == direct.value
    assert answer["record"]["per_word"] == tuple(direct.per_word.tolist())
    # A word's shade is its number on one scale for all texts and maps, from white at 0 to the last at 4.
    for word in searched(answer):
        assert word["level"] == round(min(word["value"] / 4, 1) * 8)


def test_a_words_detail_is_what_its_witness_does():
    request = asdict(MeasureRequest(text=TEXT, map="raf"))
    answer, context = run("measure", request), Parts()
    row = answer["row"]
    last = run("word_detail", request, row, answer["witnesses"][row], context=context)
    first, second = context.parts
    assert sum(change**2 for _, change, _, _ in first["moved"]) <= answer["value"] ** 2 * (1 + 1e-9)
    assert 0 < second["removal"] < 1
    (X,) = ws.embed([TEXT])
    moved = X.rows.clone()
    moved[row] += torch.tensor(answer["witnesses"][row], dtype=torch.float64)
    phi = ws.RandomAttentionFeatures(X.rows.shape[1], seed=0)
    change = float((phi(moved) - phi(X)).norm() / phi(X).norm())
    assert change == pytest.approx(answer["value"], rel=1e-9)
    assert 0 < last["swap"] < answer["value"]
    assert last["swap_exact"]
    # The picture's first and last frames are the attention before and after.
    lines = first["lines"]
    for frame, rows in ((0, X.rows), (-1, moved)):
        assert lines["frames"][frame] == pytest.approx(phi.attention(rows).numpy(), abs=6e-4)
    assert lines["given"] == sorted(lines["given"])


def test_the_shipped_comparison_is_what_the_tasks_measure():
    shipped = json.loads(packaged_text("app/static/examples.json"))["comparison"]
    for request in MeasureRequest(text=next(iter(EXAMPLES.values()))).single:
        answer = run("measure", asdict(request))
        (stored,) = [one for name, one in shipped.items() if name == request.map]
        assert stored["value"] == pytest.approx(answer["value"], rel=1e-4)
        assert stored["value"] < stored["upper"] < answer["upper"] * (1 + 1e-4)  # tests have looser bounds
        assert [word["value"] for word in searched(stored)] == pytest.approx(
            [word["value"] for word in searched(answer)], rel=1e-3
        )


class OnlyFirstLook(Parts):
    """A context that ends its task when the search itself begins."""

    def progress(self, done, total):
        raise StoppedError


def test_a_first_look_at_250_words_is_short():
    context = OnlyFirstLook()
    request = asdict(MeasureRequest(text=" ".join([TEXT] * 40), map="raf"))
    began = time.monotonic()
    with pytest.raises(StoppedError):
        run("measure", request, context=context)
    assert time.monotonic() - began < FIRST_SECONDS + 5  # the search takes 15 s and more
    assert searched(context.parts[-1])


def test_identical_sentences_have_the_same_attention():
    answer = run("attention", None, TEXT, TEXT, 1, None)
    assert answer["share"] == 0
    assert run("attention", None, TEXT, TEXT.replace("wooden", "iron"), 1, None)["share"] > 0


def test_a_check_draws_the_models_own_similarity(tmp_path):
    """A dot product may be larger than 1, and is not called a cosine."""
    library = pytest.importorskip("sentence_transformers")
    modules = library.sentence_transformer.modules
    words, model = zoo_model("bert")
    for part in (words, model):
        part.save_pretrained(tmp_path / "bert")
    for similarity, name, most in (("dot", "dot product", None), ("cosine", "cosine", 1)):
        sentence = library.SentenceTransformer(
            modules=[modules.Transformer(str(tmp_path / "bert")), modules.Pooling(32)],
            device="cpu",
            similarity_fn_name=similarity,
        )
        sentence.save_pretrained(str(tmp_path / similarity))
        answer = run("check", str(tmp_path / similarity), LENGTHS[0])
        assert (answer["similarity"], answer["most"]) == (name, most)
        for drawn in answer["values"].values():
            assert sum(share for _, share in drawn["points"]) == pytest.approx(1)
            assert (drawn["points"][-1][0] > 2) == (similarity == "dot")


def test_the_page_itself_never_loads_torch():
    code = "import sys, wordsens.app.serve; print('torch' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "False"
