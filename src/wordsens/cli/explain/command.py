"""`wordsens explain`. The work is done in `cli.explain.run`, which loads torch."""

from wordsens.cli.explain.options import ExplainRequest
from wordsens.cli.options import takes


@takes(ExplainRequest)
def explain(request: ExplainRequest) -> None:
    """Find the words that carry the score of two texts, a class, or an embedding.

    For each word: the text without it, with another word in its place, and with its vector moved; and for two texts
    the words that keep them apart, and pairs of words that count for more, or less, together than alone.

    Example: wordsens explain minilm "How do I enable it?" "How do I disable it?" --html explained.html
    """
    from wordsens.cli.cpu_threads import cpu_threads
    from wordsens.cli.explain.run import run_explain

    with cpu_threads(request.threads):
        run_explain(request)
