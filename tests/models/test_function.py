"""Functions as models: what they give is passed on, and what is wrong with it is told in one
line."""

import sys

import numpy as np
import pytest
import scipy.sparse
import torch

from wordsens.errors import InputError
from wordsens.models.function import load_named
from wordsens.models.load import as_model

TEXTS = ["The door is open.", "The door is not open.", "Shut it."]


def letters(texts):
    """Counts of four letters and one constant: a vector that a test can compute by itself."""
    return np.array([[text.count(letter) for letter in "enot"] + [1.0] for text in texts])


def test_a_function_or_an_object_gives_its_own_numbers_by_few_texts():
    sizes = []

    class Counting:
        def encode(self, texts):
            sizes.append(len(texts))
            return letters(texts)

    for given, name in ((Counting().encode, "encode"), (Counting(), "Counting")):
        model = as_model(given, batch_size=2)
        sizes.clear()
        found = model.encode(TEXTS)
        np.testing.assert_array_equal(found.numpy(), letters(TEXTS))
        assert (sizes, model.name, found.dtype) == ([2, 1], name, torch.float64)
        assert model.no_rows is not None


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (
            lambda texts: np.zeros(4),
            "gave an array of shape (4,) for 1 texts; its answer must be an array (texts, d)",
        ),
        (
            lambda texts: np.ones((len(texts) + 1, 3)),
            "gave an array of shape (2, 3) for 1 texts",
        ),
        (
            lambda texts: [[1.0, float("nan")]] * len(texts),
            "gave a number that is not finite for the text 'The ",
        ),
        (
            lambda texts: [[1.0, 2.0], [1.0]],
            "gave a list that is no array of numbers in rows of one length",
        ),
        (lambda texts: None, "gave an array of shape () for 1 texts"),
        (lambda texts: 1 / 0, "broken failed on 1 text with ZeroDivisionError: division by zero"),
    ],
)
def test_a_bad_answer_is_told_in_one_line(answer, message):
    def broken(texts):
        return answer(texts)

    with pytest.raises(InputError) as caught:
        as_model(broken)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_every_call_gives_vectors_of_one_length():
    model = as_model(lambda texts: np.ones((len(texts), 3 + (texts[0] == "long"))))
    with pytest.raises(InputError, match=r"shape \(1, 4\) for 1 texts; .* array \(texts, 3\)"):
        model.encode(["long"])


def test_a_zero_vector_has_no_cosine():
    model = as_model(lambda texts: letters(texts)[:, :4])
    assert model.encode(TEXTS[:2]).shape == (2, 4)
    with pytest.raises(
        InputError, match=r"gave the zero vector, which has no cosine .* for the text 'Buy a lamp'"
    ):
        model.encode(["open", "Buy a lamp"])


def _jittery(size, scale=1.0):
    stream = np.random.default_rng(0)

    def encode(texts):
        rows = scale * np.asarray(letters(texts))
        noise = stream.standard_normal(rows.shape)
        return rows + size * np.linalg.norm(rows, axis=1, keepdims=True) * noise / np.linalg.norm(
            noise, axis=1, keepdims=True
        )

    return encode


@pytest.mark.parametrize("scale", [1e-9, 1e-3, 1e3, 1e9])
def test_steadiness_is_a_share_of_the_vectors_length(scale):
    """Two calls differ by up to twice the jitter: whatever the unit, one per cent is rounding and
    six per cent are not."""
    assert as_model(_jittery(0.005, scale)).encode(["a lamp"]).shape[0] == 1
    with pytest.raises(InputError, match=r"encode gives different vectors for .* in a second call"):
        as_model(_jittery(0.06, scale))


def test_a_model_whose_vectors_depend_on_the_batch_is_refused():
    def centred(texts):
        return letters(texts) - 0.5 * letters(texts).mean(axis=0)

    with pytest.raises(
        InputError,
        match=r"centred gives different vectors for .* among other texts .* depends on the batch",
    ):
        as_model(centred)


@pytest.fixture
def module(tmp_path, monkeypatch):
    """The name of a module in the working directory."""
    (tmp_path / "my_own_encoder.py").write_text(
        "class Model:\n    def encode(self, texts):\n        return [[len(text), 1.0] for text in "
        "texts]\n"
        "model = Model()\nencode = model.encode\n"
    )
    (tmp_path / "my_broken_encoder.py").write_text("import no_such_package_at_all\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [each for each in sys.path if each])
    yield "my_own_encoder"
    sys.modules.pop("my_own_encoder", None)


def test_module_and_name(module):
    for place in (f"{module}:encode", f"{module}:model.encode", f"{module}:model"):
        assert as_model(load_named(place)).encode(["abc"]).tolist() == [[3.0, 1.0]]


@pytest.mark.parametrize(
    "sparse",
    [
        lambda rows: torch.from_numpy(rows).to_sparse(),
        lambda rows: list(torch.from_numpy(rows).to_sparse()),
        scipy.sparse.csr_matrix,
        lambda rows: list(map(scipy.sparse.csr_matrix, rows)),
    ],
)
def test_sparse_answers_are_taken(sparse):
    np.testing.assert_array_equal(
        as_model(lambda texts: sparse(letters(texts))).encode(TEXTS), letters(TEXTS)
    )


BITS = np.random.default_rng(0).random((len(TEXTS), 64)) > 0.5
AS_JSON = {"int64": lambda rows: rows.tolist(), "signed": lambda rows: rows.astype("int8").tolist()}
AS_BYTES = {kind: lambda rows, kind=kind: rows.astype(kind) for kind in ("int8", "uint8")}


@pytest.mark.parametrize("write", [*AS_JSON.values(), *AS_BYTES.values()])
@pytest.mark.parametrize("wrapped", [np.asarray, torch.as_tensor, list])
def test_packed_bits_are_refused_and_unpacked_ones_are_taken(write, wrapped):
    """Bits, eight in a byte, have no cosine. JSON tells no type: the bits of 64 numbers come as
    eight integers of one byte."""

    def packed(texts):
        places = [TEXTS.index(text) if text in TEXTS else 0 for text in texts]
        return wrapped(write(np.packbits(BITS[places], axis=1)))

    with pytest.raises(InputError, match=r"int(8|64), which may be bits packed .* np\.unpackbits"):
        as_model(packed)

    def unpacked(texts):
        rows = np.stack([np.asarray(row) for row in packed(texts)]).astype("uint8")
        return np.unpackbits(rows, axis=1)

    signs = as_model(lambda texts: 2.0 * unpacked(texts) - 1)
    np.testing.assert_array_equal(signs.encode(TEXTS), 2.0 * BITS - 1)
    assert as_model(unpacked).encode(TEXTS).tolist() == BITS.tolist()


@pytest.mark.parametrize("others", ["aeiou", "a"])
def test_counts_are_taken(others):
    counts = as_model(lambda texts: [[len(text), *map(text.count, others)] for text in texts])
    assert counts.encode(["open " * 40])[0, 0] == 200


def test_a_function_that_fails_is_told_what_it_was_called_with():
    def needs_keys(texts):
        return [text["body"] for text in texts]

    with pytest.raises(
        InputError,
        match=r"list of sentences on which wordsens tries every function, not your texts",
    ):
        as_model(needs_keys)

    def short(texts):
        return letters(texts) if max(map(len, texts)) < 120 else 1 / 0

    with pytest.raises(
        InputError, match=r"it was called with one list of texts, the first 'open open .*'$"
    ):
        as_model(short).encode(["open " * 40])
