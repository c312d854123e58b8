"""Readers, pair files, results, answers of endpoints and the command line under generated inputs.

One rule for every input: it is accepted, or refused in one line.
"""

import csv
import io
import json
import shutil
from contextlib import redirect_stderr, redirect_stdout
from unittest.mock import Mock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
import typer
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import wordsens as ws
from wordsens.cli import commands, main
from wordsens.errors import WordsensError
from wordsens.evaluation.requirement import read_baseline
from wordsens.models.endpoint import Endpoint
from wordsens.models.load import as_model
from wordsens.text import read_documents
from wordsens.text.pairs import Pair, read_pairs

pytestmark = pytest.mark.usefixtures("unchecked_types")


def fuzzed(examples):
    unhurried = [
        HealthCheck.too_slow,
        HealthCheck.function_scoped_fixture,
        HealthCheck.data_too_large,
    ]
    return settings(
        max_examples=examples, derandomize=True, deadline=None, suppress_health_check=unhurried
    )


def survives(call):
    """What the call returns; None where it refuses its input, in one line."""
    try:
        return call()
    except WordsensError as error:
        message = str(error)
        assert message
        assert "\n" not in message, message
        assert len(message) < 3000, message[:500]
        return None


ODD_NUMBERS = st.sampled_from(
    [0, -1, 1, 2, 10**6, 2**31, 2**63 - 1, 2**63, 10**30, -(2**63) - 1, 1.5, 1e308, 5e-324]
)
NUMBERS = st.one_of(st.integers(-3, 20), ODD_NUMBERS, st.floats(), st.booleans(), st.none())
SIGNS = st.characters(codec=None, exclude_categories=())
TEXTS = st.one_of(
    st.text(st.sampled_from("the film was not good.,!\"'\n\t;"), max_size=30),
    st.text(max_size=20),
    st.text(SIGNS, max_size=8),
)
NAMES = [
    "a",
    "text",
    "label",
    "kind",
    "first",
    "second",
    "same",
    "pos",
    "1",
    "0",
    "true",
    "",
    "\0",
    "~",
]
WORDS = st.sampled_from(NAMES)
ENCODINGS = st.sampled_from(
    ["utf-8", "utf-16", "latin-1", "utf-7", "ascii", "utf-32", "cp037", "\0", "zip", "x"]
)
READING = st.fixed_dictionaries(
    {"encoding": ENCODINGS},
    optional={
        "text_column": WORDS,
        "label_column": WORDS,
        "labels": st.booleans(),
        "skip_empty": st.booleans(),
        "split": WORDS,
        "limit": st.integers(1, 3),
    },
)
ROWS = st.lists(st.dictionaries(WORDS, st.one_of(NUMBERS, TEXTS, WORDS), max_size=5), max_size=4)
CELLS = [
    TEXTS.filter(str.isprintable),
    st.integers(0, 3),
    st.booleans(),
    st.floats(),
    st.binary(max_size=4),
]


def json_values(keys=WORDS):
    """Anything that JSON has, its keys mostly those given."""
    return st.recursive(
        st.one_of(NUMBERS, TEXTS, WORDS),
        lambda inner: st.one_of(
            st.lists(inner, max_size=4), st.dictionaries(keys, inner, max_size=4)
        ),
        max_leaves=8,
    )


@st.composite
def damaged(draw, content):
    """The content with some bytes cut out, doubled, or replaced."""
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(content)))
        stop = min(len(content), start + draw(st.sampled_from([0, 1, 2, 8, 64, 4096])))
        content = content[:start] + draw(
            st.one_of(st.binary(max_size=8), st.just(content[start:stop] * 2))
        )
    return content


@st.composite
def tables(draw):
    """The bytes of a file, mostly near a table of texts, with the ending of its name."""
    ending = draw(st.sampled_from([".txt", ".csv", ".tsv", ".jsonl", ".ndjson", ".parquet"]))
    rows = draw(ROWS)
    if ending == ".parquet":
        names = draw(st.lists(WORDS, max_size=5))
        cell = st.one_of(st.none(), draw(st.sampled_from(CELLS)))
        try:
            columns = [pa.array(draw(st.lists(cell, min_size=2, max_size=2))) for _ in names]
            table = pa.Table.from_arrays(columns, names=names)
        except (pa.ArrowException, UnicodeEncodeError):
            table = pa.table({"text": ["a"]})
        out = io.BytesIO()
        pq.write_table(table, out)
        content = out.getvalue()
    elif ending in (".csv", ".tsv"):
        names = draw(
            st.one_of(st.just(["kind", "first", "second", "same"]), st.lists(WORDS, max_size=5))
        )
        out = io.StringIO()
        writer = csv.writer(out, delimiter="," if ending == ".csv" else "\t", escapechar="\\")
        writer.writerows([names, *([row.get(name, "") for name in names] for row in rows)])
        content = out.getvalue().encode("utf-8", "surrogatepass")
    else:
        content = "\n".join(map(json.dumps, rows)).encode()
    return ending, draw(st.one_of(st.just(content), damaged(content), st.binary(max_size=60)))


@fuzzed(40)
@given(tables(), READING)
def test_files_of_texts_and_of_pairs(tmp_path, table, reading):
    ending, content = table
    path = tmp_path / f"a{ending}"
    path.write_bytes(content)
    for document in survives(lambda: read_documents(path, **reading)) or ():
        assert document.text.strip()
        document.text.encode()
    for pair in survives(lambda: read_pairs(path)) or ():
        assert pair.first != pair.second


@fuzzed(30)
@given(
    st.lists(
        st.one_of(ROWS, st.tuples(WORDS, TEXTS, TEXTS, json_values()), json_values()), max_size=2
    )
)
def test_rows_of_pairs(rows):
    survives(lambda: read_pairs(rows))


@fuzzed(20)
@given(
    json_values(st.sampled_from(["format", "model", "identity", "similarities", "state", "splits"]))
)
def test_small_files(tmp_path, content):
    shutil.rmtree(tmp_path, ignore_errors=True)
    tmp_path.mkdir()
    for name in ("dataset_dict.json", "state.json", "baseline.json"):
        (tmp_path / name).write_text(json.dumps(content), encoding="utf-8")
    survives(lambda: read_baseline(tmp_path / "baseline.json"))
    survives(lambda: read_documents(tmp_path))


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    """The bytes of a saved result."""
    path = tmp_path_factory.mktemp("results") / "a.safetensors"
    X = ws.gaussian_text(3, 4, seed=0)
    ws.word_sensitivity(ws.RandomFeatures(3, 4), X, search="quick").save(path)
    return path.read_bytes()


@fuzzed(20)
@given(st.data())
def test_saved_results(tmp_path, result, data):
    (tmp_path / "a").write_bytes(data.draw(damaged(result)))
    survives(lambda: ws.Sensitivity.load(tmp_path / "a"))


VECTORS = st.one_of(json_values(), st.lists(NUMBERS, min_size=2, max_size=2), st.just([1.0, 0.5]))
EMBEDDINGS = st.fixed_dictionaries({"embedding": VECTORS}, optional={"index": NUMBERS})
ANSWERS = st.fixed_dictionaries(
    {"data": st.one_of(json_values(), st.lists(EMBEDDINGS, min_size=2, max_size=2))}
)


@fuzzed(50)
@given(
    st.one_of(
        ANSWERS.map(json.dumps).map(str.encode),
        json_values().map(json.dumps).map(str.encode),
        st.binary(),
    )
)
def test_answers_of_an_endpoint(monkeypatch, content):
    monkeypatch.setattr(Endpoint, "_asked", lambda self, texts, deadline: content)
    endpoint = Endpoint(url="http://localhost", retries=0)
    vectors = survives(lambda: as_model(endpoint.vectors).encode(["one", "two"]))
    assert vectors is None or (vectors.shape[0] == 2 and bool(torch.isfinite(vectors).all()))


def letters(texts):
    """A model that knows letters alone."""
    return [[text.count(letter) + 0.1 for letter in "aeilnorst"] for text in texts]


@fuzzed(12)
@given(st.one_of(TEXTS, st.text(SIGNS)), TEXTS)
def test_texts(tiny_bert, text, other):
    survives(lambda: ws.embed([text], encoder=str(tiny_bert)))
    survives(lambda: ws.explain(letters, text, other, tries=1))
    survives(lambda: Pair("k", text, other, False).changed)


@fuzzed(4)
@given(
    st.sampled_from(
        ["config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors"]
    ),
    st.data(),
)
def test_files_of_models(tiny_bert, tmp_path, name, data):
    shutil.copytree(tiny_bert, tmp_path, dirs_exist_ok=True)
    (tmp_path / name).write_bytes(data.draw(damaged((tmp_path / name).read_bytes())))
    survives(lambda: ws.embed(["the film was good"], encoder=str(tmp_path)))


COMMANDS = {
    "measure": "--file --texts --map --encoder --layer --max-words --word --sample --radius "
    "--depth --seed --json",
    "audit": "--texts --words-per-text --limit --seed --out --json",
    "check": "--pairs --threshold --baseline --require --json --seed",
    "explain": "--target --tries --html --json --seed",
    "report": "--out --title --json",
}
KNOWN = ["minilm", "shipped", "quick", "rf", "seed=1", "draw=[0, 1]", "-", "--"]
PLAIN = st.one_of(
    TEXTS.filter(lambda text: "\0" not in text), NUMBERS.map(str), st.sampled_from(KNOWN)
)


@st.composite
def command_lines(draw):
    """The words of a command line, mostly near one that there is."""
    command = draw(st.sampled_from(sorted(COMMANDS)))
    words = [command]
    for _ in range(draw(st.integers(0, 4))):
        if draw(st.booleans()):
            words.append(draw(st.sampled_from(COMMANDS[command].split())))
        words.append(draw(PLAIN))
    return words


@pytest.fixture
def no_work(monkeypatch, tmp_path):
    """Every command up to the point where it would compute, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    # A mock: what goes through a file outside of the package is an error of the user's code.
    monkeypatch.setattr("torch.set_num_threads", Mock(side_effect=typer.Exit()))


@fuzzed(25)
@given(words=command_lines())
def test_command_lines(no_work, words):
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(words)
    assert code in (commands.DONE, commands.WRONG_INPUT), err.getvalue()
    assert "Traceback" not in err.getvalue()
    if code:
        assert (out.getvalue(), err.getvalue().count("\n")) == ("", 1)
