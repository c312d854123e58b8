"""`wordsens report`. The work is done in `cli.report.run`, which loads more."""

from wordsens.cli.options import takes
from wordsens.cli.report.options import ReportOptions


@takes(ReportOptions)
def report(options: ReportOptions) -> None:
    """One page of what was found: sentences, figures, words, tables, and how the numbers were made.

    It reads the records of earlier runs and measures nothing. The page needs no network, and no server.

    Example: wordsens report results --open
    """
    from wordsens.cli.report.run import run_report

    run_report(options)
