"""Folders of made-up records, and a browser."""

import json
import shutil

import pytest

import wordsens as ws
from tests.made_records import made_record
from tests.report.browser import Browser
from wordsens.sweeps.store import Store


@pytest.fixture(scope="session")
def words_record(make_record):
    """A function that gives the record of a text with these words, each with its sensitivity."""

    def made(words):
        values = [1.0 + at % 7 for at in range(len(words))]
        return make_record(
            text="given",
            n=len(words),
            source="a text",
            tokens=json.dumps(words),
            whole_words=None,
            per_word=values,
            value=max(values),
        )

    return made


@pytest.fixture(scope="session")
def generalization_record():
    """A function that gives a record of one word's change after learning."""

    def made(**changes):
        keys = {
            "map": "raf",
            "n": 10,
            "d": 8,
            "texts": 50,
            "training": "fine-tuned",
            "objective": "error",
        }
        keys |= {"draw": 0, "sample": 0, "seed": 0}
        keys |= {name: changes[name] for name in keys if name in changes}
        return made_record(
            *("generalization", {"text": {"kind": "gaussian"}, **keys}),
            **{
                "held_out": 10,
                "labels": "sentiment",
                "text": "gaussian",
                "dtype": "float64",
                "value": 0.5,
                "bound": 0.4,
                "limits": (),
                "least_errors": (),
                "gamma": 0.3,
                "alignment": -0.2,
                "accuracy": 0.8,
                "word": 0,
                **keys,
                **changes,
            },
        )

    return made


@pytest.fixture(scope="session")
def attention_record():
    """A function that gives the record of a pair of texts of three words, which differ in the
    last."""

    def made(**changes):
        return made_record(
            *("attention", {key: str(value) for key, value in changes.items()}),
            **{
                "model": "tiny",
                "layer": 1,
                "first": "I love her",
                "second": "I love him",
                "tokens_first": json.dumps(["i", "love", "her"]),
                "tokens_second": json.dumps(["i", "love", "him"]),
                "weights_first": (0.5, 0.3, 0.2) * 3,
                "weights_second": (0.5, 0.3, 0.2, 0.25, 0.25, 0.5, 0.5, 0.3, 0.2),
                "changed": (2,),
                "value": 0.1,
                **changes,
            },
        )

    return made


def write_records(folder, records):
    """A folder as a command would have left it."""
    with Store(folder) as store:
        for record in records:
            store.write(record)
    return folder


@pytest.fixture(scope="session")
def series_records(make_record):
    """Attention that does not fall with n, and a layer whose S falls as 1/sqrt(n), with bounds and
    predictions."""
    return [
        make_record(
            map=name,
            n=n,
            draw=draw,
            text=text,
            asked={"text": {"kind": text}},
            source=f"{text}-{draw}-{n}",
            value=(2.0 if name == "raf" else n**-0.5) * (1 + 0.01 * draw),
            upper=(3.0 if name == "raf" else 1.2 * n**-0.5),
            rigor="certified",
            predicted=1.9 if name == "raf" else n**-0.5,
            predicted_of="a typical word" if name == "raf" else f"the largest of {n} words",
            predicted_in_range=True,
            median_word=1.8,
        )
        for name in ("raf", "rf")
        for text in ("gaussian", "orthogonal")
        for n in (10, 40, 160)
        for draw in range(3)
    ]


@pytest.fixture(scope="session")
def everything(
    tmp_path_factory, series_records, generalization_record, words_record, attention_record
):
    """One folder with all that a report can show."""
    learned = [
        generalization_record(
            map=name,
            training=training,
            objective=objective,
            sample=sample,
            gamma=0.1 + 0.1 * sample,
        )
        for name in ("raf", "rf")
        for training in ("fine-tuned", "retrained")
        for objective in ("error", "alignment")
        for sample in range(4)
    ]
    frontiers = [
        generalization_record(
            map=name,
            training=training,
            objective="frontier",
            sample=sample,
            limits=(0.25, 0.5, 1.0),
            least_errors=(1.5, 0.5 if name == "raf" else 2.0, 0.1 * sample),
            least_gammas=(0.2, 0.4, 0.9),
            least_alignments=(0.5, 0.0, -0.5),
        )
        for name in ("raf", "rf")
        for training in ("fine-tuned", "retrained")
        for sample in range(4)
    ]
    folder = tmp_path_factory.mktemp("everything")
    return write_records(
        folder,
        [
            *series_records,
            *learned,
            *frontiers,
            words_record(["not", "a", "good", "film"]),
            attention_record(),
        ],
    )


@pytest.fixture(scope="session")
def page(everything, tmp_path_factory):
    """The report of that folder."""
    return ws.write_report(everything, tmp_path_factory.mktemp("page") / "report.html")


@pytest.fixture(scope="session")
def browser():
    """Headless Chromium; the tests that need it are skipped where it, its driver or selenium is
    missing."""
    pytest.importorskip("selenium", reason="the browser tests need selenium: pip install selenium")
    paths = [shutil.which(name) for name in ("chromium", "chromedriver")]
    if None in paths:
        pytest.skip("the browser tests need Chromium: apt install chromium chromium-driver")
    opened = Browser(*paths)
    yield opened
    opened.close()
