"""Run every benchmark in order: python -m benchmarks [--list] [--quick] [options of all of them]."""

import importlib.util
import subprocess
import sys

BENCHMARKS = {
    "attention": "random attention: all words against the straightforward way for one; growth; random sampling",
    "every_word": "random attention: every word of ten reviews against plain gradient ascent",
    "race": "random attention: every effort against the thorough one and the straightforward way",
    "attention_search": "search rules and plans for attention at equal numbers of evaluations",
    "brackets": "upper bounds over attained values, known sups, other radii, time",
    "heads": "every head of MiniLM on its own input: attained values and upper bounds",
    "theory": "predictions against measurements",
    "random_features": "random features on demand against dense matrices",
    "generalization": "one changed word after learning: review embeddings, the paper's sizes, against a pseudo-inverse",
    "transformer_search": "search plans on a trained model",
    "penalty": "training: CPU time of a step with the sensitivity penalty and without",
    "minilm_layers": "every layer of MiniLM: S against n",
    "swaps": "real swaps: scan of a vocabulary, recall of the shortlist",
    "audit_speed": "an audit's search against the straightforward loop over words",
    "sweeps": "sweeps killed and resumed, what store and scheduler cost, 100,000 records",
}


def main() -> int:
    """List what there is; then run each in a process of its own, with the options given here. 1 if one failed."""
    print("Benchmarks, each run alone by python -m benchmarks.NAME:\n")
    for name, what in BENCHMARKS.items():
        print(f"  {name:<18} {what}")
    options = sys.argv[1:]
    if {"--list", "-h", "--help"} & set(options):
        print("\npython -m benchmarks [--list] [--quick]")
        return 0
    failed = []
    for name in BENCHMARKS:
        print(flush=True)
        if importlib.util.find_spec(f"benchmarks.{name}") is None:
            print(f"{name} skipped: benchmarks/{name}.py is not there")
        elif subprocess.run([sys.executable, "-m", f"benchmarks.{name}", *options]).returncode != 0:
            failed.append(name)
    if failed:
        print(f"\nfailed: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
