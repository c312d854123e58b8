"""The results that the page shows before anything is measured: `python -m wordsens.app.tasks.shipped` writes them.

They are the answers of the same tasks with the page's own settings and seed 0, rounded to six digits.
"""

import json
import sys
from dataclasses import asdict
from typing import Any

import torch

from wordsens.app.request import EXAMPLES, OPPOSITES, MeasureRequest
from wordsens.app.tasks.measure import measure, word_detail
from wordsens.app.tasks.models import check, explain
from wordsens.app.worker import Parts
from wordsens.files import packaged_files
from wordsens.text.pairs import LENGTHS

MODEL = "minilm"


def shipped_results() -> dict[str, Any]:
    """The comparison of attention with a fully connected layer, a check and an explanation."""
    torch.set_num_threads(1)
    comparison: dict[str, Any] = {}
    for request in MeasureRequest(text=next(iter(EXAMPLES.values()))).single:
        answer, context = measure(Parts(), asdict(request)), Parts()
        detail = word_detail(context, asdict(request), answer["row"], answer["witnesses"][answer["row"]])
        for part in context.parts:
            detail |= part
        small = {name: value for name, value in answer.items() if name not in ("record", "witnesses")}
        comparison[request.map] = {**small, "detail": detail}
    return {
        "comparison": comparison,
        "check": {"model": MODEL, **check(Parts(), MODEL, LENGTHS[0])},
        "explain": {"model": MODEL, **explain(Parts(), MODEL, *OPPOSITES)},
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
