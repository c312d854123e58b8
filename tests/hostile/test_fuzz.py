"""Readers, specs, pair files, answers of endpoints and the command line, under inputs that hypothesis makes up."""

import csv
import importlib
import io
import json
import shutil
from contextlib import redirect_stderr, redirect_stdout

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
import yaml
from hypothesis import example, given
from hypothesis import strategies as st
from tests.hostile.fuzz import NUMBERS, SIGNS, TEXTS, WORDS, damaged, fuzzed, json_values, survives

import wordsens as ws
from wordsens.cli import app, main
from wordsens.evaluation.baseline import Baseline
from wordsens.experiments.spec import parse_sweep
from wordsens.experiments.store import FILE, Store, read_records
from wordsens.maps.transformer.settings import folder_settings
from wordsens.models.choice import as_model, is_pair_model
from wordsens.models.endpoint import Endpoint
from wordsens.text import read_documents
from wordsens.text.pairs import Pair, read_pairs

pytestmark = pytest.mark.usefixtures("unchecked_types")

ENCODINGS = st.sampled_from(["utf-8", "utf-16", "latin-1", "utf-7", "ascii", "utf-32", "cp037", "\0", "zip", "x"])
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


@st.composite
def tables(draw):
    """The bytes of a file, mostly near a table of texts, with the ending of its name."""
    ending = draw(st.sampled_from([".txt", ".csv", ".tsv", ".jsonl", ".ndjson", ".parquet"]))
    rows = draw(ROWS)
    match ending:
        case ".parquet":
            names = draw(st.lists(WORDS, max_size=5))
            columns = [draw(st.lists(st.one_of(st.none(), draw(st.sampled_from(CELLS))), min_size=2, max_size=2))
                       for _ in names]  # fmt: skip
            try:
                made = pa.Table.from_arrays([pa.array(column) for column in columns], names=names)
            except (pa.ArrowException, UnicodeEncodeError):
                made = pa.table({"text": ["a"]})
            out = io.BytesIO()
            pq.write_table(made, out)
            content = out.getvalue()
        case ".csv" | ".tsv":
            names = draw(st.one_of(st.just(["kind", "first", "second", "same"]), st.lists(WORDS, max_size=5)))
            out = io.StringIO()
            writer = csv.writer(out, delimiter="," if ending == ".csv" else "\t", escapechar="\\")
            writer.writerows([names, *([row.get(name, "") for name in names] for row in rows)])
            content = out.getvalue().encode("utf-8", "surrogatepass")
        case _:
            content = "\n".join(map(json.dumps, rows)).encode()
    return ending, draw(st.one_of(st.just(content), damaged(content), st.binary(max_size=60)))


CELLS = [TEXTS.filter(str.isprintable), st.integers(0, 3), st.booleans(), st.floats(), st.binary(max_size=4)]


@fuzzed(40)
@given(tables(), READING)
def test_readers(tmp_path, table, reading):
    ending, content = table
    path = tmp_path / f"a{ending}"
    path.write_bytes(content)
    for document in survives(lambda: read_documents(path, **reading)) or ():
        assert document.text.strip()
        document.text.encode()


@fuzzed(30)
@given(tables())
def test_pair_files(tmp_path, table):
    ending, content = table
    path = tmp_path / f"p{ending}"
    path.write_bytes(content)
    for pair in survives(lambda: read_pairs(path)) or ():
        assert pair.first != pair.second


@fuzzed(30)
@given(st.lists(st.one_of(ROWS, st.tuples(WORDS, TEXTS, TEXTS, json_values()), json_values()), max_size=2))
def test_rows_of_pairs(rows):
    survives(lambda: read_pairs(rows))


@fuzzed(12)
@given(st.sampled_from(["dataset_dict.json", "state.json", "dataset_info.json"]), json_values())
def test_folders_of_saved_data_sets(tmp_path, name, content):
    shutil.rmtree(tmp_path, ignore_errors=True)
    tmp_path.mkdir()
    for one in {name, "state.json"}:
        (tmp_path / one).write_text(json.dumps(content), encoding="utf-8")
    survives(lambda: read_documents(tmp_path))


KEYS = st.sampled_from(
    ["name", "experiment", "common", "grids", "map", "n", "d", "draw", "seed", "text", "words", "depth", "model",
     "device", "sample", "mean_cosine", "path", "<<", "starts", "kind"]
)  # fmt: skip
PARTS = st.lists(KEYS, min_size=1, max_size=2).map(".".join)
VALUES = st.one_of(
    json_values(KEYS),
    st.sampled_from(["rf", "raf", "drf", "orthogonal", "gaussian", "sensitivity", "control"]),
)
GRIDS = st.lists(st.dictionaries(KEYS, VALUES, max_size=5), max_size=3)
SWEEPS = st.fixed_dictionaries(
    {"name": st.one_of(st.just("a"), TEXTS), "grids": st.one_of(GRIDS, VALUES)},
    optional={"experiment": st.one_of(st.just("control"), VALUES), "common": VALUES},
)
SPEC = (
    b"name: a\ncommon: {map: rf}\ngrids: [{n: [4, 5], d: 6, text: gaussian}, {n: 4, d: 8, text: {kind: orthogonal}}]\n"
)


@fuzzed(40)
@given(SWEEPS)
def test_sweeps(sweep):
    def cells():
        text = yaml.safe_dump(sweep, allow_unicode=True)
        return [parse_sweep(found.to_yaml(), where="again").cells() == found.cells()
                for found in [parse_sweep(text, where="s.yaml")] if found.cells()]  # fmt: skip

    assert survives(cells) in (None, [], [True])


@fuzzed(40)
@given(st.one_of(damaged(SPEC).map(lambda content: content.decode(errors="replace")), st.text(max_size=40)))
def test_yaml(text):
    survives(lambda: parse_sweep(text, where="s.yaml").cells())


@fuzzed(40)
@given(st.one_of(TEXTS, st.tuples(PARTS, st.one_of(VALUES.map(repr), TEXTS)).map("=".join)))
def test_overrides(override):
    survives(lambda: parse_sweep(SPEC.decode(), [override]).cells())


@fuzzed(20)
@given(json_values(st.sampled_from(["format", "model", "identity", "similarities"])))
def test_baselines(tmp_path, content):
    (tmp_path / "a.yaml").write_text(json.dumps(content), encoding="utf-8")
    survives(lambda: Baseline.read(tmp_path / "a.yaml"))


@pytest.fixture(scope="module")
def database(make_record, tmp_path_factory):
    """The bytes of a store of one record."""
    folder = tmp_path_factory.mktemp("records")
    with Store(folder) as store:
        store.write(make_record())
    return (folder / FILE).read_bytes()


@fuzzed(20)
@given(st.data())
def test_stores(tmp_path, database, data):
    (tmp_path / FILE).write_bytes(data.draw(damaged(database)))
    survives(lambda: read_records(tmp_path))


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    """The bytes of a saved result, and where copies of it can lie."""
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
ANSWERS = st.fixed_dictionaries({"data": st.one_of(json_values(), st.lists(EMBEDDINGS, min_size=2, max_size=2))})


@fuzzed(50)
@given(st.one_of(ANSWERS.map(json.dumps).map(str.encode), json_values().map(json.dumps).map(str.encode), st.binary()))
def test_answers_of_an_endpoint(monkeypatch, content):
    monkeypatch.setattr(Endpoint, "_asked", lambda self, texts, deadline: content)
    endpoint = Endpoint(url="http://localhost", retries=0)
    found = survives(lambda: as_model(endpoint.vectors).encode(["one", "two"]))
    assert found is None or (found.shape[0] == 2 and bool(torch.isfinite(found).all()))


def letters(texts):
    """A model that knows letters alone."""
    return [[text.count(letter) + 0.1 for letter in "aeilnorst"] for text in texts]


@fuzzed(12)
@given(st.one_of(TEXTS, st.text(SIGNS)), TEXTS)
def test_texts(tiny_bert, text, other):
    survives(lambda: ws.embed([text], encoder=str(tiny_bert)))
    survives(lambda: ws.explain(letters, text, other, plan=ws.ExplainPlan(tries=1)))
    survives(lambda: Pair("k", text, other, False).changed)


TYPES = st.sampled_from(["a.Transformer", "Pooling", "Dense", "Normalize"])
MODULES = st.one_of(
    json_values(st.sampled_from(["path", "type", "name"])),
    st.lists(st.fixed_dictionaries({"path": TEXTS, "type": TYPES}), max_size=3),
)


@fuzzed(15)
@given(MODULES, json_values(st.sampled_from(
    ["pooling_mode", "pooling_mode_mean_tokens", "prompts", "default_prompt_name", "truncate_dim", "max_seq_length",
     "do_lower_case", "in_features", "out_features", "model_type", "architectures", "id2label"])))  # fmt: skip
def test_files_of_sentence_models(tmp_path, modules, content):
    (tmp_path / "modules.json").write_text(json.dumps(modules), encoding="utf-8")
    for name in ("config.json", "config_sentence_transformers.json", "sentence_bert_config.json"):
        (tmp_path / name).write_text(json.dumps(content), encoding="utf-8")
    survives(lambda: folder_settings(tmp_path, "mine"))
    survives(lambda: is_pair_model(str(tmp_path)))


@fuzzed(4)
@given(st.sampled_from(["config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors"]), st.data())
def test_files_of_models(tiny_bert, tmp_path, name, data):
    shutil.copytree(tiny_bert, tmp_path, dirs_exist_ok=True)
    content = (tmp_path / name).read_bytes()
    if name.endswith("config.json") and data.draw(st.booleans()):
        known = json.loads(content)
        known |= data.draw(st.dictionaries(st.sampled_from(sorted(known)), json_values(), min_size=1, max_size=2))
        (tmp_path / name).write_text(json.dumps(known), encoding="utf-8")
    else:
        (tmp_path / name).write_bytes(data.draw(damaged(content)))
    survives(lambda: ws.embed(["the film was good"], encoder=str(tmp_path)))


COMMANDS = {
    "measure": "--file --dataset --map --encoder --layer --max-words --word --sample --radius --depth --seed --json",
    "paper": "--scale --texts --encoder --out --seed --device --json",
    "audit": "--dataset --layer --limit --seed --out --json",
    "check": "--pairs --budget --baseline --require --json --seed",
    "explain": "--target --tries --html --json --seed",
    "report": "--out --title --json",
    "sweep": "--out --json --x --y --by --file",
}
KNOWN = ["minilm", "shipped", "quick", "rf", "run", "status", "plot", "seed=1", "draw=[0, 1]", "-", "--"]
PLAIN = st.one_of(TEXTS.filter(lambda text: "\0" not in text), NUMBERS.map(str), st.sampled_from(KNOWN))


@st.composite
def command_lines(draw):
    """The words of a command line, mostly near one that there is."""
    command = draw(st.sampled_from(sorted(COMMANDS)))
    words = [command] if command != "sweep" else [command, draw(st.sampled_from(["status", "plot", "export"]))]
    for _ in range(draw(st.integers(0, 4))):
        if draw(st.booleans()):
            words.append(draw(st.sampled_from(COMMANDS[command].split())))
        words.append(draw(PLAIN))
    return words


@pytest.fixture
def no_work(monkeypatch, tmp_path):
    """Every command up to the point where it would compute, in an empty folder."""
    from wordsens.cli.audit import run as audit
    from wordsens.cli.check import run as check
    from wordsens.cli.explain import run as explain
    from wordsens.cli.measure import run as measure
    from wordsens.cli.report import run as report

    paper = importlib.import_module("wordsens.cli.paper")

    monkeypatch.chdir(tmp_path)
    for module in (audit, check, explain, measure, paper, report):
        for name in [name for name in vars(module) if name.startswith("run_")]:
            monkeypatch.setattr(module, name, lambda *_, **__: None)


@fuzzed(25)
@given(words=command_lines())
@example(words=["sweep", "plot", "a", "--out", "", "--x", ""])
def test_command_lines(no_work, words):
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(words)
    said = err.getvalue()
    assert code in (app.DONE, app.WRONG_INPUT), said
    assert "Traceback" not in said, said
    if code:
        assert (out.getvalue(), said.count("\n")) == ("", 1)
