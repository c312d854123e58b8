"""Commands about an endpoint that fails late: one line, and the same command goes on where it
stopped."""

import json

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

    def run(name, url):
        return wordsens(*(word.replace("URL", url) for word in COMMANDS[name]), "--json", "--quiet")

    return run


def document(run):
    return {key: value for key, value in json.loads(run.out).items() if key != "identities"}


@pytest.mark.parametrize(
    ("name", "failure"),
    [
        ("check", refused),
        ("check", short),
        ("check", not_a_number),
        *((name, refused) for name in list(COMMANDS)[1:]),
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
