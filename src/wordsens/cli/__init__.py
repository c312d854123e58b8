"""The command line."""

import os
import sys
from collections.abc import Sequence

from wordsens.cli.stopping import interrupts


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code: 0 done, 1 a failure, 2 the input is wrong, 3 a
    requirement is not met, 130 interrupted, 143 terminated.

    Args:
        arguments: without the program's name; None for those of the process.
    """
    with interrupts() as interrupted:
        try:
            from wordsens.cli.app import main as run

            code = run(arguments)
        except BaseException:  # an interrupt, or what a library made of it while it was imported
            if not interrupted.is_set():
                raise
            print("wordsens: interrupted", file=sys.stderr)
            code = 130
    if not interrupted.is_set() or code in (0, 143):  # 0: what was asked for is there, as when the page ends
        return code
    if arguments is None:
        # Python would end by the signal, if the exception went through code that a C library ran.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(130)
    return 130
