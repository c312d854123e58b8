"""word_sensitivity: what it accepts, what it refuses and in which words; and what a Sensitivity can
do."""

import json
import math
import pickle

import numpy as np
import pytest
import torch

import wordsens as ws
from wordsens.errors import InputError

QUICK = {"search": ws.SearchPlan("quick", starts=2, steps=3), "certificate": False}
TEXT = ws.TextMatrix(
    ws.gaussian_text(4, 3, seed=0).rows, tokens=("I", "love", "her", "much"), source="here"
)
PHI = ws.RandomAttentionFeatures(3, seed=0)


def measured(X=TEXT, phi=PHI, **options):
    return ws.word_sensitivity(phi, X, **{**QUICK, **options})


def refused(*arguments, **options):
    with pytest.raises(InputError) as caught:
        measured(*arguments, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def with_entry(value, row=1):
    broken = TEXT.rows.clone()
    broken[row, 2] = value
    return broken


NOT_FINITE = "`X` has NaN or infinity in row 1; every entry must be finite"
OUT_OF_RANGE = "but the text has 4 words; indices run from 0 to 3"
NO_ROWS = (
    "must be a TextMatrix, a tensor or an array of shape (n, d); embed strings first, with "
    "wordsens.embed"
)
EFFORTS_RULE = (
    "must be one of quick, normal, thorough; or a SearchPlan, such as SearchPlan(starts=64)"
)
REFUSED = [
    ({"X": with_entry(math.nan)}, NOT_FINITE),
    ({"X": with_entry(-math.inf).numpy()}, NOT_FINITE),
    ({"X": 0 * TEXT.rows}, "`X` has only zeros in row 0; drop that word or give it an embedding"),
    (
        {"X": TEXT.rows.flatten()},
        "`X` (shape (12,), torch.float64) must be a floating-point matrix",
    ),
    ({"X": TEXT.rows.long()}, "`X` (shape (4, 3), torch.int64) must be a floating-point matrix"),
    ({"X": TEXT.rows[:, :2]}, "`X` (shape (4, 2)) does not fit raf"),
    *[
        ({"X": thing}, f"`X` ({type(thing).__name__}) {NO_ROWS}")
        for thing in ("I love her much", ["I love her"], None)
    ],
    *[
        ({"words": words}, f"`words` has {wrong}, {OUT_OF_RANGE}")
        for words, wrong in ((4, 4), (-5, -5), ([0, 9], 9))
    ],
    *[
        (
            {"words": words},
            f"`words` (={words!r}) must be whole numbers, such as words=[0, 3]; pass None for all "
            "words",
        )
        for words in (1.0, [0, 1.7], "12", ["0"], [True, False], np.array([True, False]))
    ],
    *[
        (
            {"radius": radius},
            f"`radius` (={radius!r}) must be a positive finite number; pass None for the map's "
            "default",
        )
        for radius in (0, -1.0, math.nan, math.inf, "2", True)
    ],
    ({"search": "fast"}, f"`search` (='fast') {EFFORTS_RULE}"),
    ({"search": 64}, f"`search` (=64) {EFFORTS_RULE}"),
    ({"memory_budget": 0}, "`memory_budget` (=0) must be a whole number, at least 1"),
    ({"seed": 0.5}, "`seed` (=0.5) must be a whole number"),
]


@pytest.mark.parametrize(("arguments", "said"), REFUSED)
def test_bad_arguments_are_refused_in_one_line(arguments, said, unchecked_types):
    assert refused(**arguments).startswith(said)


class TestTheMap:
    def test_what_is_not_finite_at_a_witness_is_not_reported(self):
        """exp(exp(x)) is finite on this text, and overflows elsewhere in the ball."""
        phi = ws.FunctionFeatures(lambda text: text[0, :1].exp().exp(), name="tower")
        said = refused(
            torch.full((2, 1), 1.5, dtype=torch.float64), phi, radius=9.0, words=0, search="normal"
        )
        assert said == (
            "tower gives NaN or infinity when word 0 is perturbed; "
            "use float64, a smaller radius, or a map that is finite on the whole ball"
        )

    def test_where_the_map_is_not_a_number_no_witness_is_sought(self):
        """log(x - .25) at 1.5 + Delta, |Delta| <= 3: NaN below .25. What is reported is finite, and
        attained."""
        phi = ws.FunctionFeatures(lambda text: torch.log(text[0, :1] - 0.25), name="log")
        r = measured(torch.full((2, 1), 1.5, dtype=torch.float64), phi, radius=3.0, words=0)
        moved = 1.5 + float(r.perturbations[0, 0])
        assert moved > 0.25
        assert r.value == pytest.approx(
            abs(math.log(moved - 0.25) - math.log(1.25)) / math.log(1.25), rel=1e-12
        )


class TestWords:
    @pytest.mark.parametrize(
        ("words", "expected"),
        [
            (None, [0, 1, 2, 3]),
            (2, [2]),
            (-1, [3]),
            ([3, -4], [3, 0]),
            (range(1, 3), [1, 2]),
            (np.int64(1), [1]),
            (np.array([0, 2]), [0, 2]),
            (torch.tensor([2, 1]), [2, 1]),
            (torch.tensor(2), [2]),
            ((word for word in (3, 1)), [3, 1]),
        ],
    )
    def test_indices_in_any_container(self, words, expected):
        r = measured(words=words)
        assert r.words.tolist() == expected
        assert r.tokens == tuple(TEXT.tokens[word] for word in expected)


class TestRadius:
    @pytest.mark.parametrize(
        "radius",
        [
            2,
            2.0,
            np.float32(2),
            torch.tensor(2.0),
            [2.0] * 4,
            (2,) * 4,
            np.full(4, 2.0),
            torch.full((4,), 2),
        ],
    )
    def test_one_number_or_one_a_word(self, radius, unchecked_types):
        r = measured(radius=radius)
        assert r.radius.tolist() == [2.0] * 4
        assert torch.equal(r.perturbations, measured(radius=2.0).perturbations)


class TestResult:
    def test_files_that_are_something_else(self, tmp_path):
        from safetensors.torch import save_file

        def written(content, **changed):
            metadata = {
                "wordsens.format": "2",
                "wordsens.class": "Sensitivity",
                "wordsens.content": content,
            }
            save_file({"a": torch.ones(2)}, tmp_path / "file", metadata=metadata | changed)

        def other_bytes(content):
            (tmp_path / "file").write_bytes(content)

        for write, reason in (
            (
                lambda: other_bytes(
                    b"I love her much, and at some length, so that a header could be read."
                ),
                "",
            ),
            (lambda: other_bytes(b""), ""),
            (lambda: other_bytes(pickle.dumps({"a": 1})), ""),
            (lambda: save_file({"a": torch.ones(2)}, tmp_path / "file"), "its format is another"),
            (lambda: written("{"), "Expecting property name"),
            (lambda: written('{"class": "Popen", "fields": {}}'), "'Popen'"),
            (lambda: written('{"class": "Sensitivity", "fields": {}}'), "missing"),
            (lambda: written('{"tensor": "b"}'), "'b'"),
            (lambda: written("{}", **{"wordsens.class": "Swaps"}), "it holds a Swaps"),
            (
                lambda: written("{}", **{"wordsens.format": "99"}),
                "its format is 99, and this version reads 2",
            ),
            ((tmp_path / "file").unlink, ""),
            ((tmp_path / "file").mkdir, ""),
        ):
            write()
            with pytest.raises(InputError) as caught:
                ws.Sensitivity.load(tmp_path / "file")
            said = str(caught.value)
            assert said.startswith(
                f"`path` (={str(tmp_path / 'file')!r}) is not a file that Sensitivity.save wrote: "
            )
            assert reason in said and "\n" not in said

    def test_the_dictionary_is_json(self):
        r = measured(words=[2, 0])
        d = json.loads(json.dumps(r.to_dict(), allow_nan=False))
        assert d["map"] == "raf"
        assert (d["words"], d["tokens"]) == ([2, 0], ["her", "I"])
        assert d["token"] == TEXT.tokens[d["word"]]
        assert d["value"] == max(d["per_word"]) == r.value
        assert set(d) == {
            *(
                "map",
                "value",
                "word",
                "token",
                "upper",
                "rigor",
                "words",
                "tokens",
                "per_word",
                "upper_per_word",
            ),
            *(
                "rounding",
                "radius",
                "converged",
                "search",
                "evaluations",
                "evaluations_per_word",
                "seed",
                "notes",
            ),
        }


def test_every_batch_keeps_to_the_memory_budget():
    """Where no pair fits they are mapped one by one; a check maps a text in a batch of four."""
    batches, X = [], ws.gaussian_text(9, 4, seed=0)

    def counted(texts):
        batches.append(len(texts) if texts.ndim == 3 else 1)
        return torch.tanh(texts @ texts.mT) @ texts

    phi = ws.FunctionFeatures(counted, batched=True)
    search = ws.SearchPlan("quick", starts=1, steps=2)
    ws.word_sensitivity(phi, X, search=search, memory_budget=4096)
    assert max(batches) == 4 and batches.count(1) > 9 * 3
