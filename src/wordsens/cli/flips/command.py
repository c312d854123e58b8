"""`wordsens flips`. The work is done in `cli.flips.run`, which loads torch."""

from wordsens.cli.flips.options import FlipsRequest
from wordsens.cli.options import takes


@takes(FlipsRequest)
def flips(request: FlipsRequest) -> None:
    """Find the words that flip a classifier's label, by class: for moderation, and any other classifier.

    For each word: the class without it, with another word in its place, and, for transformers, the smallest radius
    found at which its vectors flip the label.

    Example: wordsens flips ./toxicity-model --dataset comments.csv
    """
    from wordsens.cli.cpu_threads import cpu_threads
    from wordsens.cli.flips.run import run_flips

    with cpu_threads(request.threads):
        run_flips(request)
