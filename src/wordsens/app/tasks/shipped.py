"""The results that the page shows before anything is measured:
`python -m wordsens.app.tasks.shipped` writes them.

They are the answers of the same tasks with the page's own settings, rounded to six digits.
"""

import json
import sys
from typing import Any

import torch

from wordsens.app.request import EXAMPLES, PAIRS, MeasureRequest
from wordsens.app.tasks.measure import measure, word_detail
from wordsens.app.tasks.models import check, two_texts
from wordsens.files import packaged_files
from wordsens.text.pairs import LENGTHS

MODEL = "minilm"


def shipped_results() -> dict[str, Any]:
    """Two texts, a check, and the comparison of attention with a fully connected layer with all its
    words' details."""
    torch.set_num_threads(1)
    request = MeasureRequest(text=next(iter(EXAMPLES.values()))).model_dump()
    comparison = measure(request)
    words = {name: answer.pop("words") for name, answer in comparison["maps"].items()}
    details = {
        row: word_detail(request, row, {name: known[row] for name, known in words.items()})
        for row in words["raf"]
    }
    first, second = next(iter(PAIRS.values()))
    texts = {"model": MODEL, "first": first, "second": second}
    return {
        "two_texts": texts | two_texts(**texts),
        "check": {"model": MODEL, "own": "", **check(MODEL, LENGTHS[0], "")},
        "comparison": comparison,
        "details": details,
    }


if __name__ == "__main__":
    path = packaged_files("app/static")["app.css"].with_name("examples.json")
    exact = json.dumps(shipped_results())
    rounded = json.loads(exact, parse_float=lambda digits: float(f"{float(digits):.6g}"))
    document = json.dumps(rounded, ensure_ascii=False, separators=(",", ":"))
    path.write_text(f"{document}\n", encoding="utf-8")
    print(f"{path}: {path.stat().st_size:,} bytes", file=sys.stderr)
