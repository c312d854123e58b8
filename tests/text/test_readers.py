"""Reading documents from files and folders; every way in which they can be wrong."""

import csv
import io
import json
import math
from itertools import islice
from unittest.mock import Mock

import datasets
import httpx2
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from huggingface_hub import HfApi
from huggingface_hub.errors import RepositoryNotFoundError

from wordsens.errors import InputError
from wordsens.text import Document, read_documents, stream_documents
from wordsens.text.document import LabelReader
from wordsens.text.hub import HubAnswer, ask_hub
from wordsens.text.readers import text_column_of

ACCENTS = "Café, ça déçoit 🎬"
LONG = "word " * 40_000


def refusal(source, **options):
    with pytest.raises(InputError) as caught:
        read_documents(source, **options)
    message = str(caught.value)
    assert "\n" not in message
    return message


def texts_of(documents):
    return [document.text for document in documents]


def written(path, content, **options):
    """The path, after the content was written: bytes, text, or a dictionary of columns for
    Parquet."""
    if isinstance(content, dict):
        pq.write_table(pa.table(content), path)
    elif isinstance(content, bytes):
        path.write_bytes(content)
    else:
        path.write_text(content, encoding=options.get("encoding", "utf-8"), newline="")
    return path


def csv_of(*rows, delimiter=","):
    out = io.StringIO()
    csv.writer(out, delimiter=delimiter).writerows(rows)
    return out.getvalue()


@pytest.mark.parametrize(
    ("name", "content", "options", "documents"),
    [
        ("r.txt", "A film.\n\nVery good.", {}, [("A film.\n\nVery good.", None, "r.txt")]),
        (
            "r.txt",
            "Good.<br /><br />Very<BR>good <b>film</b>",
            {},
            [("Good.  Very good <b>film</b>", None, "r.txt")],
        ),
        (
            "r.csv",
            csv_of(["id", "text", "label"], [1, 'a "good", film\nyes', "pos"], [2, ACCENTS, 0]),
            {},
            [('a "good", film\nyes', 1, "r.csv:3"), (ACCENTS, -1, "r.csv:4")],
        ),
        ("r.csv", f"text\n{LONG}\n", {}, [(LONG, None, "r.csv:2")]),
        (
            "r.csv",
            "text\nFé\n".encode("latin-1"),
            {"encoding": "latin-1"},
            [("Fé", None, "r.csv:2")],
        ),
        (
            "r.csv",
            "review,stars\ngood,positive\n",
            {"text_column": "review", "label_column": "stars"},
            [("good", 1, "r.csv:2")],
        ),
        ("r.csv", "text,label\ngood,five\n", {"labels": False}, [("good", None, "r.csv:2")]),
        (
            "r.csv",
            "text,label\ngood,1\n ,0\nbad,0\n",
            {"skip_empty": True},
            [("good", 1, "r.csv:2"), ("bad", -1, "r.csv:4")],
        ),
        (
            "r.tsv",
            csv_of(["text", "label"], ["a, b", 1], delimiter="\t"),
            {},
            [("a, b", 1, "r.tsv:2")],
        ),
        ("r.tsv", "text\na, b\n", {}, [("a, b", None, "r.tsv:2")]),
        (
            "r.jsonl",
            json.dumps({"text": "one\u2028two", "label": -1})
            + "\n"
            + json.dumps({"text": ACCENTS}),
            {},
            [("one\u2028two", -1, "r.jsonl:1"), (ACCENTS, None, "r.jsonl:2")],
        ),
        (
            "r.ndjson",
            '{"text": "good"}\r\n\n{"text": "bad"}\n',
            {},
            [("good", None, "r.ndjson:1"), ("bad", None, "r.ndjson:3")],
        ),
        (
            "r.parquet",
            {"id": [1, 2], "text": ["good", ACCENTS], "label": [1, 0]},
            {},
            [("good", 1, "r.parquet:1"), (ACCENTS, -1, "r.parquet:2")],
        ),
    ],
)
def test_what_is_read(tmp_path, name, content, options, documents):
    path = written(tmp_path / name, content)
    assert read_documents(path, **options) == [Document(*document) for document in documents]
    assert read_documents(str(path), **options) == read_documents(path, **options)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-32", "latin-1"])
def test_encodings(tmp_path, encoding):
    text = "déjà vu" if encoding == "latin-1" else ACCENTS
    path = written(tmp_path / "r.txt", text, encoding=encoding)
    named = {} if encoding == "utf-8-sig" else {"encoding": encoding}
    assert texts_of(read_documents(path, **named)) == [text]


@pytest.mark.parametrize(
    ("name", "content", "options", "message"),
    [
        *(
            (f"r.{ending}", b"", {}, "is empty; give one with text")
            for ending in ("txt", "csv", "jsonl", "parquet")
        ),
        (
            "r.txt",
            " \n\n",
            {},
            "r.txt: the text is empty; pass skip_empty=True to pass over empty texts",
        ),
        (
            "r.txt",
            b"\x00\x01\x02binary\x00",
            {},
            "is not text in the encoding 'utf-8'; it looks binary",
        ),
        (
            "r.txt",
            b"d\xe9j\xe0 vu",
            {},
            "pass its own encoding, e.g. encoding='latin-1' or encoding='utf-16'",
        ),
        (
            "r.txt",
            "good film".encode("utf-16"),
            {},
            "it looks like UTF-16, so pass encoding='utf-16'",
        ),
        ("r.txt", "good", {"encoding": "utf-9"}, "`encoding` (='utf-9') is not a text encoding"),
        ("r.txt", "good", {"limit": 0}, "`limit` (=0) must be a whole number, at least 1"),
        ("r.docx", "good", {}, "has an unknown extension; use one of .txt, .csv"),
        (
            "r.csv",
            "text,label\ngood,five\n",
            {},
            "r.csv:2: the label 'five' is not understood; use 1 and 0",
        ),
        (
            "r.csv",
            "a,b\nc,d\n",
            {},
            "has no column 'text'; its columns are 'a', 'b'; name one with `text_column`",
        ),
        ("r.csv", "text,label\na,1\nb, c,1\n", {}, "line 3 of the file"),
        ("r.jsonl", '{"text": "good"}\n{"text": \n', {}, "is not valid JSON: "),
        ("r.jsonl", "[" * 200_000, {}, "is not valid JSON: "),
        (
            "r.parquet",
            {"review": ["good"], "stars": [5]},
            {},
            "has no column 'text'; its columns are 'review'",
        ),
        ("r.parquet", "text,label\ngood,1\n", {}, "cannot be read as Parquet: "),
    ],
)
def test_what_is_refused(tmp_path, name, content, options, message):
    assert message in refusal(written(tmp_path / name, content), **options)


def test_a_folder_gives_its_files_by_name(tmp_path):
    assert "there is no file or folder" in refusal(tmp_path / "absent.txt")
    assert "holds no texts; put .txt" in refusal(tmp_path)
    for name in ("b", "a", "c"):
        written(tmp_path / f"{name}.txt", f"text {name}")
    written(tmp_path / "notes.md", "not a text")
    documents = read_documents(tmp_path)
    assert texts_of(documents) == ["text a", "text b", "text c"]
    assert [document.source for document in documents] == ["a.txt", "b.txt", "c.txt"]
    written(tmp_path / "b.csv", "text\ngood")
    assert "holds files of different kinds (.csv, .txt); give one file" in refusal(tmp_path)


class TestParquet:
    def test_a_file_of_many_batches_is_streamed(self, tmp_path):
        path = written(
            tmp_path / "r.parquet", {"text": [f"text {number}" for number in range(3000)]}
        )
        stream = stream_documents(path)
        assert texts_of(islice(stream, 2)) == ["text 0", "text 1"]
        assert texts_of(stream)[-1] == "text 2999"

    def test_class_names_that_datasets_wrote_are_heeded(self, tmp_path):
        label = datasets.ClassLabel(names=["neg", "pos"])
        features = datasets.Features({"text": datasets.Value("string"), "label": label})
        data = datasets.Dataset.from_dict(
            {"text": ["a", "b", "c"], "label": [0, 1, -1]}, features=features
        )
        pq.write_table(data.data.table, tmp_path / "r.parquet")
        # -1 is `datasets`' way to say that there is no label; without the names it would read as
        # negative.
        assert [document.label for document in read_documents(tmp_path / "r.parquet")] == [
            -1,
            1,
            None,
        ]

    @pytest.mark.parametrize(
        "damage", [lambda content: content[:-20], lambda content: content[:50] + bytes(9000)]
    )
    def test_a_damaged_file(self, tmp_path, damage):
        path = written(tmp_path / "r.parquet", {"text": [f"text {n}" for n in range(2000)]})
        path.write_bytes(damage(path.read_bytes()))
        assert "cannot be read as Parquet: " in refusal(path)


class TestAclImdb:
    @pytest.fixture
    def reviews(self, tmp_path):
        folder = tmp_path / "aclImdb"
        for split, count in (("train", 3), ("test", 1)):
            for name in ("pos", "neg"):
                (folder / split / name).mkdir(parents=True)
                for number in range(count):
                    path = folder / split / name / f"{number}_9.txt"
                    path.write_text(f"{split} {name} {number}<br />end", encoding="utf-8")
        (folder / "train" / "unsup").mkdir()
        (folder / "train" / "unsup" / "0_0.txt").write_text("unlabelled", encoding="utf-8")
        (folder / "imdb.vocab").write_text("the", encoding="utf-8")
        return folder

    def test_the_training_split_in_turn(self, reviews):
        documents = read_documents(reviews)
        assert [document.label for document in documents] == [1, -1, 1, -1, 1, -1]
        assert documents[0] == Document("train pos 0 end", 1, "aclImdb/train/pos/0_9")
        assert documents[3] == Document("train neg 1 end", -1, "aclImdb/train/neg/1_9")

    def test_what_is_not_there(self, reviews):
        assert "has no split 'dev'; its splits are test, train" in refusal(reviews, split="dev")
        (reviews / "test" / "neg" / "0_9.txt").unlink()
        assert "holds no .txt file; give a folder with both pos and neg" in refusal(
            reviews, split="test"
        )


def test_limits_and_samples(tmp_path):
    path = written(tmp_path / "r.parquet", {"text": [f"text {number}" for number in range(100)]})
    assert texts_of(read_documents(path, limit=2)) == ["text 0", "text 1"]
    assert len(read_documents(path, limit=500)) == 100
    first, again, other = (
        texts_of(read_documents(path, limit=10, sample_seed=seed)) for seed in (1, 1, 2)
    )
    assert first == again != other
    assert len(set(first)) == 10


def test_a_file_without_a_header_is_noticed(tmp_path):
    path = written(
        tmp_path / "r.csv", "The lift is not working today,0\nTurn it on right now please,1\n"
    )
    assert (
        "reads as data, not as the name of a column; put a line such as text,label before it"
        in refusal(path)
    )
    with pytest.raises(InputError, match="reads as data"):
        text_column_of(path)
    named = read_documents(path, text_column="The lift is not working today", labels=False)
    assert [each.text for each in named] == ["Turn it on right now please"]


@pytest.mark.parametrize(
    ("label", "values"),
    [
        (1, (1, True, 1.0, "1", "+1", "1.0", "pos", "Positive", " POS ")),
        (-1, (0, False, 0.0, "0", "0.0", "neg", "Negative")),
        (-1, (-1, -1.0, "-1")),
        (None, (None, "", "  ", math.nan)),
    ],
)
def test_labels_that_are_understood(label, values):
    assert [LabelReader().read(value, "row 1") for value in values] == [label] * len(values)


@pytest.mark.parametrize("value", [2, 0.5, "maybe", "3", [1], b"pos", math.inf])
def test_not_understood(value):
    with pytest.raises(InputError) as caught:
        LabelReader().read(value, "reviews.csv:7")
    assert str(caught.value) == (
        f"reviews.csv:7: the label {value!r} is not understood; use 1 and 0, +1 and -1, 'pos' and "
        "'neg', "
        "'positive' and 'negative', or nothing where it is unknown, or pass labels=False to read "
        "none"
    )


def test_zero_and_minus_one_together_are_ambiguous():
    reader = LabelReader()
    assert [reader.read(value, "row") for value in (1, 0, 1)] == [1, -1, 1]
    with pytest.raises(InputError, match="row 9: the labels 0 and -1 both occur"):
        reader.read(-1, "row 9")


def test_class_names_decide_what_a_number_means():
    reader = LabelReader(["neg", "pos"])
    assert [reader.read(value, "row") for value in (0, 1, -1, 0)] == [-1, 1, None, -1]
    swapped = LabelReader(["positive", "negative"])
    assert [swapped.read(value, "row") for value in (0, 1)] == [1, -1]
    with pytest.raises(InputError, match="row 2: the label 2 is not one of the 2 classes"):
        reader.read(2, "row 2")
    with pytest.raises(InputError, match="row 3: the label 'World' is not understood"):
        LabelReader(["World", "Sports"]).read(0, "row 3")


def data(texts, labels, names=("neg", "pos")):
    features = datasets.Features(
        {
            "text": datasets.Value("string"),
            "label": datasets.ClassLabel(names=list(names)),
            "extra": datasets.Value("int64"),
        }
    )
    columns = {"text": texts, "label": labels, "extra": list(range(len(texts)))}
    return datasets.Dataset.from_dict(columns, features=features)


@pytest.fixture
def hub(monkeypatch):
    """A hub with one data set; what it is asked for is written down."""
    asked = []

    def load_dataset(name, configuration=None, *, split):
        asked.append((name, configuration, split, datasets.config.HF_HUB_OFFLINE))
        if split != "train":
            raise ValueError(f"Unknown split \"{split}\". Should be one of ['train'].\nmore")
        return data(["bad<br />film", "good film", "unlabelled"], [0, 1, -1])

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    monkeypatch.setattr("wordsens.text.hub.ask_hub", lambda name, kind: HubAnswer.FOUND)
    return asked


class TestSaved:
    def test_one_data_set(self, tmp_path):
        data(["bad", "good"], [0, 1]).save_to_disk(tmp_path / "mine")
        assert read_documents(tmp_path / "mine") == [
            Document("bad", -1, "mine:1"),
            Document("good", 1, "mine:2"),
        ]
        with pytest.raises(InputError, match=r"`split` \(='test'\) cannot be chosen"):
            read_documents(tmp_path / "mine", split="test")

    def test_splits(self, tmp_path):
        splits = datasets.DatasetDict(train=data(["good"], [1]), test=data(["bad"], [0]))
        splits.save_to_disk(tmp_path / "mine")
        assert read_documents(tmp_path / "mine") == [Document("good", 1, "mine/train:1")]
        assert read_documents(tmp_path / "mine", split="test") == [
            Document("bad", -1, "mine/test:1")
        ]
        with pytest.raises(
            InputError, match="has no split 'dev'; its splits are test, train; name one with split"
        ):
            read_documents(tmp_path / "mine", split="dev")

    def test_classes_that_are_no_sentiments(self, tmp_path):
        data(["x"], [0], names=("World", "Sports")).save_to_disk(tmp_path / "news")
        with pytest.raises(InputError, match="news:1: the label 'World' is not understood"):
            read_documents(tmp_path / "news")
        assert read_documents(tmp_path / "news", labels=False) == [Document("x", None, "news:1")]


def test_imdb(hub):
    assert read_documents("imdb") == [
        Document("bad film", -1, "hub:stanfordnlp/imdb/train:1"),
        Document("good film", 1, "hub:stanfordnlp/imdb/train:2"),
        Document("unlabelled", None, "hub:stanfordnlp/imdb/train:3"),
    ]
    assert hub == [("stanfordnlp/imdb", None, "train", False)]


def test_without_a_network_the_cache_is_used_at_once(hub, monkeypatch):
    monkeypatch.setattr("wordsens.text.hub.ask_hub", lambda name, kind: HubAnswer.UNREACHABLE)
    assert len(read_documents("imdb")) == 3
    assert hub == [("stanfordnlp/imdb", None, "train", True)]
    assert datasets.config.HF_HUB_OFFLINE is False


@pytest.mark.parametrize("kind", ["model", "dataset"])
def test_answers_of_the_hub(kind, monkeypatch):
    response = httpx2.Response(404, request=httpx2.Request("GET", "x:"))
    missing = RepositoryNotFoundError("not found", response=response)
    for effect, answer in (
        (None, HubAnswer.FOUND),
        (missing, HubAnswer.MISSING),
        (ConnectionError, HubAnswer.UNREACHABLE),
    ):
        info = Mock(side_effect=effect)
        monkeypatch.setattr(HfApi, f"{kind}_info", info)
        assert ask_hub("name", kind) is answer
        info.assert_called_once_with("name", timeout=10)
