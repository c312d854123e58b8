"""Operations and waits a step of a search: what a GPU is asked, counted on any machine.

    python -m benchmarks.operations [--device cpu]

An operation is a call that PyTorch passes to the device; one that only makes a view asks nothing of
it and is not counted. A wait is an operation whose answer the host must have before it can go on: a
number, a copy to the host, or a tensor whose size depends on values. Steps are what `progress`
counts, so a row holds for any version that calls it once a step. On a CPU, where waiting costs
nothing, random features look at every step whether climbs have ended; on other devices every few
steps.
"""

import argparse
from typing import Any, Self

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

import wordsens as ws
from benchmarks.reporting import header, table

Stages = dict[str, list[tuple[int, int]]]
"""Of every step of a stage of a search: its operations and its waits."""

_WAITS = {
    *(
        "_local_scalar_dense",
        "item",
        "is_nonzero",
        "equal",
        "nonzero",
        "masked_select",
        "unique_dim",
    ),
    *("_unique", "_unique2", "unique_consecutive"),
}
_INDEXED = {"index", "index_put", "index_put_", "_index_put_impl_"}


class OperationCount(TorchDispatchMode):
    """Counts the operations and the waits within a `with` block."""

    def __init__(self):
        super().__init__()
        self.operations = self.waits = 0
        self._copies = _Copies(self)

    def __enter__(self) -> Self:
        self._copies.__enter__()
        return super().__enter__()

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        self._copies.__exit__(*error)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        outcome = func(*args, **(kwargs or {}))
        if not func.is_view:
            self.operations += 1
            self.waits += _waits(func.overloadpacket.__name__, args, outcome)
        return outcome


class _Copies(TorchFunctionMode):
    """Copies of a CPU's tensors to the host, which are no operations there."""

    def __init__(self, count: OperationCount):
        super().__init__()
        self.count = count

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if getattr(func, "__name__", "") in ("tolist", "cpu", "numpy"):
            self.count.waits += args[0].device.type == "cpu"
        return func(*args, **(kwargs or {}))


def _waits(name: str, args: Any, outcome: Any) -> bool:
    if name in _INDEXED:
        return any(
            index is not None and index.dtype in (torch.bool, torch.uint8) for index in args[1]
        )
    copied = name in ("_to_copy", "copy_") and args[name == "copy_"].device != outcome.device
    return name in _WAITS or (copied and outcome.device.type == "cpu")


def counted(phi: ws.FeatureMap, X: ws.TextMatrix, plan: ws.SearchPlan) -> list[tuple[int, int]]:
    """The operations and waits before the first step of a search, and of every step."""
    totals = []

    def note(done: int, total: int) -> None:
        totals.append((count.operations, count.waits))

    with OperationCount() as count:
        ws.word_sensitivity(phi, X, search=plan, certificate=False, progress=note)
    before = [(0, 0), *totals[:-1]]
    return [
        (after[0] - now[0], after[1] - now[1]) for now, after in zip(before, totals, strict=True)
    ]


def ascent(phi: ws.FeatureMap, X: ws.TextMatrix) -> Stages:
    """The steps of the starts, and those of the finish, which follow the children's."""
    plan = ws.SearchPlan("quick", starts=8, steps=20)
    (stages,) = plan.runs(
        phi.change(phi.accept(X.rows), torch.zeros(1, 1, dtype=torch.long)).stages
    )
    steps = counted(phi, X, plan)
    finish = steps[stages.steps + stages.generations * stages.child_steps :]
    return {"climb": steps[1 : stages.steps], "finish": [step for step in finish if step[0]]}


def krylov(phi: ws.FeatureMap, X: ws.TextMatrix) -> Stages:
    """The Lanczos steps, and the steps of the best points with true products, which follow those
    without."""
    lanczos = min(24, X.rows.shape[1])
    steps = counted(phi, X, ws.SearchPlan())
    return {"Lanczos": steps[1:lanczos], "great circles": steps[lanczos + 1 : -1]}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    torch.set_num_threads(1)
    n, d = 30, 48
    X, kind = ws.gaussian_text(n, d, seed=5), {"seed": 5, "device": options.device}
    searches = {
        "attention, softmax": (ws.RandomAttentionFeatures(d, **kind), ascent),
        "attention, relu": (ws.RandomAttentionFeatures(d, score="relu", **kind), ascent),
        "DRF, 3 layers": (ws.DeepRandomFeatures(n, d, 3, 300, gaussian="dense", **kind), ascent),
        "RF": (ws.RandomFeatures(n, d, 300, gaussian="dense", **kind), krylov),
    }
    rows = []
    for name, (phi, search) in searches.items():
        for stage, steps in search(phi, X).items():
            operations, waits = (sum(step[kind] for step in steps) / len(steps) for kind in (0, 1))
            rows.append([name, stage, str(len(steps)), f"{operations:.0f}", f"{waits:.2f}"])
    print(header("Operations"))
    columns = ["map", "stage", "steps", "operations", "waits"]
    print(
        table(
            f"All {n} words of a Gaussian text, d = {d}, on {options.device}: per step",
            columns,
            rows,
        )
    )


if __name__ == "__main__":
    main()
