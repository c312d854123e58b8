"""Every option of a command reaches the function of the library that does the work."""

import logging
from types import SimpleNamespace
from unittest.mock import Mock
from xml.etree import ElementTree

import pandas as pd
import pytest

import wordsens as ws
from wordsens.cli.command import Answer, CommandRun, command
from wordsens.cli.groups import ModelOptions
from wordsens.display.view import View
from wordsens.text.pairs import Pair

PAIRS = [
    Pair("negation", "it is on", "it is not on", same=False),
    Pair("antonym", "it is on", "it is off", same=False),
    Pair("filler", "it is on", "well, it is on", same=True),
]
DOCUMENTS = [ws.Document("one two three four"), ws.Document("five six seven")]


@pytest.fixture
def call(wordsens, monkeypatch):
    """A function that runs a command up to its call of a function of the package, and gives the
    positional and the named arguments of that call, and those of what it read before."""
    monkeypatch.setattr(ModelOptions, "load", lambda self: self)
    monkeypatch.setattr("wordsens.evaluation.pairs.prompted", lambda model, names: (model, names))
    monkeypatch.setattr(
        "wordsens.cli.compare._loaded",
        lambda name, on_error, batch_size, **options: (name, options),
    )
    readers = {
        "read_pairs": Mock(return_value=PAIRS),
        "read_documents": Mock(return_value=DOCUMENTS),
        "near_misses": Mock(return_value=PAIRS),
    }
    for name, reader in readers.items():
        monkeypatch.setattr(ws, name, reader)

    def run(function, *words):
        work = Mock(side_effect=KeyboardInterrupt)
        monkeypatch.setattr(ws, function, work)
        ended = wordsens(*words, "--quiet")
        assert ended.code == 130, ended.err
        read = {name: reader.call_args for name, reader in readers.items() if reader.called}
        return SimpleNamespace(args=work.call_args.args, **work.call_args.kwargs, read=read)

    return run


def holds(call, **values):
    assert {name: getattr(call, name) for name in values} == values


def test_check(call):
    made = call(
        "check",
        *("check", "st", "--pairs", "p.csv", "--encoding", "latin-1", "--kind", "negation"),
        *("--threshold", ".8", "--keep", ".7", "--require", "recall >= .1", "--baseline", "b"),
        *("--prompt-name", "query", "--guard", "--allow-package-pairs", "--seed", "7"),
    )
    assert (made.args[0].model, *made.args[1:]) == ("st", PAIRS, ["negation"])
    holds(made, threshold=0.8, keep=0.7, requirements=["recall >= .1"], baseline="b", seed=7)
    holds(made, prompt_names=["query"], guard=True, allow_package_pairs=True)
    assert made.read["read_pairs"].kwargs == {"encoding": "latin-1"}
    drafted = call("check", "check", "st", "--texts", "t.csv", "--seed", "7", "--limit", "3")
    assert drafted.read["near_misses"].kwargs == {"seed": 7}
    assert drafted.read["near_misses"].args == (DOCUMENTS,)


@pytest.mark.parametrize("command", ["audit", "compare"])
def test_texts_are_read_as_the_options_say(call, command):
    model = ["st", "st2"] if command == "compare" else ["st"]
    texts = ("--texts", "t.csv", "--text-column", "c", "--limit", "2", "--encoding", "latin-1")
    made = call(command, command, *model, *texts)
    options = {"text_column": "c", "limit": 2, "encoding": "latin-1", "labels": False}
    assert made.read["read_documents"].args == ("t.csv",)
    # The audit says how many texts are empty; the others pass them over.
    skipped = {"skip_empty": command != "audit"}
    assert made.read["read_documents"].kwargs == options | skipped


def test_audit(call):
    made = call(
        "audit",
        *("audit", "st", "--texts", "t.csv", "--pairs", "p.csv", "--encoding", "latin-1"),
        *("--max-words", "9", "--words-per-text", "3", "--removal", "mask", "--threshold", ".8"),
        *("--require", "all.removal <= 1", "--prompt-name", "query", "--seed", "7"),
    )
    (model, names), documents = made.args
    assert (model.model, names, documents) == ("st", ["query"], DOCUMENTS)
    holds(made, removal="mask", words_per_text=3, max_words=9, pairs=PAIRS, threshold=0.8, seed=7)
    holds(made, requirements=["all.removal <= 1"])
    assert made.read["read_pairs"].kwargs == {"encoding": "latin-1"}


def test_calibrate(call):
    made = call(
        "calibrate",
        *("calibrate", "st", "--pairs", "p.csv", "--encoding", "latin-1", "--budget", ".1"),
        *("--confidence", ".9", "--guard", "--prompt-name", "query"),
    )
    assert (made.args[0].model, *made.args[1:]) == ("st", PAIRS, 0.1)
    holds(made, confidence=0.9, guard=True, prompt_names=["query"])
    assert made.read["read_pairs"].kwargs == {"encoding": "latin-1", "unlabelled": True}


def test_calibrate_with_texts(call):
    made = call(
        "collisions",
        *("calibrate", "st", "--texts", "t.csv", "--pairs", "p.csv", "--encoding", "latin-1"),
        *("--budget", ".1", "--confidence", ".9", "--guard", "--prompt-name", "query"),
        *("--seed", "7", "--limit", "3"),
    )
    assert (made.args[0].model, *made.args[1:]) == ("st", DOCUMENTS, 0.1)
    holds(made, confidence=0.9, guard=True, prompt_names=["query"], pairs=PAIRS, seed=7)
    assert made.read["read_pairs"].kwargs == {"encoding": "latin-1", "unlabelled": False}
    assert made.read["read_documents"].kwargs["limit"] == 3


def test_compare_carries_a_threshold(call):
    made = call(
        "carry_threshold",
        *("compare", "first", "second", "--threshold", ".8", "--pairs", "p.csv", "--pool", "cls"),
        *("--device", "meta", "--seed", "7"),
    )
    options = {"pool": "cls", "device": "meta"}
    first, second, threshold, pairs, seed = made.args
    assert (first, second) == (("first", options), ("second", options))
    assert (threshold, pairs, seed) == (0.8, "p.csv", 7)


def test_compare(call):
    made = call(
        "compare",
        *("compare", "first", "second", "--texts", "t.csv", "--pairs", "p.csv", "--pool", "cls"),
        *("--device", "meta", "--words-per-text", "3", "--word-texts", "5", "--max-words", "2"),
        *("--threshold", ".8", "--tolerance", ".2", "--require", "all.differs <= 0", "--seed", "7"),
    )
    first, second, documents, pairs, seed = made.args
    options = {"pool": "cls", "device": "meta"}
    assert (first, second) == (("first", options), ("second", options))
    assert [document.text for document in documents] == ["one two", "five six"]
    assert (pairs, seed) == ("p.csv", 7)
    holds(made, words_per_text=3, word_texts=5, threshold=0.8, tolerance=0.2)
    holds(made, requirements=["all.differs <= 0"])


def test_explain(call, monkeypatch):
    made = call(
        "explain",
        *("explain", "st", "a b c", "a b d", "--tries", "0", "--leaders", "3", "--no-vectors"),
        *("--max-words", "2", "--prompt-name", "query"),
    )
    (model, names), *texts = made.args
    assert (model.model, names, texts) == ("st", ["query"], ["a b", "a b"])
    holds(made, tries=0, leaders=3, vectors=False, target=None)
    classifier = Mock()
    monkeypatch.setattr("wordsens.models.classifier.as_classifier", classifier)
    made = call(
        "explain_classes",
        *("explain", "cls", "--classes", "--texts", "t.csv", "--labels", "a", "--tries", "2"),
        *("--words-per-text", "3", "--move-texts", "5", "--require", "all.swap <= 1"),
        *("--seed", "7", "--device", "meta", "--max-words", "2"),
    )
    assert made.args == (classifier.return_value, ["one two", "five six"])
    assert classifier.call_args.args == ("cls",)
    assert classifier.call_args.kwargs == {"labels": ["a"], "device": "meta", "revision": None}
    holds(made, words_per_text=3, move_texts=5, tries=2, seed=7, requirements=["all.swap <= 1"])


def test_the_model(monkeypatch):
    loaded, server = Mock(), Mock()
    monkeypatch.setattr("wordsens.models.load.load", loaded)
    monkeypatch.setattr(ws, "Endpoint", server)
    ModelOptions(model="st", pool="cls", revision="main", device="meta").load()
    assert loaded.call_args.args == ("st",)
    options = {"pool": "cls", "revision": "main", "device": "meta", "batch_size": None}
    assert loaded.call_args.kwargs == options
    options = {"timeout": 2.0, "retries": 1, "on_error": "skip"}
    ModelOptions(endpoint="http://h", endpoint_model="m", batch_size=5, **options).load()
    assert server.call_args.kwargs == {"url": "http://h", "model": "m"} | options
    assert loaded.call_args.args == (server.return_value,)
    assert loaded.call_args.kwargs["batch_size"] == 5


def test_measure(wordsens, monkeypatch):
    build, measured, documents = Mock(), Mock(side_effect=KeyboardInterrupt), Mock()
    rows = SimpleNamespace(shape=(3, 4))
    text = Mock(rows=rows, source="t", __len__=lambda self: 3)
    embed = Mock(return_value=[text])
    documents.return_value = [ws.Document("a b c")]
    sampled = Mock(return_value=[1])
    monkeypatch.setattr("wordsens.cli.measure.build_map", build)
    monkeypatch.setattr("wordsens.cli.measure._measured", measured)
    monkeypatch.setattr("wordsens.sensitivity.several_texts.sampled_words", sampled)
    monkeypatch.setattr(ws, "embed", embed)
    monkeypatch.setattr(ws, "read_documents", documents)
    ended = wordsens(
        *("measure", "--texts", "t.csv", "--text-column", "c", "--encoding", "latin-1"),
        *("--limit", "2", "--encoder", "e", "--layer", "1", "--max-words", "7"),
        *("--keep-special-tokens", "--map", "drf", "--depth", "3", "--width", "5"),
        *("--activation", "erf", "--radius", "2", "--sample", "1", "--search", "quick"),
        *("--starts", "2", "--steps", "3", "--seed", "7", "--small-radius", "--profile", "--quiet"),
    )
    assert ended.code == 130, ended.err
    read = {"text_column": "c", "encoding": "latin-1", "limit": 2}
    assert documents.call_args.kwargs == read | {"labels": False, "skip_empty": True}
    options = {"encoder": "e", "layer": 1, "max_words": 7, "special_tokens": True, "device": "cpu"}
    assert embed.call_args.kwargs == options
    of_map = {"depth": 3, "width": 5, "activation": "erf", "model_layer": 1}
    assert build.call_args.args == ("drf", 3, 4)
    assert build.call_args.kwargs == of_map | {"seed": 7, "device": "cpu"}
    assert sampled.call_args.args == (build.return_value, 3, 7, 1)
    assert measured.call_args.args == (build.return_value, text, [1], 2.0, 7)
    given = measured.call_args.kwargs
    assert given["plan"] == ws.SearchPlan("quick", starts=2, steps=3)
    flags = {name: given[name] for name in ("saved", "swaps", "small_radius", "profile")}
    assert flags == {"saved": None, "swaps": None, "small_radius": True, "profile": True}


def test_tune(wordsens, monkeypatch):
    monkeypatch.setattr(ws, "read_documents", Mock(return_value=DOCUMENTS))
    tune = Mock(side_effect=KeyboardInterrupt)
    monkeypatch.setattr("wordsens.training.tuning.tune", tune)
    ended = wordsens(
        *("tune", "st", "out", "--texts", "t.csv", "--text-column", "c", "--pairs", "p.csv"),
        *("--steps", "3", "--batch", "4", "--rate", ".1", "--lora", "--device", "meta"),
        *("--seed", "7", "--quiet"),
    )
    assert ended.code == 130, ended.err
    assert tune.call_args.args == ("st", "out", "p.csv", DOCUMENTS)
    given = {name: value for name, value in tune.call_args.kwargs.items() if name != "progress"}
    assert given == {
        "steps": 3,
        "batch": 4,
        "rate": 0.1,
        "lora": True,
        "device": "meta",
        "seed": 7,
    }


def test_a_file_of_pairs_for_the_guard(wordsens, monkeypatch):
    work = Mock(side_effect=KeyboardInterrupt)
    monkeypatch.setattr("wordsens.evaluation.guard.bulk.guard_pairs", work)
    wordsens("guard", "--pairs", "p.csv", "--encoding", "latin-1", "--workers", "2", "--quiet")
    assert work.call_args.args == ("p.csv",)
    given = work.call_args.kwargs
    assert (given["encoding"], given["workers"]) == ("latin-1", 2)


def test_the_models_of_a_comparison(monkeypatch, tmp_path):
    from wordsens.cli.compare import _loaded

    loaded, server, function = Mock(), Mock(), Mock()
    monkeypatch.setattr("wordsens.models.load.load", loaded)
    monkeypatch.setattr("wordsens.models.function.load_named", function)
    monkeypatch.setattr(ws, "Endpoint", server)
    where = {"pool": "cls", "device": "meta"}
    _loaded("name@main", None, None, **where)
    options = where | {"batch_size": None}
    assert loaded.call_args == (("name",), options | {"revision": "main"})
    _loaded(f"{tmp_path}", None, None, **where)
    assert loaded.call_args == ((f"{tmp_path}",), options | {"revision": None})
    _loaded("http://h/v1#m", "skip", 5, **where)
    assert server.call_args.kwargs == {"url": "http://h/v1", "model": "m", "on_error": "skip"}
    assert loaded.call_args == ((server.return_value,), {"batch_size": 5})
    _loaded("module:function", None, 5, **where)
    assert function.call_args.args == ("module:function", "models")
    assert loaded.call_args == ((function.return_value,), {"batch_size": 5})


def test_the_page(wordsens, monkeypatch):
    served = Mock()
    monkeypatch.setattr("wordsens.app.serve.serve", served)
    ended = wordsens(
        *("app", "--host", "0.0.0.0", "--port", "0", "--model", "a", "--model", "b"),
        *("--workers", "3", "--max-words", "20", "--max-seconds", "5", "--max-waiting", "7"),
        *("--memory", "2048", "--token", "a long enough token"),
    )
    assert ended.code == 0, ended.err
    assert "everyone who reaches 0.0.0.0:0" in ended.err
    settings = served.call_args.args[0]
    given = (settings.host, settings.port, settings.models, settings.workers, settings.max_words)
    assert given == ("0.0.0.0", 0, ["a", "b"], 3, 20)
    given = (settings.max_seconds, settings.max_waiting, settings.memory, settings.token)
    assert given == (5.0, 7, 2048, "a long enough token")
    assert wordsens("app", "--port", "0").err == ""


def test_the_cells_of_experiments(wordsens, monkeypatch, tmp_path):
    work = Mock(side_effect=KeyboardInterrupt)
    monkeypatch.setattr("wordsens.cli.sweep.measure_sweep", work)
    spec = tmp_path / "spec.yaml"
    grid = "{map: rf, n: 4, d: 6, text: {kind: gaussian}}"
    spec.write_text(f"name: one\nexperiment: sensitivity\ngrids:\n  - {grid}\n")
    place = ("--workers", "2", "--witnesses", "--threads", "3", "--quiet")
    ended = wordsens("sweep", "run", str(spec), "n=5", "--device", "meta", "--out", "here", *place)
    assert ended.code == 130, ended.err
    sweep, folder, where, _ = work.call_args.args
    assert [(cell.n, cell.device) for cell in sweep.cells()] == [(5, "meta")]
    assert (str(folder), where.workers, where.witnesses, where.threads) == ("here", 2, True, 3)
    monkeypatch.setattr("wordsens.cli.paper.measure_sweep", work)
    keys = ("n=4", "d=6", "map=rf", "--search", "thorough", "--seed", "7", "--device", "meta")
    ended = wordsens("paper", "sensitivity", *keys, "--out", "there", *place)
    assert ended.code == 130, ended.err
    sweep, folder, where, _ = work.call_args.args
    cells = {(cell.n, cell.d, cell.map, cell.device, cell.search) for cell in sweep.cells()}
    assert cells == {(4, 6, "rf", "meta", "thorough")}
    assert {cell.seed for cell in sweep.cells()} == {7}
    assert (str(folder), where.workers) == ("there", 2)


def test_a_page_of_a_report_is_opened_where_that_is_asked_for(wordsens, monkeypatch, tmp_path):
    run = SimpleNamespace(name="one", folder=tmp_path, records=[1], failed=[], unread=("a: old",))
    monkeypatch.setattr("wordsens.report.load.load_runs", lambda folders: [run])
    monkeypatch.setattr("wordsens.report.write.report_view", lambda runs, pictures: View("", ()))
    monkeypatch.setattr("wordsens.report.write.heading", lambda runs: "")
    opened = Mock()
    monkeypatch.setattr("webbrowser.open", opened)
    report = ("report", str(tmp_path), "--out", str(tmp_path / "r.html"))
    ended = wordsens(*report)
    assert (ended.code, ended.err) == (0, "wordsens: passed over: one: a: old\n")
    assert not opened.called
    assert wordsens(*report, "--open", "--quiet").err == ""
    assert opened.call_args.args == ((tmp_path / "r.html").as_uri(),)


def test_a_figure_of_a_sweep(wordsens, monkeypatch, tmp_path):
    records = pd.DataFrame({"cell": "a", "status": ["done"], "seconds": 1.0, "error": None})
    sweep, along = SimpleNamespace(name="one", experiment="two"), Mock()
    monkeypatch.setattr("wordsens.cli.sweep._source", lambda *_: (sweep, tmp_path))
    monkeypatch.setattr("wordsens.cli.sweep._last_records", lambda *_: (["key"], records))
    series = Mock(return_value=(pd.DataFrame({"n": [1]}), pd.DataFrame({"n": [1]})))
    monkeypatch.setattr("wordsens.plotting.records.series_along", series)
    monkeypatch.setattr("wordsens.plotting.records.column_title", lambda *_: "")
    monkeypatch.setattr("wordsens.plotting.along", along)
    plot = ("sweep", "plot", "spec.yaml", "--x", "n", "--y", "upper", "--by", "map, d")
    assert wordsens(*plot).code == 0
    assert series.call_args.args[1:] == ("n", "upper", ["map", "d"])
    assert along.call_args.args[1:] == ("n", "upper")
    assert along.call_args.kwargs == {"by": ["map", "d"], "logarithmic": True}
    wordsens(*plot, "--linear")
    assert along.call_args.kwargs["logarithmic"] is False


def test_quiet_silences_the_warnings_of_the_library(capsys):
    @command("warn")
    def warn(*, run: CommandRun) -> Answer:
        logging.getLogger("wordsens").warning("careful")
        return Answer(document={})

    warn(as_json=False, quiet=True)
    assert logging.getLogger("wordsens").level == logging.ERROR
    warn(as_json=False, quiet=False)
    assert logging.getLogger("wordsens").level == logging.WARNING


def test_near_misses_are_shown_to_readers_alone(wordsens, monkeypatch):
    monkeypatch.setattr(ModelOptions, "load", Mock(side_effect=KeyboardInterrupt))
    monkeypatch.setattr(ws, "read_documents", Mock(return_value=DOCUMENTS))
    monkeypatch.setattr(ws, "near_misses", Mock(return_value=PAIRS[:2]))
    shown = wordsens("check", "st", "--texts", "t.csv").out
    assert "negation: 1 near miss made" in shown and "it is not on" in shown
    assert wordsens("check", "st", "--texts", "t.csv", "--json").out == ""


def test_a_file_in_another_encoding_is_measured(wordsens, tmp_path, monkeypatch):
    embed = Mock(side_effect=KeyboardInterrupt)
    monkeypatch.setattr(ws, "embed", embed)
    (tmp_path / "text.txt").write_text("café au lait", encoding="latin-1")
    wordsens("measure", "--file", str(tmp_path / "text.txt"), "--encoding", "latin-1")
    assert embed.call_args.args[0][0].text == "café au lait"


def test_each_requirement_of_a_comparison_fails_by_itself(call, wordsens, tmp_path, monkeypatch):
    unmet = SimpleNamespace(requirement="b <= 0", sentence="b is 1")
    found = Mock(unmet=[unmet], requirements=["a <= 0", "b <= 0"], first="f", second="s")
    found.to_dict.return_value, found.failures = {}, ["b is 1"]
    found.view.return_value = View("", ())
    monkeypatch.setattr(ws, "compare", Mock(return_value=found))
    monkeypatch.setattr("wordsens.evaluation.compare.read_requirements", lambda texts: None)
    place = tmp_path / "junit.xml"
    ended = wordsens("compare", "f", "s", "--texts", "t.csv", "--junit", str(place))
    assert (ended.code, ended.err.splitlines()[-1]) == (
        3,
        "wordsens: a requirement is not met: b is 1",
    )
    suite = ElementTree.parse(place).getroot()
    assert suite.get("failures") == "1"
    assert [len(case) for case in suite] == [0, 1]
