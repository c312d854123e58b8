"""`wordsens paper`. The work is done in `cli.paper.run`, which loads torch."""

from wordsens.cli.options import takes
from wordsens.cli.paper.options import PaperOptions


@takes(PaperOptions)
def paper(options: PaperOptions) -> None:
    """The paper's experiments on real and Gaussian texts: records, figures and tables.

    Each finished cell is one Parquet file in OUT/records (OUT/generalization-records, OUT/attention-records). The same
    command resumes an interrupted run.

    Example: wordsens paper sensitivity --scale quick --out results
    """
    from wordsens.cli.cpu_threads import cpu_threads
    from wordsens.cli.paper.experiments import EXPERIMENTS
    from wordsens.cli.paper.run import run_paper

    with cpu_threads(options.threads):
        run_paper(options, EXPERIMENTS)
