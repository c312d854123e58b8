"""The commands that are kept beside records."""

from wordsens.experiments.run.commands import FILE, keep_command, kept_commands


def test_a_command_is_kept_once(tmp_path):
    keep_command(tmp_path, ["sweep", "run", "dry-run"])
    keep_command(tmp_path, ["sweep", "run", "dry-run"])
    keep_command(tmp_path, [])
    assert [one["arguments"] for one in kept_commands(tmp_path)] == [["sweep", "run", "dry-run"]]


def test_no_secret_of_an_address_is_kept(tmp_path):
    words = ["audit", "--endpoint", "https://me:secret@host/v1?api-key=secret&v=2", "--endpoint=http://secret@host"]
    keep_command(tmp_path, words)
    keep_command(tmp_path, words)
    (kept,) = kept_commands(tmp_path)
    assert kept["arguments"] == ["audit", "--endpoint", "https://host/v1?api-key=...&v=...", "--endpoint=http://host"]
    assert "secret" not in (tmp_path / FILE).read_text(encoding="utf-8")
