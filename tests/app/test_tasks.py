"""The workers' tasks, called as a worker calls them: the numbers are those of the library."""

import pytest
import torch

import wordsens as ws
from wordsens.app.request import MeasureRequest
from wordsens.app.tasks.measure import measure
from wordsens.app.tasks.word import word_detail
from wordsens.app.work import worker
from wordsens.report.texts import LEVELS

TEXT = "Two keys open the wooden door."


class Desk(worker.Desk):
    """A worker's desk that keeps what it is told."""

    def __init__(self):
        self.told = []

    def tell(self, value):
        self.told.append(value)

    def tick(self, *_):
        pass

    def share(self, done, total):
        self.told.append({"share": done / total})


def test_words_are_coloured_before_they_are_measured_and_end_at_the_librarys_numbers():
    desk = Desk()
    answer = measure(desk, vars(MeasureRequest(text=TEXT, map="relu-raf", seed=2)))
    looks = [part for part in desk.told if "text" in part]
    counts = [sum(not isinstance(piece, str) for piece in part["text"]["pieces"]) for part in looks]
    assert counts == sorted(counts)
    assert counts[0] < counts[-1]
    assert looks[-1]["looked"] == 1
    (X,) = ws.embed([TEXT])
    phi = ws.RandomAttentionFeatures(X.rows.shape[1], "relu", seed=2)
    direct = ws.word_sensitivity(phi, X, search="quick", seed=2)
    assert answer["value"] == direct.value
    assert answer["record"]["per_word"] == tuple(direct.per_word.tolist())
    assert answer["text"]["direction"] == "ltr"
    assert {piece["level"] for piece in answer["text"]["pieces"] if not isinstance(piece, str)} <= set(range(LEVELS))


def test_a_words_detail_is_what_its_witness_does():
    request = vars(MeasureRequest(text=TEXT))
    answer, desk = measure(Desk(), request), Desk()
    row = answer["record"]["word"]
    last = word_detail(desk, request, row, answer["witnesses"][row])
    first, second = desk.told
    assert sum(change**2 for _, change, _, _ in first["moved"]) <= answer["value"] ** 2 * (1 + 1e-9)
    before, after = (matrix["cells"] for matrix in first["matrices"])
    assert float(after[0][row][0]) > float(before[0][row][0])
    assert 0 < second["removal"] < 1
    (X,) = ws.embed([TEXT])
    moved = X.rows.clone()
    moved[row] += torch.tensor(answer["witnesses"][row], dtype=torch.float64)
    phi = ws.RandomAttentionFeatures(X.rows.shape[1], seed=0)
    change = float((phi(moved) - phi(X)).norm() / phi(X).norm())
    assert change == pytest.approx(answer["value"], rel=1e-9)
    assert 0 < last["swap"] < answer["value"]
    assert last["swapExact"]
