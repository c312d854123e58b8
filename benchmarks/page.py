"""Renew what docs/benchmarks.md shows: python -m benchmarks.page [NAME ...] [--page FILE].

The page holds blocks between `<!-- measured: COMMAND -->` and `<!-- end of measured -->`. COMMAND is run, and what it
prints takes the block's place: when, where, on what and by which command first, then its tables. Without names all
blocks are renewed.
"""

import argparse
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.__main__ import BENCHMARKS

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks.md"
_BLOCK = re.compile(
    r"^<!-- measured: (?P<command>.+?) -->\n.*?^<!-- end of measured -->$",
    re.MULTILINE | re.DOTALL,
)


def as_page(printed: str) -> str:
    """A benchmark's output as Markdown: its header as it is, its tables under headings of the page's level."""
    header, _, body = printed.strip().partition("\n\n")
    return "\n".join(["```text", *header.splitlines()[2:], "```", "", *map(str.rstrip, body.splitlines())]).strip()


def run(command: str) -> str:
    """What a `python -m benchmarks.NAME` command prints, run by this Python."""
    print(f"  {command}", flush=True)
    done = subprocess.run(
        [sys.executable, *shlex.split(command)[1:]], stdout=subprocess.PIPE, text=True, encoding="utf-8"
    )
    if done.returncode != 0:
        raise SystemExit(f"{command} failed; the page is as it was")
    return done.stdout


def main(arguments: Sequence[str] | None = None) -> None:
    """Renew the blocks that were asked for, each written as soon as it is measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(BENCHMARKS)}")
    parser.add_argument("--page", type=Path, default=PAGE)
    options = parser.parse_args(arguments)
    if unknown := set(options.names) - set(BENCHMARKS):
        parser.error(f"no benchmark is called {', '.join(sorted(unknown))}")
    for block in list(_BLOCK.finditer(options.page.read_text(encoding="utf-8"))):
        command = block["command"]
        if options.names and command.split()[2].removeprefix("benchmarks.") not in options.names:
            continue
        new = f"<!-- measured: {command} -->\n\n{as_page(run(command))}\n\n<!-- end of measured -->"
        text = options.page.read_text(encoding="utf-8")
        options.page.write_text(text.replace(block[0], new), encoding="utf-8")


if __name__ == "__main__":
    main()
