"""Renew what docs/benchmarks.md shows: python -m benchmarks.page [NAME ...] [--all] [--page FILE].

The page holds blocks between `<!-- measured: COMMAND -->` and `<!-- end of measured -->`. COMMAND is run, and what it
prints takes the block's place: when, where, on what and by which command first, then its tables. Without names these
are renewed, and `<!-- measured at length: COMMAND -->` is left; with names both, of these benchmarks.
"""

import argparse
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.__main__ import BENCHMARKS

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks.md"
_BLOCK = re.compile(
    r"^<!-- (?P<kind>measured|measured at length): (?P<command>.+?) -->\n.*?^<!-- end of measured -->$",
    re.MULTILINE | re.DOTALL,
)
_LEVEL = "####"


def commands(text: str) -> dict[str, bool]:
    """The commands of a page's blocks, in order, and whether they are measured at length."""
    return {block["command"]: block["kind"] != "measured" for block in _BLOCK.finditer(text)}


def renewed(text: str, wanted: Sequence[str], printed: Callable[[str], str]) -> str:
    """The page with the blocks of the wanted commands renewed; `printed` says what a command prints."""

    def block(found: re.Match[str]) -> str:
        command = found["command"]
        if command not in wanted:
            return found[0]
        return f"<!-- {found['kind']}: {command} -->\n\n{as_page(printed(command))}\n\n<!-- end of measured -->"

    return _BLOCK.sub(block, text)


def as_page(printed: str) -> str:
    """A benchmark's output as Markdown: its header as it is, its tables under headings of the page's level."""
    header, _, body = printed.strip().partition("\n\n")
    lines = ["```text", *header.splitlines()[2:], "```", ""]
    lines += [re.sub(r"^#+ ", f"{_LEVEL} ", line.rstrip()) for line in body.splitlines()]
    return "\n".join(lines).strip()


def run(command: str) -> str:
    """What the benchmark of a `python -m benchmarks.NAME` command prints, run by this Python.

    Raises:
        SystemExit: the command is none of these, or fails; the page is then left as it was.
    """
    words = shlex.split(command)
    if words[:2] != ["python", "-m"] or words[2].removeprefix("benchmarks.") not in BENCHMARKS:
        raise SystemExit(
            f"the block of {command!r} is of no benchmark; its command begins with python -m benchmarks.NAME"
        )
    print(f"  {command}", flush=True)
    done = subprocess.run([sys.executable, *words[1:]], stdout=subprocess.PIPE, text=True, encoding="utf-8")
    if done.returncode != 0:
        raise SystemExit(f"{command} failed; the page is as it was")
    return done.stdout


def main() -> None:
    """Renew the blocks that were asked for, each written as soon as it is measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="benchmarks whose blocks are renewed, all of their sizes")
    parser.add_argument("--all", action="store_true", help="every block: hours")
    parser.add_argument("--page", type=Path, default=PAGE)
    asked = parser.parse_args()
    known = commands(asked.page.read_text(encoding="utf-8"))
    names = {command.split()[2].removeprefix("benchmarks.") for command in known}
    if unknown := set(asked.names) - names:
        parser.error(f"no block of {', '.join(sorted(unknown))}; the page has those of {', '.join(sorted(names))}")
    for command, long in known.items():
        named = command.split()[2].removeprefix("benchmarks.") in asked.names
        if asked.all or named or (not asked.names and not long):
            printed = run(command)
            text = asked.page.read_text(encoding="utf-8")
            asked.page.write_text(renewed(text, [command], lambda _, printed=printed: printed), encoding="utf-8")


if __name__ == "__main__":
    main()
