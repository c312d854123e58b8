"""The price of the sensitivity penalty: CPU seconds of a training step with it and without.

python -m benchmarks.penalty [--steps 100] [--quick]

Batches of 32 texts, d = 32; the usual ShortSearch (8 texts, one word of each, 3 steps). Both kinds of steps take turns.
"""

import argparse
import time

import torch

import wordsens as ws
from benchmarks.reporting import header, table

ARCHITECTURES = {
    "dense": ws.training.Architecture(layer="dense"),
    "softmax": ws.training.Architecture(layer="softmax"),
    "relu": ws.training.Architecture(layer="relu"),
    "transformer, 4 layers": ws.training.Architecture.transformer(4),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    steps = 10 if arguments.quick else arguments.steps
    print(header("The sensitivity penalty: CPU time of a training step"))
    rows = []
    for n in (32, 128):
        task = ws.training.one_word_task(ws.training.TaskSize(n=n, d=32, training=256, validation=32, test=1))
        for name, one in ARCHITECTURES.items():
            spent = {"plain": 0.0, "penalty": 0.0}
            for turn in range(4):
                for kind in spent:
                    network = ws.training.build_network(one, n, 32)
                    penalty = ws.training.SensitivityPenalty(network.features, target=0.5, seed=turn)
                    control = ws.training.SensitivityControl(penalty) if kind == "penalty" else None
                    spent[kind] += _seconds(network, task, control, 5 + steps // 4) if turn else 0.0
            each = [1e3 * value / (3 * (5 + steps // 4)) for value in spent.values()]
            rows.append([name, str(n), f"{each[0]:.2f}", f"{each[1]:.2f}", f"{each[1] / each[0]:.2f}"])
    print(table("Milliseconds of CPU a step", ["network", "n", "plain", "with the penalty", "ratio"], rows))


def _seconds(
    network: ws.training.TextNetwork, task: ws.training.Task, control: ws.training.Control | None, steps: int
) -> float:
    """CPU seconds of a training, its look at the validation texts left out."""
    plan = ws.training.TrainingPlan(steps=steps, every=10**6)
    marks: list[float] = []
    ws.training.train(network, task, plan, control, progress=lambda done, most: marks.append(time.process_time()))
    return (marks[-2] - marks[0]) * steps / (steps - 2)


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
