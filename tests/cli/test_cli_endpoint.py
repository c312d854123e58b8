"""Commands about an endpoint that fails late: one line, and the same command goes on where it
stopped."""

import json
import signal
import subprocess
import sys

import pytest

from tests.models.server import good, serving

PAIRS = "\n".join(
    ["kind,first,second,same"]
    + [f"negation,Shop {n} is open.,Shop {n} is not open.,false" for n in range(30)]
    + [f"paraphrase,Shop {n} is open.,Shop {n} opens.,true" for n in range(30)]
)
TEXTS = "\n".join(["text", *(f"Shop {n} is not open on Mondays before ten." for n in range(40))])
COMMANDS = {
    "check": ["check", "--endpoint", "URL", "--pairs", "pairs.csv"],
    "calibrate": ["calibrate", "--endpoint", "URL", "--pairs", "pairs.csv", "--budget", ".9"],
    "explain": ["explain", "--endpoint", "URL", "The shop is open.", "The shop is not open."],
    "compare": ["compare", "URL", "URL#other", "--texts", "texts.csv"],
    "audit": ["audit", "--endpoint", "URL", "--texts", "texts.csv"],
}


def refused(texts):
    return {"error": "the quota is used up"}


def short(texts):
    return {"data": good(texts)["data"][1:]}


def not_a_number(texts):
    answer = good(texts)
    answer["data"][-1]["embedding"][0] = float("nan")
    return answer


def shuffled(texts):
    return {"data": good(texts)["data"][::-1]}


@pytest.fixture
def command(wordsens, tmp_path, monkeypatch):
    """A function that runs a command on an endpoint: the run."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pairs.csv").write_text(PAIRS, encoding="utf-8")
    (tmp_path / "texts.csv").write_text(TEXTS, encoding="utf-8")

    def run(name, url, *options):
        words = [word.replace("URL", url) for word in COMMANDS[name]]
        return wordsens(*words, *(options or ("--json", "--quiet")))

    return run


def document(run):
    return {key: value for key, value in json.loads(run.out).items() if key != "identities"}


@pytest.mark.parametrize(
    ("name", "failure"),
    [
        ("check", refused),
        ("check", short),
        ("check", not_a_number),
        *((name, refused) for name in ("calibrate", "explain", "compare")),
    ],
)
def test_it_goes_on_where_a_late_failure_stopped_it(command, tmp_path, name, failure):
    with serving(good) as (url, script):
        whole = command(name, url)
        requests = len(script.asked)
        assert not list(tmp_path.rglob("*.pt"))

        script.answers[:] = [*[good] * (requests - 1), failure]
        failed = command(name, url)
        assert (failed.code, failed.out, len(failed.err.splitlines())) == (1, "", 1)
        assert "vectors kept for the next run: " in failed.err

        script.answers[:], before = [good], len(script.asked)
        resumed = command(name, url)
    assert (resumed.code, document(resumed)) == (whole.code, document(whole))
    models = 2 if name == "compare" else 1
    assert (
        len(script.asked) - before <= 4 * models + 1
    )  # four of each model about a sentence of ours, and the last
    assert not list(tmp_path.rglob("*.pt"))


def test_vectors_of_another_model_behind_the_same_url_do_not_count(command):
    def other(texts):
        return {"data": [{"embedding": each["embedding"][::-1]} for each in good(texts)["data"]]}

    with serving(other) as (url, _):
        whole = command("check", url)
    with serving(*[good] * 5, refused) as (url, script):
        assert command("check", url).code == 1
        script.answers[:] = [other]
        assert document(command("check", url)) == document(whole)


def test_an_order_of_its_own_is_put_right(command):
    with serving(good) as (url, script):
        whole = command("check", url)
        script.answers[:] = [shuffled]
        assert document(command("check", url)) == document(whole)


def without(*refused):
    """A server that refuses the texts with one of these words."""

    def answer(texts):
        bad = any(word in text.split() for text in texts for word in refused)
        return (413, b"too long", {}) if bad else good(texts)

    return answer


@pytest.mark.parametrize(
    ("name", "options", "left_out"),
    [
        (
            "check",
            (),
            "2 pairs left out, with a text that the model cannot read (pairs.csv:7, ",
        ),
        (
            "calibrate",
            (),
            "2 pairs left out, with a text that the model cannot read (pairs.csv:7, ",
        ),
        ("compare", ("--pairs", "none"), "1 text left out that a model cannot read (the first, "),
        ("audit", (), "1 text left out (the first, texts.csv:7: the endpoint"),
    ],
)
def test_the_first_line_names_what_the_server_refused(command, name, options, left_out):
    with serving(without("5")) as (url, _):
        stopped = command(name, url, *options, "--quiet")
        assert (stopped.code, len(stopped.err.splitlines())) == (1, 1)
        assert "413 Request Entity Too Large: 'too long' (the text: 'Shop 5 " in stopped.err
        assert not stopped.out
        skipped = command(name, url, *options, "--on-error", "skip", "--quiet")
    assert (skipped.code, skipped.err) == (0, "")
    headline = " ".join(skipped.out.partition("\n\n")[0].split())
    assert left_out in headline
    assert "413 Request Entity Too Large" in headline


@pytest.mark.parametrize(
    ("name", "fewer"),
    [
        ("check", ()),
        ("calibrate", ()),
        ("explain", ()),
        ("compare", ("--pairs", "none", "--limit", "8", "--words-per-text", "2")),
        ("audit", ("--limit", "2")),
    ],
)
def test_no_request_holds_more_texts_than_the_batch_size(command, name, fewer):
    with serving(good) as (url, script):
        assert command(name, url, "--batch-size", "2", "--quiet", *fewer).code == 0
    assert max(len(body["input"]) for _, _, body in script.asked) == 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["check", "minilm", "--batch-size", "4"], "--batch-size goes with --endpoint or --encode"),
        (["check", "minilm", "--on-error", "skip"], "--on-error (='skip') goes with --endpoint"),
        (["check", "--endpoint", "http://host", "--on-error", "no"], "one of stop, skip"),
        (["check", "--endpoint", "http://host", "--batch-size", "0"], "must be a whole number"),
        (["compare", "a", "b", "--texts", "t", "--on-error", "skip"], "goes with the URL"),
        (["explain", "--endpoint", "http://host", "a b", "--on-error", "skip"], "of many texts"),
    ],
)
def test_options_that_do_not_fit_are_wrong_input(wordsens, words, message):
    run = wordsens(*words, "--quiet")
    assert (run.code, run.out, len(run.err.splitlines())) == (2, "", 1)
    assert message in run.err


def test_an_audit_that_is_killed_asks_for_no_text_twice(command, tmp_path):
    few = ["--limit", "6", "--quiet"]
    words = [sys.executable, "-m", "wordsens", *COMMANDS["audit"], *few]
    with serving(good) as (url, script):

        def kill(texts):
            process.kill()
            process.wait()
            return good(texts)

        script.answers[:] = [*[good] * 14, kill, good]
        process = subprocess.Popen([word.replace("URL", url) for word in words], cwd=tmp_path)
        assert process.wait(timeout=60) == -signal.SIGKILL
        *received, _ = [body["input"] for _, _, body in script.asked]
        script.asked.clear()
        assert command("audit", url, *few).code == 0
        again = [body["input"] for _, _, body in script.asked]
        script.asked.clear()
        assert command("audit", url, *few).code == 0
        whole = [body["input"] for _, _, body in script.asked]
    first, second, every = (
        [text for texts in asked for text in texts if "Shop" in text]
        for asked in (received, again, whole)
    )
    assert len(first) > 10
    assert sorted(first + second) == sorted(every)
    assert not list(tmp_path.rglob(".cache/wordsens/*"))
