"""The file that is written: whole, escaped, in the format of its ending; and `wordsens report`."""

import re

import pytest

from tests.report.conftest import write_records
from wordsens.cli import main


@pytest.fixture
def small(tmp_path, make_record):
    return write_records(
        tmp_path / "run",
        [make_record(), make_record(n=9, status="failed", value=None, error="<b>&amp;")],
    )


def report(capsys, *arguments):
    capsys.readouterr()
    code = main(["report", *map(str, arguments)])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_one_record_is_a_report_beside_its_folder(small, capsys):
    code, out, err = report(capsys, small)
    assert (code, err) == (0, "")
    assert out.endswith(f"report  {small / 'report.html'}\n")
    page = (small / "report.html").read_text(encoding="utf-8")
    assert "&lt;b&gt;&amp;amp;" in page
    assert "<b>&amp;" not in page


def test_a_given_text_alone_is_a_report_without_a_table_of_series(tmp_path, make_record, capsys):
    folder = write_records(tmp_path / "run", [make_record(text="given")])
    assert report(capsys, folder, "--format", "md")[0] == 0
    assert "exponent" not in (folder / "report.md").read_text(encoding="utf-8")


def test_no_handler_no_style_and_no_address_stands_in_the_page(page):
    text = page.read_text(encoding="utf-8")
    markup = re.sub(r"<(script|style)\b.*?</\1>", "", text, flags=re.DOTALL)
    assert not re.search(r"<[^>]*\s(on\w+|style)=", markup)
    assert not re.search(r"(?:src|href)=\"(?!data:image/png|data:text/csv|#)", markup)
    markup = re.sub(r'href="data:text/csv;base64,[^"]*"', "", markup)
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)[1]
    assert policy.startswith("default-src &#39;none&#39;; style-src &#39;sha256-")
    assert "unsafe" not in policy


def test_markdown_holds_findings_and_tables_and_is_escaped(small, tmp_path, capsys):
    assert report(capsys, small, "--format", "md", "--quiet")[0] == 0
    text = (small / "report.md").read_text(encoding="utf-8")
    assert text.startswith("# Word sensitivity: run\n")
    assert "\n| map | text | d |" in text
    assert r"\<b\>\&amp;" in text


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["nowhere"], "which does not exist"),
        (["run", "--format", "doc"], "--format (='doc') must be one of html, md"),
        (["run", "--format", "md", "--out", "x.html"], "--out (='x.html') must end with .md"),
        (["run", "--out", "x.txt"], "must end with .html or .md"),
        (["run", "--out", "none/x.html"], "lies in a folder that does not exist"),
        ([], "Missing argument"),
    ],
)
def test_wrong_input_is_one_line_and_exit_code_2(
    small, tmp_path, monkeypatch, capsys, arguments, told
):
    monkeypatch.chdir(tmp_path)
    code, out, err = report(capsys, *arguments)
    assert (code, out) == (2, "")
    assert told in err
    assert err.count("\n") == 1


def test_a_failed_write_leaves_the_report_that_was_there(small, monkeypatch, capsys):
    (small / "report.html").write_text("the one before")
    monkeypatch.setattr(
        "pathlib.Path.replace",
        lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")),
    )
    code, _, err = report(capsys, small)
    assert code == 1
    assert "No space left" in err
    assert (small / "report.html").read_text() == "the one before"
