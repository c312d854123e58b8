"""Random attention: the sensitivity of all words against the straightforward way's for one.

    python -m benchmarks.attention [--section NAME ...] [--quick | --full] [--size 100x768 ...]

Sections: straightforward (time and value against autograd through the whole map), step (one step over all words against
the matrix products it is made of), scaling (time and memory as the text grows), sampling (captum's random sampling at
equal numbers of evaluations). With a GPU, each prints rows for it too.
"""

import argparse
import json
import math
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

import wordsens as ws
from benchmarks.reporting import devices, header, least_times, seconds, table, timed
from benchmarks.straightforward_attention import plain_ascent
from benchmarks.texts import MINILM_WIDTH, kinds
from wordsens.search.climb import RULES, Climb
from wordsens.sensitivity.one_word import attained


def plans(n: int) -> dict[str, dict[str, Any]]:
    """What is asked of word_sensitivity: the map's own plan, with and without the upper bounds, and a cheap one.

    From 200 words on a generation is cheap (maps/attention_reduced.py), so the cheap plan has more of them.
    """
    starts, generations = (24, 8) if n >= 200 else (12, 1)
    cheap = {"starts": starts, "generations": generations, "steps": 20, "tolerance": 1e-5, "certificate": False}
    return {
        "default, with bounds": {},
        "default": {"certificate": False},
        f"{starts} starts, {generations} crossings, 1e-5": cheap,
    }


@dataclass(frozen=True)
class Scale:
    """How much to run: sizes (n, d), words compared, rounds of timing, lengths for the exponents."""

    sizes: tuple[tuple[int, int], ...]
    words: int
    rounds: int
    lengths: tuple[int, ...]
    largest: int | None


SCALES = {
    "quick": Scale(sizes=((30, 96), (50, 192)), words=1, rounds=5, lengths=(64, 128, 256, 512), largest=None),
    "normal": Scale(
        sizes=((100, 768), (250, 768), (100, 384), (250, 384)),
        words=1,
        rounds=30,
        lengths=(128, 256, 512, 1024, 2048, 4096),
        largest=8192,
    ),
}
SCALES["full"] = replace(SCALES["normal"], words=5)


def straightforward(scale: Scale) -> None:
    """All words by word_sensitivity, against one word by plain autograd with one start and 50 n steps."""
    rows = []
    for device in devices():
        ws.word_sensitivity(ws.RandomAttentionFeatures(8, device=device), ws.gaussian_text(4, 8), steps=1)
        for n, d in scale.sizes:
            for kind, make in kinds().items():
                text = make(n, d, 0)
                phi = ws.RandomAttentionFeatures(d, device=device)
                X = text.rows.to(device)
                plain = _plain(phi, X, scale.words)
                for plan, wishes in plans(n).items():
                    rows.append([kind, str(n), str(d), device, plan, *_against(phi, X, plain, wishes, device)])
                print(".", end="", flush=True, file=sys.stderr)
    print(
        table(
            "All words, against the straightforward way for one word",
            [
                *("text", "n", "d", "device", "plan", "all words", "of it recomputing", "evaluations a word"),
                *("one word, plainly", "times faster", "a word", "value/plain: least", "mean", "S"),
            ],
            rows,
        )
    )
    print("\nWanted: at least 10 times faster at n=100 and 40 times at n=250 (d=768), value/plain at least .999.")
    print("review at d=768: the MiniLM embeddings (384) of two reviews side by side.")


def _plain(phi: ws.RandomAttentionFeatures, X: Tensor, count: int) -> dict[int, tuple[float, float]]:
    """Value and time of the straightforward way for words spread over the text."""
    found = {}
    for word in [round((at + 0.5) * len(X) / count) for at in range(count)]:
        values = []
        time = timed(lambda word=word, values=values: values.append(plain_ascent(phi.weight, X, word)[0]), X.device)
        found[word] = (values[0], time)
    return found


def _against(
    phi: ws.RandomAttentionFeatures,
    X: Tensor,
    plain: dict[int, tuple[float, float]],
    wishes: dict[str, Any],
    device: str,
) -> list[str]:
    results: list[ws.Sensitivity] = []
    ours = timed(lambda: results.append(ws.word_sensitivity(phi, X, **wishes)), device)
    (result,) = results
    recomputing = timed(lambda: attained(phi, X, result.words.unsqueeze(1), result.perturbations.unsqueeze(1)), device)
    theirs = sum(time for _, time in plain.values()) / len(plain)
    ratios = [float(result.per_word[word]) / value for word, (value, _) in plain.items()]
    return [
        seconds(ours),
        seconds(recomputing),
        f"{result.evaluations / len(X):.0f}",
        seconds(theirs),
        f"{theirs / ours:.3g}",
        f"{theirs / ours * len(X):,.0f}",
        f"{min(ratios):.4f}",
        f"{sum(ratios) / len(ratios):.4f}",
        f"{result.value:.4f}",
    ]


def step(scale: Scale) -> None:
    """One step over all words, evaluation and update, against the matrix products of the evaluation alone."""
    rows = []
    for device in devices():
        for n, d in scale.sizes:
            phi = ws.RandomAttentionFeatures(d, device=device)
            X = ws.gaussian_text(n, d).rows.to(device)
            words = torch.arange(n, device=device)
            change = phi.word_change(X)
            radius = phi.default_radius(X)
            points = torch.nn.functional.normalize(torch.randn_like(X), dim=1)
            stepping = []
            for name in RULES:
                climb = Climb(change, words, radius, points)
                rule = RULES[name](climb)
                for _ in range(6):  # until the rule's memory is full
                    rule.step(climb, 0.0)
                stepping.append(lambda rule=rule, climb=climb: rule.step(climb, 0.0))
            delta = points * math.sqrt(d)
            evaluate = lambda change=change, delta=delta, words=words: change.squared_norm_and_gradient(delta, words)  # noqa: E731
            products, evaluation, *steps = least_times(
                [_products(X, phi.weight), evaluate, *stepping], rounds=scale.rounds, device=device
            )
            flops = 2 * (8 * n * n * d + n * d * d)
            rows.append(
                [f"{n}", f"{d}", device, seconds(products), f"{flops / products / 1e9:.0f}", seconds(evaluation)]
                + [f"{evaluation / products:.2f}"]
                + [cell for time in steps for cell in (seconds(time), f"{time / products:.2f}")]
            )
    print(
        table(
            "One step over all words, against the matrix products it cannot avoid (torch.mm, float64)",
            ["n", "d", "device", "products", "GFLOP/s", "evaluation", "ratio"]
            + [cell for name in RULES for cell in (f"{name} step", "ratio")],
            rows,
        )
    )
    print("\nWanted: a step at most 2.5 times the products. Least times; what is measured takes turns.")
    print("Products: (n, d) by (d, 3n), (d, d), (d, n); (n, n) by (n, d); (n, 3n) by (3n, d).")


def _products(X: Tensor, weight: Tensor) -> Callable[[], None]:
    """The matrix products of one evaluation of all words, and nothing else."""
    n = len(X)
    stacked = X.repeat(3, 1)
    square, wide = (
        torch.rand(n, n, dtype=X.dtype, device=X.device),
        torch.rand(n, 3 * n, dtype=X.dtype, device=X.device),
    )

    def multiply() -> None:
        torch.mm(X, stacked.T)
        torch.mm(X, weight)
        torch.mm(square, X)
        torch.mm(X, X.T)
        torch.mm(wide, stacked)

    return multiply


def scaling(scale: Scale) -> None:
    """Time of a step and peak memory as n grows, each size in a process of its own; d = 384."""
    for device in devices():
        found = {n: _at_size(n, device) for n in scale.lengths}
        memory = {n: at["memory_peak"] - at["memory_before"] for n, at in found.items()}
        rows = [
            [f"{n:,}", device, seconds(at["set_up"]), seconds(at["step"]), f"{memory[n] / 1e6:,.0f} MB"]
            for n, at in found.items()
        ]
        print(
            table(
                "Growth with the number of words, d = 384, float64", ["n", "device", "set-up", "step", "memory"], rows
            )
        )
        half = list(scale.lengths)[len(scale.lengths) // 2 :]
        for what, lengths in (("all sizes", list(scale.lengths)), ("the larger half", half)):
            times = _exponent(lengths, [found[n]["step"] for n in lengths])
            sizes = _exponent(lengths, [max(memory[n], 1) for n in lengths])
            print(f"\nFitted exponents over {what}: time n^{times:.2f}, memory n^{sizes:.2f} (wanted: at most 2).")
        if scale.largest is not None:
            n, wanted = scale.largest, "(wanted: under 4)"
            at = _at_size(n, device, "--steps", "2")
            print(f"\nn = {n:,}, all words at once, {device}: set-up {seconds(at['set_up'])}, ", end="")
            print(f"a step {seconds(at['step'])}, peak of the whole process {_gigabytes(at)} {wanted};")
            print(f"its best word {at['value']:.9f}, through the map {at['recomputed']:.9f}", end="")
            print(f" ({seconds(at['recompute_one'])}).")
            at = _at_size(n, device, "--search", "4", "--steps", "20")
            print(f"word_sensitivity of 4 of its words: {seconds(at['whole'])}, peak {_gigabytes(at)} {wanted}.")


def _gigabytes(at: dict[str, float]) -> str:
    return f"{at['memory_peak'] / 1e9:.2f} GB"


def _at_size(n: int, device: str, *options: str) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.attention_at_size", "--words", str(n), "--device", device]
    command += ["--threads", str(torch.get_num_threads()), *options]
    print(".", end="", flush=True, file=sys.stderr)
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


def _exponent(sizes: list[int], values: list[float]) -> float:
    """The slope of log value against log size, by least squares."""
    x = torch.tensor(sizes, dtype=torch.float64).log()
    y = torch.tensor(values, dtype=torch.float64).log()
    return float(((x - x.mean()) * (y - y.mean())).sum() / (x - x.mean()).square().sum())


def sampling(scale: Scale) -> None:
    """What captum's sensitivity_max finds by sampling, with as many evaluations a word as ours, and ten times more."""
    try:
        from captum.metrics import sensitivity_max
    except ImportError:
        print("\nsampling skipped: captum is not installed (pip install captum)")
        return
    rows = []
    for device in devices():
        for n, d in scale.sizes[:1] if scale.largest is None else ((50, MINILM_WIDTH), (100, 768)):
            for kind, make in kinds().items():
                X = make(n, d, 0).rows.to(device)
                phi = ws.RandomAttentionFeatures(d, device=device)
                ours = ws.word_sensitivity(phi, X)
                evaluations = round(ours.evaluations / n)
                torch.manual_seed(0)
                values = [
                    float(
                        sensitivity_max(
                            lambda texts, phi=phi: _for_captum(phi, texts),
                            X.unsqueeze(0),
                            perturb_func=lambda texts, radius, word=ours.word: _on_sphere(texts, radius, word),
                            perturb_radius=math.sqrt(d),
                            n_perturb_samples=evaluations * times,
                            max_examples_per_batch=32,
                        )
                    )
                    for times in (1, 10)
                ]
                rows.append(
                    [
                        *(kind, str(n), str(d), device, str(evaluations), f"{values[0]:.4f}", f"{values[1]:.4f}"),
                        *(f"{ours.value:.4f}", f"{ours.value / values[0]:.2f}"),
                    ]
                )
    print(
        table(
            "Random sampling (captum sensitivity_max) against the search, for the most sensitive word",
            ["text", "n", "d", "device", "evaluations", "sampling", "sampling, 10 times more", "ours", "ours/sampling"],
            rows,
        )
    )


def _for_captum(phi: ws.RandomAttentionFeatures, texts: Any) -> Any:
    """captum hands over the text in a tuple and wants its features in one; the perturbed texts come as they are."""
    return (phi(texts[0]),) if isinstance(texts, tuple) else phi(texts)


def _on_sphere(texts: Tensor, radius: float, word: int) -> Tensor:
    """The texts with a uniform point of the sphere added to one word of each."""
    moved = texts.clone()
    moved[:, word] += radius * torch.nn.functional.normalize(torch.randn_like(texts[:, word]), dim=-1)
    return moved


SECTIONS = {"straightforward": straightforward, "step": step, "scaling": scaling, "sampling": sampling}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--section", action="append", choices=list(SECTIONS), help="only this one; may be repeated")
    amount = parser.add_mutually_exclusive_group()
    amount.add_argument("--quick", action="store_const", const="quick", dest="scale", help="small sizes, a minute")
    amount.add_argument("--full", action="store_const", const="full", dest="scale", help="five words compared a text")
    parser.add_argument("--size", action="append", type=_size, help="n x d, like 100x768, in place of the usual sizes")
    parser.add_argument("--threads", type=int, help="torch threads; torch's own choice unless given")
    options = parser.parse_args()
    if options.threads is not None:
        torch.set_num_threads(options.threads)
    scale = SCALES[options.scale or "normal"]
    if options.size:
        scale = replace(scale, sizes=tuple(options.size))
    print(header("Random attention"))
    for name in options.section or SECTIONS:
        SECTIONS[name](scale)


def _size(text: str) -> tuple[int, int]:
    n, d = text.split("x")
    return int(n), int(d)


if __name__ == "__main__":
    main()
