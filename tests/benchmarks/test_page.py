"""docs/benchmarks.md: its blocks name benchmarks, say where they were measured, and are renewed by what these print."""

import re

import pytest
from benchmarks.__main__ import BENCHMARKS
from benchmarks.page import PAGE, commands, main, renewed, run
from benchmarks.reporting import header, table

PRINTED = header("Speed") + "\n" + table("Times", ("map", "ms"), [("rf", "3.1")]) + "\n"
TEXT = """# Speed

<!-- measured: python -m benchmarks.race --quick -->
old | numbers
<!-- end of measured -->

Words between.

<!-- measured at length: python -m benchmarks.heads -->
hours
<!-- end of measured -->
"""


def test_a_block_becomes_what_its_command_prints_and_the_rest_stays():
    assert commands(TEXT) == {"python -m benchmarks.race --quick": False, "python -m benchmarks.heads": True}
    asked = []
    page = renewed(TEXT, ["python -m benchmarks.race --quick"], lambda command: asked.append(command) or PRINTED)
    assert asked == ["python -m benchmarks.race --quick"]
    assert "old | numbers" not in page
    assert "hours\n<!-- end of measured -->" in page
    assert "| rf  | 3.1 |" in page and "#### Times" in page and "Words between." in page
    assert re.search(r"```text\ncommand   .*\ndate      .*\ncommit    .*\nhardware  .*\nsoftware  .*\n```", page)
    assert renewed(page, list(commands(page)), lambda command: PRINTED).count("| rf  | 3.1 |") == 2


def test_only_benchmarks_are_run(monkeypatch, tmp_path):
    with pytest.raises(SystemExit, match="is of no benchmark"):
        run("python -m os.path")
    page = tmp_path / "page.md"
    page.write_text(TEXT, encoding="utf-8")
    monkeypatch.setattr("sys.argv", ["page", "--page", str(page), "nothing"])
    with pytest.raises(SystemExit):
        main()
    assert page.read_text(encoding="utf-8") == TEXT


def test_the_page_s_blocks_say_when_and_where_they_were_measured():
    text = PAGE.read_text(encoding="utf-8")
    assert commands(text)
    for command in commands(text):
        assert command.split()[2].removeprefix("benchmarks.") in BENCHMARKS
        block = text.split(f": {command} -->", 1)[1].split("<!-- end", 1)[0]
        assert all(re.search(rf"^{what} +\S", block, re.MULTILINE) for what in ("date", "commit", "hardware")), command
        assert "|" in block
