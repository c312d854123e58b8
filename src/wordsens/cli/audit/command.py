"""`wordsens audit`. The work is done in `cli.audit.run`, which loads torch."""

from wordsens.cli.audit.options import AuditOptions
from wordsens.cli.options import takes


@takes(AuditOptions)
def audit(options: AuditOptions) -> None:
    """Find the words that move a model of embeddings or classes, those it ignores, and how that decays with length.

    Each finished text is one Parquet file in OUT/records; the same command goes on where an earlier run stopped.
    Texts that are empty or have one word are left out and counted; exit code 1 if any other text failed.

    Example: wordsens audit minilm --dataset reviews.parquet --limit 200 --out audit
    """
    from wordsens.cli.audit.run import run_audit
    from wordsens.cli.cpu_threads import cpu_threads

    with cpu_threads(options.threads):
        run_audit(options)
