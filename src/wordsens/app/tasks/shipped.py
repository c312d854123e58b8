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
from wordsens.app.worker import TaskContext
from wordsens.files import packaged_files
from wordsens.text.pairs import LENGTHS

MODEL = "minilm"
_LARGE = ("record", "witnesses")


class _Parts(TaskContext):
    """A context without a page: it saves the parts."""

    def __init__(self) -> None:
        self.parts: dict[str, Any] = {}

    def send(self, value: Any) -> None:
        self.parts |= value

    def progress(self, done: int, total: int) -> None:
        pass

    def tick(self, *_: object) -> None:
        pass


def shipped_results() -> dict[str, Any]:
    """The comparison of attention with a fully connected layer, a check and an explanation."""
    torch.set_num_threads(1)
    comparison: dict[str, Any] = {}
    for request in MeasureRequest(text=next(iter(EXAMPLES.values()))).single:
        answer, context = measure(_Parts(), asdict(request)), _Parts()
        row = answer["row"]
        detail = word_detail(context, asdict(request), row, answer["witnesses"][row])
        small = {name: value for name, value in answer.items() if name not in _LARGE}
        comparison[request.map] = {**small, "detail": {**context.parts, **detail}}
    return _rounded(
        {
            "comparison": comparison,
            "check": {"model": MODEL, **check(_Parts(), MODEL, LENGTHS[0])},
            "explain": {"model": MODEL, **explain(_Parts(), MODEL, *OPPOSITES)},
        }
    )


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _rounded(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(one) for one in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value


if __name__ == "__main__":
    path = packaged_files("app/static")["app.css"].with_name("examples.json")
    path.write_text(json.dumps(shipped_results(), ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8")
    print(f"{path}: {path.stat().st_size:,} bytes", file=sys.stderr)
