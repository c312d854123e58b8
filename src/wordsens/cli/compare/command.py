"""`wordsens compare`. The work is done in `cli.compare.run`, which loads torch."""

from wordsens.cli.compare.options import CompareRequest
from wordsens.cli.options import takes


@takes(CompareRequest)
def compare(request: CompareRequest) -> None:
    """Find what differs between two models, or one before and after a change, on your own texts. A gate for CI.

    Each model is a name or folder, module:function, or the URL of an embeddings endpoint. Compared are how well flipped
    meanings show (as in check), how far a text moves without each word, and which texts have other neighbours; each
    difference has a 95 % interval, and counts only where a test of all together says so. Exit code 3 when a
    requirement fails.

    Example: wordsens compare minilm ./quantised --dataset texts.csv --require 'neighbours.nearest.second <= .05'
    """
    from wordsens.cli.compare.run import run_compare
    from wordsens.cli.cpu_threads import cpu_threads

    with cpu_threads(request.threads):
        run_compare(request)
