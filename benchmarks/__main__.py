"""Run every benchmark in order: python -m benchmarks [--list] [--quick] [options of all of them]."""

import subprocess
import sys

BENCHMARKS = {
    "search": "random attention: every effort beside plain gradient ascent",
    "operations": "operations and waits a step of a search",
    "random_features": "random features on demand against dense matrices",
    "certificates": "upper bounds over attained values",
    "theory": "predictions against measurements",
    "generalization": "one changed word after learning, against a pseudo-inverse",
    "evaluation": "check, compare, explain and audit of an embedding model",
    "attack": "random problems attacked by code of its own",
}


def main() -> int:
    """List them; then run each in a process of its own, with the options given here. 1 if one failed."""
    print("Benchmarks, each run alone by python -m benchmarks.NAME:\n")
    for name, what in BENCHMARKS.items():
        print(f"  {name:<18} {what}")
    if {"--list", "-h", "--help"} & set(sys.argv[1:]):
        print("\npython -m benchmarks [--list] [--quick]")
        return 0
    failed = []
    for name in BENCHMARKS:
        print(flush=True)
        if subprocess.run([sys.executable, "-m", f"benchmarks.{name}", *sys.argv[1:]]).returncode != 0:
            failed.append(name)
    if failed:
        print(f"\nfailed: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
