"""Tables as spreadsheets and other tools save them hold the same rows; what is wrong is located."""

import csv
import io
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from wordsens.errors import InputError
from wordsens.evaluation.guard.bulk import guard_pairs
from wordsens.text import read_documents
from wordsens.text.readers import text_column_of
from wordsens.text.tables import table_rows, write_rows

ROWS = [
    ("The lift works.", "pos"),
    ('It says "no", twice;\nthen it stops.', "neg"),
    ("Ça va, merci", "pos"),
]
HEADER = ("text", "label")


def csv_of(rows, header=HEADER, delimiter=",", line="\r\n"):
    out = io.StringIO()
    writer = csv.writer(out, delimiter=delimiter, lineterminator=line)
    writer.writerows([header, *rows] if header else rows)
    return out.getvalue()


def objects(rows, header=HEADER):
    return [dict(zip(header, row, strict=True)) for row in rows]


SAVED = {
    "plain": csv_of(ROWS),
    "byte order mark": "\ufeff" + csv_of(ROWS),
    "sep=;": "sep=;\r\n" + csv_of(ROWS, delimiter=";"),
    "sep= and byte order mark": "\ufeffsep=;\r\n" + csv_of(ROWS, delimiter=";"),
    "sep= quoted": '"SEP=|"\n' + csv_of(ROWS, delimiter="|"),
    **{sign: csv_of(ROWS, delimiter=sign) for sign in ";|\t"},
    "sep=,": "sep=,\n" + csv_of(ROWS),
    "names in capitals": csv_of(ROWS, ("TEXT", "Label")),
    "names with blanks": csv_of(ROWS, (" Text ", "label\t")),
    "empty columns at the end": csv_of(
        [(*row, "", " ", "") for row in ROWS], (*HEADER, "", "", "")
    ),
    "empty fields at the end": csv_of([ROWS[0], *((*row, "", "") for row in ROWS[1:])]),
    "the same with ;": csv_of([ROWS[0], *((*row, "", "") for row in ROWS[1:])], delimiter=";"),
    "empty rows": csv_of([("", ""), ROWS[0], (" ", ""), *ROWS[1:], ("", ""), ()]),
    "empty rows first": "\n,\n" + csv_of(ROWS),
    "pandas' index": csv_of([(n, *row) for n, row in enumerate(ROWS)], ("", *HEADER)),
}


@pytest.mark.parametrize("saved", SAVED)
def test_a_csv_file_holds_the_same_rows_however_it_was_saved(tmp_path, saved):
    path = tmp_path / "saved.csv"
    path.write_text(SAVED[saved], encoding="utf-8", newline="")
    documents = read_documents(path)
    assert [each.text for each in documents] == [text for text, _ in ROWS]
    assert [each.label for each in documents] == [1, -1, 1]
    assert read_documents(path, text_column=text_column_of(path)) == documents


@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize("name", ["array.json", "array.jsonl"])
def test_a_json_array_holds_the_rows_of_its_objects(tmp_path, name, indent):
    path = tmp_path / name
    path.write_text("\n" + json.dumps(objects(ROWS, ("Text", " label")), indent=indent))
    assert [each.text for each in read_documents(path)] == [text for text, _ in ROWS]
    path.write_text('[{"text": "a"}, 3]')
    with pytest.raises(InputError, match=r"entry 2 of the file .* is not a JSON object"):
        read_documents(path)


@pytest.mark.parametrize("ending", ["csv", "tsv", "json", "jsonl", "ndjson", "parquet"])
def test_written_rows_are_read_again(tmp_path, ending):
    path = tmp_path / f"rows.{ending}"
    write_rows(objects(ROWS), path, "out")
    assert [fields for _, fields in table_rows(path)] == objects(ROWS)


def test_a_json_file_beside_the_texts_of_a_folder_is_none_of_them(tmp_path):
    (tmp_path / "a.txt").write_text("The lift works.")
    (tmp_path / "about.json").write_text('{"source": "letters"}')
    assert [each.text for each in read_documents(tmp_path)] == ["The lift works."]


def test_the_exact_name_wins_and_two_alike_are_not_chosen_from(tmp_path):
    path = tmp_path / "names.csv"
    path.write_text("Text,text,TEXT\na,b,c\n")
    assert [each.text for each in read_documents(path)] == ["b"]
    path.write_text("Text,TEXT\na,b\n")
    with pytest.raises(InputError, match="no column 'text'; its columns are 'Text', 'TEXT'"):
        read_documents(path)


@pytest.mark.parametrize("ending", ["csv", "jsonl", "json", "parquet"])
def test_a_missing_column_names_file_column_and_what_stands_there(tmp_path, ending):
    path = tmp_path / f"names.{ending}"
    write_rows([{"body": "The lift works.", "stars": "5"}], path, "out")
    for options, name in [({}, "text"), ({"text_column": "body", "label_column": "y"}, "y")]:
        with pytest.raises(InputError) as caught:
            read_documents(path, **options)
        assert all(
            each in str(caught.value) for each in (path.name, f"'{name}'", "'body', 'stars'")
        )


@pytest.mark.parametrize("line", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("delimiter", [",", ";"])
def test_an_unclosed_quote_is_located_where_it_opens(tmp_path, line, delimiter):
    """Every closing quote of the file is taken out in turn; its field's first line is known."""
    fields = [("text", "label"), ("a b", "1"), ('say ""x""', "0"), (f"two{line}lines", "1")] * 2
    path = tmp_path / "open.csv"
    for broken in range(2 * len(fields)):
        content, wanted = "", 0
        for number, field in enumerate(field for record in fields for field in record):
            if number == broken:
                wanted = content.count(line) + 1
            content += f'"{field}' + ("" if number == broken else '"')
            content += line if number % 2 else delimiter
        path.write_text(content, encoding="utf-8", newline="")
        with pytest.raises(InputError, match=rf"^line {wanted} of .* opens a quote that does not"):
            list(table_rows(path))


@pytest.mark.parametrize(
    ("content", "place"),
    [
        ("text,label\na,1\nb, c,1\n", "line 3 of"),
        ("text,label\na\n", "line 2 of"),
        ("text,label,\na,1,\nb,1,x\n", "line 3 of"),
        ('text,label\n\n"a\nb",1,2\n', "lines 3 to 4 of"),
        ("sep=;\ntext;label\na;1;2\n", "line 3 of"),
    ],
)
def test_a_row_with_too_few_or_too_many_fields_is_located(tmp_path, content, place):
    path = tmp_path / "ragged.csv"
    path.write_text(content)
    with pytest.raises(InputError, match=f"^{place} .*fields, but the first line names"):
        list(table_rows(path))


def test_empty_rows_of_parquet_and_json_are_skipped(tmp_path):
    rows = [{"first": "a", "second": "b"}, {"first": None, "second": " "}]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "rows.parquet")
    (tmp_path / "rows.json").write_text(json.dumps(rows))
    for name in ("rows.parquet", "rows.json"):
        assert [fields for _, fields in table_rows(tmp_path / name)] == rows[:1]
    # Of a row whose text alone is read, nobody knows what else it holds.
    with pytest.raises(InputError, match=r"rows.parquet:2: the text is empty"):
        read_documents(tmp_path / "rows.parquet", text_column="first")


@pytest.mark.parametrize("key", ["first", "second", "note"])
@pytest.mark.parametrize("form", ["lines", "array", "nested", "csv"])
def test_a_key_that_is_given_twice_is_refused_by_name(tmp_path, form, key):
    members = '"first": "a b", "second": "a b", "note": "x"'
    line = f'{{{members}, "{key}": "a c"}}'
    path = tmp_path / f"twice.{'csv' if form == 'csv' else 'jsonl'}"
    path.write_text(
        {
            "lines": f"{{{members}}}\n{line}\n",
            "array": f"[{{{members}}}, {line}]",
            "nested": f'{{{members}, "more": {line}}}\n',
            "csv": f"first,second,note,{key}\na b,a b,x,a c\n",
        }[form]
    )
    with pytest.raises(InputError, match=f"'{key}'"):
        guard_pairs(path)
