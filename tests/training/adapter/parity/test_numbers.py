"""The sides of numbers, against all cuts of a small graph and against usual changes."""

from itertools import product

from wordsens.training.adapter.parity.numbers import _usual_changes, _weight, number_sides


def test_few_numbers_have_the_heaviest_cut():
    near = _usual_changes(14)
    best = max(_weight(near, [False, *sides]) for sides in product((False, True), repeat=14))
    assert _weight(near, number_sides(14)) > 0.999 * best


def test_usual_changes_mostly_change_the_side():
    sides = number_sides(2000)
    doubled = [sides[number] != sides[2 * number] for number in range(1, 51)]
    tenfold = [sides[number] != sides[10 * number] for number in range(1, 51)]
    assert not sides[1]
    assert sum(doubled) > 40 and sum(tenfold) > 40
