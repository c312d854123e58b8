"""A step of the build: texts, word lists and what reports are made of go into the wheel as one compressed archive.

A wheel deflates file by file: so they take a third less, and their names nothing. JSON lines are packed by column, a
few per cent less again (`wordsens.files.packaged_text` makes lines of them). Where zopfli is installed it deflates the
others, 2 % smaller and read by every unzip.
"""

import bz2
import io
import json
import tarfile
import tempfile
import zipfile
from pathlib import Path
from typing import Any
from unittest.mock import patch

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

try:
    from zopfli.zlib import compress
except ImportError:
    compress = None

ARCHIVE = "wordsens/texts.tar.bz2"
PATTERNS = ("*.jsonl", "training/adapter/words/*.txt", "report/static/*", "report/templates/*", "app/static/*")


class CompressedTexts(BuildHookInterface):
    """Puts the texts of the package into a wheel as an archive; an editable install reads them as they are."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
        self._folder = tempfile.TemporaryDirectory()
        made = Path(self._folder.name) / "texts"
        made.write_bytes(_archive(Path(self.root) / "src" / "wordsens"))
        build_data["force_include"][str(made)] = ARCHIVE

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if version != "editable":
            self._folder.cleanup()
            _deflated_again(Path(artifact_path))


class _Zopfli:
    """What `zipfile` asks of a compressor: a raw deflate stream, here made at the end."""

    def __init__(self) -> None:
        self._content = b""

    def compress(self, content: bytes) -> bytes:
        self._content += content
        return b""

    def flush(self) -> bytes:
        assert compress is not None
        return compress(self._content, numiterations=15)[2:-4]  # without zlib's header and checksum


def _deflated_again(wheel: Path) -> None:
    """The same wheel, its files deflated by zopfli."""
    if compress is None:
        return
    smaller = io.BytesIO()
    with (
        zipfile.ZipFile(wheel) as before,
        zipfile.ZipFile(smaller, "w", compression=zipfile.ZIP_DEFLATED) as after,
        patch.object(zipfile, "_get_compressor", lambda *_: _Zopfli()),  # it takes none from outside
    ):
        for member in before.infolist():
            after.writestr(member, before.read(member))
    wheel.write_bytes(smaller.getvalue())


def _archive(package: Path) -> bytes:
    """The same bytes for the same texts, whenever and by whomever they are packed: files of a kind as a stream of their
    own, since they are alike."""
    kinds: dict[str, bytes] = {"jsonl": b"", "txt": b"", "": b""}
    for path in sorted(path for pattern in PATTERNS for path in package.rglob(pattern)):
        name, content = _packed(path.relative_to(package).as_posix(), path.read_bytes())
        member = tarfile.TarInfo(name)
        member.size = len(content)
        kind = path.suffix[1:] if path.suffix[1:] in kinds else ""
        padding = b"\0" * (-len(content) % tarfile.BLOCKSIZE)
        kinds[kind] += member.tobuf(tarfile.USTAR_FORMAT) + content + padding
    kinds[""] += b"\0" * 2 * tarfile.BLOCKSIZE
    return b"".join(bz2.compress(stream) for stream in kinds.values())


def _packed(name: str, content: bytes) -> tuple[str, bytes]:
    """JSON lines by column, where the lines can be made of it again to the last byte; anything else as it is."""
    if not name.endswith(".jsonl"):
        return name, content
    rows = [json.loads(line) for line in content.decode().splitlines()]
    keys: list[str] = []
    for row in rows:
        for key in reversed(row):  # a new one before that which follows it in its line
            if key not in keys:
                after = [keys.index(other) for other in list(row)[list(row).index(key) + 1 :] if other in keys]
                keys.insert(min(after, default=len(keys)), key)
    columns = {key: [row.get(key) for row in rows] for key in keys}
    again = [
        {key: value for key, value in zip(columns, row, strict=True) if value is not None}
        for row in zip(*columns.values(), strict=True)
    ]
    if "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in again).encode() != content:
        return name, content
    return name.removesuffix("l") + ".columns", json.dumps(columns, ensure_ascii=False, separators=(",", ":")).encode()
