"""The file that is written: whole, escaped, in the format of its ending; and `wordsens report`."""

import json
import os
import re
import shutil
from pathlib import Path

import pytest
from tests.report.conftest import write_records

from wordsens.cli import main
from wordsens.report import pdf
from wordsens.report.page import script_json


@pytest.fixture
def small(tmp_path, make_record):
    return write_records(tmp_path / "run", [make_record(source="<b>&amp;")])


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


def test_no_handler_no_style_and_no_address_stands_in_the_page(page):
    text = page.read_text(encoding="utf-8")
    markup = re.sub(r"<(script|style)\b.*?</\1>", "", text, flags=re.DOTALL)
    assert not re.search(r"<[^>]*\s(on\w+|style)=", markup)
    assert not re.search(r"(?:src|href)=\"(?!data:image/png|#)", markup)
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)[1]
    assert policy.startswith("default-src &#39;none&#39;; style-src &#39;sha256-")
    assert "unsafe" not in policy


@pytest.mark.parametrize("text", ["</script><!--", "\u2028\u2029&<>", '"\\'])
def test_json_in_a_script_tag_is_the_same_value_and_ends_no_tag(text):
    made = str(script_json({"a": text}))
    assert json.loads(made) == {"a": text}
    assert not re.search("[<>&\u2028\u2029]", made)


def test_several_folders_stand_side_by_side(small, tmp_path, make_record, capsys):
    other = write_records(tmp_path / "other", [make_record(draw=1)])
    code, out, _ = report(capsys, other, small, "--out", tmp_path / "both.html", "--json")
    document = json.loads(out)
    assert code == 0
    section = (
        (Path(__file__).parents[2] / "docs" / "cli.md").read_text(encoding="utf-8").split("document of `report`")[1]
    )
    assert list(document) == re.findall(r"^\| `(\w+)` \|", section.split("\n#")[0], flags=re.MULTILINE)
    assert [run["name"] for run in document["runs"]] == ["other", "run"]
    assert {one["of"] for one in document["findings"]} >= {"other", "run"}
    assert "S at the last, run" in (tmp_path / "both.html").read_text(encoding="utf-8")


def test_markdown_holds_findings_and_tables_and_is_escaped(small, tmp_path, capsys):
    assert report(capsys, small, "--format", "md", "--quiet")[0] == 0
    text = (small / "report.md").read_text(encoding="utf-8")
    assert text.startswith("# How far can one word move a model?\n")
    assert "\n| map | texts | d |" in text
    assert r"\<b\>\&amp;" in text


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["nowhere"], "which does not exist"),
        (["run", "--format", "doc"], "--format (='doc') must be one of html, md, pdf"),
        (["run", "--format", "md", "--out", "x.html"], "--out (='x.html') must end with .md"),
        (["run", "--out", "x.txt"], "must end with .html, .md or .pdf"),
        (["run", "--out", "none/x.html"], "lies in a folder that does not exist"),
        ([], "Missing argument"),
    ],
)
def test_wrong_input_is_one_line_and_exit_code_2(small, tmp_path, monkeypatch, capsys, arguments, told):
    monkeypatch.chdir(tmp_path)
    code, out, err = report(capsys, *arguments)
    assert (code, out) == (2, "")
    assert told in err
    assert err.count("\n") == 1


def test_a_failed_write_leaves_the_report_that_was_there(small, monkeypatch, capsys):
    (small / "report.html").write_text("the one before")
    monkeypatch.setattr(
        "pathlib.Path.replace", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device"))
    )
    code, _, err = report(capsys, small)
    assert code == 1
    assert "No space left" in err
    assert (small / "report.html").read_text() == "the one before"


def test_a_pdf_without_a_browser_says_how_to_get_one(small, monkeypatch, capsys):
    monkeypatch.setattr(pdf.shutil, "which", lambda name: None)
    code, _, err = report(capsys, small, "--format", "pdf")
    assert code == 2
    assert "needs Chromium or Chrome, and none is installed; install one (on Debian: apt install chromium)" in err


@pytest.mark.skipif(shutil.which("chromium") is None, reason="a PDF needs Chromium: apt install chromium")
def test_a_pdf_is_printed(small, capsys):
    assert report(capsys, small, "--format", "pdf")[0] == 0
    assert (small / "report.pdf").read_bytes().startswith(b"%PDF-")


def test_where_every_cell_failed_the_report_says_so(tmp_path, make_record, capsys):
    records = [make_record(draw=at, status="failed", value=None, error="ValueError: <no>") for at in range(2)]
    code, out, _ = report(capsys, write_records(tmp_path / "run", records))
    assert code == 0
    assert out.startswith("2 of 2 measurements failed, and no number here stands for them.")
    assert "ValueError: &lt;no&gt;" in (tmp_path / "run" / "report.html").read_text(encoding="utf-8")


def test_a_folder_whose_name_is_no_text_has_a_report(tmp_path, make_record, capsys):
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/r\xff<b>"))
    assert report(capsys, write_records(folder, [make_record()]), "--quiet")[0] == 0
    assert "r?&lt;b&gt;" in (folder / "report.html").read_text(encoding="utf-8")


def test_it_opens_in_the_browser(small, monkeypatch, capsys):
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    assert report(capsys, small, "--open")[0] == 0
    assert opened == [(small / "report.html").as_uri()]


def test_the_command_that_measured_is_told(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    spec = "name: try\nexperiment: tests.experiments.squares:SQUARES\ngrids: [{draw: [0, 1]}]\n"
    Path("squares.yaml").write_text(spec, encoding="utf-8")
    command = ["sweep", "run", "squares.yaml", "seed=[1, 2]", "--out", "try", "--quiet"]
    assert main(command) == 0
    assert main(command) == 0
    assert report(capsys, "try")[0] == 0
    page = (tmp_path / "try" / "report.html").read_text(encoding="utf-8")
    assert page.count("wordsens sweep run squares.yaml &#39;seed=[1, 2]&#39; --out try --quiet") == 1
    assert "4 cells were measured; their values lie between" in page
