"""`wordsens check`. The work is done in `cli.check.run`, which loads torch."""

from wordsens.cli.check.options import CheckRequest
from wordsens.cli.options import takes


@takes(CheckRequest)
def check(request: CheckRequest) -> None:
    """Does a meaning that flips with one word show in a model's embeddings? A gate for CI: exit code 3 when it fails.

    Opposites (not, enable/disable, who did what to whom, amounts, order, names, may/must) are compared with
    paraphrases of few common words. AUC is the chance that an opposite is farther apart than a paraphrase: 1 is
    perfect, 0 hopeless.

    Example: wordsens check minilm --require 'negation.auc >= .5' --threshold .92
    """
    from wordsens.cli.check.run import run_check
    from wordsens.cli.cpu_threads import cpu_threads

    with cpu_threads(request.threads):
        run_check(request)
