"""The content of a model's files: another whenever something that decides its numbers is another."""

import json
import os

import pytest

from wordsens.text.model_files import model_digest


@pytest.fixture
def folder(tmp_path):
    """A folder with the files of a model, as far as a digest goes."""
    files = {
        "config.json": '{"a": 1}',
        "model.safetensors": "weights",
        "tokenizer.json": '{"a": 1}',
        "vocab.txt": "a",
        "modules.json": json.dumps([{"path": "1_Pooling", "type": "Pooling"}, {"path": "", "type": "Transformer"}]),
        "1_Pooling/config.json": '{"a": 1}',
        "README.md": "read me",
        "other/notes.json": "{}",
    }
    (tmp_path / "1_Pooling").mkdir()
    (tmp_path / "other").mkdir()
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    return tmp_path


DECIDING = ("config.json", "model.safetensors", "tokenizer.json", "vocab.txt", "modules.json", "1_Pooling/config.json")


@pytest.mark.parametrize("name", DECIDING)
def test_every_deciding_file_counts(folder, name):
    before = model_digest(str(folder))
    # Other bytes of the same number, and the old time of change put back.
    seen, content = (folder / name).stat(), (folder / name).read_bytes()
    changed = content.replace(b"Pooling", b"POOLING") if name == "modules.json" else content.swapcase()
    (folder / name).write_bytes(changed.replace(b"1_POOLING", b"1_Pooling"))
    assert (folder / name).stat().st_size == seen.st_size
    os.utime(folder / name, ns=(seen.st_atime_ns, seen.st_mtime_ns))
    assert model_digest(str(folder)) != before


def test_other_files_and_other_places_do_not_count(folder, tmp_path_factory):
    before = model_digest(str(folder))
    (folder / "README.md").write_text("other")
    (folder / "other" / "notes.json").write_text("[]")
    (folder / "pytorch_model.bin").write_text("pickled")
    assert model_digest(str(folder)) == before
    moved = tmp_path_factory.mktemp("elsewhere") / "model"
    folder.rename(moved)
    assert model_digest(str(moved)) == before
