"""`wordsens tune`. The work is done in `cli.tune.run`, which loads torch."""

from wordsens.cli.options import takes
from wordsens.cli.tune.options import TuneRequest


@takes(TuneRequest)
def tune(request: TuneRequest) -> None:
    """Make a "not", an antonym, an amount or a time move a model's embeddings: an adapter, made on your CPU.

    The tuned model is a folder that sentence-transformers loads. It is judged before and after on domains and kinds
    that it was not trained on, and on finding paraphrases. A run that was stopped goes on when it is called again.

    Example: wordsens tune minilm --out ./minilm-tuned --texts my-texts.csv
    """
    from wordsens.cli.cpu_threads import cpu_threads
    from wordsens.cli.tune.run import run_tune

    with cpu_threads(request.threads):
        run_tune(request)
