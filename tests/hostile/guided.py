"""A fuzzer that follows the coverage of the code: readers, pair files, specs, saved results, endpoints, command lines.

    pip install atheris
    python -m tests.hostile.guided CORPUS [SECONDS]

The inputs that reached new code are kept in the folder CORPUS and tried first the next time. An input is its target's
number, then the content. It stops at the first input that is neither taken nor refused in one line, and writes it to
CORPUS/crash-...; `python -m tests.hostile.guided CORPUS/crash-...` repeats that one.
"""

import io
import sys
import tempfile
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from unittest import mock

import atheris

with atheris.instrument_imports(include=["wordsens"]):
    import wordsens as ws
    from wordsens.cli import app, main
    from wordsens.evaluation.baseline import Baseline
    from wordsens.experiments.spec import parse_sweep
    from wordsens.experiments.store import read_records
    from wordsens.maps.transformer.settings import folder_settings
    from wordsens.models.choice import as_model
    from wordsens.models.endpoint import Endpoint
    from wordsens.text import read_documents
    from wordsens.text.pairs import read_pairs

from tests.hostile.fuzz import survives

ENDINGS = (".txt", ".csv", ".tsv", ".jsonl", ".ndjson", ".parquet")
SPEC = (
    b"name: a\ncommon: {map: rf}\ngrids: [{n: [4, 5], d: 6, text: gaussian}, {n: 4, d: 8, text: {kind: orthogonal}}]\n"
)
SEEDS = {
    ".csv": b"text,label\nGood film,1\nBad film,0\n",
    ".jsonl": b'{"text": "Good film", "label": 1}\n',
    "pairs.csv": b"kind,first,second,same\nnegation,It works.,It does not work.,false\n",
    "spec": SPEC,
    "override": b"text.mean_cosine=0.3",
    "answer": b'{"data": [{"index": 0, "embedding": [1.0, 0.5]}, {"index": 1, "embedding": [0.5, 1.0]}]}',
    "settings": b'{"pooling_mode_mean_tokens": true, "max_seq_length": 128}',
    "words": b"check\0minilm\0--pairs\0p.csv",
}


def targets(folder: Path) -> dict[str, Callable[[bytes], object]]:
    """The functions of an input, each by its name; files lie in the folder."""

    def of_file(name: str, read: Callable[[Path], object]) -> Callable[[bytes], object]:
        def call(content: bytes) -> object:
            (folder / name).write_bytes(content)
            return survives(lambda: read(folder / name))

        return call

    def of_settings(content: bytes) -> object:
        for name in ("modules.json", "config_sentence_transformers.json", "sentence_bert_config.json"):
            (folder / name).write_bytes(content)
        return survives(lambda: folder_settings(folder, "mine"))

    def of_answer(content: bytes) -> object:
        endpoint = Endpoint(url="http://localhost", retries=0)
        with mock.patch.object(Endpoint, "_asked", return_value=content):
            return survives(lambda: as_model(endpoint.vectors).encode(["one", "two"]))

    def of_words(content: bytes) -> None:
        words = [word for word in content.decode(errors="replace").split("\0") if word]
        if words[:1] not in (["check"], ["sweep"], ["report"]) or "shipped" in words or len(words) > 6:
            return
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            code = main([*words, "--nosuch"])
        assert code == app.WRONG_INPUT and err.getvalue().count("\n") == 1, err.getvalue()

    texts = lambda content: content.decode(errors="replace")  # noqa: E731
    return {
        **{ending: of_file(f"a{ending}", lambda path: list(read_documents(path))) for ending in ENDINGS},
        **{f"pairs{ending}": of_file(f"p{ending}", read_pairs) for ending in ENDINGS[1:]},
        "spec": lambda content: survives(lambda: parse_sweep(texts(content)).cells()),
        "override": lambda content: survives(lambda: parse_sweep(SPEC.decode(), [texts(content)]).cells()),
        "baseline": of_file("b.json", Baseline.read),
        "result": of_file("a.safetensors", ws.Sensitivity.load),
        "records": of_file("results.sqlite", lambda path: read_records(path.parent)),
        "settings": of_settings,
        "answer": of_answer,
        "words": of_words,
    }


def campaign(corpus: str, seconds: str = "3600") -> None:
    """Try inputs for so long; a corpus that is a folder, or not yet there, gets a seed of every kind."""
    with tempfile.TemporaryDirectory() as folder:
        calls = targets(Path(folder))
        kept = Path(corpus)
        if not kept.is_file():
            kept.mkdir(exist_ok=True)
            for at, name in enumerate(calls):
                (kept / f"seed-{at}").write_bytes(bytes([at]) + SEEDS.get(name, b"{}"))

        def one(content: bytes) -> None:
            if content:
                list(calls.values())[content[0] % len(calls)](content[1:])

        limits = [f"-max_total_time={seconds}", "-timeout=30", "-rss_limit_mb=4096", "-max_len=4096"]
        atheris.Setup([sys.argv[0], *limits, f"-artifact_prefix={corpus}/", corpus], one)
        atheris.Fuzz()


if __name__ == "__main__":
    campaign(*sys.argv[1:])
