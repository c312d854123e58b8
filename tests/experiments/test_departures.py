"""Protocols: each switch does what it says, and the numbers are those of the definition at the Delta that was found."""

import numpy as np
import pytest
import torch

import wordsens as ws
from wordsens.errors import InputError
from wordsens.experiments.departures import (
    ERROR,
    NOISE,
    PROTOCOLS,
    SENSITIVITY,
    DepartureCell,
    _protocols_of,
    _untouched_map,
    measure_departure,
    raw_ascent,
    refined,
    summarize,
)
from wordsens.experiments.run import failed
from wordsens.experiments.texts import labelled_texts, load_text
from wordsens.search.ball import Ball

SMALL = {"map": "raf", "n": 12, "d": 16, "text": "reviews", "search": "quick"}


def measured(**keys):
    """The columns of a cell, and its witness."""
    columns = measure_departure(DepartureCell.parse({**SMALL, **keys}))
    return columns, columns.pop("arrays")


@pytest.mark.parametrize("name", ["rf", "raf"])
@pytest.mark.parametrize("protocol", _protocols_of(SENSITIVITY))
def test_sensitivities_are_attained_by_their_witness(name, protocol):
    columns, kept = measured(map=name, protocol=protocol, n=6)
    cell, chosen = DepartureCell.parse({**SMALL, "map": name, "protocol": protocol, "n": 6}), PROTOCOLS[protocol]
    phi, rows = cell.build(), kept["rows"]
    moved = rows.clone()
    moved[kept["word"]] += kept["perturbation"]
    assert columns["value"] == pytest.approx(float((phi(moved) - phi(rows)).norm() / phi(rows).norm()), rel=1e-9)
    assert (columns["token"] == "[CLS]") == chosen.cls
    assert columns["searched"] == (1 if chosen.first_word else 6)
    length = float(kept["perturbation"].norm()) / 4
    assert columns["length"] == pytest.approx(length)
    assert length <= (1 + NOISE * 2 if chosen.noisy else 1 + 1e-12)


def test_short_texts_are_filled_with_rows_that_count_as_words():
    source = DepartureCell.parse(SMALL).text
    for protocol, padded in (("padding", True), ("published", True), ("defined", False), ("cls", False)):
        text = load_text(PROTOCOLS[protocol].source(source), 200, 16, draw=0, seed=0)
        assert len(text) == 200
        assert (text.tokens.count("[PAD]") > 0) == padded
        assert (text.tokens[0] == "[CLS]") == PROTOCOLS[protocol].cls


def test_a_noisy_ball_lets_delta_exceed_the_radius():
    lengths = [measured(protocol="noisy-ball", draw=draw)[0]["length"] for draw in range(4)]
    assert 1 < max(lengths) < 1 + 2 * NOISE


@pytest.mark.slow_cases("cls", "first-word", "raw-alignment")
@pytest.mark.parametrize("protocol", _protocols_of(ERROR))
def test_errors_are_those_of_the_definition_with_a_pseudo_inverse(protocol):
    keys = {"measures": "error", "protocol": protocol, "texts": 8, "n": 6}
    columns, kept = measured(**keys)
    cell = DepartureCell.parse({**SMALL, **keys})
    phi = cell.build()
    source, size = PROTOCOLS[protocol].source(cell.text), {"training": 8, "held_out": 1, "draw": 0, "seed": 0}
    data = labelled_texts(source, "sentiment", (6, 16), **size, dtype=torch.float64)
    features = np.stack([phi(text.rows).flatten().numpy() for text in data.training[0]])
    theta = np.linalg.pinv(features) @ data.training[1].numpy()
    rows, y = data.test[0][0].rows, float(data.test[1][0])
    moved = rows.clone()
    moved[kept["word"]] += kept["perturbation"]
    old, new = phi(rows).flatten().numpy(), phi(moved).flatten().numpy()
    tuned = theta + old * (y - old @ theta) / (old @ old)
    assert columns["value"] == pytest.approx((new @ tuned + y) ** 2, rel=1e-6, abs=1e-9)
    assert columns["gamma"] == pytest.approx(abs((new - old) @ theta), rel=1e-6, abs=1e-9)
    if not PROTOCOLS[protocol].alignment:
        assert columns["gamma"] <= cell.limit


@pytest.mark.parametrize(
    ("keys", "rule"),
    [
        ({"protocol": "cls", "text": "gaussian"}, "needs real texts"),
        ({"protocol": "noisy-ball", "measures": "error"}, "makes no difference to the error"),
        ({"protocol": "words"}, "`protocol`"),
    ],
)
def test_what_a_protocol_cannot_mean_is_refused(keys, rule):
    with pytest.raises(InputError, match=rule):
        DepartureCell.parse({**SMALL, **keys})


def test_keys_of_errors_are_no_part_of_a_sensitivitys_identity():
    one, other = (DepartureCell.parse({**SMALL, "texts": texts}) for texts in (5, 6))
    assert one.key() == other.key()
    one, other = (DepartureCell.parse({**SMALL, "measures": "error", "texts": texts}) for texts in (5, 6))
    assert one.key() != other.key()


def test_protocols_of_a_draw_share_its_map_and_no_answer_of_another():
    lazy = {"map": "rf", "gaussian": "lazy", "n": 6, "d": 8}
    names = ("defined", "noisy-ball", "raw-gradient", "published")
    alone = {name: measured(**lazy, protocol=name)[0] for name in names}
    _untouched_map.cache_clear()
    for name in reversed(names):
        assert measured(**lazy, protocol=name)[0] == alone[name]
    assert _untouched_map.cache_info().misses == 1
    groups = {DepartureCell.parse({**SMALL, "protocol": name}).of_draw() for name in names}
    assert len(groups) == 1
    assert DepartureCell.parse({**SMALL, "draw": 1}).of_draw() not in groups


def test_ascents_stay_in_the_ball_around_their_centre_and_refining_never_loses():
    rows = ws.text.gaussian_text(5, 9, seed=1).rows
    change = ws.RandomAttentionFeatures(9, seed=0).word_change(rows, memory_budget=1 << 28)
    words, ball = torch.arange(5), Ball(torch.full((5,), 3.0, dtype=torch.float64))
    stream = torch.Generator().manual_seed(0)
    start, centre = (torch.randn(5, 9, generator=stream, dtype=torch.float64) for _ in range(2))
    first = change.value(centre + ball.project(start - centre), words)
    best = refined(change, words, start, centre, ball)
    assert bool((change.value(best, words) > 1.01 * first).all())
    raw = raw_ascent(lambda at: change.value_and_gradient(at, words)[1], start, centre, ball, rate=1.0, steps=30)
    for found in (best, raw):
        assert ball.contains(found - centre, relative_slack=1e-9)


def _record(protocol, draw, n, value, **columns):
    record = failed(DepartureCell.parse({**SMALL, "protocol": protocol, "n": n, "draw": draw}), "none")
    return record.replace(status="done", error=None, value=value, map="raf", **columns)


def test_a_difference_is_called_one_only_beyond_its_error():
    def summary(published) -> list[str]:
        records = [
            _record(protocol, draw, n, value(n) * (1 + 0.01 * draw))
            for protocol, value in (("defined", lambda n: 4.0), ("published", published))
            for n in (8, 16, 32)
            for draw in range(6)
        ]
        return [claim.sentence for claim in summarize(records).claims]

    assert "differs by -0.500" in summary(lambda n: 4.0 * n**-0.5)[0]
    assert "cannot be told apart" in summary(lambda n: 4.0)[0]
    assert summarize([]).claims == ()


def test_raw_steps_end_where_a_step_moves_nothing():
    asked = []

    def gradient(at):
        asked.append(at)
        return torch.tensor([[1.0, 0.0]], dtype=torch.float64)

    ball = Ball(torch.tensor([2.0], dtype=torch.float64))
    start = torch.zeros(1, 2, dtype=torch.float64)
    found = raw_ascent(gradient, start, torch.zeros_like(start), ball, rate=0.5, steps=1000)
    assert found.tolist() == [[pytest.approx(2.0, rel=1e-14), 0.0]]
    assert len(asked) < 10
    assert not found.is_inference()
    assert raw_ascent(gradient, start, torch.zeros_like(start), ball, rate=0.5, steps=3).tolist() == [[1.5, 0.0]]
