"""The command line: arguments, progress, exit codes; nothing else. Nothing here imports torch before a command runs."""

from wordsens.cli.app import main

__all__ = ["main"]
