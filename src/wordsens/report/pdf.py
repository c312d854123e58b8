"""The page as a PDF, printed by the browser that is there."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from wordsens.errors import InputError, WordsensError

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "msedge")
SECONDS = 120
"""A browser that takes longer hangs: pages of 5,000 records print in under 20 seconds."""


def require_browser() -> str:
    """The path of a browser that prints.

    Raises:
        InputError: there is none.
    """
    for name in BROWSERS:
        if (found := shutil.which(name)) is not None:
            return found
    raise InputError(
        "`format` (='pdf') needs Chromium or Chrome, and none is installed; install one (on Debian: apt install "
        "chromium), or write html and print it from any browser"
    )


def print_page(page: str, path: Path) -> None:
    """Print the page to a PDF file.

    Raises:
        InputError: there is no browser.
        WordsensError: the browser printed nothing.
    """
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "report.html"
        source.write_text(page, encoding="utf-8")
        print_file(source, path)


def print_file(source: Path, path: Path, *options: str) -> None:
    """Print an HTML file to a PDF file, with more options of the browser.

    Raises:
        InputError: there is no browser.
        WordsensError: the browser printed nothing.
    """
    browser = require_browser()
    with tempfile.TemporaryDirectory() as folder:
        printed = Path(folder) / "printed.pdf"
        command = [
            browser,
            "--headless",
            "--disable-gpu",
            f"--user-data-dir={folder}/profile",
            f"--print-to-pdf={printed}",
            "--no-pdf-header-footer",
            *options,
            source.resolve().as_uri(),
        ]
        # Chromium refuses root its sandbox; the page is ours, and its policy lets it ask for nothing.
        command += ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
        try:
            subprocess.run(command, check=False, capture_output=True, timeout=SECONDS)
        except subprocess.TimeoutExpired as error:
            raise WordsensError(f"{browser} did not print the report in {SECONDS} seconds; write html") from error
        if not printed.is_file():
            raise WordsensError(f"{browser} printed no PDF; write html, and print it from a browser")
        path.write_bytes(printed.read_bytes())
