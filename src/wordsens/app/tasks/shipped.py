"""The results that the page shows before anything is measured:
`python -m wordsens.app.tasks.shipped` writes them.

They are the answers of the same tasks with the page's own settings and seed 0, rounded to six
digits.
"""

import json
import sys
from collections import defaultdict
from dataclasses import asdict
from typing import Any

import torch

from wordsens.app.request import EXAMPLES, PAIRS, MeasureRequest
from wordsens.app.tasks.measure import measure, word_detail
from wordsens.app.tasks.models import check, two_texts
from wordsens.app.worker import Parts
from wordsens.files import packaged_files
from wordsens.text.pairs import LENGTHS

MODEL = "minilm"


def shipped_results() -> dict[str, Any]:
    """Two texts, a check, and the comparison of attention with a fully connected layer with all its
    words' details."""
    torch.set_num_threads(1)
    request = MeasureRequest(text=next(iter(EXAMPLES.values())))
    comparison, known = measure(Parts(), asdict(request)), defaultdict(dict)
    for single in request.single:
        for row, witness in comparison[single.map].pop("witnesses").items():
            context = Parts()
            last = word_detail(context, asdict(single), row, witness)
            known[row][single.map] = {
                name: value for part in (*context.parts, last) for name, value in part.items()
            }
    first, second = next(iter(PAIRS.values()))
    return {
        "two_texts": {"model": MODEL, "first": first, "second": second}
        | two_texts(Parts(), MODEL, first, second),
        "check": {
            "model": MODEL,
            "length": LENGTHS[0],
            "own": "",
            **check(Parts(), MODEL, LENGTHS[0], ""),
        },
        "comparison": comparison,
        "known": known,
    }


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _rounded(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(each) for each in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value


if __name__ == "__main__":
    path = packaged_files("app/static")["app.css"].with_name("examples.json")
    document = json.dumps(_rounded(shipped_results()), ensure_ascii=False, separators=(",", ":"))
    path.write_text(f"{document}\n", encoding="utf-8")
    print(f"{path}: {path.stat().st_size:,} bytes", file=sys.stderr)
