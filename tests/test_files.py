"""Paths and small files as users name them."""

import os
import sys

import pytest

from wordsens.errors import InputError
from wordsens.files import named_path, require_file, small_text

no_pipes = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pipes and devices in folders")


def test_a_path_need_not_be_there(tmp_path):
    assert named_path("spec", tmp_path / "none" / "none.yaml") == tmp_path / "none" / "none.yaml"
    (tmp_path / "file").touch()
    assert named_path("spec", tmp_path / "file" / "below") == tmp_path / "file" / "below"


@pytest.mark.parametrize("value", ["a" * 5000, "a\0b", "~nobody-of-this-name/x"])
def test_a_path_that_cannot_be_looked_at_is_named(value):
    with pytest.raises(InputError, match=r"^`model` \(=.* cannot be used as a path: .*; give another one$") as caught:
        named_path("model", value)
    assert len(str(caught.value)) < 400


@no_pipes
def test_devices_pipes_and_folders_are_no_files(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path, what in ((tmp_path / "pipe", "a device or a pipe"), (tmp_path, "a folder")):
        with pytest.raises(InputError, match=f"is {what}, not a file"):
            require_file(path)
    # A device would never end, a pipe never begin.
    with pytest.raises(InputError, match="'/dev/zero' is a device or a pipe"):
        small_text(named_path("spec", "/dev/zero"), "spec")


def test_a_small_text(tmp_path):
    path = tmp_path / "a.yaml"
    path.write_bytes("\ufeffcafé".encode())
    assert small_text(path, "spec") == "café"
    assert small_text(path, "spec", most=8) == "café"
    with pytest.raises(InputError, match=r"`spec` \(=.*a.yaml'\) has more than 7 bytes; give a smaller file"):
        small_text(path, "spec", most=7)
    path.write_bytes(b"\xff")
    with pytest.raises(InputError, match="cannot be read as a text file: 'utf-8' codec"):
        small_text(path, "spec")
    with pytest.raises(InputError, match="cannot be read as a text file: No such file"):
        small_text(tmp_path / "none", "spec")
