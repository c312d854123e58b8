"""Reading documents from files and folders; every way in which they can be wrong."""

import csv
import json
import sys
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from wordsens.errors import InputError, MissingExtraError
from wordsens.text import Document, read_documents, stream_documents

ACCENTS = "Café, ça déçoit 🎬"


def refusal(source, **options):
    with pytest.raises(InputError) as caught:
        read_documents(source, **options)
    message = str(caught.value)
    assert "\n" not in message
    return message


def texts_of(documents):
    return [document.text for document in documents]


def write_parquet(path, **columns):
    pq.write_table(pa.table(columns), path)
    return path


class TestTextFiles:
    def test_one_file_is_one_text(self, tmp_path):
        path = tmp_path / "review.txt"
        path.write_text("A good film.\n\nVery good.", encoding="utf-8")
        assert read_documents(path) == [Document("A good film.\n\nVery good.", None, "review.txt")]
        assert read_documents(str(path)) == read_documents(path)

    @pytest.mark.parametrize("written", ["utf-8", "utf-8-sig"])
    def test_utf_8_with_and_without_a_byte_order_mark(self, tmp_path, written):
        path = tmp_path / "review.txt"
        path.write_text(ACCENTS, encoding=written)
        assert texts_of(read_documents(path)) == [ACCENTS]

    @pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-32"])
    def test_other_encodings_on_request(self, tmp_path, encoding):
        path = tmp_path / "review.txt"
        path.write_text(ACCENTS, encoding=encoding)
        assert texts_of(read_documents(path, encoding=encoding)) == [ACCENTS]

    def test_a_folder_gives_its_files_by_name(self, tmp_path):
        for name in ("b", "a", "c"):
            (tmp_path / f"{name}.txt").write_text(f"text {name}", encoding="utf-8")
        (tmp_path / "notes.md").write_text("not a text", encoding="utf-8")
        documents = read_documents(tmp_path)
        assert texts_of(documents) == ["text a", "text b", "text c"]
        assert [document.source for document in documents] == ["a.txt", "b.txt", "c.txt"]

    def test_a_missing_file(self, tmp_path):
        path = tmp_path / "absent.txt"
        assert refusal(path) == (
            f"there is no file or folder {str(path)!r}; give a path, 'shipped', 'imdb' or 'hub:NAME'"
        )

    def test_an_empty_file(self, tmp_path):
        for extension in ("txt", "csv", "jsonl", "parquet"):
            path = tmp_path / f"empty.{extension}"
            path.touch()
            assert refusal(path) == f"the file {str(path)!r} is empty; give one with text"

    def test_a_blank_file(self, tmp_path):
        path = tmp_path / "blank.txt"
        path.write_text(" \n\n", encoding="utf-8")
        assert refusal(path) == "blank.txt: the text is empty; pass skip_empty=True to pass over empty texts"
        assert refusal(path, skip_empty=True) == f"{str(path)!r} holds no text; give a source with at least one"

    def test_a_binary_file(self, tmp_path):
        path = tmp_path / "picture.txt"
        path.write_bytes(b"\x00\x01\x02binary\x00")
        assert refusal(path) == (
            f"the file {str(path)!r} is not text in the encoding 'utf-8'; it looks binary; give a text file, or "
            "pass its encoding, e.g. encoding='utf-16'"
        )

    def test_another_encoding(self, tmp_path):
        path = tmp_path / "latin.txt"
        path.write_bytes(b"d\xe9j\xe0 vu")
        assert refusal(path) == (
            f"the file {str(path)!r} is not text in the encoding 'utf-8'; pass its own encoding, e.g. "
            "encoding='latin-1' or encoding='utf-16'"
        )
        assert texts_of(read_documents(path, encoding="latin-1")) == ["déjà vu"]

    def test_utf_16_is_recognised(self, tmp_path):
        path = tmp_path / "wide.txt"
        path.write_text("good film", encoding="utf-16")
        assert refusal(path) == (
            f"the file {str(path)!r} is not text in the encoding 'utf-8'; it looks like UTF-16, so pass "
            "encoding='utf-16'"
        )

    @pytest.mark.parametrize("encoding", ["utf-9", "rot13"])
    def test_an_unknown_encoding(self, tmp_path, encoding):
        path = tmp_path / "review.txt"
        path.write_text("good", encoding="utf-8")
        assert refusal(path, encoding=encoding) == (
            f"`encoding` (={encoding!r}) is not a text encoding; use e.g. 'utf-8', 'latin-1' or 'utf-16'"
        )

    def test_an_unknown_extension(self, tmp_path):
        path = tmp_path / "review.docx"
        path.write_text("good", encoding="utf-8")
        assert refusal(path) == (
            f"the file {str(path)!r} has an unknown extension; use one of .txt, .csv, .tsv, .jsonl, .ndjson, .parquet"
        )

    def test_a_folder_without_texts(self, tmp_path):
        assert refusal(tmp_path) == (
            f"the folder {str(tmp_path)!r} holds no texts; put .txt, .csv, .tsv, .jsonl, .ndjson, .parquet files in "
            "it, or pos and neg folders of .txt files"
        )

    def test_a_folder_of_different_kinds(self, tmp_path):
        (tmp_path / "a.txt").write_text("good", encoding="utf-8")
        (tmp_path / "b.csv").write_text("text\ngood", encoding="utf-8")
        assert refusal(tmp_path) == (
            f"the folder {str(tmp_path)!r} holds files of different kinds (.csv, .txt); give one file"
        )

    def test_a_file_has_no_splits(self, tmp_path):
        path = tmp_path / "review.txt"
        path.write_text("good", encoding="utf-8")
        assert refusal(path, split="test") == (
            f"`split` (='test') cannot be chosen: the file {str(path)!r} has no splits; leave split out"
        )


class TestHtmlBreaks:
    def test_breaks_become_spaces_unless_told_otherwise(self, tmp_path):
        path = tmp_path / "review.txt"
        path.write_text("Good.<br /><br />Very<BR>good<br/>film", encoding="utf-8")
        assert texts_of(read_documents(path)) == ["Good.  Very good film"]
        kept = read_documents(path, html_breaks_to_spaces=False)
        assert texts_of(kept) == ["Good.<br /><br />Very<BR>good<br/>film"]

    def test_other_tags_are_left_alone(self, tmp_path):
        path = tmp_path / "review.txt"
        path.write_text("a <b>good</b> <brave> film", encoding="utf-8")
        assert texts_of(read_documents(path)) == ["a <b>good</b> <brave> film"]


class TestCsv:
    def write(self, path, *rows, encoding="utf-8", **options):
        with path.open("w", encoding=encoding, newline="") as file:
            csv.writer(file, **options).writerows(rows)
        return path

    def test_texts_labels_and_sources(self, tmp_path):
        path = self.write(
            tmp_path / "r.csv", ["id", "text", "label"], [1, 'a "good", film\nyes', "pos"], [2, ACCENTS, 0]
        )
        assert read_documents(path) == [
            Document('a "good", film\nyes', 1, "r.csv:1"),
            Document(ACCENTS, -1, "r.csv:2"),
        ]

    def test_a_byte_order_mark_is_no_part_of_the_first_column(self, tmp_path):
        path = self.write(tmp_path / "r.csv", ["text"], ["good"], encoding="utf-8-sig")
        assert texts_of(read_documents(path)) == ["good"]

    def test_other_columns_on_request(self, tmp_path):
        path = self.write(tmp_path / "r.csv", ["review", "sentiment"], ["good", "positive"])
        assert read_documents(path, text_column="review", label_column="sentiment") == [Document("good", 1, "r.csv:1")]
        assert read_documents(path, text_column="review") == [Document("good", None, "r.csv:1")]

    def test_tabs(self, tmp_path):
        path = self.write(tmp_path / "r.tsv", ["text", "label"], ["good, very", 1], delimiter="\t")
        assert read_documents(path) == [Document("good, very", 1, "r.tsv:1")]

    def test_no_labels_on_request(self, tmp_path):
        path = self.write(tmp_path / "r.csv", ["text", "label"], ["good", "five stars"])
        assert read_documents(path, labels=False) == [Document("good", None, "r.csv:1")]
        assert refusal(path).startswith("r.csv:1: the label 'five stars' is not understood; use 1 and 0")

    def test_without_the_texts_column(self, tmp_path):
        path = self.write(tmp_path / "r.csv", ["a good film", "1"], ["a bad film", "0"])
        assert refusal(path) == (
            f"the file {str(path)!r} has no column 'text'; its columns are 'a good film', '1'; name one with "
            "text_column"
        )

    def test_without_a_label_column_that_was_named(self, tmp_path):
        path = self.write(tmp_path / "r.csv", ["text"], ["good"])
        assert refusal(path, label_column="label") == (
            f"the file {str(path)!r} has no column 'label'; its columns are 'text'; name one with label_column"
        )

    def test_a_header_and_nothing_else(self, tmp_path):
        path = self.write(tmp_path / "r.csv", ["text", "label"])
        assert refusal(path) == f"{str(path)!r} holds no text; give a source with at least one"

    def test_an_unquoted_comma(self, tmp_path):
        path = tmp_path / "r.csv"
        path.write_text("text,label\ngood,1\ngood, very,1\n", encoding="utf-8")
        assert refusal(path) == (
            f"line 3 of the file {str(path)!r} has 3 fields, but the first line names 2 columns; put quotes around "
            "texts with ','"
        )

    def test_an_unclosed_quote(self, tmp_path):
        path = tmp_path / "r.csv"
        path.write_text('text,label\n"good,1\nbad,0\n', encoding="utf-8")
        assert refusal(path) == (
            f"line 3 of the file {str(path)!r} is not valid CSV: unexpected end of data; mend it, or save the texts "
            "as Parquet or JSON lines"
        )

    def test_a_field_that_is_too_long_for_csv(self, tmp_path):
        path = self.write(tmp_path / "r.csv", ["text"], ["x" * 200_000])
        assert "is not valid CSV: field larger than field limit (131072)" in refusal(path)

    def test_binary_content(self, tmp_path):
        path = tmp_path / "r.csv"
        path.write_bytes(b"text\n\x00\x01\n")
        assert "it looks binary" in refusal(path)

    def test_empty_texts(self, tmp_path):
        path = self.write(tmp_path / "r.csv", ["text", "label"], ["good", 1], [" ", 0], ["bad", 0])
        assert refusal(path) == "r.csv:2: the text is empty; pass skip_empty=True to pass over empty texts"
        assert [document.source for document in read_documents(path, skip_empty=True)] == ["r.csv:1", "r.csv:3"]


class TestJsonLines:
    def write(self, path, *records):
        path.write_text("\n".join(json.dumps(record) for record in records), encoding="utf-8")
        return path

    def test_texts_labels_and_sources(self, tmp_path):
        path = self.write(tmp_path / "r.jsonl", {"text": "one\u2028two", "label": -1}, {"text": ACCENTS})
        assert read_documents(path) == [Document("one\u2028two", -1, "r.jsonl:1"), Document(ACCENTS, None, "r.jsonl:2")]

    def test_blank_lines_are_passed_over(self, tmp_path):
        path = tmp_path / "r.ndjson"
        path.write_text('{"text": "good"}\r\n\n{"text": "bad"}\n', encoding="utf-8")
        assert [document.source for document in read_documents(path)] == ["r.ndjson:1", "r.ndjson:3"]

    def test_a_line_that_is_no_json(self, tmp_path):
        path = tmp_path / "r.jsonl"
        path.write_text('{"text": "good"}\n{"text": \n', encoding="utf-8")
        assert refusal(path).startswith(f"line 2 of the file {str(path)!r} is not valid JSON: ")

    def test_a_line_nested_too_deep(self, tmp_path):
        path = tmp_path / "r.jsonl"
        path.write_text("[" * 200_000, encoding="utf-8")
        assert refusal(path).startswith(f"line 1 of the file {str(path)!r} is not valid JSON: ")

    def test_a_line_that_is_no_object(self, tmp_path):
        path = self.write(tmp_path / "r.jsonl", ["good"])
        assert refusal(path) == (
            f'line 1 of the file {str(path)!r} is not a JSON object; write one object a line, like {{"text": ...}}'
        )

    def test_without_the_texts_key(self, tmp_path):
        path = self.write(tmp_path / "r.jsonl", {"text": "good"}, {"review": "bad"})
        assert refusal(path) == (
            f"line 2 of the file {str(path)!r} has no column 'text'; its columns are 'review'; name one with "
            "text_column"
        )

    def test_a_text_that_is_no_string(self, tmp_path):
        path = self.write(tmp_path / "r.jsonl", {"text": 5})
        assert refusal(path) == (
            "r.jsonl:1: the text is int, not a string; name the column of the texts with text_column"
        )


class TestParquet:
    def test_texts_labels_and_sources(self, tmp_path):
        path = write_parquet(tmp_path / "r.parquet", id=[1, 2], text=["good", ACCENTS], label=[1, 0])
        assert read_documents(path) == [Document("good", 1, "r.parquet:1"), Document(ACCENTS, -1, "r.parquet:2")]

    @pytest.mark.parametrize("kind", [pa.large_string(), pa.dictionary(pa.int32(), pa.string()), pa.string_view()])
    def test_every_kind_of_string(self, tmp_path, kind):
        column = pa.array(["good", "bad", "good"]).cast(kind)
        assert texts_of(read_documents(write_parquet(tmp_path / "r.parquet", text=column))) == ["good", "bad", "good"]

    def test_a_file_of_many_batches_is_streamed(self, tmp_path):
        path = write_parquet(tmp_path / "r.parquet", text=[f"text {number}" for number in range(3000)])
        stream = stream_documents(path)
        assert texts_of(islice(stream, 2)) == ["text 0", "text 1"]
        assert texts_of(stream)[-1] == "text 2999"
        assert read_documents(path)[2500] == Document("text 2500", None, "r.parquet:2501")

    def test_a_folder_of_shards(self, tmp_path):
        for number in range(2):
            write_parquet(tmp_path / f"train-{number}.parquet", text=[f"text {number}"], label=[number])
        assert read_documents(tmp_path) == [
            Document("text 0", -1, "train-0.parquet:1"),
            Document("text 1", 1, "train-1.parquet:1"),
        ]

    def test_class_names_that_datasets_wrote_are_heeded(self, tmp_path):
        import datasets

        features = datasets.Features(
            {"text": datasets.Value("string"), "label": datasets.ClassLabel(names=["neg", "pos"])}
        )
        data = datasets.Dataset.from_dict({"text": ["a", "b", "c"], "label": [0, 1, -1]}, features=features)
        path = tmp_path / "r.parquet"
        pq.write_table(data.data.table, path)
        # -1 is `datasets`' way to say that there is no label; without the names it would read as negative.
        assert [document.label for document in read_documents(path)] == [-1, 1, None]

    def test_without_the_texts_column(self, tmp_path):
        path = write_parquet(tmp_path / "r.parquet", review=["good"], stars=[5])
        assert refusal(path) == (
            f"the file {str(path)!r} has no column 'text'; its columns are 'review', 'stars'; name one with text_column"
        )

    def test_without_a_label_column_that_was_named(self, tmp_path):
        path = write_parquet(tmp_path / "r.parquet", text=["good"])
        assert refusal(path, label_column="stars") == (
            f"the file {str(path)!r} has no column 'stars'; its columns are 'text'; name one with label_column"
        )

    def test_a_column_that_is_no_text(self, tmp_path):
        path = write_parquet(tmp_path / "r.parquet", text=[1.5])
        assert refusal(path) == (
            "r.parquet:1: the text is float, not a string; name the column of the texts with text_column"
        )

    def test_missing_texts(self, tmp_path):
        path = write_parquet(tmp_path / "r.parquet", text=["good", None])
        assert refusal(path) == "r.parquet:2: the text is empty; pass skip_empty=True to pass over empty texts"
        assert texts_of(read_documents(path, skip_empty=True)) == ["good"]

    def test_a_file_that_is_no_parquet(self, tmp_path):
        path = tmp_path / "r.parquet"
        path.write_text("text,label\ngood,1\n", encoding="utf-8")
        message = refusal(path)
        assert message.startswith(f"the file {str(path)!r} cannot be read as Parquet: ")
        assert message.endswith("; it may be damaged")

    def test_a_file_that_is_cut_off(self, tmp_path):
        path = write_parquet(tmp_path / "r.parquet", text=["good"] * 100)
        path.write_bytes(path.read_bytes()[:-20])
        assert refusal(path).startswith(f"the file {str(path)!r} cannot be read as Parquet: ")

    def test_a_file_with_damaged_pages(self, tmp_path):
        path = tmp_path / "r.parquet"
        pq.write_table(pa.table({"text": [f"text {n}" for n in range(2000)]}), path, compression="zstd")
        content = bytearray(path.read_bytes())
        content[50:2000] = bytes(1950)
        path.write_bytes(bytes(content))
        assert refusal(path).startswith(f"the file {str(path)!r} cannot be read as Parquet: ")

    def test_without_pyarrow(self, tmp_path, monkeypatch):
        path = write_parquet(tmp_path / "r.parquet", text=["good"])
        monkeypatch.setitem(sys.modules, "pyarrow", None)
        with pytest.raises(MissingExtraError) as caught:
            read_documents(path)
        assert str(caught.value) == (
            "reading Parquet needs the package 'pyarrow', which is not installed; "
            "install it with: pip install 'wordsens[records]'"
        )


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

    def test_another_split(self, reviews):
        assert texts_of(read_documents(reviews, split="test")) == ["test pos 0 end", "test neg 0 end"]

    def test_a_folder_that_holds_the_classes_itself(self, reviews):
        documents = read_documents(reviews / "test")
        assert [document.source for document in documents] == ["test/pos/0_9", "test/neg/0_9"]

    def test_classes_of_unequal_size(self, reviews):
        (reviews / "train" / "neg" / "2_9.txt").unlink()
        assert [document.label for document in read_documents(reviews)] == [1, -1, 1, -1, 1]

    def test_a_split_that_is_not_there(self, reviews):
        assert refusal(reviews, split="dev") == (
            f"the folder {str(reviews)!r} has no split 'dev'; its splits are test, train; name one with split"
        )

    def test_a_class_without_reviews(self, reviews):
        (reviews / "test" / "neg" / "0_9.txt").unlink()
        missing = str(reviews / "test" / "neg")
        assert refusal(reviews, split="test") == (
            f"the folder {missing!r} holds no .txt file; give a folder with both pos and neg"
        )


class TestLimitAndSample:
    @pytest.fixture
    def hundred(self, tmp_path):
        return write_parquet(tmp_path / "r.parquet", text=[f"text {number}" for number in range(100)])

    def test_the_first_few(self, hundred):
        assert texts_of(read_documents(hundred, limit=2)) == ["text 0", "text 1"]
        assert len(read_documents(hundred, limit=500)) == 100

    def test_a_limit_must_be_positive(self, hundred):
        assert refusal(hundred, limit=0) == "`limit` (=0) must be a whole number, at least 1"

    def test_a_sample_is_fixed_by_its_seed(self, hundred):
        first = texts_of(read_documents(hundred, limit=10, sample_seed=1))
        assert first == texts_of(read_documents(hundred, limit=10, sample_seed=1))
        assert first != texts_of(read_documents(hundred, limit=10, sample_seed=2))
        assert len(set(first)) == 10

    def test_without_a_limit_all_are_shuffled(self, hundred):
        shuffled = texts_of(read_documents(hundred, sample_seed=3))
        assert sorted(shuffled) == sorted(texts_of(read_documents(hundred)))
        assert shuffled != texts_of(read_documents(hundred))

    def test_every_document_is_as_likely_as_any_other(self, tmp_path):
        path = tmp_path / "r.csv"
        path.write_text("text\n" + "\n".join(str(number) for number in range(10)), encoding="utf-8")
        counts = [0] * 10
        draws = 1000
        for seed in range(draws):
            for document in read_documents(path, limit=3, sample_seed=seed):
                counts[int(document.text)] += 1
        # Binomial with mean 300 and standard deviation 14.5: five of them either way.
        assert max(abs(count - 300) for count in counts) < 73


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="Linux tells which files are open")
@pytest.mark.parametrize(
    ("name", "content"),
    [("r.csv", "text,label\ngood,1\ngood, very,1\nbad,0\n"), ("r.jsonl", '{"text": "good"}\n[]\n{"text": "bad"}\n')],
)
def test_a_file_that_is_refused_is_closed(tmp_path, name, content):
    """At once, and not when its error is collected."""
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        read_documents(path)
    opened = list(Path("/proc/self/fd").iterdir())
    assert not [link for link in opened if link.exists() and link.resolve() == path.resolve()]
    assert "line" in str(caught.value)
