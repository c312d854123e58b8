"""One text of random attention in a process of its own: time of a step over all words, and peak memory, as JSON.

Or, with --search, time and peak memory of word_sensitivity.

Run by benchmarks.attention for every size, since the peak memory of a process can only grow.
"""

import argparse
import json
import math
import time

import torch

import wordsens as ws
from benchmarks.reporting import peak_bytes
from wordsens.search.climb import RULES, Climb
from wordsens.sensitivity.one_word import attained


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--words", type=int, required=True)
    parser.add_argument("--dimension", type=int, default=384)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--search", type=int, default=0, help="run word_sensitivity on so many words instead")
    parser.add_argument("--rule", choices=sorted(RULES), default="quasi-newton")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int)
    options = parser.parse_args()
    if options.threads is not None:
        torch.set_num_threads(options.threads)
    n, d, device = options.words, options.dimension, torch.device(options.device)
    _steps(8, d, 1, options.rule, device)  # loads the libraries, which are not what is measured
    before = _peak_memory(device)
    if options.search:
        found = _search(n, d, options.search, options.steps, device)
    else:
        found = _steps(n, d, options.steps, options.rule, device)
    print(json.dumps({"memory_before": before, "memory_peak": _peak_memory(device), **found}))


def _steps(n: int, d: int, steps: int, rule_name: str, device: torch.device) -> dict[str, float]:
    """Setup, the first evaluation, `steps` steps over all words, and one word's value recomputed through the map."""
    rows = ws.gaussian_text(n, d).rows.to(device)
    phi = ws.RandomAttentionFeatures(d, device=device)
    words = torch.arange(n, device=device)
    start = _now(device)
    change = phi.word_change(rows)
    set_up = _now(device) - start
    points = torch.randn(n, d, generator=torch.Generator().manual_seed(0), dtype=rows.dtype).to(device)
    points /= points.norm(dim=1, keepdim=True)
    climb = Climb(change, words, torch.full((n,), math.sqrt(d), dtype=torch.float64, device=device), points)
    rule = RULES[rule_name](climb)
    times = []
    for _ in range(steps):
        start = _now(device)
        rule.step(climb, 0.0)
        times.append(_now(device) - start)
    best = climb.squared.argmax().unsqueeze(0)
    start = _now(device)
    value = attained(phi, rows, best.unsqueeze(1), (climb.x[best] * math.sqrt(d)).unsqueeze(1))
    return {
        "set_up": set_up,
        "step": min(times),
        "recompute_one": _now(device) - start,
        "value": math.sqrt(float(climb.squared.max())) / change.base_norm,
        "recomputed": float(value[0]),
    }


def _search(n: int, d: int, count: int, steps: int, device: torch.device) -> dict[str, float]:
    """The whole of word_sensitivity for words spread over the text, from three starts, without crossing."""
    phi = ws.RandomAttentionFeatures(d, device=device)
    words = [at * n // count for at in range(count)]
    start = _now(device)
    result = ws.word_sensitivity(phi, ws.gaussian_text(n, d), words, starts=3, generations=0, steps=steps)
    return {"whole": _now(device) - start, "value": result.value}


def _now(device: torch.device) -> float:
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


def _peak_memory(device: torch.device) -> int:
    """The most bytes held at once: on a GPU by tensors, on a CPU by this process."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated()
    return peak_bytes()


if __name__ == "__main__":
    main()
