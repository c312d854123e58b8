"""MiniLM tuned on four of the shipped domains and judged on two others, with reviews as a user's own texts.

    python -m benchmarks.tune TEXTS [--adapter parity] [--threads 2]

TEXTS is whatever `read_documents` reads, such as a Parquet file of IMDB reviews with a column `text`. Half of them is
trained on; of the other half come the 1,500 sentences among which each paraphrase of the two domains is looked for,
each way, beside the other texts of these pairs. Prints before and after in one run; the tuned model stays in --out.
"""

import argparse
import tempfile
import time
from pathlib import Path

import torch

import wordsens as ws
from benchmarks.reporting import header

APART = ("health", "law")
"""Domains by which no setting was chosen; docs/tune.md says how often they have judged."""


def main() -> None:
    """Tune, judge, compare, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("texts")
    parser.add_argument("--adapter", default=ws.training.TunePlan().adapter)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out")
    parser.add_argument("--compared", type=int, default=0, help="texts that `compare` takes; 0: none")
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    print(header("tune"))
    documents = ws.read_documents(given.texts, labels=False)
    begin, cpu, last = time.monotonic(), time.process_time(), [0.0]

    def told(now: str, share: float) -> None:
        if time.monotonic() - last[0] > 60:
            last[0] = time.monotonic()
            print(f"{share:.0%} {now} after {time.process_time() - cpu:.0f} s of processor time", flush=True)

    with tempfile.TemporaryDirectory() as folder:
        out = Path(given.out or f"{folder}/tuned")
        found = ws.training.tune(
            "minilm", out, texts=documents, plan=ws.training.TunePlan(adapter=given.adapter),
            held_out=ws.training.HeldOut(domains=APART), seed=given.seed, told=told,
        )  # fmt: skip
        print(f"{time.monotonic() - begin:.0f} s, {time.process_time() - cpu:.0f} s of processor time")
        print("\n".join(found.answer))
        for name, both in (("not trained on", found.unseen), ("trained on", found.seen)):
            print(f"\n| domains {name}: kind | pairs | AUC before | AUC | 95 % | opposite | paraphrase |")
            print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
            for row in both.rows(found.kinds):
                print(
                    f"| {row['kind']}{'' if row['trained'] else ' (kind not trained)'} | {row['pairs']} | "
                    f"{row['auc_before']:.3f} | {row['auc']:.3f} | {row['auc_low']:.2f} to {row['auc_high']:.2f} | "
                    f"{row['median_opposite_before']:.2f} > {row['median_opposite']:.2f} | "
                    f"{row['median_same_before']:.2f} > {row['median_same']:.2f} |"
                )
        if given.compared:
            print(ws.compare("minilm", str(out), documents[: given.compared], pairs="none"))


if __name__ == "__main__":
    main()
