"""Protocols: each switch does what it says, and the numbers are those of the definition at the
Delta that was found."""

import numpy as np
import pytest
import torch

from wordsens.errors import InputError
from wordsens.studies.departures import (
    ERROR,
    NOISE,
    PROTOCOLS,
    SENSITIVITY,
    DepartureCell,
    _protocols_of,
    measure_departure,
    summarize,
)
from wordsens.sweeps.run import failed
from wordsens.sweeps.texts import labelled_texts, load_text

SMALL = {"map": "raf", "n": 12, "d": 16, "text": "reviews", "search": "quick"}


def measured(**keys):
    """The columns of a cell, and its witness."""
    columns = measure_departure(DepartureCell.parse({**SMALL, **keys}))
    return columns, columns.pop("arrays")


@pytest.mark.parametrize("name", ["rf", "raf"])
@pytest.mark.parametrize("protocol", _protocols_of(SENSITIVITY))
def test_sensitivities_are_attained_by_their_witness(name, protocol):
    columns, kept = measured(map=name, protocol=protocol, n=6)
    cell, chosen = (
        DepartureCell.parse({**SMALL, "map": name, "protocol": protocol, "n": 6}),
        PROTOCOLS[protocol],
    )
    phi, rows = cell.build(), kept["rows"]
    moved = rows.clone()
    moved[kept["word"]] += kept["perturbation"]
    assert columns["value"] == pytest.approx(
        float((phi(moved) - phi(rows)).norm() / phi(rows).norm()), rel=1e-9
    )
    assert (columns["token"] == "[CLS]") == chosen.cls
    assert columns["searched"] == (1 if chosen.first_word else 6)
    length = float(kept["perturbation"].norm()) / 4
    assert columns["length"] == pytest.approx(length)
    assert length <= (1 + NOISE * 2 if chosen.noisy else 1 + 1e-12)


def test_short_texts_are_filled_with_rows_that_count_as_words():
    source = DepartureCell.parse(SMALL).text
    for protocol, padded in (
        ("padding", True),
        ("published", True),
        ("defined", False),
        ("cls", False),
    ):
        text = load_text(PROTOCOLS[protocol].source(source), 200, 16, draw=0, seed=0)
        assert len(text) == 200
        assert (text.tokens.count("[PAD]") > 0) == padded
        assert (text.tokens[0] == "[CLS]") == PROTOCOLS[protocol].cls


@pytest.mark.slow_cases("cls", "first-word", "raw-alignment")
@pytest.mark.parametrize("protocol", _protocols_of(ERROR))
def test_errors_are_those_of_the_definition_with_a_pseudo_inverse(protocol):
    keys = {"measures": "error", "protocol": protocol, "texts": 8, "n": 6}
    columns, kept = measured(**keys)
    cell = DepartureCell.parse({**SMALL, **keys})
    phi = cell.build()
    source, size = (
        PROTOCOLS[protocol].source(cell.text),
        {"training": 8, "held_out": 1, "draw": 0, "seed": 0},
    )
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


def _record(protocol, draw, n, value, **columns):
    record = failed(
        DepartureCell.parse({**SMALL, "protocol": protocol, "n": n, "draw": draw}), "none"
    )
    return record.replace(status="done", error=None, value=value, map="raf", **columns)


def test_a_difference_is_called_one_only_beyond_its_error():
    def summary(published) -> list[str]:
        records = [
            _record(protocol, draw, n, value(n) * (1 + 0.01 * draw))
            for protocol, value in (("defined", lambda n: 4.0), ("published", published))
            for n in (8, 16, 32)
            for draw in range(6)
        ]
        return [claim.sentence for claim in summarize(records).findings]

    assert "differs by −0.50 [" in summary(lambda n: 4.0 * n**-0.5)[0]
    assert "cannot be told apart" in summary(lambda n: 4.0)[0]
    assert summarize([]).findings == ()


@pytest.mark.parametrize(("draws", "told"), [(1, False), (2, False), (6, True)])
def test_errors_of_few_draws_are_not_called_different(draws, told):
    """Of two draws Student's t at 99 % is 63.7 standard errors."""
    records = [
        _record(
            protocol,
            draw,
            8,
            value + 0.1 * draw,
            measures=ERROR if what else SENSITIVITY,
            gamma=0.1,
        )
        for protocol, value in (("defined", 1.0), ("published", 3.0))
        for draw in range(draws)
        for what in (0, 1)
    ]
    assert any("Err is" in claim.sentence for claim in summarize(records).findings) == told
