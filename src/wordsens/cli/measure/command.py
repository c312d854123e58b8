"""`wordsens measure`. The work is done in `cli.measure.run`, which loads torch."""

from wordsens.cli.measure.options import MeasureOptions
from wordsens.cli.options import takes


@takes(MeasureOptions)
def measure(options: MeasureOptions) -> None:
    """Measure how far one word can move what a map sees: S per word, with the most sensitive one marked.

    S = sup over the word i and ‖Delta‖ <= radius of ‖phi(X^i(Delta)) - phi(X)‖ / ‖phi(X)‖.

    Each number is attained by a perturbation that was found: a lower bound of the sup.

    Example: wordsens measure "I love her much" --map rf,raf,relu-raf
    """
    from wordsens.cli.cpu_threads import cpu_threads
    from wordsens.cli.measure.run import run_measure

    with cpu_threads(options.threads):
        run_measure(options)
